import com.rabbitmq.client.AMQP;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.json.JsonObject;
import io.vertx.rabbitmq.QueueOptions;
import io.vertx.rabbitmq.RabbitMQClient;
import io.vertx.rabbitmq.RabbitMQConsumer;
import io.vertx.rabbitmq.RabbitMQMessage;
import io.vertx.rabbitmq.RabbitMQOptions;
import io.vertx.rabbitmq.RabbitMQPublisher;
import io.vertx.rabbitmq.RabbitMQPublisherOptions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The usual paths of Vert.x's client for RabbitMQ. */
public final class VertxPaths {

    private static final long WAIT_S = 60;
    private static final Vertx VERTX = Vertx.vertx();
    private static int names;
    private static RabbitMQClient client;

    private static String name() {
        return Checks.PREFIX + "vertx." + names++;
    }

    private static <T> T done(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(WAIT_S, TimeUnit.SECONDS);
    }

    private static RabbitMQClient started(RabbitMQOptions options) throws Exception {
        RabbitMQClient made = RabbitMQClient.create(VERTX, options.setUri(Checks.URL));
        done(made.start());
        return made;
    }

    private static String declared() throws Exception {
        String queue = name();
        done(client.queueDeclare(queue, true, false, false));
        return queue;
    }

    private static void publish(String queue, String... texts) throws Exception {
        for (String text : texts) {
            done(client.basicPublish("", queue, Buffer.buffer(text)));
        }
    }

    /** The handler is set where messages arrive, since the client hands over to it in turn only there. */
    private static LinkedBlockingQueue<RabbitMQMessage> collected(RabbitMQClient by, String queue, boolean isAcked)
        throws Exception {
        var got = new LinkedBlockingQueue<RabbitMQMessage>();
        done(by.basicConsumer(queue, new QueueOptions().setAutoAck(isAcked))
            .map(consumer -> consumer.handler(got::add)));
        return got;
    }

    private static RabbitMQMessage next(LinkedBlockingQueue<RabbitMQMessage> got) throws Exception {
        RabbitMQMessage message = got.poll(WAIT_S, TimeUnit.SECONDS);
        if (message == null) {
            throw new AssertionError("no message came");
        }
        return message;
    }

    private static void messages() {
        Checks.check("vertx publish and get", () -> {
            String queue = declared();
            var properties = new AMQP.BasicProperties.Builder().contentType("text/plain")
                .headers(Map.of("h", 1)).build();
            done(client.basicPublish("", queue, properties, Buffer.buffer("x")));
            Checks.eventually(() -> done(client.messageCount(queue)) == 1);
            RabbitMQMessage got = done(client.basicGet(queue, true));
            Checks.same("x", got.body().toString());
            Checks.same("text/plain", got.properties().getContentType());
            Checks.same(1, got.properties().getHeaders().get("h"));
            Checks.same(null, done(client.basicGet(queue, true)));
        });
        Checks.check("vertx consume", () -> {
            String queue = declared();
            publish(queue, "1", "2", "3");
            var got = collected(client, queue, true);
            for (String one : List.of("1", "2", "3")) {
                Checks.same(one, next(got).body().toString());
            }
        });
        Checks.check("vertx cancel", () -> {
            String queue = declared();
            RabbitMQConsumer consumer = done(client.basicConsumer(queue));
            done(consumer.cancel());
            publish(queue, "kept");
            Checks.eventually(() -> done(client.messageCount(queue)) == 1);
        });
        Checks.check("vertx acknowledge and put back", () -> {
            String queue = declared();
            publish(queue, "1", "2");
            var got = collected(client, queue, false);
            done(client.basicAck(next(got).envelope().getDeliveryTag(), false));
            done(client.basicNack(next(got).envelope().getDeliveryTag(), false, true));
            RabbitMQMessage again = next(got);
            Checks.same("2", again.body().toString());
            Checks.same(true, again.envelope().isRedeliver());
            done(client.basicAck(again.envelope().getDeliveryTag(), false));
        });
        Checks.check("vertx prefetch", () -> {
            RabbitMQClient other = started(new RabbitMQOptions());
            String queue = declared();
            publish(queue, "1", "2", "3");
            done(other.basicQos(2));
            var got = collected(other, queue, false);
            long tag = next(got).envelope().getDeliveryTag();
            next(got);
            Checks.same(null, got.poll(500, TimeUnit.MILLISECONDS));
            done(other.basicAck(tag, false));
            Checks.same("3", next(got).body().toString());
            done(other.stop());
        });
        Checks.check("vertx confirms", () -> {
            RabbitMQClient other = started(new RabbitMQOptions());
            done(other.confirmSelect());
            String queue = declared();
            done(other.basicPublish("", queue, Buffer.buffer("x")));
            done(other.waitForConfirms(20_000));
            Checks.same(1L, done(client.messageCount(queue)));
            done(other.stop());
        });
        Checks.check("vertx publisher", () -> {
            String queue = declared();
            RabbitMQClient other = started(new RabbitMQOptions());
            var publisher = RabbitMQPublisher.create(VERTX, other, new RabbitMQPublisherOptions());
            done(publisher.start());
            var confirmed = new LinkedBlockingQueue<String>();
            publisher.getConfirmationStream().handler(one -> confirmed.add(one.getMessageId()));
            for (int at = 0; at < 100; at++) {
                var properties = new AMQP.BasicProperties.Builder().messageId("" + at).build();
                publisher.publish("", queue, properties, Buffer.buffer("x"));
            }
            Checks.eventually(() -> confirmed.size() == 100);
            Checks.same(100L, done(client.messageCount(queue)));
            done(publisher.stop());
            done(other.stop());
        });
    }

    private static void resources() {
        Checks.check("vertx exchanges and bindings", () -> {
            String from = name();
            String between = name();
            String queue = declared();
            done(client.exchangeDeclare(from, "topic", true, false));
            done(client.exchangeDeclare(between, "headers", true, false));
            done(client.exchangeBind(between, from, "a.#"));
            done(client.queueBind(queue, between, "", Map.of("x-match", "any", "colour", "red")));
            var red = new AMQP.BasicProperties.Builder().headers(Map.of("colour", "red")).build();
            done(client.basicPublish(from, "a.b", red, Buffer.buffer("x")));
            Checks.eventually(() -> done(client.messageCount(queue)) == 1);
            done(client.queueUnbind(queue, between, "", Map.of("x-match", "any", "colour", "red")));
            done(client.exchangeUnbind(between, from, "a.#"));
            done(client.exchangeDelete(between));
            done(client.exchangeDelete(from));
        });
        Checks.check("vertx arguments of a queue", () -> {
            String dead = declared();
            String queue = name();
            var how = new JsonObject().put("x-message-ttl", 50).put("x-dead-letter-exchange", "")
                .put("x-dead-letter-routing-key", dead).put("x-queue-mode", "lazy");
            done(client.queueDeclare(queue, true, false, false, how));
            publish(queue, "x");
            Checks.eventually(() -> done(client.messageCount(dead)) == 1);
            Checks.same(true, done(client.basicGet(dead, true)).properties().getHeaders().containsKey("x-death"));
        });
        Checks.check("vertx delete if empty, if unused", () -> {
            String queue = declared();
            publish(queue, "x");
            Checks.eventually(() -> done(client.messageCount(queue)) == 1);
            RabbitMQClient other = started(new RabbitMQOptions());
            Checks.refused("PRECONDITION_FAILED", () -> done(other.queueDeleteIf(queue, true, true)));
            Checks.same(1, done(client.queueDelete(queue)).getMessageCount());
        });
        Checks.check("vertx a queue that the broker names", () ->
            Checks.same(true, done(client.queueDeclareAuto()).getString("queue").startsWith("amq.gen-")));
        Checks.check("vertx a queue that is not there", () -> {
            RabbitMQClient other = started(new RabbitMQOptions());
            Checks.refused("NOT_FOUND - no queue", () -> done(other.messageCount(name())));
        });
        Checks.check("vertx a consumer whose queue goes", () -> {
            String queue = declared();
            var consumer = done(client.basicConsumer(queue));
            var ended = new LinkedBlockingQueue<String>();
            consumer.endHandler(nothing -> ended.add("ended"));
            consumer.handler(message -> { });
            done(client.queueDelete(queue));
            Checks.same("ended", ended.poll(WAIT_S, TimeUnit.SECONDS));
        });
        Checks.check("vertx wrong password", () -> Checks.refused("ACCESS_REFUSED", () -> {
            var options = new RabbitMQOptions().setHost(Checks.PLACE.getHost()).setPort(Checks.PLACE.getPort())
                .setUser("guest").setPassword("wrong");
            done(RabbitMQClient.create(VERTX, options).start());
        }));
    }

    public static void main(String[] arguments) throws Exception {
        client = started(new RabbitMQOptions());
        messages();
        resources();
        Checks.end();
    }
}
