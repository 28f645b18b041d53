package suite;

import static suite.Checks.check;
import static suite.Checks.equal;
import static suite.Checks.name;
import static suite.Checks.that;
import static suite.Checks.until;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

import org.springframework.amqp.core.Queue;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.bus.event.AckRemoteApplicationEvent;
import org.springframework.cloud.bus.event.EnvironmentChangeRemoteApplicationEvent;
import org.springframework.cloud.bus.event.PathDestinationFactory;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.integration.amqp.dsl.Amqp;
import org.springframework.integration.amqp.support.ReturnedAmqpMessageException;
import org.springframework.integration.channel.QueueChannel;
import org.springframework.integration.dsl.IntegrationFlow;
import org.springframework.integration.dsl.context.IntegrationFlowContext;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageChannel;
import org.springframework.messaging.support.GenericMessage;
import org.springframework.messaging.support.MessageBuilder;

/** Spring Integration's AMQP channels, adapters and gateways, and Spring Cloud Bus. */
final class FlowChecks {

    private static final long WAIT_MS = 30_000;

    private static ConfigurableApplicationContext context;

    private static IntegrationFlowContext flows;

    private static CachingConnectionFactory factory;

    private static RabbitAdmin admin;

    private FlowChecks() {
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        final List<Object> events = new CopyOnWriteArrayList<>();

        @EventListener
        void changed(EnvironmentChangeRemoteApplicationEvent event) {
            this.events.add(event.getValues());
        }

        @EventListener
        void acknowledged(AckRemoteApplicationEvent event) {
            this.events.add("ack of " + event.getOriginService());
        }

    }

    static void all() {
        context = BootChecks.start(Application.class, Map.of());
        flows = context.getBean(IntegrationFlowContext.class);
        factory = Broker.factory();
        factory.setPublisherConfirmType(CachingConnectionFactory.ConfirmType.CORRELATED);
        factory.setPublisherReturns(true);
        admin = new RabbitAdmin(factory);
        channels();
        adapters();
        bus();
        context.close();
    }

    private static void channels() {
        check("integration: a channel of a queue", () -> {
            QueueChannel out = new QueueChannel();
            var flow = flows.registration(IntegrationFlow.from(Amqp.channel(factory).queueName(name("channel")))
                .channel(out).get()).register();
            for (int i = 0; i < 5; i++) {
                that(flow.getInputChannel().send(new GenericMessage<>("p" + i)), "not sent");
            }
            // Each send may take another channel, and between channels there is no order.
            var got = new java.util.TreeSet<Object>();
            for (int i = 0; i < 5; i++) {
                got.add(out.receive(WAIT_MS).getPayload());
            }
            equal("[p0, p1, p2, p3, p4]", got.toString());
            flow.destroy();
        });
        check("integration: a channel of publish and subscribe", () -> {
            QueueChannel one = new QueueChannel();
            QueueChannel two = new QueueChannel();
            String exchange = name("pubsub");
            var flow = flows.registration(IntegrationFlow.from(Amqp.publishSubscribeChannel("suiteAll", factory).exchange(new org.springframework.amqp.core.FanoutExchange(exchange, false, true)))
                .wireTap(one).channel(two).get()).register();
            flow.getInputChannel().send(new GenericMessage<>("all"));
            equal("all", one.receive(WAIT_MS).getPayload());
            equal("all", two.receive(WAIT_MS).getPayload());
            flow.destroy();
            admin.deleteExchange(exchange);
        });
        check("integration: a channel that is polled", () -> {
            QueueChannel out = new QueueChannel();
            // It would be declared at the first poll, after the first message.
            String queue = name("polled");
            admin.declareQueue(new Queue(queue));
            var flow = flows.registration(IntegrationFlow.from(Amqp.pollableChannel("suitePolled", factory).queueName(queue))
                .bridge(each -> each.poller(poller -> poller.fixedDelay(100))).channel(out).get()).register();
            flow.getInputChannel().send(new GenericMessage<>("polled"));
            equal("polled", out.receive(WAIT_MS).getPayload());
            flow.destroy();
        });
    }

    private static void adapters() {
        check("integration: out and in by adapters, headers go with them, confirms come back", () -> {
            String queue = name("adapter");
            admin.declareQueue(new Queue(queue));
            QueueChannel in = new QueueChannel();
            QueueChannel acks = new QueueChannel();
            QueueChannel nacks = new QueueChannel();
            var inbound = flows.registration(IntegrationFlow.from(Amqp.inboundAdapter(factory, queue).mappedRequestHeaders("*")).channel(in).get()).register();
            IntegrationFlow outbound = flow -> flow.handle(Amqp.outboundAdapter(new RabbitTemplate(factory)).routingKey(queue).mappedRequestHeaders("*")
                .confirmCorrelationExpression("payload").confirmAckChannel(acks).confirmNackChannel(nacks));
            var out = flows.registration(outbound).register();
            out.getInputChannel().send(MessageBuilder.withPayload("x").setHeader("mine", 3).setHeader("amqp_appId", "app").build());
            Message<?> got = in.receive(WAIT_MS);
            equal("x", got.getPayload());
            equal(3, got.getHeaders().get("mine"));
            equal("app", got.getHeaders().get("amqp_appId"));
            equal("x", acks.receive(WAIT_MS).getPayload());
            out.destroy();
            inbound.destroy();
        });
        check("integration: a returned message", () -> {
            QueueChannel returned = new QueueChannel();
            RabbitTemplate own = new RabbitTemplate(factory);
            own.setMandatory(true);
            IntegrationFlow outbound = flow -> flow.handle(Amqp.outboundAdapter(own).routingKey("suite.nobody").confirmCorrelationExpression("payload")
                .confirmAckChannel(new QueueChannel()).returnChannel(returned));
            var out = flows.registration(outbound).register();
            out.getInputChannel().send(new GenericMessage<>("back"));
            Message<?> back = returned.receive(WAIT_MS);
            equal(312, back.getPayload() instanceof ReturnedAmqpMessageException told ? told.getReplyCode() : back.getHeaders().get("amqp_returnReplyCode"));
            out.destroy();
        });
        check("integration: a gateway on each side", () -> {
            String queue = name("gateway");
            admin.declareQueue(new Queue(queue));
            var inbound = flows.registration(IntegrationFlow.from(Amqp.inboundGateway(factory, queue)).<String, String>transform(String::toUpperCase).get()).register();
            QueueChannel replies = new QueueChannel();
            IntegrationFlow asking = flow -> flow.handle(Amqp.outboundGateway(new RabbitTemplate(factory)).routingKey(queue)).channel(replies);
            var out = flows.registration(asking).register();
            out.getInputChannel().send(new GenericMessage<>("loud"));
            equal("LOUD", replies.receive(WAIT_MS).getPayload());
            out.destroy();
            inbound.destroy();
        });
        check("integration: a source that is polled", () -> {
            String queue = name("source");
            admin.declareQueue(new Queue(queue));
            new RabbitTemplate(factory).convertAndSend(queue, "taken");
            QueueChannel in = new QueueChannel();
            var flow = flows.registration(IntegrationFlow.from(Amqp.inboundPolledAdapter(factory, queue), each -> each.poller(poller -> poller.fixedDelay(100)))
                .channel((MessageChannel) in).get()).register();
            equal("taken", in.receive(WAIT_MS).getPayload());
            flow.destroy();
            until("acknowledged", () -> admin.getQueueInfo(queue).getMessageCount() == 0);
        });
    }

    private static void bus() {
        check("bus: an event reaches the other application and is acknowledged", () -> {
            String exchange = name("bus");
            ConfigurableApplicationContext one = onBus("one", exchange);
            ConfigurableApplicationContext two = onBus("two", exchange);
            one.publishEvent(new EnvironmentChangeRemoteApplicationEvent(one, "one:1",
                new PathDestinationFactory().getDestination("**"), Map.of("suite.changed", "yes")));
            until("both have it", () -> List.of(one, two).stream().allMatch(each -> "yes".equals(each.getEnvironment().getProperty("suite.changed"))));
            until("it is acknowledged", () -> one.getBean(Application.class).events.contains("ack of two:1"));
            two.close();
            one.close();
            admin.deleteExchange(exchange);
        });
    }

    private static ConfigurableApplicationContext onBus(String id, String exchange) {
        return BootChecks.start(Application.class, Map.of("spring.cloud.bus.enabled", "true", "spring.cloud.bus.id", id + ":1",
            "spring.cloud.bus.destination", exchange, "spring.cloud.bus.trace.enabled", "true"));
    }

}
