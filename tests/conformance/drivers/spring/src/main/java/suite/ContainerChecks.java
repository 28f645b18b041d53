package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.name;
import static suite.Checks.that;
import static suite.Checks.until;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.core.AcknowledgeMode;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.DirectMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.ListenerContainerIdleEvent;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.api.ChannelAwareMessageListener;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.support.GenericApplicationContext;

/** Both listener containers: modes of acknowledgement, prefetch, concurrency, missing and deleted queues, arguments, recovery. */
final class ContainerChecks {

    private static CachingConnectionFactory factory;

    private static RabbitAdmin admin;

    private static RabbitTemplate template;

    private static final List<AbstractMessageListenerContainer> STARTED = new CopyOnWriteArrayList<>();

    private static final List<ApplicationEvent> EVENTS = new CopyOnWriteArrayList<>();

    private static GenericApplicationContext context;

    private ContainerChecks() {
    }

    static void all() {
        factory = Broker.factory();
        admin = new RabbitAdmin(factory);
        template = new RabbitTemplate(factory);
        context = new GenericApplicationContext();
        context.addApplicationListener(EVENTS::add);
        context.registerBean("admin", RabbitAdmin.class, () -> admin);
        context.refresh();
        for (boolean simple : new boolean[] { true, false }) {
            String kind = simple ? "simple container: " : "direct container: ";
            acknowledgements(kind, simple);
            prefetch(kind, simple);
            concurrency(kind, simple);
            queues(kind, simple);
            consumers(kind, simple);
            recovery(kind, simple);
        }
        onlySimple();
        STARTED.forEach(AbstractMessageListenerContainer::destroy);
        context.close();
    }

    static String queue(Map<String, Object> arguments) {
        String name = name("container");
        admin.declareQueue(new Queue(name, true, false, false, arguments));
        return name;
    }

    static String queue() {
        return queue(Map.of());
    }

    private static void fill(String queue, int count) {
        for (int i = 0; i < count; i++) {
            template.convertAndSend(queue, "m" + i);
        }
    }

    static int consumersOf(String queue) {
        return admin.getQueueInfo(queue).getConsumerCount();
    }

    private static long messagesIn(String queue) {
        return admin.getQueueInfo(queue).getMessageCount();
    }

    private static AbstractMessageListenerContainer container(boolean simple, Object listener, String... queues) {
        AbstractMessageListenerContainer container = simple
            ? new SimpleMessageListenerContainer(factory) : new DirectMessageListenerContainer(factory);
        container.setQueueNames(queues);
        container.setMessageListener((MessageListener) listener);
        container.setApplicationContext(context);
        container.setApplicationEventPublisher(context);
        container.setAmqpAdmin(admin);
        container.setRecoveryInterval(300);
        container.setShutdownTimeout(60_000);
        if (container instanceof SimpleMessageListenerContainer one) {
            one.setReceiveTimeout(200);
            one.setDeclarationRetries(1);
            one.setRetryDeclarationInterval(300);
            one.setStartConsumerMinInterval(100);
            one.setStopConsumerMinInterval(100);
            one.setConsecutiveActiveTrigger(2);
            one.setConsecutiveIdleTrigger(2);
        }
        else {
            ((DirectMessageListenerContainer) container).setMonitorInterval(300);
        }
        STARTED.add(container);
        return container;
    }

    private static AbstractMessageListenerContainer start(AbstractMessageListenerContainer container) {
        container.afterPropertiesSet();
        container.start();
        return container;
    }

    private static ChannelAwareMessageListener manual(ManualBody body) {
        return (message, channel) -> body.on(message, channel, message.getMessageProperties().getDeliveryTag());
    }

    interface ManualBody {

        void on(Message message, com.rabbitmq.client.Channel channel, long tag) throws Exception;

    }

    private static void acknowledgements(String kind, boolean simple) {
        for (AcknowledgeMode mode : AcknowledgeMode.values()) {
            check(kind + "100 messages, mode " + mode, () -> {
                String queue = queue();
                fill(queue, 100);
                AtomicInteger seen = new AtomicInteger();
                AbstractMessageListenerContainer container = container(simple, manual((message, channel, tag) -> {
                    if (mode == AcknowledgeMode.MANUAL) {
                        channel.basicAck(tag, false);
                    }
                    seen.incrementAndGet();
                }), queue);
                container.setAcknowledgeMode(mode);
                start(container);
                until("100 seen, not " + seen, () -> seen.get() == 100);
                container.stop();
                equal(0L, messagesIn(queue));
                equal(0, consumersOf(queue));
            });
        }
        check(kind + "an exception requeues", () -> {
            String queue = queue();
            List<Boolean> redelivered = new CopyOnWriteArrayList<>();
            AbstractMessageListenerContainer container = start(container(simple, (MessageListener) message -> {
                redelivered.add(message.getMessageProperties().isRedelivered());
                if (redelivered.size() < 3) {
                    throw new IllegalStateException("again");
                }
            }, queue));
            fill(queue, 1);
            until("three times", () -> redelivered.size() == 3);
            container.stop();
            equal(List.of(false, true, true), redelivered);
            equal(0L, messagesIn(queue));
        });
        for (boolean thrown : new boolean[] { true, false }) {
            check(kind + (thrown ? "don't-requeue goes to the dead letters" : "defaultRequeueRejected false goes to the dead letters"), () -> {
                String dead = queue();
                String queue = queue(Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
                AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> {
                    throw thrown ? new AmqpRejectAndDontRequeueException("bad") : new IllegalStateException("bad");
                }, queue);
                container.setDefaultRequeueRejected(thrown);
                start(container);
                fill(queue, 1);
                Message message = template.receive(dead, 30_000);
                container.stop();
                Map<String, ?> death = message.getMessageProperties().getXDeathHeader().get(0);
                equal("rejected", death.get("reason"));
                equal(queue, death.get("queue"));
            });
        }
        check(kind + "nack and reject by hand, several at once", () -> {
            String dead = queue();
            String queue = queue(Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = container(simple, manual((message, channel, tag) -> {
                if (seen.incrementAndGet() == 4) {
                    channel.basicNack(tag, true, false);
                }
                else if (seen.get() == 5) {
                    channel.basicReject(tag, true);
                }
                else if (seen.get() == 6) {
                    channel.basicAck(tag, false);
                }
            }), queue);
            container.setAcknowledgeMode(AcknowledgeMode.MANUAL);
            start(container);
            fill(queue, 5);
            until("six seen", () -> seen.get() == 6);
            until("four dead", () -> messagesIn(dead) == 4);
            container.stop();
            equal(0L, messagesIn(queue));
        });
    }

    private static void prefetch(String kind, boolean simple) {
        for (boolean global : new boolean[] { false, true }) {
            check(kind + (global ? "prefetch of the channel" : "prefetch of the consumer"), () -> {
                String queue = queue();
                fill(queue, 20);
                List<Runnable> held = new CopyOnWriteArrayList<>();
                AbstractMessageListenerContainer container = container(simple, manual((message, channel, tag) ->
                    held.add(() -> {
                        try {
                            channel.basicAck(tag, false);
                        }
                        catch (java.io.IOException thrown) {
                            throw new java.io.UncheckedIOException(thrown);
                        }
                    })), queue);
                container.setAcknowledgeMode(AcknowledgeMode.MANUAL);
                container.setPrefetchCount(7);
                container.setGlobalQos(global);
                start(container);
                until("seven held", () -> held.size() == 7);
                Thread.sleep(300);
                equal(7, held.size());
                equal(13L, messagesIn(queue));
                held.get(0).run();
                until("the eighth", () -> held.size() == 8);
                container.stop();
                until("19 back", () -> messagesIn(queue) == 19);
            });
        }
    }

    private static void concurrency(String kind, boolean simple) {
        check(kind + "concurrency is changed at run time", () -> {
            String queue = queue();
            Set<String> threads = ConcurrentHashMap.newKeySet();
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = start(container(simple, (MessageListener) message -> {
                threads.add(message.getMessageProperties().getConsumerTag());
                seen.incrementAndGet();
            }, queue));
            for (int wanted : new int[] { 4, 2, 3, 1 }) {
                if (container instanceof SimpleMessageListenerContainer one) {
                    one.setConcurrentConsumers(wanted);
                }
                else {
                    ((DirectMessageListenerContainer) container).setConsumersPerQueue(wanted);
                }
                until(wanted + " consumers", () -> consumersOf(queue) == wanted);
            }
            fill(queue, 50);
            until("50 seen", () -> seen.get() == 50);
            container.stop();
        });
        check(kind + "queues come and go at run time", () -> {
            String first = queue();
            String second = queue();
            Set<String> from = ConcurrentHashMap.newKeySet();
            AbstractMessageListenerContainer container = start(container(simple,
                (MessageListener) message -> from.add(message.getMessageProperties().getConsumerQueue()), first));
            until("the first", () -> consumersOf(first) == 1);
            container.addQueueNames(second);
            until("the second", () -> consumersOf(second) == 1);
            fill(second, 1);
            until("of the second", () -> from.contains(second));
            container.removeQueueNames(first);
            until("none of the first", () -> consumersOf(first) == 0);
            equal(1, consumersOf(second));
            container.stop();
        });
    }

    private static void queues(String kind, boolean simple) {
        check(kind + "a missing queue that is not fatal is waited for", () -> {
            String queue = name("missing");
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> seen.incrementAndGet(), queue);
            container.setMissingQueuesFatal(false);
            if (container instanceof DirectMessageListenerContainer direct) {
                direct.setFailedDeclarationRetryInterval(300);
            }
            start(container);
            Thread.sleep(500);
            admin.declareQueue(new Queue(queue));
            fill(queue, 2);
            until("both seen", () -> seen.get() == 2);
            container.stop();
        });
        check(kind + "a missing queue that is fatal", () -> {
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> {
            }, name("missing"));
            container.setMissingQueuesFatal(true);
            String told;
            try {
                start(container);
                until("the container has stopped", () -> !container.isRunning());
                told = "stopped";
            }
            catch (RuntimeException thrown) {
                told = Checks.chain(thrown);
            }
            that(told.equals("stopped") || told.contains("queues is missing") || told.contains("QueuesNotAvailableException"), told);
        });
        check(kind + "a queue that is deleted under it and declared again", () -> {
            String queue = queue();
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> seen.incrementAndGet(), queue);
            container.setMissingQueuesFatal(false);
            if (container instanceof DirectMessageListenerContainer direct) {
                direct.setFailedDeclarationRetryInterval(300);
            }
            start(container);
            until("a consumer", () -> consumersOf(queue) == 1);
            admin.deleteQueue(queue);
            Thread.sleep(200);
            admin.declareQueue(new Queue(queue));
            fill(queue, 1);
            until("seen", () -> seen.get() == 1);
            container.stop();
        });
        check(kind + "an auto-delete queue goes with the last consumer and is declared at the next start", () -> {
            Queue queue = new Queue(name("auto"), false, false, true);
            CachingConnectionFactory own = Broker.factory();
            GenericApplicationContext other = AdminChecks.context(own, new org.springframework.amqp.core.Declarables(queue));
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> {
            }, queue.getName());
            container.setConnectionFactory(own);
            container.setAmqpAdmin(other.getBean(RabbitAdmin.class));
            container.setApplicationContext(other);
            start(container);
            until("a consumer", () -> admin.getQueueInfo(queue.getName()) != null && consumersOf(queue.getName()) == 1);
            container.stop();
            until("it is gone", () -> admin.getQueueInfo(queue.getName()) == null);
            container.start();
            until("a consumer again", () -> admin.getQueueInfo(queue.getName()) != null && consumersOf(queue.getName()) == 1);
            container.stop();
            other.close();
        });
    }

    private static void consumers(String kind, boolean simple) {
        check(kind + "an exclusive consumer keeps others out until it goes", () -> {
            String queue = queue();
            List<String> from = new CopyOnWriteArrayList<>();
            AbstractMessageListenerContainer first = container(simple, (MessageListener) message -> from.add("first"), queue);
            first.setExclusive(true);
            start(first);
            until("the first", () -> consumersOf(queue) == 1);
            AbstractMessageListenerContainer second = container(simple, (MessageListener) message -> from.add("second"), queue);
            second.setExclusive(true);
            start(second);
            fill(queue, 1);
            until("one seen", () -> from.size() == 1);
            first.stop();
            fill(queue, 1);
            until("two seen", () -> from.size() == 2);
            second.stop();
            equal(List.of("first", "second"), from);
        });
        check(kind + "consumer tags, arguments and priorities", () -> {
            String queue = queue();
            List<String> tags = new CopyOnWriteArrayList<>();
            List<AbstractMessageListenerContainer> both = new ArrayList<>();
            for (int priority : new int[] { 1, 10 }) {
                AbstractMessageListenerContainer one = container(simple,
                    (MessageListener) message -> tags.add(message.getMessageProperties().getConsumerTag()), queue);
                one.setConsumerTagStrategy(of -> "tag-" + priority);
                one.setConsumerArguments(Map.of("x-priority", priority, "x-cancel-on-ha-failover", true));
                both.add(start(one));
                until("there", () -> consumersOf(queue) == both.size());
            }
            fill(queue, 5);
            until("five seen", () -> tags.size() == 5);
            both.forEach(AbstractMessageListenerContainer::stop);
            equal(Set.of("tag-10"), Set.copyOf(tags));
        });
        check(kind + "a single active consumer and the next one", () -> {
            Queue queue = QueueBuilder.durable(name("single")).singleActiveConsumer().build();
            admin.declareQueue(queue);
            List<String> from = new CopyOnWriteArrayList<>();
            AbstractMessageListenerContainer first = start(container(simple, (MessageListener) message -> from.add("first"), queue.getName()));
            until("the first", () -> consumersOf(queue.getName()) == 1);
            AbstractMessageListenerContainer second = start(container(simple, (MessageListener) message -> from.add("second"), queue.getName()));
            until("the second", () -> consumersOf(queue.getName()) == 2);
            fill(queue.getName(), 10);
            until("ten seen", () -> from.size() == 10);
            equal(Set.of("first"), Set.copyOf(from));
            first.stop();
            fill(queue.getName(), 1);
            until("eleven seen", () -> from.size() == 11);
            second.stop();
            equal("second", from.get(10));
        });
        check(kind + "idle events", () -> {
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> {
            }, queue());
            container.setIdleEventInterval(200);
            container.setListenerId("idle-" + simple);
            start(container);
            until("an event", () -> EVENTS.stream().anyMatch(event -> event instanceof ListenerContainerIdleEvent idle
                && ("idle-" + simple).equals(idle.getListenerId())));
            container.stop();
        });
        check(kind + "transactions: an exception rolls back what was published", () -> {
            String queue = queue();
            String out = queue();
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setChannelTransacted(true);
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = container(simple, (MessageListener) message -> {
                own.convertAndSend(out, "attempt" + seen.incrementAndGet());
                if (seen.get() == 1) {
                    throw new IllegalStateException("again");
                }
            }, queue);
            container.setChannelTransacted(true);
            start(container);
            fill(queue, 1);
            equal("attempt2", template.receiveAndConvert(out, 30_000));
            container.stop();
            equal(0L, messagesIn(queue));
            equal(0L, messagesIn(out));
        });
    }

    private static void recovery(String kind, boolean simple) {
        check(kind + "it goes on when all connections are closed", () -> {
            String queue = queue();
            AtomicInteger seen = new AtomicInteger();
            AbstractMessageListenerContainer container = start(container(simple, (MessageListener) message -> seen.incrementAndGet(), queue));
            fill(queue, 5);
            until("five seen", () -> seen.get() == 5);
            Broker.ctl("close_all_connections", "suite");
            until("a message is sent", () -> {
                try {
                    fill(queue, 1);
                    return true;
                }
                catch (org.springframework.amqp.AmqpException lost) {
                    return false;
                }
            });
            until("more seen", () -> seen.get() > 5);
            container.stop();
        });
        check(kind + "a stop in the middle loses nothing", () -> {
            String queue = queue();
            fill(queue, 300);
            Set<String> seen = ConcurrentHashMap.newKeySet();
            for (int part = 0; part < 3; part++) {
                CountDownLatch some = new CountDownLatch(50);
                AbstractMessageListenerContainer container = start(container(simple, (MessageListener) message -> {
                    seen.add(new String(message.getBody()));
                    some.countDown();
                }, queue));
                until("some came", () -> some.await(100, TimeUnit.MILLISECONDS) || seen.size() == 300);
                container.stop();
            }
            AbstractMessageListenerContainer last = start(container(simple,
                (MessageListener) message -> seen.add(new String(message.getBody())), queue));
            until("all seen", () -> seen.size() == 300);
            last.stop();
            equal(0L, messagesIn(queue));
        });
    }

    private static void onlySimple() {
        check("simple container: more consumers under load, fewer without", () -> {
            String queue = queue();
            SimpleMessageListenerContainer container = (SimpleMessageListenerContainer) container(true, (MessageListener) message -> {
                try {
                    Thread.sleep(20);
                }
                catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                }
            }, queue);
            container.setConcurrentConsumers(1);
            container.setMaxConcurrentConsumers(4);
            container.setPrefetchCount(1);
            start(container);
            fill(queue, 600);
            until("more than one", () -> consumersOf(queue) > 1);
            until("one again", () -> messagesIn(queue) == 0 && consumersOf(queue) == 1);
            container.stop();
        });
        check("simple container: batches of the consumer", () -> batches(container -> {
            container.setBatchSize(5);
            container.setConsumerBatchEnabled(true);
        }));
        check("direct container: acknowledged in groups", () -> {
            String queue = queue();
            AtomicInteger seen = new AtomicInteger();
            DirectMessageListenerContainer container = (DirectMessageListenerContainer) container(false,
                (MessageListener) message -> seen.incrementAndGet(), queue);
            container.setMessagesPerAck(10);
            container.setAckTimeout(500);
            start(container);
            fill(queue, 25);
            until("25 seen", () -> seen.get() == 25);
            container.stop();
            equal(0L, messagesIn(queue));
        });
        check("a container on no broker says so and starts later", () -> {
            CachingConnectionFactory nobody = new CachingConnectionFactory(Broker.HOST, 1);
            String told = Checks.thrownBy(() -> new RabbitTemplate(nobody).receive("q"));
            contains("Connection refused", told);
            nobody.destroy();
        });
    }

    private static void batches(Consumer<SimpleMessageListenerContainer> settings) throws Exception {
        String queue = queue();
        fill(queue, 12);
        List<Integer> sizes = new CopyOnWriteArrayList<>();
        SimpleMessageListenerContainer container = (SimpleMessageListenerContainer) container(true,
            new org.springframework.amqp.rabbit.listener.api.ChannelAwareBatchMessageListener() {

                @Override
                public void onMessageBatch(List<Message> messages, com.rabbitmq.client.Channel channel) {
                    sizes.add(messages.size());
                }

            }, queue);
        settings.accept(container);
        container.setReceiveTimeout(1000);
        start(container);
        until("twelve in batches: " + sizes, () -> sizes.stream().mapToInt(Integer::intValue).sum() == 12);
        container.stop();
        that(sizes.get(0) == 5 && sizes.size() <= 4, "sizes " + sizes);
        equal(0L, messagesIn(queue));
    }

}
