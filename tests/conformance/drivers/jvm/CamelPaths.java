import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.camel.CamelContext;
import org.apache.camel.Exchange;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.rabbitmq.RabbitMQConstants;
import org.apache.camel.impl.DefaultCamelContext;

/** The usual paths of Apache Camel's component for RabbitMQ. */
public final class CamelPaths {

    private static final long WAIT_S = 60;
    private static final CamelContext CAMEL = new DefaultCamelContext();
    private static int names;
    private static ProducerTemplate template;

    interface Step {
        void take(Exchange exchange) throws Exception;
    }

    private static String name() {
        return Checks.PREFIX + "camel." + names++;
    }

    private static String at(String exchange, String options) {
        return "rabbitmq:" + exchange + "?addresses=" + Checks.PLACE.getHost() + ":" + Checks.PLACE.getPort()
            + "&username=guest&password=guest&" + options;
    }

    private static void route(String from, Step step) throws Exception {
        CAMEL.addRoutes(new RouteBuilder() {
            @Override
            public void configure() {
                errorHandler(noErrorHandler());
                from(from).process(step::take);
            }
        });
    }

    private static LinkedBlockingQueue<String> collected(String from) throws Exception {
        var got = new LinkedBlockingQueue<String>();
        route(from, exchange -> got.add(exchange.getMessage().getBody(String.class)));
        return got;
    }

    private static void next(LinkedBlockingQueue<String> got, String... texts) throws Exception {
        for (String text : texts) {
            Checks.same(text, got.poll(WAIT_S, TimeUnit.SECONDS));
        }
    }

    private static void plain() {
        Checks.check("camel send and receive", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false";
            var got = collected(at(name, options));
            for (String one : List.of("1", "2", "3")) {
                template.sendBody(at(name, options), one);
            }
            next(got, "1", "2", "3");
        });
        Checks.check("camel headers and properties", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false";
            var seen = new LinkedBlockingQueue<Map<String, Object>>();
            route(at(name, options), exchange -> seen.add(Map.copyOf(exchange.getMessage().getHeaders())));
            template.sendBodyAndHeaders(at(name, options), "x", Map.of(
                RabbitMQConstants.CORRELATIONID, "c", RabbitMQConstants.CONTENT_TYPE, "text/plain",
                RabbitMQConstants.PRIORITY, 3, "own", "v", "number", 5));
            var headers = seen.poll(WAIT_S, TimeUnit.SECONDS);
            Checks.same("c", headers.get(RabbitMQConstants.CORRELATIONID));
            Checks.same("text/plain", headers.get(RabbitMQConstants.CONTENT_TYPE));
            Checks.same(3, headers.get(RabbitMQConstants.PRIORITY));
            Checks.same("v", String.valueOf(headers.get("own")));
            Checks.same(5, headers.get("number"));
        });
        Checks.check("camel topic", () -> {
            String name = name();
            String options = "exchangeType=topic&autoDelete=false";
            var red = collected(at(name, options + "&queue=" + name() + "&routingKey=a.*.red"));
            var all = collected(at(name, options + "&queue=" + name() + "&routingKey=a.%23"));
            String out = at(name, options + "&skipQueueDeclare=true&skipQueueBind=true");
            template.sendBodyAndHeader(out, "1", RabbitMQConstants.ROUTING_KEY, "a.b.blue");
            template.sendBodyAndHeader(out, "2", RabbitMQConstants.ROUTING_KEY, "a.b.red");
            next(all, "1", "2");
            next(red, "2");
        });
        Checks.check("camel fanout", () -> {
            String name = name();
            var one = collected(at(name, "exchangeType=fanout&queue=" + name()));
            var two = collected(at(name, "exchangeType=fanout&queue=" + name()));
            template.sendBody(at(name, "exchangeType=fanout&skipQueueDeclare=true&skipQueueBind=true"), "x");
            next(one, "x");
            next(two, "x");
        });
        Checks.check("camel the default exchange", () -> {
            String name = name();
            String options = "skipExchangeDeclare=true&skipQueueBind=true";
            var got = collected(at("", options + "&autoDelete=false&queue=" + name));
            String out = at("", options + "&skipQueueDeclare=true");
            template.sendBodyAndHeader(out, "x", RabbitMQConstants.ROUTING_KEY, name);
            next(got, "x");
        });
    }

    private static void promises() {
        Checks.check("camel confirms", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false&publisherAcknowledgements=true";
            for (int at = 0; at < 50; at++) {
                template.sendBody(at(name, options), "" + at);
            }
            var got = collected(at(name, "queue=" + name + "&routingKey=k&autoDelete=false"));
            next(got, "0", "1", "2");
        });
        Checks.check("camel guaranteed deliveries", () -> {
            String options = "guaranteedDeliveries=true&mandatory=true&routingKey=nowhere&skipQueueDeclare=true"
                + "&skipQueueBind=true";
            Checks.refused("basic.return", () -> template.sendBody(at(name(), options), "x"));
        });
        Checks.check("camel acknowledges after the route", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false&autoAck=false&prefetchEnabled=true"
                + "&prefetchCount=1&prefetchSize=0&prefetchGlobal=false";
            var times = new AtomicInteger();
            var got = new LinkedBlockingQueue<String>();
            route(at(name, options + "&reQueue=true"), exchange -> {
                if (times.getAndIncrement() == 0) {
                    exchange.getMessage().setHeader(RabbitMQConstants.REQUEUE, true);
                    throw new IllegalStateException("once");
                }
                got.add(exchange.getMessage().getBody(String.class));
            });
            template.sendBody(at(name, "queue=" + name + "&routingKey=k&autoDelete=false"), "x");
            next(got, "x");
            Checks.same(2, times.get());
        });
        Checks.check("camel dead letters", () -> {
            String name = name();
            String dead = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false&autoAck=false&deadLetterExchange=" + dead
                + "&deadLetterQueue=" + dead + "&deadLetterRoutingKey=dead&deadLetterExchangeType=direct";
            route(at(name, options), exchange -> {
                throw new IllegalStateException("never");
            });
            var got = collected(at(dead, "queue=" + dead + "&routingKey=dead&autoDelete=false"));
            template.sendBody(at(name, "skipQueueDeclare=true&skipQueueBind=true&autoDelete=false&routingKey=k"), "x");
            next(got, "x");
        });
        Checks.check("camel request and reply", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false";
            route(at(name, options), exchange ->
                exchange.getMessage().setBody("re " + exchange.getMessage().getBody(String.class)));
            for (String question : List.of("a", "b")) {
                Object answer = template.requestBody(at(name, options + "&requestTimeout=60000"), question);
                Checks.same("re " + question, answer instanceof byte[] bytes ? new String(bytes) : answer);
            }
        });
        Checks.check("camel arguments", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false&arg.queue.x-max-priority=5"
                + "&arg.queue.x-queue-mode=lazy&arg.queue.x-message-ttl=60000";
            String out = at(name, options);
            for (var one : List.of(1, 4)) {
                template.sendBodyAndHeader(out, "" + one, RabbitMQConstants.PRIORITY, one);
            }
            next(collected(at(name, options)), "4", "1");
        });
        Checks.check("camel several consumers", () -> {
            String name = name();
            String options = "queue=" + name + "&routingKey=k&autoDelete=false";
            var got = collected(at(name, options + "&concurrentConsumers=4&threadPoolSize=4"));
            for (int at = 0; at < 100; at++) {
                template.sendBody(at(name, options), "" + at);
            }
            Checks.eventually(() -> got.size() == 100);
        });
    }

    public static void main(String[] arguments) throws Exception {
        CAMEL.start();
        template = CAMEL.createProducerTemplate();
        plain();
        promises();
        Checks.end();
    }
}
