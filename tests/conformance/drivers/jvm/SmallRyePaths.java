import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.smallrye.reactive.messaging.rabbitmq.IncomingRabbitMQMetadata;
import io.smallrye.reactive.messaging.rabbitmq.OutgoingRabbitMQMetadata;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.eclipse.microprofile.reactive.messaging.Emitter;
import org.eclipse.microprofile.reactive.messaging.Incoming;
import org.eclipse.microprofile.reactive.messaging.Message;
import org.eclipse.microprofile.reactive.messaging.Metadata;
import org.jboss.weld.environment.se.Weld;

/** SmallRye's connector, which Quarkus has, in a container of its own. */
public final class SmallRyePaths {

    private static final long WAIT_S = 60;
    private static final String NAME = Checks.PREFIX + "smallrye.";

    /** An application: four channels in, one out. */
    @ApplicationScoped
    public static class Application {

        static final LinkedBlockingQueue<Message<String>> PLAIN = new LinkedBlockingQueue<>();
        static final LinkedBlockingQueue<Boolean> AGAIN = new LinkedBlockingQueue<>();
        static final AtomicInteger HELD = new AtomicInteger();

        @Inject
        @org.eclipse.microprofile.reactive.messaging.Channel("out")
        Emitter<String> out;

        // A client proxy has the bean's methods, not its fields.
        public Emitter<String> out() {
            return out;
        }

        @Incoming("plain")
        public CompletionStage<Void> plain(Message<String> message) {
            PLAIN.add(message);
            return message.ack();
        }

        @Incoming("rejected")
        public CompletionStage<Void> rejected(Message<String> message) {
            return message.nack(new IllegalStateException("no"));
        }

        @Incoming("requeued")
        public CompletionStage<Void> requeued(Message<String> message) {
            boolean isAgain = message.getMetadata(IncomingRabbitMQMetadata.class).orElseThrow().isRedeliver();
            AGAIN.add(isAgain);
            return isAgain ? message.ack() : message.nack(new IllegalStateException("once"));
        }

        @Incoming("held")
        public CompletionStage<Void> held(Message<String> message) {
            HELD.incrementAndGet();
            return new java.util.concurrent.CompletableFuture<>();
        }
    }

    private static void channel(String direction, String name, String... settings) {
        String prefix = "mp.messaging." + direction + "." + name + ".";
        System.setProperty(prefix + "connector", "smallrye-rabbitmq");
        System.setProperty(prefix + "tracing.enabled", "false");
        for (int at = 0; at < settings.length; at += 2) {
            System.setProperty(prefix + settings[at], settings[at + 1]);
        }
    }

    private static void configure() {
        System.setProperty("rabbitmq-host", Checks.PLACE.getHost());
        System.setProperty("rabbitmq-port", "" + Checks.PLACE.getPort());
        channel("incoming", "plain", "exchange.name", NAME + "x", "queue.name", NAME + "plain",
            "routing-keys", "plain.*", "queue.x-queue-mode", "lazy", "queue.x-max-priority", "5");
        channel("incoming", "rejected", "exchange.name", NAME + "x", "queue.name", NAME + "rejected",
            "routing-keys", "rejected", "auto-bind-dlq", "true", "dlx.declare", "true",
            "dead-letter-exchange", NAME + "dlx", "failure-strategy", "reject");
        channel("incoming", "requeued", "exchange.name", NAME + "x", "queue.name", NAME + "requeued",
            "routing-keys", "requeued", "failure-strategy", "requeue");
        channel("incoming", "held", "exchange.name", NAME + "x", "queue.name", NAME + "held",
            "routing-keys", "held", "max-outstanding-messages", "3", "queue.ttl", "600000",
            "queue.single-active-consumer", "true");
        channel("outgoing", "out", "exchange.name", NAME + "x", "publish-confirms", "true");
    }

    private static void send(Emitter<String> emitter, String key, String text) throws Exception {
        var done = new java.util.concurrent.CompletableFuture<Void>();
        var metadata = OutgoingRabbitMQMetadata.builder().withRoutingKey(key).withHeader("h", "v")
            .withCorrelationId("c").withPriority(4).build();
        emitter.send(Message.of(text, Metadata.of(metadata), () -> {
            done.complete(null);
            return java.util.concurrent.CompletableFuture.completedFuture(null);
        }, failed -> {
            done.completeExceptionally(failed);
            return java.util.concurrent.CompletableFuture.completedFuture(null);
        }));
        done.get(WAIT_S, TimeUnit.SECONDS);
    }

    private static void consumed(Connection connection, String queue) throws Exception {
        Checks.eventually(() -> {
            Channel asking = connection.createChannel();
            try {
                return asking.consumerCount(NAME + queue) == 1;
            } catch (java.io.IOException isNotThereYet) {
                return false;
            }
        });
    }

    private static void checks(Application application, Channel beside) {
        Checks.check("smallrye send and receive", () -> {
            send(application.out(), "plain.a", "x");
            Message<String> got = Application.PLAIN.poll(WAIT_S, TimeUnit.SECONDS);
            Checks.same("x", got.getPayload());
            var told = got.getMetadata(IncomingRabbitMQMetadata.class).orElseThrow();
            Checks.same("plain.a", told.getRoutingKey());
            Checks.same("c", told.getCorrelationId().orElse(null));
            Checks.same("v", told.getHeader("h", String.class).orElse(null));
            Checks.same(4, told.getPriority().orElse(0));
        });
        Checks.check("smallrye many, in order, confirmed", () -> {
            for (int at = 0; at < 100; at++) {
                send(application.out(), "plain.b", "" + at);
            }
            for (int at = 0; at < 100; at++) {
                Checks.same("" + at, Application.PLAIN.poll(WAIT_S, TimeUnit.SECONDS).getPayload());
            }
        });
        Checks.check("smallrye what others publish", () -> {
            var properties = new AMQP.BasicProperties.Builder().contentType("text/plain").build();
            beside.basicPublish(NAME + "x", "plain.c", properties, "é".getBytes(StandardCharsets.UTF_8));
            Checks.same("é", Application.PLAIN.poll(WAIT_S, TimeUnit.SECONDS).getPayload());
        });
        Checks.check("smallrye a dead letter", () -> {
            send(application.out(), "rejected", "x");
            Checks.eventually(() -> beside.messageCount(NAME + "rejected.dlq") == 1);
            var dead = beside.basicGet(NAME + "rejected.dlq", true);
            Checks.same("rejected", dead.getProps().getHeaders().get("x-first-death-reason").toString());
            Checks.same(NAME + "rejected", dead.getEnvelope().getRoutingKey());
        });
        Checks.check("smallrye a message comes again", () -> {
            send(application.out(), "requeued", "x");
            Checks.same(false, Application.AGAIN.poll(WAIT_S, TimeUnit.SECONDS));
            Checks.same(true, Application.AGAIN.poll(WAIT_S, TimeUnit.SECONDS));
        });
        Checks.check("smallrye what is taken is bounded", () -> {
            for (int at = 0; at < 10; at++) {
                send(application.out(), "held", "" + at);
            }
            Checks.eventually(() -> beside.messageCount(NAME + "held") == 7);
        });
    }

    public static void main(String[] arguments) throws Exception {
        configure();
        var factory = new ConnectionFactory();
        factory.setUri(Checks.URL);
        var weld = new Weld();
        weld.addBeanClass(Application.class);
        try (Connection connection = factory.newConnection(); var container = weld.initialize()) {
            for (String queue : List.of("plain", "rejected", "requeued", "held")) {
                consumed(connection, queue);
            }
            checks(container.select(Application.class).get(), connection.createChannel());
        }
        Checks.end();
    }
}
