import static reactor.rabbitmq.BindingSpecification.binding;
import static reactor.rabbitmq.ExchangeSpecification.exchange;
import static reactor.rabbitmq.QueueSpecification.queue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.rabbitmq.ConsumeOptions;
import reactor.rabbitmq.OutboundMessage;
import reactor.rabbitmq.OutboundMessageResult;
import reactor.rabbitmq.RabbitFlux;
import reactor.rabbitmq.Receiver;
import reactor.rabbitmq.ReceiverOptions;
import reactor.rabbitmq.RpcClient;
import reactor.rabbitmq.SendOptions;
import reactor.rabbitmq.Sender;
import reactor.rabbitmq.SenderOptions;

/** The usual paths of Reactor RabbitMQ. */
public final class ReactorPaths {

    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final int MANY = 500;
    private static int names;
    private static Sender sender;
    private static Receiver receiver;

    private static String declared() {
        String name = Checks.PREFIX + "reactor." + names++;
        sender.declareQueue(queue(name)).block(WAIT);
        return name;
    }

    private static OutboundMessage to(String queue, String text) {
        return new OutboundMessage("", queue, text.getBytes(StandardCharsets.UTF_8));
    }

    private static Flux<OutboundMessage> many(String queue) {
        return Flux.range(0, MANY).map(at -> to(queue, "" + at));
    }

    private static String text(Delivery delivery) {
        return new String(delivery.getBody(), StandardCharsets.UTF_8);
    }

    private static int waiting(String name) {
        return sender.declareQueue(queue(name)).map(AMQP.Queue.DeclareOk::getMessageCount).block(WAIT);
    }

    private static void sending() {
        Checks.check("reactor send and consume without acknowledgements", () -> {
            String name = declared();
            sender.send(many(name)).block(WAIT);
            List<String> got = receiver.consumeNoAck(name).map(ReactorPaths::text).take(MANY).collectList().block(WAIT);
            Checks.same("0", got.get(0));
            Checks.same("" + (MANY - 1), got.get(MANY - 1));
        });
        Checks.check("reactor confirms", () -> {
            String name = declared();
            Long acked = sender.sendWithPublishConfirms(many(name))
                .filter(OutboundMessageResult::isAck).count().block(WAIT);
            Checks.same((long) MANY, acked);
            Checks.same(MANY, waiting(name));
        });
        Checks.check("reactor returns what goes nowhere", () -> {
            var options = new SendOptions().trackReturned(true);
            String nowhere = Checks.PREFIX + "reactor.nowhere";
            OutboundMessageResult<?> told =
                sender.sendWithPublishConfirms(Mono.just(to(nowhere, "x")), options).blockFirst(WAIT);
            Checks.same(true, told.isAck());
            Checks.same(true, told.isReturned());
        });
        Checks.check("reactor a missing exchange", () -> Checks.refused("NOT_FOUND - no exchange", () -> {
            var message = new OutboundMessage(Checks.PREFIX + "missing", "k", new byte[0]);
            sender.sendWithPublishConfirms(Flux.just(message)).blockLast(WAIT);
        }));
        Checks.check("reactor publishing in bounds", () -> {
            String name = declared();
            var options = new SendOptions().maxInFlight(10);
            Checks.same((long) MANY, sender.sendWithPublishConfirms(many(name), options).count().block(WAIT));
        });
    }

    private static void receiving() {
        Checks.check("reactor acknowledges by itself", () -> {
            String name = declared();
            sender.send(many(name)).block(WAIT);
            Checks.same((long) MANY, receiver.consumeAutoAck(name).take(MANY).count().block(WAIT));
            Checks.eventually(() -> waiting(name) == 0);
        });
        Checks.check("reactor acknowledges by hand", () -> {
            String name = declared();
            sender.send(many(name)).block(WAIT);
            var options = new ConsumeOptions().qos(7);
            Checks.same((long) MANY, receiver.consumeManualAck(name, options).take(MANY)
                .doOnNext(one -> one.ack()).count().block(WAIT));
            Checks.eventually(() -> waiting(name) == 0);
        });
        Checks.check("reactor a message comes again", () -> {
            String name = declared();
            sender.send(Mono.just(to(name, "x"))).block(WAIT);
            var times = new AtomicInteger();
            Boolean again = receiver.consumeManualAck(name).map(one -> {
                if (times.getAndIncrement() == 0) {
                    one.nack(true);
                } else {
                    one.ack();
                }
                return one.getEnvelope().isRedeliver();
            }).take(2).blockLast(WAIT);
            Checks.same(true, again);
        });
        Checks.check("reactor what is taken is bounded", () -> {
            String name = declared();
            sender.send(many(name)).block(WAIT);
            var options = new ConsumeOptions().qos(5);
            var got = new AtomicInteger();
            var running = receiver.consumeManualAck(name, options).subscribe(one -> got.incrementAndGet());
            Checks.eventually(() -> got.get() == 5 && waiting(name) == MANY - 5);
            running.dispose();
            Checks.eventually(() -> waiting(name) == MANY);
        });
        Checks.check("reactor request and reply", () -> {
            String name = declared();
            var serving = receiver.consumeAutoAck(name).flatMap(one -> sender.send(Mono.just(new OutboundMessage(
                "", one.getProperties().getReplyTo(),
                new AMQP.BasicProperties.Builder().correlationId(one.getProperties().getCorrelationId()).build(),
                ("re " + text(one)).getBytes(StandardCharsets.UTF_8))))).subscribe();
            RpcClient client = sender.rpcClient("", name);
            for (String question : List.of("a", "b", "c")) {
                var asked = new RpcClient.RpcRequest(question.getBytes(StandardCharsets.UTF_8));
                Checks.same("re " + question, text(client.rpc(Mono.just(asked)).block(WAIT)));
            }
            client.close();
            serving.dispose();
        });
    }

    private static void resources() {
        Checks.check("reactor binds and unbinds", () -> {
            String name = declared();
            String from = Checks.PREFIX + "reactor.x";
            sender.declare(exchange(from).type("topic").durable(true)).block(WAIT);
            sender.bind(binding(from, "a.*", name)).block(WAIT);
            sender.send(Mono.just(new OutboundMessage(from, "a.b", new byte[1]))).block(WAIT);
            Checks.eventually(() -> waiting(name) == 1);
            sender.unbind(binding(from, "a.*", name)).block(WAIT);
            sender.sendWithPublishConfirms(Mono.just(new OutboundMessage(from, "a.b", new byte[1]))).blockLast(WAIT);
            Checks.same(1, waiting(name));
            sender.delete(exchange(from)).block(WAIT);
            Checks.same(1, sender.delete(queue(name)).block(WAIT).getMessageCount());
        });
        Checks.check("reactor declares a queue that is another", () -> {
            String name = declared();
            Checks.refused("inequivalent arg 'durable'",
                () -> sender.declareQueue(queue(name).durable(true)).block(WAIT));
            Checks.same(0, waiting(name));
        });
        Checks.check("reactor a queue that the broker names", () -> {
            String name = sender.declareQueue(queue()).block(WAIT).getQueue();
            Checks.same(true, name.startsWith("amq.gen-"));
        });
        Checks.check("reactor a consumer of a queue that goes", () -> {
            String name = declared();
            var ended = receiver.consumeNoAck(name).then().toFuture();
            Checks.eventually(() -> sender.declareQueue(queue(name)).block(WAIT).getConsumerCount() == 1);
            sender.delete(queue(name)).block(WAIT);
            Checks.eventually(ended::isDone);
        });
        Checks.check("reactor a queue that is not there", () -> Checks.refused("NOT_FOUND - no queue",
            () -> receiver.consumeNoAck(Checks.PREFIX + "missing").blockFirst(WAIT)));
    }

    public static void main(String[] arguments) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(Checks.URL);
        factory.useNio();
        sender = RabbitFlux.createSender(new SenderOptions().connectionFactory(factory));
        receiver = RabbitFlux.createReceiver(new ReceiverOptions().connectionFactory(factory));
        sending();
        receiving();
        resources();
        Checks.end();
    }
}
