package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.name;
import static suite.Checks.that;
import static suite.Checks.thrownBy;
import static suite.Checks.until;

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageBuilder;
import org.springframework.amqp.core.MessageDeliveryMode;
import org.springframework.amqp.core.MessageProperties;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.batch.SimpleBatchingStrategy;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.connection.PooledChannelConnectionFactory;
import org.springframework.amqp.rabbit.connection.ThreadChannelConnectionFactory;
import org.springframework.amqp.rabbit.core.BatchingRabbitTemplate;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.transaction.RabbitTransactionManager;
import org.springframework.amqp.support.converter.Jackson2JsonMessageConverter;
import org.springframework.amqp.support.converter.SimpleMessageConverter;
import org.springframework.amqp.support.postprocessor.DelegatingDecompressingPostProcessor;
import org.springframework.amqp.support.postprocessor.GZipPostProcessor;
import org.springframework.amqp.support.postprocessor.ZipPostProcessor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.transaction.support.TransactionTemplate;

/** RabbitTemplate: confirms, returns, transactions, what properties and headers become, delays, priorities. */
final class TemplateChecks {

    private static final long WAIT_MS = 30_000;

    private static CachingConnectionFactory factory;

    private static RabbitAdmin admin;

    private static RabbitTemplate template;

    private TemplateChecks() {
    }

    record Order(String id, int amount, List<String> lines) {
    }

    static void all() {
        factory = Broker.factory();
        admin = new RabbitAdmin(factory);
        template = new RabbitTemplate(factory);
        messages();
        confirms();
        returns();
        transactions();
        delays();
        batches();
    }

    static String queue(Map<String, Object> arguments) {
        String name = name("template");
        admin.declareQueue(new Queue(name, true, false, false, arguments));
        return name;
    }

    static String queue() {
        return queue(Map.of());
    }

    private static String text(Message message) {
        return message == null ? null : new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private static void messages() {
        check("template: a text comes back", () -> {
            String queue = queue();
            template.convertAndSend(queue, "hello");
            equal("hello", template.receiveAndConvert(queue, WAIT_MS));
            equal(null, template.receive(queue));
        });
        check("template: bytes, an object and a record by JSON", () -> {
            String queue = queue();
            template.convertAndSend(queue, new byte[] { 0, 1, -1 });
            equal(true, Arrays.equals(new byte[] { 0, 1, -1 }, (byte[]) template.receiveAndConvert(queue, WAIT_MS)));
            RabbitTemplate java = new RabbitTemplate(factory);
            SimpleMessageConverter converter = new SimpleMessageConverter();
            converter.addAllowedListPatterns("java.util.*", "java.lang.*");
            java.setMessageConverter(converter);
            java.convertAndSend(queue, new ArrayList<>(List.of("a", 1)));
            equal(List.of("a", 1), java.receiveAndConvert(queue, WAIT_MS));
            RabbitTemplate json = new RabbitTemplate(factory);
            json.setMessageConverter(new Jackson2JsonMessageConverter("suite"));
            Order order = new Order("7", 3, List.of("x", "y"));
            json.convertAndSend(queue, order);
            equal(order, json.receiveAndConvert(queue, WAIT_MS));
        });
        check("template: every property", TemplateChecks::everyProperty);
        check("template: headers of every type", TemplateChecks::headersOfEveryType);
        check("template: a header that is a long text", () -> {
            String queue = queue();
            String text = "x".repeat(5000);
            template.send(queue, MessageBuilder.withBody(new byte[0]).setHeader("long", text).build());
            Object got = template.receive(queue, WAIT_MS).getMessageProperties().getHeader("long");
            equal(text, got.toString().length() == 5000 ? got.toString() : new String(((java.io.DataInputStream) got).readAllBytes()));
        });
        check("template: five megabytes and none at all", () -> {
            String queue = queue();
            byte[] large = new byte[5_000_000];
            Arrays.fill(large, (byte) 7);
            template.send(queue, MessageBuilder.withBody(large).build());
            template.send(queue, MessageBuilder.withBody(new byte[0]).build());
            that(Arrays.equals(large, template.receive(queue, WAIT_MS).getBody()), "other bytes");
            equal(0, template.receive(queue, WAIT_MS).getBody().length);
        });
        check("template: another user's name is refused", () -> {
            String queue = queue();
            CachingConnectionFactory own = Broker.factory();
            AtomicReference<String> told = new AtomicReference<>();
            own.addChannelListener(new org.springframework.amqp.rabbit.connection.ChannelListener() {

                @Override
                public void onCreate(com.rabbitmq.client.Channel channel, boolean transactional) {
                }

                @Override
                public void onShutDown(com.rabbitmq.client.ShutdownSignalException signal) {
                    told.compareAndSet(null, signal.getReason() + "");
                }

            });
            new RabbitTemplate(own).convertAndSend(queue, (Object) "x", message -> {
                message.getMessageProperties().setUserId("somebody");
                return message;
            });
            until("a channel error", () -> told.get() != null);
            contains("PRECONDITION_FAILED - user_id property set to 'somebody' but authenticated user was 'guest'", told.get());
        });
        check("template: receiveAndReply", () -> {
            String queue = queue();
            String replies = queue();
            template.convertAndSend(queue, (Object) "ask", message -> {
                message.getMessageProperties().setReplyTo(replies);
                return message;
            });
            that(template.<String, String>receiveAndReply(queue, asked -> asked + "ed"), "nothing received");
            equal("asked", template.receiveAndConvert(replies, WAIT_MS));
        });
        check("template: CC and BCC", () -> {
            String to = queue();
            String copy = queue();
            String blind = queue();
            template.send(to, MessageBuilder.withBody("m".getBytes()).setHeader("CC", List.of(copy)).setHeader("BCC", List.of(blind)).build());
            equal(List.of(copy), template.receive(to, WAIT_MS).getMessageProperties().getHeader("CC"));
            equal(null, template.receive(copy, WAIT_MS).getMessageProperties().getHeader("BCC"));
            equal("m", text(template.receive(blind, WAIT_MS)));
        });
        check("template: receive with a timeout from an empty and a missing queue", () -> {
            equal(null, template.receive(queue(), 300));
            contains("NOT_FOUND - no queue 'suite.no' in vhost '/'", thrownBy(() -> template.receive("suite.no")));
            thrownBy(() -> template.receive("suite.no", 300));
        });
        check("template: channels by thread and by pool", () -> {
            String queue = queue();
            for (boolean pooled : new boolean[] { true, false }) {
                com.rabbitmq.client.ConnectionFactory plain = new com.rabbitmq.client.ConnectionFactory();
                plain.setHost(Broker.HOST);
                plain.setPort(Broker.PORT);
                var own = pooled ? new PooledChannelConnectionFactory(plain) : new ThreadChannelConnectionFactory(plain);
                RabbitTemplate other = new RabbitTemplate(own);
                other.convertAndSend(queue, "p" + pooled);
                equal("p" + pooled, other.receiveAndConvert(queue, WAIT_MS));
                own.destroy();
            }
        });
    }

    private static void everyProperty() {
        String queue = queue();
        MessageProperties sent = new MessageProperties();
        Date instant = new Date(1_700_000_000_000L);
        sent.setContentType("text/plain");
        sent.setContentEncoding("utf-8");
        sent.setDeliveryMode(MessageDeliveryMode.NON_PERSISTENT);
        sent.setPriority(4);
        sent.setCorrelationId("c-1");
        sent.setReplyTo("an/address");
        sent.setExpiration("600000");
        sent.setMessageId("m-1");
        sent.setTimestamp(instant);
        sent.setType("kind");
        sent.setUserId("guest");
        sent.setAppId("app");
        sent.setClusterId("cluster");
        template.send(queue, new Message("b".getBytes(), sent));
        MessageProperties got = template.receive(queue, WAIT_MS).getMessageProperties();
        equal(
            List.of("text/plain", "utf-8", 4, "c-1", "an/address", "600000", "m-1", instant, "kind", "app", "cluster"),
            List.of(got.getContentType(), got.getContentEncoding(), got.getPriority(), got.getCorrelationId(), got.getReplyTo(),
                got.getExpiration(), got.getMessageId(), got.getTimestamp(), got.getType(), got.getAppId(), got.getClusterId()));
        equal("guest", got.getReceivedUserId());
        equal(MessageDeliveryMode.NON_PERSISTENT, got.getReceivedDeliveryMode());
        equal(false, got.isRedelivered());
        equal(queue, got.getReceivedRoutingKey());
        equal("", got.getReceivedExchange());
    }

    private static void headersOfEveryType() {
        String queue = queue();
        Map<String, Object> headers = new HashMap<>();
        headers.put("int", 1);
        headers.put("long", 1L << 40);
        headers.put("short", (short) 3);
        headers.put("byte", (byte) -4);
        headers.put("double", 1.5);
        headers.put("float", 2.5f);
        headers.put("decimal", new BigDecimal("12.34"));
        headers.put("bool", true);
        headers.put("text", "é€𝄞");
        headers.put("bytes", new byte[] { 1, 2 });
        headers.put("date", new Date(1_700_000_000_000L));
        headers.put("list", Arrays.asList("a", 1, null, List.of(2L)));
        headers.put("map", Map.of("k", Map.of("deep", 9)));
        headers.put("empty", Map.of());
        headers.put("none", null);
        MessageBuilder message = MessageBuilder.withBody("b".getBytes());
        headers.forEach((key, value) -> message.setHeader(key, value));
        template.send(queue, message.build());
        Map<String, Object> got = template.receive(queue, WAIT_MS).getMessageProperties().getHeaders();
        for (Map.Entry<String, Object> one : headers.entrySet()) {
            Object value = got.get(one.getKey());
            that(got.containsKey(one.getKey()), one.getKey() + " is not there");
            if (value instanceof byte[] bytes) {
                that(Arrays.equals((byte[]) one.getValue(), bytes), "other bytes");
            }
            else {
                equal(one.getValue(), value);
            }
        }
        equal(headers.keySet(), got.keySet());
    }

    private static void confirms() {
        check("confirms: simple, waited for in one invocation", () -> {
            CachingConnectionFactory own = Broker.factory();
            own.setPublisherConfirmType(ConfirmType.SIMPLE);
            String queue = queue();
            that(new RabbitTemplate(own).invoke(operations -> {
                for (int i = 0; i < 200; i++) {
                    operations.convertAndSend(queue, "m" + i);
                }
                operations.waitForConfirmsOrDie(WAIT_MS);
                return true;
            }), "not confirmed");
            equal(200, (int) admin.getQueueInfo(queue).getMessageCount());
        });
        check("confirms: correlated, a thousand, each its own", () -> {
            RabbitTemplate own = correlated();
            String queue = queue();
            List<CorrelationData> sent = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                CorrelationData data = new CorrelationData("id" + i);
                own.convertAndSend("", queue, "m" + i, data);
                sent.add(data);
            }
            for (CorrelationData data : sent) {
                that(data.getFuture().get(WAIT_MS, TimeUnit.MILLISECONDS).isAck(), data.getId() + " nacked");
            }
            equal(1000, (int) admin.getQueueInfo(queue).getMessageCount());
        });
        check("confirms: a full queue nacks", () -> {
            String queue = queue(Map.of("x-max-length", 1, "x-overflow", "reject-publish"));
            RabbitTemplate own = correlated();
            List<Boolean> acks = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                CorrelationData data = new CorrelationData();
                own.convertAndSend("", queue, "m", data);
                acks.add(data.getFuture().get(WAIT_MS, TimeUnit.MILLISECONDS).isAck());
            }
            equal(List.of(true, false, false), acks);
        });
        check("confirms: no exchange nacks with the reason", () -> {
            CorrelationData data = new CorrelationData();
            correlated().convertAndSend("suite.no", "key", "m", data);
            CorrelationData.Confirm confirm = data.getFuture().get(WAIT_MS, TimeUnit.MILLISECONDS);
            equal(false, confirm.isAck());
            contains("404, reply-text=NOT_FOUND - no exchange 'suite.no' in vhost '/', class-id=60, method-id=40", confirm.getReason());
        });
    }

    private static RabbitTemplate correlated() {
        CachingConnectionFactory own = Broker.factory();
        own.setPublisherConfirmType(ConfirmType.CORRELATED);
        own.setPublisherReturns(true);
        RabbitTemplate template = new RabbitTemplate(own);
        template.setMandatory(true);
        return template;
    }

    private static void returns() {
        check("returns: the message comes back before its confirm", () -> {
            CorrelationData data = new CorrelationData("back");
            RabbitTemplate own = correlated();
            AtomicReference<String> told = new AtomicReference<>();
            own.setReturnsCallback(returned -> told.set(returned.getReplyCode() + " " + returned.getReplyText() + " " + returned.getExchange() + " " + returned.getRoutingKey()));
            own.convertAndSend("amq.topic", "suite.nobody", "m", data);
            that(data.getFuture().get(WAIT_MS, TimeUnit.MILLISECONDS).isAck(), "nacked");
            equal(312, data.getReturned().getReplyCode());
            equal("m", text(data.getReturned().getMessage()));
            until("the callback", () -> told.get() != null);
            equal("312 NO_ROUTE amq.topic suite.nobody", told.get());
        });
        check("returns: a mandatory question that nobody hears", () ->
            contains("AmqpMessageReturnedException", thrownBy(() -> {
                RabbitTemplate own = correlated();
                own.setReplyTimeout(WAIT_MS);
                own.convertSendAndReceive("amq.direct", "suite.nobody", "m");
            })));
    }

    private static void transactions() {
        check("transactions: committed and rolled back", () -> {
            String queue = queue();
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setChannelTransacted(true);
            TransactionTemplate transaction = new TransactionTemplate(new RabbitTransactionManager(factory));
            transaction.executeWithoutResult(status -> {
                own.convertAndSend(queue, "one");
                equal(null, template.receive(queue));
            });
            equal("one", template.receiveAndConvert(queue, WAIT_MS));
            transaction.executeWithoutResult(status -> {
                own.convertAndSend(queue, "two");
                status.setRollbackOnly();
            });
            equal(null, template.receive(queue, 300));
        });
        check("transactions: what was received is given back", () -> {
            String queue = queue();
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setChannelTransacted(true);
            template.convertAndSend(queue, "back");
            until("there", () -> admin.getQueueInfo(queue).getMessageCount() == 1);
            TransactionTemplate transaction = new TransactionTemplate(new RabbitTransactionManager(factory));
            transaction.executeWithoutResult(status -> {
                equal("back", own.receiveAndConvert(queue));
                status.setRollbackOnly();
            });
            Message again = template.receive(queue, WAIT_MS);
            that(again != null && again.getMessageProperties().isRedelivered(), "not redelivered");
        });
        check("transactions: a commit to no exchange fails", () -> {
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setChannelTransacted(true);
            contains("no exchange 'suite.no'", thrownBy(() -> own.convertAndSend("suite.no", "key", "m")));
        });
    }

    private static void delays() {
        check("delay: by expiration and a dead letter queue", () -> {
            String done = queue();
            String waiting = queue(Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", done));
            template.convertAndSend(waiting, (Object) "late", message -> {
                message.getMessageProperties().setExpiration("700");
                return message;
            });
            equal(null, template.receive(done));
            Message message = template.receive(done, WAIT_MS);
            MessageProperties properties = message.getMessageProperties();
            Map<String, ?> death = properties.getXDeathHeader().get(0);
            equal("expired", death.get("reason"));
            equal(waiting, death.get("queue"));
            equal(1L, death.get("count"));
            equal("700", death.get("original-expiration"));
            equal("", death.get("exchange"));
            equal(List.of(waiting), death.get("routing-keys"));
            that(death.get("time") instanceof Date, "the time is " + death.get("time"));
            equal("expired", properties.getHeader("x-first-death-reason"));
            equal(null, properties.getExpiration());
        });
        check("delay: by the queue's TTL", () -> {
            String done = queue();
            Queue waiting = QueueBuilder.durable(name("ttl")).ttl(500).deadLetterExchange("").deadLetterRoutingKey(done).build();
            admin.declareQueue(waiting);
            template.convertAndSend(waiting.getName(), "late");
            equal("late", template.receiveAndConvert(done, WAIT_MS));
        });
        check("priority: higher ones first, equal ones in order", () -> {
            Queue queue = QueueBuilder.durable(name("priority")).maxPriority(5).build();
            admin.declareQueue(queue);
            int[] priorities = { 1, 5, 3, 5, 9, 0 };
            for (int i = 0; i < priorities.length; i++) {
                int priority = priorities[i];
                template.convertAndSend(queue.getName(), (Object) ("" + i), message -> {
                    message.getMessageProperties().setPriority(priority);
                    return message;
                });
            }
            until("all there", () -> admin.getQueueInfo(queue.getName()).getMessageCount() == 6);
            List<Object> got = new ArrayList<>();
            for (int i = 0; i < priorities.length; i++) {
                got.add(template.receiveAndConvert(queue.getName(), WAIT_MS));
            }
            equal(List.of("1", "3", "4", "2", "0", "5"), got);
        });
        check("length limit: the oldest go to the dead letters", () -> {
            String dead = queue();
            Queue queue = QueueBuilder.durable(name("length")).maxLength(2L).overflow(QueueBuilder.Overflow.dropHead)
                .deadLetterExchange("").deadLetterRoutingKey(dead).build();
            admin.declareQueue(queue);
            for (String one : List.of("a", "b", "c")) {
                template.convertAndSend(queue.getName(), one);
            }
            Message message = template.receive(dead, WAIT_MS);
            equal("a", text(message));
            equal("maxlen", message.getMessageProperties().getXDeathHeader().get(0).get("reason"));
        });
    }

    private static void batches() {
        check("batches: of the producer, compressed", () -> {
            String queue = queue();
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.initialize();
            BatchingRabbitTemplate own = new BatchingRabbitTemplate(factory, new SimpleBatchingStrategy(3, 100_000, 60_000), scheduler);
            own.setBeforePublishPostProcessors(new GZipPostProcessor());
            for (String one : List.of("a", "b", "c")) {
                own.convertAndSend("", queue, one);
            }
            RabbitTemplate reader = new RabbitTemplate(factory);
            reader.setAfterReceivePostProcessors(new DelegatingDecompressingPostProcessor());
            Message message = reader.receive(queue, WAIT_MS);
            equal("lengthHeader4", message.getMessageProperties().getHeader(MessageProperties.SPRING_BATCH_FORMAT));
            equal(15, message.getBody().length);
            scheduler.destroy();
        });
        check("batches: zipped messages", () -> {
            String queue = queue();
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setBeforePublishPostProcessors(new ZipPostProcessor());
            own.setAfterReceivePostProcessors(new DelegatingDecompressingPostProcessor());
            own.convertAndSend(queue, String.join("", Collections.nCopies(1000, "zip")));
            equal(3000, ((String) own.receiveAndConvert(queue, WAIT_MS)).length());
        });
    }

}
