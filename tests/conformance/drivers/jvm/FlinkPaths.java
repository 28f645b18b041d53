import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashSet;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.restartstrategy.RestartStrategies;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.SinkFunction;
import org.apache.flink.streaming.connectors.rabbitmq.RMQSink;
import org.apache.flink.streaming.connectors.rabbitmq.RMQSource;
import org.apache.flink.streaming.connectors.rabbitmq.common.RMQConnectionConfig;

/** Flink's source and sink for RabbitMQ, in a local cluster. */
public final class FlinkPaths {

    private static final int MANY = 500;
    private static final List<String> SEEN = Collections.synchronizedList(new ArrayList<>());
    private static final AtomicBoolean FAILS = new AtomicBoolean();
    private static int names;

    /** Keeps what comes, and fails once in the middle if it is told to. */
    public static final class Kept implements SinkFunction<String> {
        @Override
        public void invoke(String value, Context context) {
            SEEN.add(value);
            if (SEEN.size() > MANY / 2 && FAILS.getAndSet(false)) {
                throw new IllegalStateException("once");
            }
        }
    }

    private static String name() {
        return Checks.PREFIX + "flink." + names++;
    }

    private static RMQConnectionConfig place(int prefetch) {
        return new RMQConnectionConfig.Builder().setHost(Checks.PLACE.getHost()).setPort(Checks.PLACE.getPort())
            .setUserName("guest").setPassword("guest").setVirtualHost("/").setPrefetchCount(prefetch).build();
    }

    private static Connection plain() throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(Checks.URL);
        return factory.newConnection();
    }

    private static StreamExecutionEnvironment environment() {
        var environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.setRestartStrategy(RestartStrategies.fixedDelayRestart(3, 100));
        return environment;
    }

    private static void fill(Channel channel, String queue) throws Exception {
        channel.queueDeclare(queue, true, false, false, null);
        channel.confirmSelect();
        for (int at = 0; at < MANY; at++) {
            var properties = new AMQP.BasicProperties.Builder().correlationId("c" + at).build();
            channel.basicPublish("", queue, properties, ("" + at).getBytes(StandardCharsets.UTF_8));
        }
        channel.waitForConfirmsOrDie(60_000);
    }

    private static long left(String queue) throws Exception {
        try (Connection connection = plain(); Channel channel = connection.createChannel()) {
            return channel.messageCount(queue);
        }
    }

    private static JobClient reading(String queue, boolean usesIds, int prefetch) throws Exception {
        SEEN.clear();
        var environment = environment();
        environment.enableCheckpointing(200);
        environment.addSource(new RMQSource<>(place(prefetch), queue, usesIds, new SimpleStringSchema()))
            .addSink(new Kept());
        return environment.executeAsync("reading");
    }

    public static void main(String[] arguments) {
        Checks.check("flink sink", () -> {
            String queue = name();
            var environment = environment();
            environment.fromSequence(0, MANY - 1).map(String::valueOf).returns(Types.STRING)
                .addSink(new RMQSink<>(place(10), queue, new SimpleStringSchema()));
            environment.execute("writing");
            Checks.eventually(() -> left(queue) == MANY);
        });
        Checks.check("flink source, acknowledged by transactions at checkpoints", () -> {
            String queue = name();
            try (Connection connection = plain(); Channel channel = connection.createChannel()) {
                fill(channel, queue);
            }
            JobClient job = reading(queue, true, 0);
            Checks.eventually(() -> SEEN.size() >= MANY);
            Thread.sleep(5000);
            job.cancel().get();
            Checks.same(MANY, SEEN.size());
            Thread.sleep(1000);
            Checks.same(0L, left(queue));
        });
        Checks.check("flink source that fails in between", () -> {
            String queue = name();
            try (Connection connection = plain(); Channel channel = connection.createChannel()) {
                fill(channel, queue);
            }
            FAILS.set(true);
            JobClient job = reading(queue, true, 50);
            Checks.eventually(() -> new HashSet<>(SEEN).size() == MANY && left(queue) == 0);
            Thread.sleep(5000);
            job.cancel().get();
            Thread.sleep(1000);
            Checks.same(0L, left(queue));
        });
        Checks.check("flink source without checkpoints", () -> {
            String queue = name();
            try (Connection connection = plain(); Channel channel = connection.createChannel()) {
                fill(channel, queue);
            }
            SEEN.clear();
            var environment = environment();
            environment.addSource(new RMQSource<>(place(0), queue, new SimpleStringSchema())).addSink(new Kept());
            JobClient job = environment.executeAsync("reading");
            Checks.eventually(() -> SEEN.size() == MANY);
            job.cancel().get();
            Checks.same(0L, left(queue));
        });
        Checks.end();
    }
}
