package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.that;
import static suite.Checks.thrownBy;
import static suite.Checks.until;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.aopalliance.aop.Advice;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.AsyncRabbitTemplate;
import org.springframework.amqp.rabbit.config.RetryInterceptorBuilder;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.adapter.MessageListenerAdapter;
import org.springframework.amqp.rabbit.listener.adapter.ReplyingMessageListener;
import org.springframework.amqp.rabbit.retry.ImmediateRequeueMessageRecoverer;
import org.springframework.amqp.rabbit.retry.RejectAndDontRequeueRecoverer;
import org.springframework.amqp.rabbit.retry.RepublishMessageRecoverer;
import org.springframework.amqp.rabbit.retry.RepublishMessageRecovererWithConfirms;

/** Questions with each kind of reply queue, and retries with each kind of end. */
final class RpcChecks {

    private static final long WAIT_MS = 30_000;

    private static CachingConnectionFactory factory;

    private static RabbitAdmin admin;

    private static RabbitTemplate template;

    private RpcChecks() {
    }

    static void all() {
        factory = Broker.factory();
        admin = new RabbitAdmin(factory);
        template = new RabbitTemplate(factory);
        questions();
        retries();
    }

    private static String queue(String name, Map<String, Object> arguments) {
        String queue = Checks.name(name);
        admin.declareQueue(new Queue(queue, true, false, false, arguments));
        return queue;
    }

    private static SimpleMessageListenerContainer listen(String queue, Object listener, Advice... advice) {
        SimpleMessageListenerContainer container = new SimpleMessageListenerContainer(factory);
        container.setQueueNames(queue);
        container.setMessageListener((MessageListener) listener);
        container.setReceiveTimeout(200);
        container.setAdviceChain(advice);
        container.afterPropertiesSet();
        container.start();
        return container;
    }

    private static SimpleMessageListenerContainer answering(String queue) {
        return listen(queue, new MessageListenerAdapter((ReplyingMessageListener<String, String>) String::toUpperCase));
    }

    private static void ask(RabbitTemplate own, String queue) {
        own.setReplyTimeout(WAIT_MS);
        Set<Object> replies = IntStream.range(0, 40).parallel().mapToObj(i -> own.convertSendAndReceive(queue, "q" + i))
            .collect(Collectors.toSet());
        equal(IntStream.range(0, 40).mapToObj(i -> "Q" + i).collect(Collectors.toSet()), replies);
    }

    private static void questions() {
        check("rpc: direct reply-to with a container", () -> {
            String queue = queue("rpc", Map.of());
            SimpleMessageListenerContainer container = answering(queue);
            ask(new RabbitTemplate(factory), queue);
            container.stop();
        });
        check("rpc: direct reply-to with a channel each", () -> {
            String queue = queue("rpc", Map.of());
            SimpleMessageListenerContainer container = answering(queue);
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setUseDirectReplyToContainer(false);
            ask(own, queue);
            container.stop();
        });
        check("rpc: temporary reply queues", () -> {
            String queue = queue("rpc", Map.of());
            SimpleMessageListenerContainer container = answering(queue);
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setUseTemporaryReplyQueues(true);
            ask(own, queue);
            container.stop();
        });
        check("rpc: a reply queue of its own", () -> {
            String queue = queue("rpc", Map.of());
            String replies = queue("replies", Map.of());
            SimpleMessageListenerContainer container = answering(queue);
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setReplyAddress(replies);
            SimpleMessageListenerContainer listener = listen(replies, own);
            ask(own, queue);
            listener.stop();
            container.stop();
        });
        check("rpc: the address that is answered to", () -> {
            String queue = queue("rpc", Map.of());
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setReplyTimeout(500);
            equal(null, own.convertSendAndReceive(queue, "nobody answers"));
            contains("amq.rabbitmq.reply-to.", template.receive(queue, WAIT_MS).getMessageProperties().getReplyTo());
        });
        check("rpc: a reply that comes too late goes nowhere", () -> {
            String queue = queue("rpc", Map.of());
            CachingConnectionFactory asking = Broker.factory();
            RabbitTemplate own = new RabbitTemplate(asking);
            own.setReplyTimeout(300);
            equal(null, own.convertSendAndReceive(queue, "late"));
            Message asked = template.receive(queue, WAIT_MS);
            asking.destroy();
            CachingConnectionFactory other = Broker.factory();
            other.setPublisherConfirmType(CachingConnectionFactory.ConfirmType.SIMPLE);
            new RabbitTemplate(other).invoke(operations -> {
                operations.convertAndSend("", asked.getMessageProperties().getReplyTo(), "late");
                operations.waitForConfirmsOrDie(WAIT_MS);
                return true;
            });
        });
        check("rpc: the asynchronous template", () -> {
            String queue = queue("rpc", Map.of());
            SimpleMessageListenerContainer container = answering(queue);
            AsyncRabbitTemplate own = new AsyncRabbitTemplate(factory, "", queue);
            own.start();
            List<CompletableFuture<String>> asked = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                asked.add(own.convertSendAndReceive("", queue, "a" + i));
            }
            for (int i = 0; i < 20; i++) {
                equal("A" + i, asked.get(i).get(WAIT_MS, TimeUnit.MILLISECONDS));
            }
            own.stop();
            container.stop();
        });
    }

    private static SimpleMessageListenerContainer failing(String queue, AtomicInteger tries, Advice advice) {
        return listen(queue, (MessageListener) message -> {
            tries.incrementAndGet();
            throw new IllegalStateException("bad luck");
        }, advice);
    }

    private static void retries() {
        check("retry: stateless, then the dead letters", () -> {
            String dead = queue("dead", Map.of());
            String queue = queue("retry", Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
            AtomicInteger tries = new AtomicInteger();
            SimpleMessageListenerContainer container = failing(queue, tries, RetryInterceptorBuilder.stateless().maxAttempts(3)
                .backOffOptions(20, 1, 20).recoverer(new RejectAndDontRequeueRecoverer()).build());
            template.convertAndSend(queue, "m");
            that(template.receive(dead, WAIT_MS) != null, "nothing died");
            container.stop();
            equal(3, tries.get());
        });
        check("retry: stateful, by redelivery", () -> {
            String dead = queue("dead", Map.of());
            String queue = queue("retry", Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
            AtomicInteger tries = new AtomicInteger();
            SimpleMessageListenerContainer container = failing(queue, tries, RetryInterceptorBuilder.stateful().maxAttempts(3)
                .recoverer(new RejectAndDontRequeueRecoverer()).build());
            template.convertAndSend(queue, (Object) "m", message -> {
                message.getMessageProperties().setMessageId("id-1");
                return message;
            });
            that(template.receive(dead, WAIT_MS) != null, "nothing died");
            container.stop();
            equal(3, tries.get());
        });
        check("retry: published again with the stack trace", () -> {
            String errors = queue("errors", Map.of());
            String queue = queue("retry", Map.of());
            SimpleMessageListenerContainer container = failing(queue, new AtomicInteger(), RetryInterceptorBuilder.stateless()
                .maxAttempts(2).backOffOptions(20, 1, 20).recoverer(new RepublishMessageRecoverer(template, "", errors)).build());
            template.convertAndSend(queue, "m");
            Map<String, Object> headers = template.receive(errors, WAIT_MS).getMessageProperties().getHeaders();
            container.stop();
            contains("bad luck", headers.get("x-exception-message") + "");
            contains("IllegalStateException", headers.get("x-exception-stacktrace") + "");
            equal("", headers.get("x-original-exchange"));
            equal(queue, headers.get("x-original-routingKey"));
        });
        check("retry: published again with a confirm", () -> {
            String errors = queue("errors", Map.of());
            String queue = queue("retry", Map.of());
            CachingConnectionFactory own = Broker.factory();
            own.setPublisherConfirmType(CachingConnectionFactory.ConfirmType.CORRELATED);
            own.setPublisherReturns(true);
            RabbitTemplate confirmed = new RabbitTemplate(own);
            SimpleMessageListenerContainer container = failing(queue, new AtomicInteger(), RetryInterceptorBuilder.stateless()
                .maxAttempts(1).recoverer(new RepublishMessageRecovererWithConfirms(confirmed, "", errors,
                    CachingConnectionFactory.ConfirmType.CORRELATED)).build());
            template.convertAndSend(queue, "m");
            equal("m", template.receiveAndConvert(errors, WAIT_MS));
            container.stop();
        });
        check("retry: requeued at once", () -> {
            String queue = queue("retry", Map.of());
            List<Boolean> redelivered = new CopyOnWriteArrayList<>();
            SimpleMessageListenerContainer container = listen(queue, (MessageListener) message -> {
                redelivered.add(message.getMessageProperties().isRedelivered());
                if (redelivered.size() == 1) {
                    throw new IllegalStateException("again");
                }
            }, RetryInterceptorBuilder.stateless().maxAttempts(1).recoverer(new ImmediateRequeueMessageRecoverer()).build());
            template.convertAndSend(queue, "m");
            until("twice", () -> redelivered.size() == 2);
            container.stop();
            equal(List.of(false, true), redelivered);
        });
        check("retry: a loop through a waiting queue counts its deaths", () -> {
            String work = Checks.name("work");
            String wait = queue("wait", Map.of("x-message-ttl", 100, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", work));
            admin.declareQueue(new Queue(work, true, false, false, Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", wait)));
            List<Long> counts = new CopyOnWriteArrayList<>();
            SimpleMessageListenerContainer container = listen(work, (MessageListener) message -> {
                List<Map<String, ?>> deaths = message.getMessageProperties().getXDeathHeader();
                counts.add(deaths == null ? 0 : deaths.stream().filter(one -> "rejected".equals(one.get("reason")))
                    .mapToLong(one -> (Long) one.get("count")).sum());
                if (counts.size() < 4) {
                    throw new org.springframework.amqp.AmqpRejectAndDontRequeueException("round again");
                }
            });
            template.convertAndSend(work, "m");
            until("four times", () -> counts.size() == 4);
            container.stop();
            equal(List.of(0L, 1L, 2L, 3L), counts);
        });
    }

}
