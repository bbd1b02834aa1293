package helenus.metrics;

import com.codahale.metrics.*;
import com.sun.management.UnixOperatingSystemMXBean;
import java.io.*;
import java.lang.management.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;

/** The page of all metrics of families.tsv. One is made at a time. */
final class Page {
    private static final int SERIES_PER_TABLE = 46, SERIES_BESIDE = 2500, SERIES_EXTRA = 2000, BUCKETS = 128;
    private static final long SLOW_NANOS = 60_000_000_000L;
    /** Upper bounds of latencies in seconds; the last bucket has none. */
    private static final String[] LE =
            "0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 1.0 5.0 +Inf".split(" ");
    private static final int LAST = LE.length - 1;
    private static final double[] BOUNDS = Arrays.stream(LE).limit(LAST).mapToDouble(Double::parseDouble).toArray();

    private final Cassandra cassandra;
    private final List<String[]> families = new ArrayList<>();
    private final Map<String, TreeMap<String, Metric>> sources = new HashMap<>();
    private final Top top = new Top();
    final AtomicLong failures = new AtomicLong();
    /** Counters at the page before, and the sums of those without series of their own: no sum goes back. */
    private final Map<String, double[]> before = new HashMap<>();
    private final Map<String, TreeMap<String, double[]>> sums = new HashMap<>();
    /** Values that are kept for a while, each with its time. */
    private final Map<String, double[]> kept = new HashMap<>();
    private StringBuilder text;
    private long room, dropped;
    private double took;

    Page(Cassandra cassandra) throws IOException {
        this.cassandra = cassandra;
        InputStream table = Page.class.getResourceAsStream("/families.tsv");
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(table, StandardCharsets.UTF_8))) {
            lines.lines().filter(line -> !line.startsWith("#")).forEach(line -> families.add(line.split("\t")));
        }
        for (String[] f : families) {
            for (String source : f[2].split(",")) {
                sources.put(source, new TreeMap<>());
            }
        }
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            own("jvm.gc.count", collector.getName(), collector::getCollectionCount);
            own("jvm.gc.time", collector.getName(), collector::getCollectionTime);
        }
        MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
        own("jvm.memory.used", "heap", () -> memory.getHeapMemoryUsage().getUsed());
        own("jvm.memory.used", "nonheap", () -> memory.getNonHeapMemoryUsage().getUsed());
        own("jvm.memory.max", "heap", () -> memory.getHeapMemoryUsage().getMax());
        OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
        own("jvm.cpu", "", ((UnixOperatingSystemMXBean) system)::getProcessCpuTime);
        own("jvm.files", "", ((UnixOperatingSystemMXBean) system)::getOpenFileDescriptorCount);
        own("jvm.threads", "", ManagementFactory.getThreadMXBean()::getThreadCount);
        own("jvm.start", "", ManagementFactory.getRuntimeMXBean()::getStartTime);
        own("hints", "", cassandra::hints);
        own("exporter.tables", "", top::all);
        own("exporter.summed", "", () -> top.all() - top.shown.size());
        own("exporter.dropped", "", () -> dropped);
        own("exporter.failures", "", failures::get);
        own("exporter.page", "", () -> took);
    }

    private void own(String source, String scope, Gauge<Number> value) {
        sources.get(source).put(scope, value);
    }

    synchronized String text(Rules rules, boolean open) throws Exception {
        long began = System.nanoTime();
        Map<String, Metric> all = cassandra.metrics();
        sources.forEach((source, of) -> of.keySet().removeIf(scope -> Character.isUpperCase(source.charAt(0))));
        for (Map.Entry<String, Metric> e : all.entrySet()) {
            String name = e.getKey().substring(Cassandra.METRICS.length()) + '.';
            int end = name.indexOf('.', name.indexOf('.') + 1);
            TreeMap<String, Metric> source = sources.get(end < 0 ? "" : name.substring(0, end));
            if (source != null) {
                source.put(name.substring(Math.min(end + 1, name.length() - 1), name.length() - 1), e.getValue());
            }
            if (rules.extra.matcher(e.getKey()).matches()) { // a counter of Cassandra may go down
                boolean rises = e.getValue() instanceof Counting && !(e.getValue() instanceof Counter);
                sources.get(rises ? "Extra.rises" : "Extra.value").put(e.getKey(), e.getValue());
            }
        }
        top.choose(rules, sources.get("Table.ReadLatency"), sources.get("Table.WriteLatency"), began);
        text = new StringBuilder(1 << 19);
        room = (long) rules.limit * SERIES_PER_TABLE + SERIES_BESIDE;
        dropped = 0;
        for (String[] f : families) {
            room = f[0].equals("cassandra_extra") ? SERIES_EXTRA : room;
            family(f, open);
        }
        before.keySet().removeIf(key -> !all.containsKey(Cassandra.METRICS + key));
        kept.keySet().removeIf(key -> key.startsWith("Table.") && !all.containsKey(Cassandra.METRICS + key));
        took = (System.nanoTime() - began) / 1e9;
        return text.append(open ? "# EOF\n" : "").toString();
    }

    private void family(String[] f, boolean open) {
        TreeMap<String, double[]> series = new TreeMap<>(), sum = sums.computeIfAbsent(f[0], n -> new TreeMap<>());
        Set<String> groups = new HashSet<>();
        for (String source : f[2].split(",")) {
            sources.get(source).forEach((scope, metric) -> {
                try {
                    sample(f, source, scope, metric, series, sum, groups);
                } catch (Throwable t) {
                    failures.incrementAndGet();
                }
            });
        }
        sum.keySet().retainAll(groups);
        series.putAll(sum);
        String name = open && f[1].equals("counter") ? f[0].replaceFirst("_total$", "") : f[0];
        text.append(series.isEmpty() ? "" : "# HELP " + name + ' ' + f[6] + "\n# TYPE " + name + ' ' + f[1] + '\n');
        series.forEach((labels, value) -> {
            int lines = value.length == 1 ? 1 : value.length + 1;
            room -= lines;
            if (room >= 0 || f[0].startsWith("cassandra_exporter_")) {
                write(f[0], labels, value);
            } else {
                dropped += lines;
            }
        });
    }

    /** Puts a metric of Cassandra among the series, or adds it to the sum of its group. */
    private void sample(String[] f, String source, String scope, Metric m, Map<String, double[]> series,
            Map<String, double[]> sum, Set<String> groups) throws Exception {
        int dot = scope.indexOf('.');
        if (f[3].equals("operation") && scope.indexOf('-') >= 0 || f[3].equals("table") && dot < 0
                || f[0].equals("cassandra_extra_p99") && !(m instanceof Sampling)) {
            return; // of one consistency level, of all tables, of a meter
        }
        String labels = scope.isEmpty() ? "" : f[3] + "=\"" + scope.substring(f[3].equals("pool") ? dot + 1 : 0) + '"';
        String group = f[3].equals("peer") ? "peer_datacenter=\"" + cassandra.datacenter(scope) + '"' : null;
        boolean shown = group == null;
        if (f[3].equals("table")) {
            String keyspace = "keyspace=\"" + scope.substring(0, dot) + "\",table=\"";
            group = keyspace + '"';
            labels = keyspace + scope.substring(dot + 1) + '"';
            shown = top.shown.contains(scope);
        }
        if (!shown && f[5].equals("none")) {
            return;
        }
        String key = source + '.' + scope;
        double[] value = f[4].endsWith("slow") ? kept.get(key) : null;
        if (value == null || System.nanoTime() - value[1] > SLOW_NANOS) {
            value = read(f, source, scope, m);
        }
        if (f[4].endsWith("slow")) {
            kept.put(key, value.length == 2 ? value : new double[] {value[0], System.nanoTime()});
            value = new double[] {value[0]};
        }
        if (group != null && !f[1].equals("gauge")) {
            double[] former = before.getOrDefault(key, new double[value.length]);
            double[] total = sum.getOrDefault(group, new double[value.length]);
            for (int i = 0; i < value.length && !shown; i++) {
                total[i] += Math.max(0, value[i] - former[i]);
            }
            before.put(key, value);
            groups.add(group);
            if (!shown) {
                sum.put(group, total);
            }
        } else if (!shown) {
            boolean max = f[5].equals("max");
            series.merge(group, value, (a, b) -> new double[] {max ? Math.max(a[0], b[0]) : a[0] + b[0]});
        }
        if (shown && !Double.isNaN(value[0])) {
            series.put(labels, value);
        }
    }

    private double[] read(String[] f, String source, String scope, Metric m) throws Exception {
        String how = f[4].split(" ")[0];
        double factor = Character.isDigit(how.charAt(0)) ? Double.parseDouble(how) : 1;
        if (f[1].equals("histogram")) {
            String total = Cassandra.METRICS + source.replace("Latency", "TotalLatency") + '.' + scope;
            Metric sum = source.endsWith("Latency") ? cassandra.metrics().get(total) : null;
            return histogram(((Sampling) m).getSnapshot().getValues(), (Counting) sum, factor);
        }
        if (how.equals("max") || how.equals("p99") && m instanceof Sampling) {
            Snapshot of = ((Sampling) m).getSnapshot();
            return new double[] {how.equals("max") ? of.getMax() : of.get99thPercentile()};
        }
        Object value = m instanceof Counting ? (Object) ((Counting) m).getCount() : ((Gauge<?>) m).getValue();
        boolean text = f[3].equals("name") && !(value instanceof Number || value instanceof long[]);
        value = value instanceof long[] ? (Object) p99((long[]) value) : text ? Double.NaN : value;
        return new double[] {((Number) value).doubleValue() * factor};
    }

    /** The next upper bound of Cassandra's own buckets, EstimatedHistogram#newOffsets of 4.1 and 5.0; 1 after 0. */
    private static long bound(long last) {
        return Math.max(last + 1, Math.round(last * 1.2));
    }

    /** Cumulative counts, and the sum: where Cassandra has none, of the upper bounds of its buckets. */
    private static double[] histogram(long[] buckets, Counting sum, double factor) {
        if (buckets.length != BUCKETS) {
            throw new IllegalArgumentException("not a timer of microseconds");
        }
        double[] out = new double[LAST + 2];
        long bound = 0;
        for (int i = 0, b = 0; i < BUCKETS; i++) {
            bound = i == BUCKETS - 1 ? bound : bound(bound);
            for (; b < LAST && (i == BUCKETS - 1 || bound * factor > BOUNDS[b]); b++) {
                out[b + 1] = out[b];
            }
            out[b] += buckets[i];
            out[LAST + 1] += buckets[i] * bound * factor;
        }
        out[LAST + 1] = sum == null ? out[LAST + 1] : sum.getCount() * factor;
        return out;
    }

    /** Upper bound of the bucket with the 99th percentile. */
    private static double p99(long[] buckets) {
        double most = Arrays.stream(buckets).sum() * 0.99, seen = 0;
        long bound = 0;
        for (int i = 0; i < buckets.length && seen < most; i++) {
            bound = bound(bound);
            seen += buckets[i];
        }
        return bound;
    }

    private void write(String name, String labels, double[] value) {
        for (int i = 0; value.length > 1 && i <= LAST; i++) {
            line(name + "_bucket", labels + (labels.isEmpty() ? "" : ",") + "le=\"" + LE[i] + '"', value[i]);
        }
        if (value.length > 1) {
            line(name + "_count", labels, value[LAST]);
        }
        line(value.length > 1 ? name + "_sum" : name, labels, value[value.length - 1]);
    }

    private void line(String name, String labels, double value) {
        text.append(name).append(labels.isEmpty() ? "" : '{' + labels + '}').append(' ');
        boolean whole = value == Math.rint(value) && Math.abs(value) < 1e15;
        text.append(whole ? Long.toString((long) value) : Double.toString(value)).append('\n');
    }
}
