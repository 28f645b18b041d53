package suite;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** Runs named checks, one line each on standard output; what a check gave away to the broker is taken back at the end. */
final class Checks {

    static final Duration PATIENCE = Duration.ofSeconds(60);

    private static final List<String> QUEUES = new ArrayList<>();

    private static int failed;

    private Checks() {
    }

    interface Body {

        void run() throws Exception;

    }

    static void check(String name, Body body) {
        String only = System.getenv("SUITE_ONLY");
        if (only != null && !name.matches(only)) {
            return;
        }
        long begun = System.nanoTime();
        try {
            body.run();
            System.out.println("ok " + name);
        }
        catch (Throwable thrown) {
            failed++;
            System.out.println("FAILED " + name);
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                StackTraceElement[] trace = cause.getStackTrace();
                System.out.println("  " + cause + (trace.length > 1 ? " at " + trace[0] + ", " + trace[1] : ""));
            }
        }
        long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun);
        if (tookMs > 5000) {
            System.out.println("  took " + tookMs + " ms");
        }
    }

    static int failed() {
        return failed;
    }

    /** A name nobody else has; queues of such names are deleted at the end. */
    static String name(String of) {
        String name = "suite." + of + "." + UUID.randomUUID().toString().substring(0, 8);
        QUEUES.add(name);
        return name;
    }

    static List<String> names() {
        return QUEUES;
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object got) {
        that(Objects.deepEquals(expected, got), "expected " + expected + ", got " + got);
    }

    static void contains(String part, String whole) {
        that(whole != null && whole.contains(part), "expected '" + part + "' in '" + whole + "'");
    }

    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            that(System.nanoTime() < end, "never: " + what);
            Thread.sleep(20);
        }
    }

    /** The whole chain of what an action throws, as one text. */
    static String thrownBy(Body action) throws Exception {
        try {
            action.run();
        }
        catch (Exception thrown) {
            return chain(thrown);
        }
        throw new AssertionError("nothing was thrown");
    }

    static String chain(Throwable thrown) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            text.append(cause).append('\n');
        }
        return text.toString();
    }

}
