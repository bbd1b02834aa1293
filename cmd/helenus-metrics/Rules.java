package helenus.metrics;

import java.util.regex.Pattern;

/** Which tables have metrics of their own, and what is extra: mode=Top&limit=100&include=ks.*&exclude=ks.tmp_*&extra=… */
final class Rules {
    int limit = 100;
    /** Whether tables that are not included have a chance. */
    boolean rest = true;
    Pattern include = Pattern.compile(""), exclude = include, extra = include;

    Rules(String query) {
        for (String part : query == null ? new String[0] : query.split("&")) {
            String key = part.replaceFirst("=.*", ""), value = part.replaceFirst("[^=]*=?", "");
            if (key.equals("mode") && value.matches("Top|All|None")) {
                limit = value.equals("Top") ? limit : 1000;
                rest = !value.equals("None");
            } else if (key.equals("limit") && value.matches("[1-9][0-9]{0,2}|1000")) {
                limit = Integer.parseInt(value);
            } else if (key.matches("include|exclude") && value.matches("([\\w*]+[.][\\w*]+(,(?=.)|$))+")) {
                Pattern globs = Pattern.compile(value.replace(".", "\\.").replace("*", ".*").replace(",", "|"));
                include = key.equals("include") ? globs : include;
                exclude = key.equals("exclude") ? globs : exclude;
            } else if (key.equals("extra") && value.matches("(" + Cassandra.METRICS + "[\\w.*-]+(,(?=.)|$))+")) {
                extra = Pattern.compile(value.replace(".", "\\.").replace("*", "[\\w.:$-]*").replace(",", "|"));
            } else {
                throw new IllegalArgumentException(key + ": \"" + value + "\" is not allowed");
            }
        }
    }
}
