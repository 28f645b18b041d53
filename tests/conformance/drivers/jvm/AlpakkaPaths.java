import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import akka.Done;
import akka.NotUsed;
import akka.actor.ActorSystem;
import akka.stream.alpakka.amqp.AmqpConnectionProvider;
import akka.stream.alpakka.amqp.AmqpUriConnectionProvider;
import akka.stream.alpakka.amqp.AmqpWriteSettings;
import akka.stream.alpakka.amqp.ExchangeDeclaration;
import akka.stream.alpakka.amqp.BindingDeclaration;
import akka.stream.alpakka.amqp.NamedQueueSourceSettings;
import akka.stream.alpakka.amqp.QueueDeclaration;
import akka.stream.alpakka.amqp.TemporaryQueueSourceSettings;
import akka.stream.alpakka.amqp.WriteMessage;
import akka.stream.alpakka.amqp.WriteResult;
import akka.stream.alpakka.amqp.javadsl.AmqpFlow;
import akka.stream.alpakka.amqp.javadsl.AmqpRpcFlow;
import akka.stream.alpakka.amqp.javadsl.AmqpSink;
import akka.stream.alpakka.amqp.javadsl.AmqpSource;
import akka.stream.alpakka.amqp.javadsl.CommittableReadResult;
import akka.stream.javadsl.Sink;
import akka.stream.javadsl.Source;
import akka.util.ByteString;

/** The usual paths of Alpakka's connector for AMQP. */
public final class AlpakkaPaths {

    private static final ActorSystem SYSTEM = ActorSystem.create("paths");
    private static final AmqpConnectionProvider THERE = AmqpUriConnectionProvider.create(Checks.URL);
    private static final int MANY = 200;
    private static int names;

    private static String name() {
        return Checks.PREFIX + "alpakka." + names++;
    }

    private static <T> T done(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    private static List<String> texts() {
        return IntStream.range(0, MANY).mapToObj(Integer::toString).collect(Collectors.toList());
    }

    private static Source<WriteMessage, NotUsed> messages() {
        return Source.from(texts()).map(one -> WriteMessage.create(ByteString.fromString(one)));
    }

    private static AmqpWriteSettings to(String queue) {
        return AmqpWriteSettings.create(THERE).withRoutingKey(queue)
            .withDeclaration(QueueDeclaration.create(queue).withDurable(true));
    }

    private static NamedQueueSourceSettings from(String queue) {
        return NamedQueueSourceSettings.create(THERE, queue)
            .withDeclaration(QueueDeclaration.create(queue).withDurable(true));
    }

    private static void fill(String queue) throws Exception {
        CompletionStage<Done> end = Source.from(texts()).map(ByteString::fromString)
            .runWith(AmqpSink.createSimple(to(queue)), SYSTEM);
        done(end);
    }

    private static List<String> drained(String queue) throws Exception {
        return done(AmqpSource.atMostOnceSource(from(queue), 10).map(one -> one.bytes().utf8String())
            .take(MANY).runWith(Sink.seq(), SYSTEM));
    }

    private static void streams() {
        Checks.check("alpakka sink and source", () -> {
            String queue = name();
            fill(queue);
            Checks.same(texts(), drained(queue));
        });
        Checks.check("alpakka flow with confirms", () -> {
            String queue = name();
            List<WriteResult> results = done(messages()
                .via(AmqpFlow.createWithConfirm(to(queue))).runWith(Sink.seq(), SYSTEM));
            Checks.same((long) MANY, results.stream().filter(WriteResult::confirmed).count());
            Checks.same(texts(), drained(queue));
        });
        Checks.check("alpakka flow with confirms at once", () -> {
            String queue = name();
            List<WriteResult> results = done(messages()
                .via(AmqpFlow.createWithConfirmUnordered(to(queue).withBufferSize(16))).runWith(Sink.seq(), SYSTEM));
            Checks.same((long) MANY, results.stream().filter(WriteResult::confirmed).count());
        });
        Checks.check("alpakka committable source", () -> {
            String queue = name();
            fill(queue);
            List<String> got = done(AmqpSource.committableSource(from(queue), 10)
                .mapAsync(1, one -> one.ack(false).thenApply(nothing -> one.message().bytes().utf8String()))
                .take(MANY).runWith(Sink.seq(), SYSTEM));
            Checks.same(texts(), got);
        });
        Checks.check("alpakka what is not acknowledged comes again", () -> {
            String queue = name();
            fill(queue);
            List<CommittableReadResult> held = done(AmqpSource.committableSource(from(queue), 10)
                .take(10).runWith(Sink.seq(), SYSTEM));
            Checks.same(10, held.size());
            Checks.eventually(() -> {
                var got = done(AmqpSource.atMostOnceSource(from(queue), 10).take(1).runWith(Sink.seq(), SYSTEM));
                return got.get(0).envelope().isRedeliver();
            });
        });
        Checks.check("alpakka nack puts back", () -> {
            String queue = name();
            fill(queue);
            var seen = new ArrayList<String>();
            done(AmqpSource.committableSource(from(queue), 1).mapAsync(1, one -> {
                seen.add(one.message().bytes().utf8String());
                return seen.size() == 1 ? one.nack(false, true) : one.ack(false);
            }).take(2).runWith(Sink.ignore(), SYSTEM));
            Checks.same(List.of("0", "0"), seen.subList(0, 2));
        });
    }

    private static void patterns() {
        Checks.check("alpakka publish and subscribe", () -> {
            String exchange = name();
            var declaration = ExchangeDeclaration.create(exchange, "fanout");
            var settings = TemporaryQueueSourceSettings.create(THERE, exchange).withDeclaration(declaration);
            var one = AmqpSource.atMostOnceSource(settings, 1).take(1).runWith(Sink.seq(), SYSTEM);
            var two = AmqpSource.atMostOnceSource(settings, 1).take(1).runWith(Sink.seq(), SYSTEM);
            var sink = AmqpSink.createSimple(
                AmqpWriteSettings.create(THERE).withExchange(exchange).withDeclaration(declaration));
            Source.repeat(ByteString.fromString("x")).throttle(10, java.time.Duration.ofSeconds(1)).take(600)
                .runWith(sink, SYSTEM);
            Checks.same("x", done(one).get(0).bytes().utf8String());
            Checks.same("x", done(two).get(0).bytes().utf8String());
        });
        Checks.check("alpakka topic", () -> {
            String exchange = name();
            String queue = name();
            var declarations = List.of(ExchangeDeclaration.create(exchange, "topic"),
                QueueDeclaration.create(queue), BindingDeclaration.create(queue, exchange).withRoutingKey("a.*"));
            done(Source.from(List.of("a.b", "b.b", "a.c"))
                .map(key -> WriteMessage.create(ByteString.fromString(key)).withRoutingKey(key))
                .runWith(AmqpSink.create(AmqpWriteSettings.create(THERE).withExchange(exchange)
                    .withDeclarations(new ArrayList<>(declarations))), SYSTEM));
            List<String> got = done(AmqpSource.atMostOnceSource(NamedQueueSourceSettings.create(THERE, queue), 1)
                .map(one -> one.bytes().utf8String()).take(2).runWith(Sink.seq(), SYSTEM));
            Checks.same(List.of("a.b", "a.c"), got);
        });
        Checks.check("alpakka request and reply", () -> {
            String queue = name();
            AmqpSource.atMostOnceSource(from(queue), 1)
                .map(one -> WriteMessage.create(one.bytes()).withRoutingKey(one.properties().getReplyTo())
                    .withProperties(one.properties()))
                .runWith(AmqpSink.create(AmqpWriteSettings.create(THERE)), SYSTEM);
            var asking = Source.from(texts()).map(ByteString::fromString)
                .via(AmqpRpcFlow.createSimple(to(queue), 1)).runWith(Sink.seq(), SYSTEM);
            Checks.same(MANY, done(asking).size());
        });
        Checks.check("alpakka a queue that is another", () -> {
            String queue = name();
            fill(queue);
            var other = NamedQueueSourceSettings.create(THERE, queue).withDeclaration(QueueDeclaration.create(queue));
            Checks.refused("inequivalent arg 'durable'",
                () -> done(AmqpSource.atMostOnceSource(other, 1).runWith(Sink.seq(), SYSTEM)));
        });
        Checks.check("alpakka a queue that goes", () -> {
            String queue = name();
            fill(queue);
            var ending = AmqpSource.atMostOnceSource(from(queue), 10).runWith(Sink.ignore(), SYSTEM);
            try (var connection = THERE.get(); var channel = connection.createChannel()) {
                Checks.eventually(() -> channel.consumerCount(queue) == 1);
                channel.queueDelete(queue);
            }
            Checks.refused("", () -> done(ending));
        });
    }

    public static void main(String[] arguments) {
        streams();
        patterns();
        Checks.end();
    }
}
