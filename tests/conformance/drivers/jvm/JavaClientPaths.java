import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Address;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import com.rabbitmq.client.StringRpcServer;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** RabbitMQ's Java client over each of its ways to read sockets: recovery, RPC, confirms, the end of things. */
public final class JavaClientPaths {

    private static final long WAIT_S = 60;
    private static final String API = System.getenv("BROKER_API");
    private static int names;

    private static String name() {
        return Checks.PREFIX + "java." + names++;
    }

    private static ConnectionFactory factory(String layer) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri(Checks.URL);
        factory.setNetworkRecoveryInterval(500);
        switch (layer) {
            case "nio" -> factory.useNio();
            case "netty" -> factory.netty();
            default -> { }
        }
        return factory;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static HttpResponse<String> asked(String verb, String path) throws Exception {
        URI api = URI.create(API);
        URI place = URI.create("http://" + api.getHost() + ":" + api.getPort() + "/api/" + path);
        String login = Base64.getEncoder().encodeToString(bytes(api.getUserInfo()));
        var request = HttpRequest.newBuilder(place).header("Authorization", "Basic " + login)
            .method(verb, HttpRequest.BodyPublishers.noBody()).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }

    /** As an operator does it: the connection is found by the name that it gave itself, and closed. */
    private static void closed(String label) throws Exception {
        var row = Pattern.compile("\"name\":\"(\\d[^\"]*)\"");
        Checks.eventually(() -> {
            for (String one : asked("GET", "connections").body().split("\"auth_mechanism\"")) {
                var name = row.matcher(one);
                if (one.contains(label) && name.find()) {
                    String path = URLEncoder.encode(name.group(1), StandardCharsets.UTF_8).replace("+", "%20");
                    return asked("DELETE", "connections/" + path).statusCode() == 204;
                }
            }
            return false;
        });
    }

    private static CountDownLatch recovered(Connection connection) {
        var done = new CountDownLatch(1);
        ((Recoverable) connection).addRecoveryListener(new RecoveryListener() {
            @Override
            public void handleRecovery(Recoverable recoverable) {
                done.countDown();
            }

            @Override
            public void handleRecoveryStarted(Recoverable recoverable) {
            }
        });
        return done;
    }

    private static void recovery(String layer) {
        Checks.check("java " + layer + " recovers what it declared", () -> {
            String label = name();
            try (Connection connection = factory(layer).newConnection(label)) {
                Channel channel = connection.createChannel();
                channel.confirmSelect();
                String exchange = name();
                channel.exchangeDeclare(exchange, "topic", false, true, null);
                String queue = channel.queueDeclare().getQueue();
                channel.queueBind(queue, exchange, "a.*");
                var got = new LinkedBlockingQueue<String>();
                channel.basicQos(5);
                channel.basicConsume(queue, false, (tag, delivery) -> {
                    got.add(new String(delivery.getBody(), StandardCharsets.UTF_8));
                    channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
                }, tag -> { });
                var back = recovered(connection);
                closed(label);
                Checks.same(true, back.await(WAIT_S, TimeUnit.SECONDS));
                for (int at = 0; at < 20; at++) {
                    channel.basicPublish(exchange, "a.b", null, bytes("" + at));
                }
                channel.waitForConfirmsOrDie(WAIT_S * 1000);
                for (int at = 0; at < 20; at++) {
                    Checks.same("" + at, got.poll(WAIT_S, TimeUnit.SECONDS));
                }
            }
        });
        Checks.check("java " + layer + " large bodies and many channels", () -> {
            try (Connection connection = factory(layer).newConnection()) {
                String queue = name();
                var large = new byte[3_000_000];
                large[2_999_999] = 7;
                for (int at = 0; at < 50; at++) {
                    Channel channel = connection.createChannel();
                    channel.queueDeclare(queue, true, false, false, null);
                    channel.basicPublish("", queue, null, at == 0 ? large : bytes("" + at));
                }
                Channel channel = connection.createChannel();
                Checks.eventually(() -> channel.messageCount(queue) == 50);
                byte[] back = channel.basicGet(queue, true).getBody();
                Checks.same(3_000_000, back.length);
                Checks.same((byte) 7, back[2_999_999]);
            }
        });
        Checks.check("java " + layer + " request and reply", () -> {
            try (Connection connection = factory(layer).newConnection()) {
                String queue = name();
                Channel serving = connection.createChannel();
                serving.queueDeclare(queue, false, false, true, null);
                var server = new StringRpcServer(serving, queue) {
                    @Override
                    public String handleStringCall(String request, AMQP.BasicProperties properties) {
                        return "re " + request;
                    }
                };
                var running = new Thread(() -> {
                    try {
                        server.mainloop();
                    } catch (Exception ended) {
                        System.out.println(ended);
                    }
                });
                running.setDaemon(true);
                running.start();
                var client = new RpcClient(new RpcClientParams().channel(connection.createChannel())
                    .exchange("").routingKey(queue).timeout(60_000));
                for (String question : List.of("a", "b", "c")) {
                    Checks.same("re " + question, client.stringCall(question));
                }
                client.close();
            }
        });
    }

    private static void promises() {
        Checks.check("java confirms by callback", () -> {
            try (Connection connection = factory("socket").newConnection()) {
                Channel channel = connection.createChannel();
                var confirmed = new Semaphore(0);
                long[] last = new long[1];
                channel.confirmSelect();
                channel.addConfirmListener((tag, isMultiple) -> {
                    confirmed.release((int) (tag - last[0]));
                    last[0] = tag;
                }, (tag, isMultiple) -> { });
                String queue = channel.queueDeclare().getQueue();
                for (int at = 0; at < 5000; at++) {
                    channel.basicPublish("", queue, null, bytes("x"));
                }
                Checks.same(true, confirmed.tryAcquire(5000, WAIT_S, TimeUnit.SECONDS));
                Checks.same(5000L, channel.messageCount(queue));
            }
        });
        Checks.check("java a consumer is told that its queue goes", () -> {
            try (Connection connection = factory("socket").newConnection()) {
                Channel channel = connection.createChannel();
                String queue = channel.queueDeclare(name(), true, false, false, null).getQueue();
                var told = new LinkedBlockingQueue<String>();
                String tag = channel.basicConsume(queue, (one, delivery) -> { }, told::add);
                connection.createChannel().queueDelete(queue);
                Checks.same(tag, told.poll(WAIT_S, TimeUnit.SECONDS));
            }
        });
        Checks.check("java a priority among consumers", () -> {
            try (Connection connection = factory("socket").newConnection()) {
                Channel channel = connection.createChannel();
                String queue = channel.queueDeclare().getQueue();
                var got = new LinkedBlockingQueue<String>();
                for (int priority : List.of(1, 10)) {
                    channel.basicConsume(queue, true, "p" + priority, false, false, Map.of("x-priority", priority),
                        (tag, delivery) -> got.add(tag), tag -> { });
                }
                channel.basicPublish("", queue, null, bytes("x"));
                Checks.same("p10", got.poll(WAIT_S, TimeUnit.SECONDS));
            }
        });
        Checks.check("java a place among several", () -> {
            var factory = factory("socket");
            var dead = new Address(Checks.PLACE.getHost(), 1);
            var alive = new Address(Checks.PLACE.getHost(), Checks.PLACE.getPort());
            try (Connection connection = factory.newConnection(List.of(dead, alive))) {
                Checks.same(true, connection.isOpen());
            }
        });
        Checks.check("java the ends of a channel and of a connection", () -> {
            Connection connection = factory("socket").newConnection();
            Channel channel = connection.createChannel();
            Checks.refused("NOT_FOUND - no exchange", () -> channel.exchangeDeclarePassive(name()));
            Checks.same(false, channel.isOpen());
            Checks.same(true, connection.isOpen());
            connection.close(200, "done");
            Checks.same(false, connection.isOpen());
        });
        Checks.check("java a table of every kind", () -> {
            try (Connection connection = factory("socket").newConnection()) {
                Channel channel = connection.createChannel();
                String queue = channel.queueDeclare().getQueue();
                Map<String, Object> table = Map.of("i", 1, "l", 2L, "b", true, "d", 1.5, "f", 2.5f, "s", (short) 3,
                    "y", (byte) 4, "list", List.of(1, "x"), "map", Map.of("k", 1L),
                    "number", new java.math.BigDecimal("1.25"));
                channel.basicPublish("", queue, new AMQP.BasicProperties.Builder().headers(table).build(), bytes("x"));
                Map<String, Object> back = channel.basicGet(queue, true).getProps().getHeaders();
                for (String key : List.of("i", "l", "b", "d", "f", "s", "y", "number")) {
                    Checks.same(table.get(key), back.get(key));
                }
                Checks.same("[1, x]", back.get("list").toString());
                Checks.same(Map.of("k", 1L), back.get("map"));
            }
        });
    }

    public static void main(String[] arguments) {
        for (String layer : List.of("socket", "nio", "netty")) {
            recovery(layer);
        }
        promises();
        Checks.end();
    }
}
