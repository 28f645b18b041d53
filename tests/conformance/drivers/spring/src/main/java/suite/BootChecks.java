package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.that;
import static suite.Checks.until;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

import com.rabbitmq.client.BlockedListener;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.springframework.amqp.core.AmqpAdmin;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.annotation.Argument;
import org.springframework.amqp.rabbit.annotation.Exchange;
import org.springframework.amqp.rabbit.annotation.QueueBinding;
import org.springframework.amqp.rabbit.annotation.RabbitHandler;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionBlockedEvent;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionUnblockedEvent;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.MessageListenerContainer;
import org.springframework.amqp.rabbit.listener.RabbitListenerEndpointRegistry;
import org.springframework.amqp.support.AmqpHeaders;
import org.springframework.amqp.support.converter.Jackson2JsonMessageConverter;
import org.springframework.amqp.support.converter.MessageConverter;
import org.springframework.boot.actuate.amqp.RabbitHealthIndicator;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.amqp.SimpleRabbitListenerContainerFactoryConfigurer;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.handler.annotation.SendTo;

/** A Boot application with annotated listeners, as its starter sets it up: listeners, retry, batches, health, metrics, blocking. */
final class BootChecks {

    private static final long WAIT_MS = 30_000;

    static final String ID = java.util.UUID.randomUUID().toString().substring(0, 8);

    private static ConfigurableApplicationContext context;

    private static RabbitTemplate template;

    private BootChecks() {
    }

    public record Order(String id, int amount) {
    }

    public record Refund(String id) {
    }

    /** The settings that every context of this driver starts with. */
    static Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "spring.rabbitmq.addresses", Broker.HOST + ":" + Broker.PORT, "spring.main.banner-mode", "off",
            "spring.main.web-application-type", "none", "spring.cloud.bus.enabled", "false", "logging.level.root", "OFF",
            "spring.cloud.function.definition", "", "suite.id", ID));
        settings.putAll(more);
        return settings;
    }

    static ConfigurableApplicationContext start(Class<?> application, Map<String, Object> more) {
        String[] arguments = settings(more).entrySet().stream().map(one -> "--" + one.getKey() + "=" + one.getValue())
            .toArray(String[]::new);
        return new SpringApplicationBuilder(application).run(arguments);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        final List<String> seen = new CopyOnWriteArrayList<>();

        final List<ApplicationEvent> events = new CopyOnWriteArrayList<>();

        final AtomicInteger tries = new AtomicInteger();

        @Bean
        static MessageConverter converter() {
            return new Jackson2JsonMessageConverter("suite");
        }

        @Bean
        static MeterRegistry registry() {
            return new SimpleMeterRegistry();
        }

        @Bean
        static Queue dead() {
            return new Queue("suite.boot.dead." + ID, false);
        }

        @Bean
        static Queue plain() {
            return new Queue("suite.boot.plain." + ID, false);
        }

        @Bean
        static Queue asked() {
            return new Queue("suite.boot.asked." + ID, false);
        }

        @Bean
        static Queue batch() {
            return new Queue("suite.boot.batch." + ID, false);
        }

        @Bean
        static Handlers handlers() {
            return new Handlers();
        }

        @Bean
        static SimpleRabbitListenerContainerFactory batches(SimpleRabbitListenerContainerFactoryConfigurer configurer, ConnectionFactory connections) {
            SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
            configurer.configure(factory, connections);
            factory.setBatchListener(true);
            factory.setConsumerBatchEnabled(true);
            factory.setBatchSize(4);
            factory.setBatchReceiveTimeout(500L);
            return factory;
        }

        @RabbitListener(bindings = @QueueBinding(
            value = @org.springframework.amqp.rabbit.annotation.Queue(name = "suite.boot.orders.${suite.id}", durable = "false",
                arguments = { @Argument(name = "x-message-ttl", value = "60000", type = "java.lang.Integer") }),
            exchange = @Exchange(name = "suite.boot.exchange.${suite.id}", type = "topic", autoDelete = "true"),
            key = { "order.*", "bill.#" }))
        void order(@Payload Order order, @Header(AmqpHeaders.RECEIVED_ROUTING_KEY) String key, @Header(name = "who", required = false) String who) {
            this.seen.add(order + " " + key + " " + who);
        }

        @RabbitListener(queues = "suite.boot.asked.${suite.id}", concurrency = "1-3")
        Order answer(Order order) {
            return new Order(order.id(), order.amount() * 2);
        }

        @RabbitListener(queuesToDeclare = @org.springframework.amqp.rabbit.annotation.Queue(name = "suite.boot.later.${suite.id}", durable = "false"))
        @SendTo("suite.boot.plain.${suite.id}")
        CompletableFuture<Order> later(Order order) {
            return CompletableFuture.supplyAsync(() -> new Order(order.id() + "!", order.amount()));
        }

        @RabbitListener(queuesToDeclare = @org.springframework.amqp.rabbit.annotation.Queue(name = "suite.boot.retried.${suite.id}", durable = "false",
            arguments = { @Argument(name = "x-dead-letter-exchange", value = ""),
                @Argument(name = "x-dead-letter-routing-key", value = "suite.boot.dead.${suite.id}") }))
        void retried(Order order) {
            this.tries.incrementAndGet();
            throw new IllegalStateException("never");
        }

        @RabbitListener(queues = "suite.boot.batch.${suite.id}", containerFactory = "batches")
        void batch(List<Order> orders) {
            this.seen.add("batch of " + orders.size());
        }

        @RabbitListener(id = "anonymous", queuesToDeclare = @org.springframework.amqp.rabbit.annotation.Queue)
        void anonymous(Order order) {
            this.seen.add("anonymous " + order.id());
        }

        @RabbitListener(id = "sleeper", autoStartup = "false", queuesToDeclare = @org.springframework.amqp.rabbit.annotation.Queue(
            name = "suite.boot.sleeper.${suite.id}", durable = "false"), ackMode = "MANUAL")
        void sleeper(Order order, com.rabbitmq.client.Channel channel, @Header(AmqpHeaders.DELIVERY_TAG) long tag) throws Exception {
            channel.basicAck(tag, false);
            this.seen.add("sleeper " + order.id());
        }

        @EventListener
        void on(ApplicationEvent event) {
            this.events.add(event);
        }

    }

    @RabbitListener(queuesToDeclare = @org.springframework.amqp.rabbit.annotation.Queue(name = "suite.boot.kinds.${suite.id}", durable = "false"))
    static class Handlers {

        final List<String> seen = new CopyOnWriteArrayList<>();

        @RabbitHandler
        void order(Order order) {
            this.seen.add("order " + order.id());
        }

        @RabbitHandler
        void refund(Refund refund) {
            this.seen.add("refund " + refund.id());
        }

        @RabbitHandler(isDefault = true)
        void other(Object other) {
            this.seen.add("other");
        }

    }

    static void all() {
        context = start(Application.class, Map.of(
            "spring.rabbitmq.listener.simple.retry.enabled", "true", "spring.rabbitmq.listener.simple.retry.initial-interval", "20ms",
            "spring.rabbitmq.listener.simple.retry.max-attempts", "3", "spring.rabbitmq.publisher-confirm-type", "correlated",
            "spring.rabbitmq.publisher-returns", "true", "spring.rabbitmq.template.mandatory", "true",
            "spring.rabbitmq.template.reply-timeout", "30s", "management.metrics.enable.all", "true"));
        template = context.getBean(RabbitTemplate.class);
        Application application = context.getBean(Application.class);
        listeners(application);
        health(application);
        AmqpAdmin admin = context.getBean(AmqpAdmin.class);
        for (String one : List.of("dead", "plain", "asked", "batch", "orders", "later", "retried", "sleeper", "kinds")) {
            admin.deleteQueue("suite.boot." + one + "." + ID);
        }
        context.close();
    }

    private static String of(String queue) {
        return "suite.boot." + queue + "." + ID;
    }

    private static void listeners(Application application) {
        check("boot: a listener with its binding, headers and a record", () -> {
            template.convertAndSend(of("exchange"), "order.new", new Order("1", 2), message -> {
                message.getMessageProperties().setHeader("who", "me");
                return message;
            });
            template.convertAndSend(of("exchange"), "bill.a.b", new Order("2", 3));
            until("both", () -> application.seen.size() == 2);
            equal(List.of("Order[id=1, amount=2] order.new me", "Order[id=2, amount=3] bill.a.b null"), application.seen);
        });
        check("boot: a listener answers", () -> equal(new Order("1", 4), template.convertSendAndReceive(of("asked"), new Order("1", 2))));
        check("boot: a future's value goes on to another queue", () -> {
            template.convertAndSend(of("later"), new Order("f", 1));
            equal(new Order("f!", 1), template.receiveAndConvert(of("plain"), WAIT_MS));
        });
        check("boot: retries by properties, then the dead letters", () -> {
            template.convertAndSend(of("retried"), new Order("r", 1));
            Message message = template.receive(of("dead"), WAIT_MS);
            equal("rejected", message.getMessageProperties().getXDeathHeader().get(0).get("reason"));
            equal(3, application.tries.get());
        });
        check("boot: a listener of batches", () -> {
            for (int i = 0; i < 6; i++) {
                template.convertAndSend(of("batch"), new Order("b" + i, i));
            }
            until("all six in batches: " + application.seen, () -> application.seen.stream().filter(one -> one.startsWith("batch of "))
                .mapToInt(one -> Integer.parseInt(one.substring(9))).sum() == 6);
        });
        check("boot: handlers by type", () -> {
            Handlers handlers = context.getBean(Handlers.class);
            template.convertAndSend(of("kinds"), new Order("1", 1));
            template.convertAndSend(of("kinds"), new Refund("2"));
            until("both", () -> handlers.seen.size() == 2);
            equal(List.of("order 1", "refund 2"), handlers.seen);
        });
        check("boot: an anonymous queue, and after the connection is lost another", () -> {
            RabbitListenerEndpointRegistry registry = context.getBean(RabbitListenerEndpointRegistry.class);
            var container = (org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer) registry.getListenerContainer("anonymous");
            String queue = container.getQueueNames()[0];
            contains("spring.gen-", queue);
            template.convertAndSend(queue, new Order("one", 1));
            until("one", () -> application.seen.contains("anonymous one"));
            Broker.ctl("close_all_connections", "suite");
            until("two", () -> {
                try {
                    template.convertAndSend(queue, new Order("two", 1));
                }
                catch (org.springframework.amqp.AmqpException lost) {
                    return false;
                }
                Thread.sleep(300);
                return application.seen.contains("anonymous two");
            });
        });
        check("boot: a listener is started and stopped by its id", () -> {
            MessageListenerContainer container = context.getBean(RabbitListenerEndpointRegistry.class).getListenerContainer("sleeper");
            template.convertAndSend(of("sleeper"), new Order("s", 1));
            equal(false, container.isRunning());
            container.start();
            until("seen", () -> application.seen.contains("sleeper s"));
            container.stop();
        });
    }

    private static void health(Application application) {
        check("boot: health is up and tells the version", () -> {
            Health health = context.getBean(RabbitHealthIndicator.class).health();
            equal("UP", health.getStatus().getCode());
            String version = String.valueOf(health.getDetails().get("version"));
            that(version.matches("3\\.1\\d\\.\\d+.*"), "version " + version);
        });
        check("boot: health is down where there is no broker", () -> {
            CachingConnectionFactory nobody = new CachingConnectionFactory(Broker.HOST, 1);
            equal("DOWN", new RabbitHealthIndicator(new RabbitTemplate(nobody)).health().getStatus().getCode());
            nobody.destroy();
        });
        check("boot: metrics of client and listeners", () -> {
            MeterRegistry meters = context.getBean(MeterRegistry.class);
            for (String one : List.of("rabbitmq.published", "rabbitmq.acknowledged", "rabbitmq.consumed", "rabbitmq.acknowledged_published")) {
                until(one, () -> meters.get(one).counter().count() > 0);
            }
            that(meters.get("rabbitmq.connections").gauge().value() >= 1, "no connection");
            that(meters.find("spring.rabbitmq.listener").timers().stream().mapToLong(io.micrometer.core.instrument.Timer::count).sum() > 5, "no listener");
        });
        check("boot: a connection is told that it is blocked and that it is not", () -> {
            List<String> told = new CopyOnWriteArrayList<>();
            CachingConnectionFactory own = Broker.factory();
            own.setApplicationContext(context);
            own.setApplicationEventPublisher(context);
            own.createConnection().addBlockedListener(new BlockedListener() {

                @Override
                public void handleBlocked(String reason) {
                    told.add("blocked: " + reason);
                }

                @Override
                public void handleUnblocked() {
                    told.add("unblocked");
                }

            });
            try {
                Broker.ctl("set_vm_memory_high_watermark", "0.000001");
                RabbitTemplate publishing = new RabbitTemplate(own);
                until("blocked", () -> {
                    publishing.convertAndSend("amq.fanout", "", "x");
                    return !told.isEmpty();
                });
            }
            finally {
                Broker.ctl("set_vm_memory_high_watermark", "0.4");
            }
            until("unblocked", () -> told.size() == 2);
            equal(List.of("blocked: low on memory", "unblocked"), told);
            until("Spring's events", () -> application.events.stream().anyMatch(ConnectionBlockedEvent.class::isInstance)
                && application.events.stream().anyMatch(ConnectionUnblockedEvent.class::isInstance));
        });
    }

}
