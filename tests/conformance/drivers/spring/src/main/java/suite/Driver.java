package suite;

import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;

/** Runs all checks against BROKER_HOST:BROKER_PORT and exits with whether one failed. */
public final class Driver {

    private Driver() {
    }

    public static void main(String[] arguments) {
        System.setProperty("org.springframework.boot.logging.LoggingSystem", "none");
        run("template", TemplateChecks::all);
        run("admin", AdminChecks::all);
        run("rpc", RpcChecks::all);
        run("container", ContainerChecks::all);
        run("boot", BootChecks::all);
        run("stream", StreamChecks::all);
        run("flow", FlowChecks::all);
        CachingConnectionFactory last = Broker.factory();
        RabbitAdmin admin = new RabbitAdmin(last);
        Checks.names().forEach(admin::deleteQueue);
        Broker.closeFactories();
        System.out.flush();
        System.exit(Checks.failed() == 0 ? 0 : 1);
    }

    /** A part that cannot even be set up is one failure, and the others still run. */
    private static void run(String part, Runnable checks) {
        try {
            checks.run();
        }
        catch (RuntimeException thrown) {
            Checks.check("part " + part, () -> {
                throw thrown;
            });
        }
    }

}
