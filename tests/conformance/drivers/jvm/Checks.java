import java.net.URI;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** What all drivers of this folder share: a line for each check, and where the broker is. */
final class Checks {

    interface Check {
        void run() throws Exception;
    }

    /** Tells names of this run apart from those of another on the same broker. */
    static final String PREFIX = "jvm" + ProcessHandle.current().pid() + ".";
    static final String URL = System.getenv("BROKER_URL");
    static final URI PLACE = URI.create(URL);
    private static final long PATIENCE_S = 120;
    private static final ExecutorService WORKERS = Executors.newCachedThreadPool();

    private Checks() {}

    static void check(String name, Check body) {
        var running = WORKERS.submit(() -> {
            body.run();
            return null;
        });
        try {
            running.get(PATIENCE_S, TimeUnit.SECONDS);
            System.out.println("\nok " + name);
        } catch (ExecutionException failed) {
            failed.getCause().printStackTrace(System.out);
            System.out.println("\nFAILED " + name + " " + first(failed.getCause()));
        } catch (TimeoutException | InterruptedException late) {
            running.cancel(true);
            System.out.println("\nFAILED " + name + " not done after " + PATIENCE_S + " s");
        }
        System.out.flush();
    }

    static void same(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) {
            throw new AssertionError("wanted " + wanted + ", found " + found);
        }
    }

    static void eventually(Callable<Boolean> holds) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60); !holds.call(); Thread.sleep(50)) {
            if (System.nanoTime() > end) {
                throw new AssertionError("not within a minute");
            }
        }
    }

    /** The body must fail, and somewhere in the chain of causes this must be said. */
    static void refused(String text, Check body) {
        Throwable told = null;
        try {
            body.run();
        } catch (Throwable failed) {
            told = failed;
        }
        var all = new StringBuilder();
        for (Throwable one = told; one != null && all.length() < 4000; one = one.getCause()) {
            all.append(one).append('\n');
        }
        if (told == null || all.indexOf(text) < 0) {
            throw new AssertionError("wanted '" + text + "', was told: " + all);
        }
    }

    static void end() {
        System.exit(0);
    }

    private static String first(Throwable failed) {
        return String.valueOf(failed).lines().findFirst().orElse("");
    }
}
