// Source of Config.class, a fixture: javac -d . Config.java
package org.apache.cassandra.config;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

@Retention(RetentionPolicy.RUNTIME)
@interface Replaces {
    String oldName();

    Converters converter() default Converters.IDENTITY;

    boolean deprecated() default false;
}

@Retention(RetentionPolicy.RUNTIME)
@interface ReplacesList {
    Replaces[] value();
}

enum Converters {
    IDENTITY, MILLIS_DURATION_INT
}

public class Config {
    public static final long LONG = 1L << 40;
    public static final double DOUBLE = 1.5;
    public String cluster_name = "Test Cluster";
    public int num_tokens = 1;
    public transient int not_a_setting;
    protected int hidden;
    public String[] data_file_directories;

    @Deprecated
    public boolean going_away;

    @Replaces(oldName = "max_hint_window_in_ms", converter = Converters.MILLIS_DURATION_INT, deprecated = true)
    public volatile String max_hint_window;

    @ReplacesList({@Replaces(oldName = "first_name"), @Replaces(oldName = "second_name", deprecated = true), @Replaces(oldName = "renamed")})
    public int renamed;
}
