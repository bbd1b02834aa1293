# Read by bin/cassandra after the JVM option files: computes what depends on
# the machine (the heap) and sets up JMX. Adds to
# JVM_OPTS; an option already given in jvm-server.options wins.

# Heap: the larger of half of the memory, at most 1 GiB, and a quarter of it, at
# most 8 GiB. Young generation: a quarter of the heap, at most 100 MB for each
# core. The memory is that of the machine, not the limit of a container: set
# MAX_HEAP_SIZE and HEAP_NEWSIZE there.
calculate_heap_sizes()
{
    system_memory_in_mb=$(free -m | awk '/:/ { print $2; exit }')
    system_cpu_cores=$(grep -c '^processor[[:space:]]*:' /proc/cpuinfo)
    if [ "$system_cpu_cores" -lt 1 ]; then
        system_cpu_cores=1
    fi

    half_system_memory_in_mb=$((system_memory_in_mb / 2))
    quarter_system_memory_in_mb=$((half_system_memory_in_mb / 2))
    if [ "$half_system_memory_in_mb" -gt 1024 ]; then
        half_system_memory_in_mb=1024
    fi
    if [ "$quarter_system_memory_in_mb" -gt 8192 ]; then
        quarter_system_memory_in_mb=8192
    fi
    max_heap_size_in_mb=$quarter_system_memory_in_mb
    if [ "$half_system_memory_in_mb" -gt "$quarter_system_memory_in_mb" ]; then
        max_heap_size_in_mb=$half_system_memory_in_mb
    fi
    MAX_HEAP_SIZE="${max_heap_size_in_mb}M"

    max_sensible_yg_in_mb=$((100 * system_cpu_cores))
    desired_yg_in_mb=$((max_heap_size_in_mb / 4))
    if [ "$desired_yg_in_mb" -gt "$max_sensible_yg_in_mb" ]; then
        HEAP_NEWSIZE="${max_sensible_yg_in_mb}M"
    else
        HEAP_NEWSIZE="${desired_yg_in_mb}M"
    fi
}

# Where logback and the collector's log write.
if [ -z "$CASSANDRA_LOG_DIR" ]; then
    CASSANDRA_LOG_DIR=$CASSANDRA_HOME/logs
fi

# Log of the collector, unless the option files configure one.
echo "$JVM_OPTS" | grep -qe "-[X]log:gc"
if [ $? -eq 1 ]; then
    mkdir -p "$CASSANDRA_LOG_DIR"
    JVM_OPTS="$JVM_OPTS -Xlog:gc=info,heap*=trace,age*=debug,safepoint=info,promotion*=trace:file=${CASSANDRA_LOG_DIR}/gc.log:time,uptime,pid,tid,level:filecount=10,filesize=10485760"
fi

# 0 means: the option files set it already.
defined()
{
    echo "$JVM_OPTS" | grep -q -- "$1"
    echo $?
}
DEFINED_XMN=$(defined Xmn)
DEFINED_XMX=$(defined Xmx)
DEFINED_XMS=$(defined Xms)
USING_CMS=$(defined UseConcMarkSweepGC)
USING_G1=$(defined +UseG1GC)

# Fixed sizes instead of the calculated ones. MAX_HEAP_SIZE is the whole heap;
# HEAP_NEWSIZE the young generation: not with G1, and always with other collectors.
#MAX_HEAP_SIZE="4G"
#HEAP_NEWSIZE="800M"

# Memory arenas of glibc per thread.
#export MALLOC_ARENA_MAX=4

if [ -z "$MAX_HEAP_SIZE" ] && { [ -z "$HEAP_NEWSIZE" ] || [ "$USING_G1" -eq 0 ]; }; then
    calculate_heap_sizes
elif [ -z "$MAX_HEAP_SIZE" ] || { [ -z "$HEAP_NEWSIZE" ] && [ "$USING_G1" -ne 0 ]; }; then
    echo "without the G1 collector set MAX_HEAP_SIZE and HEAP_NEWSIZE together, or neither (see cassandra-env.sh)"
    exit 1
fi

if [ -z "$MALLOC_ARENA_MAX" ]; then
    export MALLOC_ARENA_MAX=4
fi

# The same size for both, so that the heap is never resized.
if [ "$DEFINED_XMX" -ne 0 ] && [ "$DEFINED_XMS" -ne 0 ]; then
    JVM_OPTS="$JVM_OPTS -Xms${MAX_HEAP_SIZE}"
    JVM_OPTS="$JVM_OPTS -Xmx${MAX_HEAP_SIZE}"
elif [ "$DEFINED_XMX" -ne 0 ] || [ "$DEFINED_XMS" -ne 0 ]; then
    echo "set -Xmx and -Xms together in jvm-server.options, or neither"
    exit 1
fi

if [ "$DEFINED_XMN" -eq 0 ] && [ "$DEFINED_XMX" -ne 0 ]; then
    echo "set -Xmx and -Xmn together in jvm-server.options, or neither"
    exit 1
elif [ "$DEFINED_XMN" -ne 0 ] && [ "$USING_CMS" -eq 0 ]; then
    JVM_OPTS="$JVM_OPTS -Xmn${HEAP_NEWSIZE}"
fi

# A fixed young generation would take from G1 the means to keep its pause goal.
if [ "$DEFINED_XMN" -eq 0 ] && [ "$USING_G1" -eq 0 ]; then
    echo "-Xmn cannot be used with the G1 collector: remove it from jvm-server.options"
    exit 1
fi

if [ "$JVM_ARCH" = "64-Bit" ] && [ "$USING_CMS" -eq 0 ]; then
    JVM_OPTS="$JVM_OPTS -XX:+UseCondCardMark"
fi

# Hints for the compiler.
JVM_OPTS="$JVM_OPTS -XX:CompileCommandFile=$CASSANDRA_CONF/hotspot_compiler"

# Measures objects: the size of memtables depends on it.
JVM_OPTS="$JVM_OPTS -javaagent:$CASSANDRA_HOME/lib/jamm-0.3.2.jar"

# Heap dumps are written here, instead of the working directory.
if [ -n "$CASSANDRA_HEAPDUMP_DIR" ]; then
    JVM_OPTS="$JVM_OPTS -XX:HeapDumpPath=$CASSANDRA_HEAPDUMP_DIR/cassandra-$(date +%s)-pid$$.hprof"
fi

# After an OutOfMemoryError the process ends: it could corrupt data. Choose one.
# JVM_OPTS="$JVM_OPTS -XX:+ExitOnOutOfMemoryError"
# JVM_OPTS="$JVM_OPTS -XX:+CrashOnOutOfMemoryError"
# A variable of its own, since its value has spaces.
JVM_ON_OUT_OF_MEMORY_ERROR_OPT="-XX:OnOutOfMemoryError=kill -9 %p"

# A histogram of the heap after an OutOfMemoryError.
# JVM_OPTS="$JVM_OPTS -Dcassandra.printHeapHistogramOnOutOfMemoryError=true"

# JMX: metrics and administration. Only on the loopback address and without
# authentication, unless LOCAL_JMX=no: then on every address, with passwords.
# JVM_OPTS="$JVM_OPTS -Djava.rmi.server.hostname=<public name>"
if [ -z "$LOCAL_JMX" ]; then
    LOCAL_JMX=yes
fi

# nodetool reads this line.
JMX_PORT="7199"

if [ "$LOCAL_JMX" = "yes" ]; then
    JVM_OPTS="$JVM_OPTS -Dcassandra.jmx.local.port=$JMX_PORT"
    JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.authenticate=false"
else
    JVM_OPTS="$JVM_OPTS -Dcassandra.jmx.remote.port=$JMX_PORT"
    # With TLS, RMI needs a port other than that of JMX, or none for a random one.
    JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.rmi.port=$JMX_PORT"
    JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.authenticate=true"

    # TLS
    #JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.ssl=true"
    #JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.ssl.need.client.auth=true"
    #JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.ssl.enabled.protocols=<enabled-protocols>"
    #JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.ssl.enabled.cipher.suites=<enabled-cipher-suites>"
    #JVM_OPTS="$JVM_OPTS -Djavax.net.ssl.keyStore=/path/to/keystore"
    #JVM_OPTS="$JVM_OPTS -Djavax.net.ssl.keyStorePassword=<keystore-password>"
    #JVM_OPTS="$JVM_OPTS -Djavax.net.ssl.trustStore=/path/to/truststore"
    #JVM_OPTS="$JVM_OPTS -Djavax.net.ssl.trustStorePassword=<truststore-password>"
fi

# Who may use JMX: a password file and an access file, or Cassandra's roles
# through JAAS (cassandra-jaas.config) and Cassandra's permissions.
JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.password.file=/etc/cassandra/jmxremote.password"
#JVM_OPTS="$JVM_OPTS -Dcom.sun.management.jmxremote.access.file=/etc/cassandra/jmxremote.access"
#JVM_OPTS="$JVM_OPTS -Dcassandra.jmx.remote.login.config=CassandraLogin"
#JVM_OPTS="$JVM_OPTS -Djava.security.auth.login.config=$CASSANDRA_CONF/cassandra-jaas.config"
#JVM_OPTS="$JVM_OPTS -Dcassandra.jmx.authorizer=org.apache.cassandra.auth.jmx.AuthorizationProxy"

# MX4J's page for JMX, when mx4j-tools.jar is in lib.
#MX4J_ADDRESS="127.0.0.1"
#MX4J_PORT="8081"

# Native library of SIGAR, which reads figures of the operating system.
JVM_OPTS="$JVM_OPTS -Djava.library.path=$CASSANDRA_HOME/lib/sigar-bin"

if [ -n "$MX4J_ADDRESS" ]; then
    case "$MX4J_ADDRESS" in
    *-Dmx4jaddress*) JVM_OPTS="$JVM_OPTS $MX4J_ADDRESS" ;;
    *) JVM_OPTS="$JVM_OPTS -Dmx4jaddress=$MX4J_ADDRESS" ;;
    esac
fi
if [ -n "$MX4J_PORT" ]; then
    case "$MX4J_PORT" in
    *-Dmx4jport*) JVM_OPTS="$JVM_OPTS $MX4J_PORT" ;;
    *) JVM_OPTS="$JVM_OPTS -Dmx4jport=$MX4J_PORT" ;;
    esac
fi

JVM_OPTS="$JVM_OPTS $JVM_EXTRA_OPTS"
