package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.name;
import static suite.Checks.that;
import static suite.Checks.until;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import com.fasterxml.jackson.databind.JsonNode;
import org.springframework.amqp.core.MessageProperties;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.stream.binding.BindingsLifecycleController;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;

/** Spring Cloud Stream's binder: groups, partitions, dead letters, requeues, batches, what it declares. */
final class StreamChecks {

    private static final long WAIT_MS = 30_000;

    private static final List<ConfigurableApplicationContext> STARTED = new ArrayList<>();

    private static final Set<String> EXCHANGES = new java.util.HashSet<>();

    private static RabbitAdmin admin;

    private static RabbitTemplate template;

    private StreamChecks() {
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        final List<String> seen = new CopyOnWriteArrayList<>();

        final List<Map<String, Object>> headers = new CopyOnWriteArrayList<>();

        volatile int failures;

        @Bean
        Consumer<Message<String>> in() {
            return message -> {
                this.headers.add(new HashMap<>(message.getHeaders()));
                if (this.failures > 0) {
                    this.failures--;
                    throw new IllegalStateException("bad luck");
                }
                this.seen.add(message.getPayload());
            };
        }

        @Bean
        Consumer<Message<List<String>>> many() {
            return message -> this.seen.add("batch of " + message.getPayload().size());
        }

        @Bean
        Function<String, String> upper() {
            return String::toUpperCase;
        }

    }

    private static ConfigurableApplicationContext run(Map<String, ?>... settings) {
        Map<String, Object> all = new HashMap<>(Map.of("spring.cloud.stream.rabbit.default.consumer.recovery-interval", "500"));
        for (Map<String, ?> one : settings) {
            all.putAll(one);
        }
        ConfigurableApplicationContext context = BootChecks.start(Application.class, all);
        STARTED.add(context);
        return context;
    }

    private static Map<String, Object> consumer(String function, String destination, String group) {
        EXCHANGES.add(destination);
        Checks.names().add(destination + "." + group);
        Checks.names().add(destination + "." + group + ".dlq");
        String binding = "spring.cloud.stream.bindings." + function + "-in-0.";
        Map<String, Object> settings = new HashMap<>(Map.of("spring.cloud.function.definition", function, binding + "destination", destination));
        if (group != null) {
            settings.put(binding + "group", group);
        }
        return settings;
    }

    /** Settings of a binding, of Stream's own or of the binder's. */
    private static Map<String, Object> of(boolean binder, String binding, Map<String, ?> settings) {
        String prefix = "spring.cloud.stream." + (binder ? "rabbit." : "") + "bindings." + binding + ".";
        return settings.entrySet().stream().collect(Collectors.toMap(one -> prefix + one.getKey(), Map.Entry::getValue));
    }

    private static Application app(ConfigurableApplicationContext context) {
        return context.getBean(Application.class);
    }

    private static void send(ConfigurableApplicationContext context, String to, int count) {
        EXCHANGES.add(to);
        StreamBridge bridge = context.getBean(StreamBridge.class);
        for (int i = 0; i < count; i++) {
            that(bridge.send(to, MessageBuilder.withPayload("m" + i).setHeader("k", i).build()), "not sent");
        }
    }

    static void all() {
        CachingConnectionFactory factory = Broker.factory();
        admin = new RabbitAdmin(factory);
        template = new RabbitTemplate(factory);
        groups();
        deadLetters();
        partitions();
        batches();
        declared();
        STARTED.forEach(ConfigurableApplicationContext::close);
        EXCHANGES.forEach(admin::deleteExchange);
        EXCHANGES.forEach(one -> admin.deleteExchange(one + ".dlx"));
        admin.deleteExchange("DLX");
    }

    private static void checked(String name, Checks.Body body) {
        check("stream: " + name, () -> {
            try {
                body.run();
            }
            finally {
                STARTED.forEach(ConfigurableApplicationContext::close);
                STARTED.clear();
            }
        });
    }

    private static void groups() {
        checked("two of a group share, two groups have all", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "a"));
            ConfigurableApplicationContext two = run(consumer("in", destination, "a"));
            ConfigurableApplicationContext other = run(consumer("in", destination, "b"));
            send(one, destination, 20);
            until("all", () -> app(other).seen.size() == 20 && app(one).seen.size() + app(two).seen.size() == 20);
            List<String> both = new ArrayList<>(app(one).seen);
            both.addAll(app(two).seen);
            equal(IntStream.range(0, 20).mapToObj(i -> "m" + i).collect(Collectors.toSet()), Set.copyOf(both));
            that(!app(one).seen.isEmpty() && !app(two).seen.isEmpty(), "one had all");
        });
        checked("nobody's group has a queue that goes with it", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, null));
            send(one, destination, 2);
            until("both", () -> app(one).seen.size() == 2);
            String queue = String.valueOf(app(one).headers.get(0).get("amqp_consumerQueue"));
            contains(destination + ".anonymous.", queue);
            one.close();
            until("gone", () -> admin.getQueueInfo(queue) == null);
        });
        checked("a function between two destinations", () -> {
            String from = name("stream");
            String to = name("stream");
            ConfigurableApplicationContext end = run(consumer("in", to, "g"));
            ConfigurableApplicationContext middle = run(consumer("upper", from, "g"), of(false, "upper-out-0", Map.of("destination", to)));
            send(middle, from, 3);
            until("three", () -> app(end).seen.size() == 3);
            equal(List.of("M0", "M1", "M2"), app(end).seen);
        });
        checked("a binding is stopped, kept messages come at its start", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"));
            BindingsLifecycleController bindings = one.getBean(BindingsLifecycleController.class);
            bindings.changeState("in-in-0", BindingsLifecycleController.State.STOPPED);
            send(one, destination, 3);
            until("kept", () -> admin.getQueueInfo(destination + ".g").getMessageCount() == 3);
            bindings.changeState("in-in-0", BindingsLifecycleController.State.STARTED);
            until("three", () -> app(one).seen.size() == 3);
        });
        checked("a direct container, several consumers", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.concurrency", 3)),
                of(true, "in-in-0", Map.of("consumer.container-type", "direct", "consumer.prefetch", 5)));
            until("three consumers", () -> admin.getQueueInfo(destination + ".g").getConsumerCount() == 3);
            send(one, destination, 30);
            until("thirty", () -> app(one).seen.size() == 30);
        });
        checked("it goes on when all connections are closed", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, null));
            send(one, destination, 1);
            until("one", () -> app(one).seen.size() == 1);
            Broker.ctl("close_all_connections", "suite");
            until("more", () -> {
                try {
                    send(one, destination, 1);
                }
                catch (RuntimeException lost) {
                    return false;
                }
                Thread.sleep(300);
                return app(one).seen.size() > 1;
            });
        });
    }

    private static void deadLetters() {
        checked("dead letters by the broker", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.max-attempts", 2, "consumer.back-off-initial-interval", 50)),
                of(true, "in-in-0", Map.of("consumer.auto-bind-dlq", true, "consumer.republish-to-dlq", false)));
            app(one).failures = 2;
            send(one, destination, 1);
            MessageProperties properties = template.receive(destination + ".g.dlq", WAIT_MS).getMessageProperties();
            equal("rejected", properties.getXDeathHeader().get(0).get("reason"));
            equal(destination, properties.getXDeathHeader().get(0).get("exchange"));
            equal(2, app(one).headers.size());
        });
        checked("dead letters published again with their exception", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.max-attempts", 1)),
                of(true, "in-in-0", Map.of("consumer.auto-bind-dlq", true, "consumer.republish-to-dlq", true)));
            app(one).failures = 1;
            send(one, destination, 1);
            MessageProperties properties = template.receive(destination + ".g.dlq", WAIT_MS).getMessageProperties();
            contains("bad luck", String.valueOf((Object) properties.getHeader("x-exception-stacktrace")));
            equal(destination, properties.getHeader("x-original-exchange"));
        });
        checked("dead letters wait and come again", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.max-attempts", 1)),
                of(true, "in-in-0", Map.of("consumer.auto-bind-dlq", true, "consumer.republish-to-dlq", false, "consumer.dlq-ttl", 200,
                    "consumer.dlq-dead-letter-exchange", "")));
            app(one).failures = 2;
            send(one, destination, 1);
            until("at last", () -> app(one).seen.size() == 1);
            List<?> deaths = (List<?>) app(one).headers.get(2).get("x-death");
            long rejected = deaths.stream().map(each -> (Map<?, ?>) each).filter(each -> "rejected".equals(each.get("reason")))
                .mapToLong(each -> (Long) each.get("count")).sum();
            equal(2L, rejected);
        });
        checked("rejected ones are requeued", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.max-attempts", 1)),
                of(true, "in-in-0", Map.of("consumer.requeue-rejected", true, "consumer.republish-to-dlq", false)));
            app(one).failures = 2;
            send(one, destination, 1);
            until("at last", () -> app(one).seen.size() == 1);
            equal(List.of(false, true, true), app(one).headers.stream().map(each -> each.get("amqp_redelivered")).toList());
        });
        checked("transacted consumer and producer", () -> {
            String from = name("stream");
            String to = name("stream");
            ConfigurableApplicationContext end = run(consumer("in", to, "g"));
            ConfigurableApplicationContext middle = run(consumer("upper", from, "g"), of(false, "upper-out-0", Map.of("destination", to)),
                of(true, "upper-in-0", Map.of("consumer.transacted", true)), of(true, "upper-out-0", Map.of("producer.transacted", true)));
            send(middle, from, 5);
            until("five", () -> app(end).seen.size() == 5);
        });
    }

    private static void partitions() {
        checked("partitions, one for each instance", () -> {
            String destination = name("stream");
            List<ConfigurableApplicationContext> instances = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                Checks.names().add(destination + ".g-" + i);
                instances.add(run(consumer("in", destination, "g"), of(false, "in-in-0", Map.of("consumer.partitioned", true)),
                    Map.of("spring.cloud.stream.instance-index", i, "spring.cloud.stream.instance-count", 2)));
            }
            ConfigurableApplicationContext producer = run(of(false, "out", Map.of("destination", destination,
                "producer.partition-key-expression", "headers['k']", "producer.partition-count", 2)));
            send(producer, "out", 10);
            until("ten", () -> instances.stream().mapToInt(each -> app(each).seen.size()).sum() == 10);
            equal(List.of("m0", "m2", "m4", "m6", "m8"), app(instances.get(0)).seen);
            equal(List.of("m1", "m3", "m5", "m7", "m9"), app(instances.get(1)).seen);
        });
        checked("required groups keep what comes before their consumers", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext producer = run(of(false, "out", Map.of("destination", destination, "producer.required-groups", "g")));
            send(producer, "out", 4);
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"));
            until("four", () -> app(one).seen.size() == 4);
        });
    }

    private static void batches() {
        checked("batches of the consumer", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext producer = run(of(false, "out", Map.of("destination", destination, "producer.required-groups", "g")));
            send(producer, "out", 7);
            until("seven", () -> admin.getQueueInfo(destination + ".g").getMessageCount() == 7);
            ConfigurableApplicationContext one = run(consumer("many", destination, "g"), of(false, "many-in-0", Map.of("consumer.batch-mode", true)),
                of(true, "many-in-0", Map.of("consumer.enable-batching", true, "consumer.batch-size", 3, "consumer.receive-timeout", 1000)));
            until("three batches", () -> app(one).seen.size() >= 3);
            equal(List.of("batch of 3", "batch of 3", "batch of 1"), app(one).seen);
        });
        checked("batches of the producer", () -> {
            String destination = name("stream");
            ConfigurableApplicationContext one = run(consumer("in", destination, "g"));
            ConfigurableApplicationContext producer = run(of(false, "out", Map.of("destination", destination)),
                of(true, "out", Map.of("producer.batching-enabled", true, "producer.batch-size", 5, "producer.batch-timeout", 500, "producer.compress", true)));
            send(producer, "out", 12);
            until("twelve", () -> app(one).seen.size() == 12);
        });
    }

    private static void declared() {
        checked("what it declares", () -> {
            String destination = name("stream");
            run(consumer("in", destination, "g"), of(true, "in-in-0", Map.of("consumer.ttl", 60000, "consumer.expires", 600000,
                "consumer.max-length", 100, "consumer.overflow-behavior", "reject-publish", "consumer.max-priority", 5, "consumer.lazy", true,
                "consumer.single-active-consumer", true, "consumer.exchange-type", "direct", "consumer.binding-routing-key", "key",
                "consumer.auto-bind-dlq", true)));
            JsonNode arguments = Broker.api("queues/%2F/" + destination + ".g").get("arguments");
            Map<String, String> wanted = new HashMap<>(Map.of("x-message-ttl", "60000", "x-expires", "600000", "x-max-length", "100",
                "x-overflow", "reject-publish", "x-max-priority", "5", "x-queue-mode", "lazy", "x-single-active-consumer", "true",
                "x-dead-letter-exchange", "DLX"));
            wanted.forEach((key, value) -> equal(value, arguments.get(key) == null ? "no " + key : arguments.get(key).asText()));
            equal("direct", Broker.api("exchanges/%2F/" + destination).get("type").asText());
        });
    }

}
