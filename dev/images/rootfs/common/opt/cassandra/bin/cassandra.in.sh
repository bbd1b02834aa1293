# Read by every script in bin and tools/bin: sets CLASSPATH, JAVA, JAVA_VERSION,
# JVM_OPTS and where data lies. A script that starts the server sets
# jvmoptions_variant=-server before.

CASSANDRA_HOME=${CASSANDRA_HOME:-$(cd "$(dirname "$0")/.." && pwd)}
CASSANDRA_CONF=${CASSANDRA_CONF:-$CASSANDRA_HOME/conf}

cassandra_storagedir="$CASSANDRA_HOME/data"

CLASSPATH="$CASSANDRA_CONF"
for jar in "$CASSANDRA_HOME"/lib/*.jar; do
    CLASSPATH="$CLASSPATH:$jar"
done
# Libraries for one machine type only.
for jar in "$CASSANDRA_HOME/lib/$(uname -m)"/*.jar; do
    [ -e "$jar" ] && CLASSPATH="$CLASSPATH:$jar"
done
[ -n "$EXTRA_CLASSPATH" ] && CLASSPATH="$CLASSPATH:$EXTRA_CLASSPATH"

# Offline tools measure objects with this agent, as the server does.
for jar in "$CASSANDRA_HOME"/lib/jamm-*.jar; do
    [ -e "$jar" ] && JAVA_AGENT="$JAVA_AGENT -javaagent:$jar"
done

if [ -n "$JAVA_HOME" ] && [ -x "$JAVA_HOME/bin/java" ]; then
    JAVA="$JAVA_HOME/bin/java"
else
    JAVA=$(command -v java) || {
        echo "no java found: set JAVA_HOME or PATH" >&2
        exit 1
    }
fi

# The release file saves the start of a JVM just to ask for its version.
jvmver=
if [ -n "$JAVA_HOME" ] && [ -r "$JAVA_HOME/release" ]; then
    jvmver=$(sed -n 's/^JAVA_VERSION="\(.*\)"$/\1/p' "$JAVA_HOME/release")
fi
if [ -z "$jvmver" ]; then
    jvmver=$("$JAVA" -version 2>&1 | sed -n '1s/.*"\(.*\)".*/\1/p')
fi
JVM_VERSION=$jvmver
JVM_VENDOR=OpenJDK
JVM_ARCH=64-Bit
JAVA_VERSION=${jvmver%%[.-]*}

# Every line that starts with "-" in the option files is a JVM option: one file
# for all Java versions, one for this one.
variant=${jvmoptions_variant:--clients}
for options in "$CASSANDRA_CONF/jvm$variant.options" "$CASSANDRA_CONF/jvm$JAVA_VERSION$variant.options"; do
    if [ ! -r "$options" ]; then
        echo "no $options: this Cassandra does not support Java $JAVA_VERSION, or CASSANDRA_CONF is wrong" >&2
        exit 1
    fi
    # Options may be two words (--add-exports module/package=ALL-UNNAMED).
    JVM_OPTS="$JVM_OPTS $(grep '^-' "$options" | tr '\n' ' ')"
done
