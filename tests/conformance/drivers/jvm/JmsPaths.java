import com.rabbitmq.jms.admin.RMQConnectionFactory;
import com.rabbitmq.jms.admin.RMQDestination;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The usual paths of RabbitMQ's JMS client, and what a user is told where a plugin is wanted. */
public final class JmsPaths {

    private static final RMQConnectionFactory FACTORY = new RMQConnectionFactory();
    private static final long WAIT_MS = 20_000;
    private static int names;

    interface Work {
        void with(Session session) throws Exception;
    }

    private static String name() {
        return Checks.PREFIX + "jms." + names++;
    }

    private static void in(boolean isTransacted, int mode, Work work) throws Exception {
        try (Connection connection = FACTORY.createConnection()) {
            connection.start();
            work.with(connection.createSession(isTransacted, mode));
        }
    }

    private static void in(Work work) throws Exception {
        in(false, Session.AUTO_ACKNOWLEDGE, work);
    }

    private static void send(Session session, Destination where, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(where);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    private static String text(Message message) throws JMSException {
        return message == null ? null : ((TextMessage) message).getText();
    }

    private static Message received(Session session, Destination where) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(where)) {
            return consumer.receive(WAIT_MS);
        }
    }

    private static void messages() {
        Checks.check("jms text", () -> in(session -> {
            Queue queue = session.createQueue(name());
            send(session, queue, "one", "two");
            Checks.same("one", text(received(session, queue)));
            Checks.same("two", text(received(session, queue)));
        }));
        Checks.check("jms bytes", () -> in(session -> {
            Queue queue = session.createQueue(name());
            BytesMessage out = session.createBytesMessage();
            out.writeLong(7);
            out.writeUTF("é");
            session.createProducer(queue).send(out);
            BytesMessage back = (BytesMessage) received(session, queue);
            Checks.same(7L, back.readLong());
            Checks.same("é", back.readUTF());
        }));
        Checks.check("jms map, stream, object", () -> in(session -> {
            Queue queue = session.createQueue(name());
            MapMessage map = session.createMapMessage();
            map.setDouble("d", 1.5);
            map.setBytes("b", new byte[] {1, 2});
            StreamMessage stream = session.createStreamMessage();
            stream.writeShort((short) 3);
            ObjectMessage object = session.createObjectMessage(new ArrayList<>(List.of("x")));
            MessageProducer producer = session.createProducer(queue);
            producer.send(map);
            producer.send(stream);
            producer.send(object);
            Checks.same(1.5, ((MapMessage) received(session, queue)).getDouble("d"));
            Checks.same((short) 3, ((StreamMessage) received(session, queue)).readShort());
            Checks.same(List.of("x"), ((ObjectMessage) received(session, queue)).getObject());
        }));
        Checks.check("jms headers and properties", () -> in(session -> {
            Queue queue = session.createQueue(name());
            TextMessage out = session.createTextMessage("t");
            out.setJMSCorrelationID("c");
            out.setJMSReplyTo(queue);
            out.setJMSType("kind");
            out.setStringProperty("s", "v");
            out.setLongProperty("l", 5_000_000_000L);
            out.setBooleanProperty("b", true);
            session.createProducer(queue).send(out, DeliveryMode.PERSISTENT, 7, 0);
            Message back = received(session, queue);
            Checks.same("c", back.getJMSCorrelationID());
            Checks.same("kind", back.getJMSType());
            Checks.same(7, back.getJMSPriority());
            Checks.same(DeliveryMode.PERSISTENT, back.getJMSDeliveryMode());
            Checks.same("v", back.getStringProperty("s"));
            Checks.same(5_000_000_000L, back.getLongProperty("l"));
            Checks.same(true, back.getBooleanProperty("b"));
            Checks.same(queue.getQueueName(), ((Queue) back.getJMSReplyTo()).getQueueName());
            Checks.same(out.getJMSMessageID(), back.getJMSMessageID());
        }));
        Checks.check("jms expiration", () -> in(session -> {
            Queue queue = session.createQueue(name());
            MessageProducer producer = session.createProducer(queue);
            producer.setTimeToLive(50);
            producer.send(session.createTextMessage("short"));
            Thread.sleep(500);
            send(session, queue, "long");
            Checks.same("long", text(received(session, queue)));
        }));
        Checks.check("jms receiveNoWait", () -> in(session -> {
            Queue queue = session.createQueue(name());
            MessageConsumer consumer = session.createConsumer(queue);
            Checks.same(null, consumer.receiveNoWait());
            send(session, queue, "x");
            Checks.eventually(() -> consumer.receiveNoWait() != null);
        }));
    }

    private static void patterns() {
        Checks.check("jms request and reply", () -> in(session -> {
            Queue queue = session.createQueue(name());
            Queue answers = session.createTemporaryQueue();
            MessageConsumer server = session.createConsumer(queue);
            TextMessage question = session.createTextMessage("q");
            question.setJMSReplyTo(answers);
            session.createProducer(queue).send(question);
            Message asked = server.receive(WAIT_MS);
            session.createProducer(asked.getJMSReplyTo()).send(session.createTextMessage("a"));
            Checks.same("a", text(received(session, answers)));
        }));
        Checks.check("jms temporary queue goes with its connection", () -> {
            String[] left = new String[1];
            in(session -> {
                Queue queue = session.createTemporaryQueue();
                send(session, queue, "x");
                left[0] = queue.getQueueName();
            });
            Checks.eventually(() -> {
                try (var connection = plain(); var channel = connection.createChannel()) {
                    channel.queueDeclarePassive(left[0]);
                    return false;
                } catch (Exception gone) {
                    return String.valueOf(gone.getCause()).contains("404");
                }
            });
        });
        Checks.check("jms listener", () -> in(session -> {
            Queue queue = session.createQueue(name());
            var got = new LinkedBlockingQueue<String>();
            session.createConsumer(queue).setMessageListener(message -> {
                try {
                    got.add(text(message));
                } catch (JMSException failed) {
                    got.add(failed.toString());
                }
            });
            try (Connection other = FACTORY.createConnection()) {
                send(other.createSession(), queue, "1", "2", "3");
            }
            for (String one : List.of("1", "2", "3")) {
                Checks.same(one, got.poll(WAIT_MS, TimeUnit.MILLISECONDS));
            }
        }));
        Checks.check("jms browser", () -> in(session -> {
            Queue queue = session.createQueue(name());
            send(session, queue, "1", "2", "3");
            Checks.eventually(() -> Collections.list(session.createBrowser(queue).getEnumeration()).size() == 3);
            Checks.same("1", text(received(session, queue)));
        }));
        Checks.check("jms context", () -> {
            String queue = name();
            try (var context = FACTORY.createContext()) {
                context.createProducer().setProperty("p", 1).send(context.createQueue(queue), "x");
                Checks.same("x", context.createConsumer(context.createQueue(queue)).receiveBody(String.class, WAIT_MS));
            }
        });
    }

    private static void settling() {
        Checks.check("jms commit", () -> in(true, Session.SESSION_TRANSACTED, session -> {
            Queue queue = session.createQueue(name());
            send(session, queue, "x");
            in(other -> Checks.same(null, other.createConsumer(queue).receive(300)));
            session.commit();
            Checks.same("x", text(received(session, queue)));
            session.commit();
            in(other -> Checks.same(null, other.createConsumer(queue).receive(300)));
        }));
        Checks.check("jms rollback", () -> in(true, Session.SESSION_TRANSACTED, session -> {
            Queue queue = session.createQueue(name());
            send(session, queue, "gone");
            session.rollback();
            send(session, queue, "kept");
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            Message first = consumer.receive(WAIT_MS);
            Checks.same("kept", text(first));
            Checks.same(false, first.getJMSRedelivered());
            session.rollback();
            Message again = consumer.receive(WAIT_MS);
            Checks.same("kept", text(again));
            Checks.same(true, again.getJMSRedelivered());
            session.commit();
        }));
        Checks.check("jms recover", () -> in(false, Session.CLIENT_ACKNOWLEDGE, session -> {
            Queue queue = session.createQueue(name());
            send(session, queue, "1", "2");
            MessageConsumer consumer = session.createConsumer(queue);
            Checks.same("1", text(consumer.receive(WAIT_MS)));
            session.recover();
            Message again = consumer.receive(WAIT_MS);
            Checks.same(true, again.getJMSRedelivered());
            again.acknowledge();
        }));
        Checks.check("jms what is not acknowledged comes back", () -> {
            String queue = name();
            in(false, Session.CLIENT_ACKNOWLEDGE, session -> {
                send(session, session.createQueue(queue), "x");
                Checks.same("x", text(received(session, session.createQueue(queue))));
            });
            in(session -> Checks.same(true, received(session, session.createQueue(queue)).getJMSRedelivered()));
        });
        Checks.check("jms confirms", () -> {
            var confirmed = new CountDownLatch(10);
            in(session -> {
                MessageProducer producer = session.createProducer(session.createQueue(name()));
                for (int at = 0; at < 10; at++) {
                    producer.send(session.createTextMessage("" + at), new CompletionListener() {
                        @Override
                        public void onCompletion(Message message) {
                            confirmed.countDown();
                        }

                        @Override
                        public void onException(Message message, Exception failed) {
                            failed.printStackTrace();
                        }
                    });
                }
                Checks.same(true, confirmed.await(WAIT_MS, TimeUnit.MILLISECONDS));
            });
        });
        Checks.check("jms prefetch", () -> {
            var factory = factory();
            factory.setChannelsQos(2);
            try (Connection connection = factory.createConnection()) {
                connection.start();
                Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
                Queue queue = session.createQueue(name());
                send(session, queue, "1", "2", "3");
                MessageConsumer consumer = session.createConsumer(queue);
                consumer.receive(WAIT_MS).acknowledge();
                Checks.same("2", text(consumer.receive(WAIT_MS)));
            }
        });
    }

    private static void topics() {
        Checks.check("jms topic", () -> in(session -> {
            Topic topic = session.createTopic(name());
            MessageConsumer one = session.createConsumer(topic);
            MessageConsumer two = session.createConsumer(topic);
            send(session, topic, "x");
            Checks.same("x", text(one.receive(WAIT_MS)));
            Checks.same("x", text(two.receive(WAIT_MS)));
        }));
        Checks.check("jms durable topic", () -> {
            String topic = name();
            String subscription = name();
            in(session -> session.createDurableSubscriber(session.createTopic(topic), subscription));
            in(session -> send(session, session.createTopic(topic), "x"));
            in(session -> {
                try (var back = session.createDurableSubscriber(session.createTopic(topic), subscription)) {
                    Checks.same("x", text(back.receive(WAIT_MS)));
                }
                session.unsubscribe(subscription);
            });
        });
        Checks.check("jms shared durable topic", () -> in(session -> {
            Topic topic = session.createTopic(name());
            String subscription = name();
            MessageConsumer one = session.createSharedDurableConsumer(topic, subscription);
            send(session, topic, "x");
            Checks.same("x", text(one.receive(WAIT_MS)));
            one.close();
            session.unsubscribe(subscription);
        }));
        Checks.check("jms temporary topic", () -> in(session -> {
            Topic topic = session.createTemporaryTopic();
            MessageConsumer one = session.createConsumer(topic);
            send(session, topic, "x");
            Checks.same("x", text(one.receive(WAIT_MS)));
        }));
        Checks.check("jms selector wants a plugin", () -> Checks.refused(
            "unknown exchange type 'x-jms-topic'",
            () -> in(session -> session.createConsumer(session.createTopic(name()), "colour = 'red'"))));
        Checks.check("jms delay wants a plugin", () -> Checks.refused(
            "unknown exchange type 'x-delayed-message'",
            () -> in(session -> {
                MessageProducer producer = session.createProducer(session.createQueue(name()));
                producer.setDeliveryDelay(500);
                producer.send(session.createTextMessage("later"));
            })));
    }

    private static com.rabbitmq.client.Connection plain() throws Exception {
        var factory = new com.rabbitmq.client.ConnectionFactory();
        factory.setUri(Checks.URL);
        return factory.newConnection();
    }

    private static void beside() {
        Checks.check("jms and amqp share a queue", () -> {
            String queue = name();
            try (var connection = plain(); var channel = connection.createChannel()) {
                channel.queueDeclare(queue, true, false, false, null);
                var there = new RMQDestination(queue, "", queue, queue);
                in(session -> send(session, there, "out"));
                Checks.eventually(() -> channel.messageCount(queue) == 1);
                Checks.same("out", new String(channel.basicGet(queue, true).getBody(), StandardCharsets.UTF_8));
                channel.basicPublish("", queue, null, "in".getBytes(StandardCharsets.UTF_8));
                in(session -> {
                    BytesMessage back = (BytesMessage) received(session, there);
                    Checks.same(2L, back.getBodyLength());
                });
            }
        });
        Checks.check("jms queue with arguments", () -> {
            var where = new RMQDestination(name(), true, false, Map.of("x-max-priority", 10));
            in(session -> {
                session.createConsumer(where).close();
                MessageProducer producer = session.createProducer(where);
                producer.send(session.createTextMessage("low"), DeliveryMode.PERSISTENT, 1, 0);
                producer.send(session.createTextMessage("high"), DeliveryMode.PERSISTENT, 9, 0);
                Checks.same("high", text(received(session, where)));
                Checks.same("low", text(received(session, where)));
            });
        });
        Checks.check("jms wrong password", () -> Checks.refused("ACCESS_REFUSED", () -> {
            try (Connection connection = FACTORY.createConnection("guest", "wrong")) {
                connection.start();
            }
        }));
    }

    private static RMQConnectionFactory factory() throws JMSException {
        var factory = new RMQConnectionFactory();
        factory.setUri(Checks.URL);
        factory.setTrustedPackages(List.of("java", "com.rabbitmq.jms"));
        return factory;
    }

    public static void main(String[] arguments) throws Exception {
        FACTORY.setUri(Checks.URL);
        FACTORY.setTrustedPackages(List.of("java", "com.rabbitmq.jms"));
        messages();
        patterns();
        settling();
        topics();
        beside();
        Checks.end();
    }
}
