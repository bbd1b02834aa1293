package helenus.metrics;

import com.sun.net.httpserver.*;
import java.lang.instrument.Instrumentation;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.*;

/** Serves the metrics of the Cassandra in this JVM on loopback. Nothing that fails here reaches Cassandra. */
public final class Agent {
    private Agent() {}

    /** Begins with the JVM; the argument is the port. A daemon begins, so that the server's threads are daemons. */
    public static void premain(String port, Instrumentation instrumentation) {
        daemon(() -> {
            try {
                Page page = new Page(new Cassandra(instrumentation));
                InetAddress loopback = InetAddress.getByName("127.0.0.1");
                HttpServer server = HttpServer.create(new InetSocketAddress(loopback, Integer.parseInt(port)), 16);
                ThreadPoolExecutor threads = new ThreadPoolExecutor(2, 2, 1, TimeUnit.MINUTES,
                        new ArrayBlockingQueue<>(16), Agent::daemon, new ThreadPoolExecutor.DiscardPolicy());
                threads.allowCoreThreadTimeOut(true);
                server.setExecutor(threads);
                server.createContext("/metrics", exchange -> answer(exchange, page));
                server.start();
            } catch (Throwable e) {
                System.err.println("helenus-metrics: no metrics on port " + port + ": " + e);
            }
        }).start();
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task, "helenus-metrics");
        thread.setDaemon(true);
        return thread;
    }

    private static void answer(HttpExchange exchange, Page page) {
        try {
            String accept = exchange.getRequestHeaders().getFirst("Accept"), text;
            String open = "application/openmetrics-text; version=1.0.0", plain = "text/plain; version=0.0.4";
            boolean isOpen = accept != null && accept.contains("application/openmetrics-text");
            int status = 200;
            try {
                text = page.text(new Rules(exchange.getRequestURI().getQuery()), isOpen);
            } catch (IllegalArgumentException | IllegalStateException e) {
                status = e instanceof IllegalArgumentException ? 400 : 503;
                text = e.getMessage() + "\n";
            }
            byte[] body = text.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", (isOpen ? open : plain) + "; charset=utf-8");
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
        } catch (Throwable e) {
            page.failures.incrementAndGet();
        } finally {
            exchange.close();
        }
    }
}
