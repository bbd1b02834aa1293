package helenus.metrics;

import com.codahale.metrics.*;
import java.util.*;

/** Chooses the tables that have metrics of their own. */
final class Top {
    private static final long MINUTE = 60_000_000_000L;

    Set<String> shown = Collections.emptySet();
    /** Reads and writes of each table until the last minute, and its activity, of which each minute forgets half. */
    private Map<String, double[]> tables = new HashMap<>();
    private long minute;

    int all() {
        return tables.size();
    }

    /** What is included comes first, then the most active; what is shown counts twice, so that series stay. */
    void choose(Rules rules, Map<String, Metric> reads, Map<String, Metric> writes, long now) {
        boolean tick = tables.isEmpty() || now - minute > MINUTE;
        minute = tick ? now : minute;
        Map<String, double[]> next = new HashMap<>();
        Map<String, Double> rank = new TreeMap<>();
        for (String table : reads.keySet()) {
            if (table.indexOf('.') < 0) {
                continue; // the sum of all
            }
            Metric write = writes.get(table);
            boolean included = rules.include.matcher(table).matches();
            double[] former = tables.getOrDefault(table, new double[2]);
            double count = ((Counting) reads.get(table)).getCount();
            count += write == null ? 0 : ((Counting) write).getCount();
            next.put(table, tick ? new double[] {count, former[1] / 2 + Math.max(0, count - former[0])} : former);
            if (!rules.exclude.matcher(table).matches() && (rules.rest || included)) {
                double activity = next.get(table)[1] * (shown.contains(table) ? 2 : 1);
                rank.put(table, included ? Double.MAX_VALUE : activity);
            }
        }
        tables = next;
        List<String> ranked = new ArrayList<>(rank.keySet());
        ranked.sort(Comparator.comparing(table -> -rank.get(table)));
        shown = new HashSet<>(ranked.subList(0, Math.min(rules.limit, ranked.size())));
    }
}
