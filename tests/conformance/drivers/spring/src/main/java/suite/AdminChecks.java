package suite;

import static suite.Checks.check;
import static suite.Checks.contains;
import static suite.Checks.equal;
import static suite.Checks.name;
import static suite.Checks.that;
import static suite.Checks.thrownBy;
import static suite.Checks.until;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CopyOnWriteArrayList;

import com.fasterxml.jackson.databind.JsonNode;
import org.springframework.amqp.core.AnonymousQueue;
import org.springframework.amqp.core.Binding;
import org.springframework.amqp.core.BindingBuilder;
import org.springframework.amqp.core.Declarables;
import org.springframework.amqp.core.DirectExchange;
import org.springframework.amqp.core.Exchange;
import org.springframework.amqp.core.ExchangeBuilder;
import org.springframework.amqp.core.FanoutExchange;
import org.springframework.amqp.core.HeadersExchange;
import org.springframework.amqp.core.MessageBuilder;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.core.QueueBuilder.LeaderLocator;
import org.springframework.amqp.core.QueueBuilder.Overflow;
import org.springframework.amqp.core.QueueInformation;
import org.springframework.amqp.core.TopicExchange;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.DeclarationExceptionEvent;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.context.support.GenericApplicationContext;

/** RabbitAdmin: what it declares, declares again after a connection is lost, asks, empties and deletes, and what is refused. */
final class AdminChecks {

    private static final long WAIT_MS = 30_000;

    private static CachingConnectionFactory factory;

    private static RabbitAdmin admin;

    private static RabbitTemplate template;

    private AdminChecks() {
    }

    static void all() {
        factory = Broker.factory();
        admin = new RabbitAdmin(factory);
        template = new RabbitTemplate(factory);
        declarables();
        again();
        questions();
        refusals();
    }

    /** A context that holds an admin and what it declares, as an application's does. */
    static GenericApplicationContext context(CachingConnectionFactory own, Declarables... declared) {
        GenericApplicationContext context = new GenericApplicationContext();
        context.registerBean("factory", CachingConnectionFactory.class, () -> own);
        context.registerBean("admin", RabbitAdmin.class, () -> new RabbitAdmin(own));
        for (int i = 0; i < declared.length; i++) {
            Declarables one = declared[i];
            context.registerBean("declared" + i, Declarables.class, () -> one);
        }
        context.refresh();
        return context;
    }

    private static void declarables() {
        check("admin: Declarables with every argument of QueueBuilder", () -> {
            Queue all = QueueBuilder.durable(name("all")).ttl(60_000).expires(600_000).maxLength(10L).maxLengthBytes(1_000_000)
                .overflow(Overflow.rejectPublish).deadLetterExchange("amq.fanout").deadLetterRoutingKey("dead").maxPriority(5)
                .lazy().singleActiveConsumer().leaderLocator(LeaderLocator.clientLocal).build();
            Queue plain = QueueBuilder.nonDurable(name("plain")).autoDelete().build();
            CachingConnectionFactory own = Broker.factory();
            GenericApplicationContext context = context(own, new Declarables(all, plain));
            own.createConnection();
            JsonNode shown = Broker.api("queues/%2F/" + all.getName());
            for (Map.Entry<String, Object> one : all.getArguments().entrySet()) {
                equal(String.valueOf(one.getValue()), shown.get("arguments").get(one.getKey()).asText());
            }
            equal(true, Broker.api("queues/%2F/" + plain.getName()).get("auto_delete").asBoolean());
            context.close();
        });
        check("admin: exchanges of every type, bound, and one to another", () -> {
            TopicExchange topic = ExchangeBuilder.topicExchange(name("topic")).durable(false).autoDelete().build();
            FanoutExchange fanout = ExchangeBuilder.fanoutExchange(name("fanout")).internal().build();
            HeadersExchange headers = ExchangeBuilder.headersExchange(name("headers")).build();
            DirectExchange direct = ExchangeBuilder.directExchange(name("direct")).alternate(fanout.getName()).build();
            Queue queue = new Queue(name("bound"));
            List<Binding> bindings = List.of(
                BindingBuilder.bind(queue).to(topic).with("a.#"),
                BindingBuilder.bind(queue).to(fanout),
                BindingBuilder.bind(queue).to(headers).whereAll(Map.of("x", 1, "y", "z")).match(),
                BindingBuilder.bind(fanout).to(topic).with("*.b"));
            List<org.springframework.amqp.core.Declarable> declared = new ArrayList<>(bindings);
            declared.addAll(List.of(topic, fanout, headers, direct, queue));
            CachingConnectionFactory own = Broker.factory();
            GenericApplicationContext context = context(own, new Declarables(declared));
            RabbitTemplate own1 = new RabbitTemplate(own);
            own1.convertAndSend(topic.getName(), "a.x.y", "1");
            equal("1", own1.receiveAndConvert(queue.getName(), WAIT_MS));
            own1.convertAndSend(topic.getName(), "q.b", "2");
            equal("2", own1.receiveAndConvert(queue.getName(), WAIT_MS));
            own1.send(headers.getName(), "", MessageBuilder.withBody("3".getBytes()).setHeader("x", 1).setHeader("y", "z").build());
            equal("3", new String(own1.receive(queue.getName(), WAIT_MS).getBody()));
            own1.convertAndSend(direct.getName(), "nobody", "4");
            equal("4", own1.receiveAndConvert(queue.getName(), WAIT_MS));
            RabbitAdmin end = new RabbitAdmin(own);
            for (Exchange one : List.of(direct, headers, fanout, topic)) {
                end.deleteExchange(one.getName());
            }
            context.close();
        });
    }

    private static void again() {
        check("admin: what was lost with the connection is declared again", () -> {
            Queue gone = new Queue(name("gone"), false, true, true);
            Queue anonymous = new AnonymousQueue();
            Queue durable = new Queue(name("stays"));
            DirectExchange exchange = new DirectExchange(name("exchange"), false, true);
            CachingConnectionFactory own = Broker.factory();
            GenericApplicationContext context = context(own, new Declarables(gone, anonymous, durable, exchange,
                BindingBuilder.bind(gone).to(exchange).with("k")));
            RabbitTemplate template = new RabbitTemplate(own);
            template.convertAndSend(exchange.getName(), "k", "before");
            template.convertAndSend(durable.getName(), "kept");
            until("both messages", () -> new RabbitAdmin(own).getQueueInfo(gone.getName()).getMessageCount() == 1);
            Broker.ctl("close_all_connections", "suite");
            until("the channel is closed", () -> {
                try {
                    template.convertAndSend(exchange.getName(), "k", "after");
                    return "after".equals(template.receiveAndConvert(gone.getName(), 1000));
                }
                catch (org.springframework.amqp.AmqpException lost) {
                    return false;
                }
            });
            template.convertAndSend(anonymous.getName(), "there");
            equal("there", template.receiveAndConvert(anonymous.getName(), WAIT_MS));
            equal("kept", template.receiveAndConvert(durable.getName(), WAIT_MS));
            context.close();
        });
        check("admin: what was declared by hand is declared again", () -> {
            CachingConnectionFactory own = Broker.factory();
            GenericApplicationContext context = new GenericApplicationContext();
            context.registerBean("factory", CachingConnectionFactory.class, () -> own);
            context.registerBean("admin", RabbitAdmin.class, () -> {
                RabbitAdmin made = new RabbitAdmin(own);
                made.setRedeclareManualDeclarations(true);
                return made;
            });
            context.refresh();
            RabbitAdmin own1 = context.getBean(RabbitAdmin.class);
            String queue = name("by-hand");
            own1.declareQueue(new Queue(queue, false, true, true));
            own.resetConnection();
            own.createConnection();
            equal(0, (int) own1.getQueueInfo(queue).getMessageCount());
            context.close();
        });
    }

    private static void questions() {
        check("admin: counts, properties, a queue that is not there", () -> {
            Queue queue = new Queue(name("counts"));
            admin.declareQueue(queue);
            template.convertAndSend(queue.getName(), "1");
            template.convertAndSend(queue.getName(), "2");
            until("both", () -> admin.getQueueInfo(queue.getName()).getMessageCount() == 2);
            QueueInformation info = admin.getQueueInfo(queue.getName());
            equal(0, (int) info.getConsumerCount());
            Properties properties = admin.getQueueProperties(queue.getName());
            equal(queue.getName(), properties.get(RabbitAdmin.QUEUE_NAME));
            equal(null, admin.getQueueInfo("suite.no"));
        });
        check("admin: purge and delete, unused and empty only", () -> {
            Queue queue = new Queue(name("purged"));
            admin.declareQueue(queue);
            template.convertAndSend(queue.getName(), "1");
            until("there", () -> admin.getQueueInfo(queue.getName()).getMessageCount() == 1);
            contains("PRECONDITION_FAILED - queue '" + queue.getName() + "' in vhost '/' not empty",
                thrownBy(() -> admin.deleteQueue(queue.getName(), false, true)));
            equal(1, admin.purgeQueue(queue.getName()));
            admin.deleteQueue(queue.getName(), true, true);
            equal(null, admin.getQueueInfo(queue.getName()));
            equal(true, admin.deleteQueue(queue.getName()));
            equal(true, admin.deleteExchange("suite.no"));
        });
        check("admin: a name of the server's", () -> {
            Queue made = admin.declareQueue();
            contains("amq.gen-", made.getName());
            template.convertAndSend(made.getName(), "x");
            equal("x", template.receiveAndConvert(made.getName(), WAIT_MS));
            admin.deleteQueue(made.getName());
        });
    }

    private static void refusals() {
        check("admin: another declaration of a queue is refused, or passed over", () -> {
            String queue = name("mismatch");
            admin.declareQueue(new Queue(queue));
            contains("PRECONDITION_FAILED - inequivalent arg 'durable' for queue '" + queue + "' in vhost '/': received 'false' but current is 'true'",
                thrownBy(() -> admin.declareQueue(new Queue(queue, false))));
            contains("PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '" + queue + "' in vhost '/': received the value '5' of type 'signedint' but current is none",
                thrownBy(() -> admin.declareQueue(new Queue(queue, true, false, false, Map.of("x-message-ttl", 5)))));
            GenericApplicationContext context = new GenericApplicationContext();
            List<DeclarationExceptionEvent> events = new CopyOnWriteArrayList<>();
            context.addApplicationListener(event -> {
                if (event instanceof DeclarationExceptionEvent told) {
                    events.add(told);
                }
            });
            CachingConnectionFactory own = Broker.factory();
            context.registerBean("other", Queue.class, () -> new Queue(queue, false));
            context.registerBean("admin", RabbitAdmin.class, () -> {
                RabbitAdmin made = new RabbitAdmin(own);
                made.setIgnoreDeclarationExceptions(true);
                return made;
            });
            context.refresh();
            own.createConnection();
            equal(1, events.size());
            context.close();
        });
        check("admin: another declaration of an exchange, an unknown type, a binding to nothing", () -> {
            DirectExchange exchange = new DirectExchange(name("exchange"));
            admin.declareExchange(exchange);
            contains("PRECONDITION_FAILED - inequivalent arg 'type' for exchange '" + exchange.getName() + "' in vhost '/': received 'topic' but current is 'direct'",
                thrownBy(() -> admin.declareExchange(new TopicExchange(exchange.getName()))));
            contains("unknown exchange type 'x-odd'", thrownBy(() -> admin.declareExchange(new org.springframework.amqp.core.CustomExchange(name("odd"), "x-odd"))));
            contains("NOT_FOUND - no queue 'suite.no' in vhost '/'",
                thrownBy(() -> admin.declareBinding(BindingBuilder.bind(new Queue("suite.no")).to(exchange).with("k"))));
            admin.deleteExchange(exchange.getName());
            contains("NOT_FOUND - no exchange 'suite.no' in vhost '/'",
                thrownBy(() -> admin.declareBinding(BindingBuilder.bind(admin.declareQueue()).to(new DirectExchange("suite.no")).with("k"))));
        });
        check("admin: an exclusive queue is its connection's alone", () -> {
            String queue = name("exclusive");
            admin.declareQueue(new Queue(queue, false, true, false));
            CachingConnectionFactory own = Broker.factory();
            contains("RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + queue + "' in vhost '/'",
                thrownBy(() -> new RabbitTemplate(own).receive(queue)));
            contains("RESOURCE_LOCKED", thrownBy(() -> new RabbitAdmin(own).declareQueue(new Queue(queue, false, true, false))));
        });
        check("admin: reserved names, bad arguments", () -> {
            contains("ACCESS_REFUSED - exchange name 'amq.suite' contains reserved prefix 'amq.*'",
                thrownBy(() -> admin.declareExchange(new DirectExchange("amq.suite"))));
            contains("PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue",
                thrownBy(() -> admin.declareQueue(new Queue(name("bad"), true, false, false, Map.of("x-message-ttl", -1)))));
            that(thrownBy(() -> template.convertAndSend("", "x".repeat(300), "m")).contains("255"), "a long key was taken");
        });
    }

}
