package helenus.metrics;

import com.codahale.metrics.*;
import java.io.File;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Method;
import java.net.*;
import java.util.*;

/** What is reached by reflection, the same in 4.1 and 5.0: registry, directory of hints, datacenter of a peer. */
final class Cassandra {
    static final String METRICS = "org.apache.cassandra.metrics.";

    private final Instrumentation instrumentation;
    private MetricRegistry registry;
    private Method snitch, datacenter;
    private File hints;

    Cassandra(Instrumentation instrumentation) {
        this.instrumentation = instrumentation;
    }

    /** All metrics by name, once Cassandra's own start has loaded its classes: to be first would initialize them. */
    Map<String, Metric> metrics() throws ReflectiveOperationException {
        if (registry == null) {
            String begun = "org.apache.cassandra.service.StorageService";
            if (Arrays.stream(instrumentation.getAllLoadedClasses()).noneMatch(c -> c.getName().equals(begun))) {
                throw new IllegalStateException("Cassandra has not started yet");
            }
            Class<?> settings = Class.forName("org.apache.cassandra.config.DatabaseDescriptor");
            hints = new File(settings.getMethod("getHintsDirectory").invoke(null).toString());
            snitch = settings.getMethod("getEndpointSnitch");
            datacenter = snitch.getReturnType().getMethod("getDatacenter", InetSocketAddress.class);
            Class<?> own = Class.forName(METRICS + "CassandraMetricsRegistry");
            registry = (MetricRegistry) own.getField("Metrics").get(null);
        }
        return registry.getMetrics();
    }

    /** Size of the files of hints. */
    Number hints() {
        return Arrays.stream(hints.listFiles()).mapToLong(File::length).sum();
    }

    /** Datacenter of a peer, which the registry names 10.0.0.1_7000 or _fd00__1__7000. */
    String datacenter(String peer) throws Exception {
        int end = peer.lastIndexOf('_'), port = Integer.parseInt(peer.substring(end + 1));
        String host = peer.substring(0, end);
        host = host.indexOf('.') < 0 ? host.replaceAll("^_|_$", "").replace('_', ':') : host;
        InetSocketAddress address = new InetSocketAddress(InetAddress.getByName(host), port);
        return String.valueOf(datacenter.invoke(snitch.invoke(null), address));
    }
}
