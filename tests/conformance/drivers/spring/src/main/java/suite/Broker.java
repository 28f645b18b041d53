package suite;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;

/** The broker of this run: its address, its HTTP API and its command line. */
final class Broker {

    static final String HOST = System.getenv().getOrDefault("BROKER_HOST", "localhost");

    static final int PORT = Integer.parseInt(System.getenv().getOrDefault("BROKER_PORT", "5672"));

    private static final String API = System.getenv().getOrDefault("BROKER_API", "http://localhost:15672/api/");

    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private static final ObjectMapper JSON = new ObjectMapper();

    private static final List<CachingConnectionFactory> FACTORIES = new ArrayList<>();

    private Broker() {
    }

    static CachingConnectionFactory factory() {
        CachingConnectionFactory factory = new CachingConnectionFactory(HOST, PORT);
        FACTORIES.add(factory);
        return factory;
    }

    static void closeFactories() {
        FACTORIES.forEach(CachingConnectionFactory::destroy);
    }

    /** What the HTTP API says of a path below /api/. */
    static JsonNode api(String path) throws Exception {
        String login = Base64.getEncoder().encodeToString("guest:guest".getBytes());
        URI uri = URI.create(API.replace("guest:guest@", "") + path);
        HttpRequest request = HttpRequest.newBuilder(uri).header("Authorization", "Basic " + login).build();
        return JSON.readTree(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }

    /** Runs rabbitmqctl, or what stands for it. */
    static void ctl(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(System.getenv("BROKER_CTL").split(" ")));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectInput(new File("/dev/null")).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        Checks.that(process.waitFor() == 0, String.join(" ", command) + ": " + said);
    }

}
