# Read by bin/cassandra after the JVM option files: computes what depends on
# the machine (heap, direct memory, collector threads) and sets up JMX. Adds to
# JVM_OPTS; an option already given in jvm-server.options wins.

# Heap: half of the memory, at most 31 GiB (beyond it compressed pointers are
# lost), or 15.5 GiB with the CMS collector. The memory is that of the machine,
# not the limit of a container: set MAX_HEAP_SIZE there.
calculate_heap_sizes()
{
    system_memory_in_mb=$(free -m | awk '/:/ { print $2; exit }')
    system_cpu_cores=$(grep -c '^processor[[:space:]]*:' /proc/cpuinfo)
    if [ "$system_cpu_cores" -lt 1 ]; then
        system_cpu_cores=1
    fi

    heap_limit=31744
    if [ "$USING_CMS" -eq 0 ]; then
        heap_limit=15872
    fi
    half_system_memory_in_mb=$((system_memory_in_mb / 2))
    if [ "$half_system_memory_in_mb" -gt "$heap_limit" ]; then
        CALCULATED_MAX_HEAP_SIZE="${heap_limit}M"
        CALCULATED_MAX_DIRECT_MEMORY_SIZE="$((heap_limit / 2))M"
        CALCULATED_CMS_HEAP_NEWSIZE="8G"
    else
        CALCULATED_MAX_HEAP_SIZE="${half_system_memory_in_mb}M"
        CALCULATED_MAX_DIRECT_MEMORY_SIZE="$((system_memory_in_mb / 4))M"
        CALCULATED_CMS_HEAP_NEWSIZE="$((half_system_memory_in_mb / 4))M"
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
DEFINED_MAX_DIRECT_MEMORY_SIZE=$(defined MaxDirectMemorySize)
DEFINED_PARALLEL_GC_THREADS=$(defined ParallelGCThreads)
DEFINED_CONC_GC_THREADS=$(defined ConcGCThreads)
USING_CMS=$(defined UseConcMarkSweepGC)
USING_G1=$(defined +UseG1GC)

calculate_heap_sizes

# Fixed sizes instead of the calculated ones. MAX_HEAP_SIZE is the whole heap;
# HEAP_NEWSIZE the young generation: not with G1, and always with other collectors.
#MAX_HEAP_SIZE="20G"
#HEAP_NEWSIZE="10G"
#MAX_DIRECT_MEMORY_SIZE="10G"

# Memory arenas of glibc per thread.
#export MALLOC_ARENA_MAX=4

if [ -n "$HEAP_NEWSIZE" ] && [ "$USING_G1" -eq 0 ]; then
    echo "HEAP_NEWSIZE is ignored with the G1 collector (see cassandra-env.sh)"
fi

if [ -z "$MAX_HEAP_SIZE" ] && { [ -z "$HEAP_NEWSIZE" ] || [ "$USING_G1" -eq 0 ]; }; then
    MAX_HEAP_SIZE="$CALCULATED_MAX_HEAP_SIZE"
    HEAP_NEWSIZE="$CALCULATED_CMS_HEAP_NEWSIZE"
elif [ -z "$MAX_HEAP_SIZE" ] || { [ -z "$HEAP_NEWSIZE" ] && [ "$USING_G1" -ne 0 ]; }; then
    echo "without the G1 collector set MAX_HEAP_SIZE and HEAP_NEWSIZE together, or neither (see cassandra-env.sh)"
    exit 1
fi

if [ -z "$MAX_DIRECT_MEMORY_SIZE" ]; then
    MAX_DIRECT_MEMORY_SIZE="$CALCULATED_MAX_DIRECT_MEMORY_SIZE"
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

if [ "$DEFINED_MAX_DIRECT_MEMORY_SIZE" -ne 0 ]; then
    JVM_OPTS="$JVM_OPTS -XX:MaxDirectMemorySize=${MAX_DIRECT_MEMORY_SIZE}"
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

# As many concurrent as parallel threads keeps pauses short.
if [ "$USING_G1" -eq 0 ] && [ "$DEFINED_PARALLEL_GC_THREADS" -ne 0 ] && [ "$DEFINED_CONC_GC_THREADS" -ne 0 ]; then
    JVM_OPTS="$JVM_OPTS -XX:ParallelGCThreads=$system_cpu_cores -XX:ConcGCThreads=$system_cpu_cores"
fi

if [ "$JVM_ARCH" = "64-Bit" ] && [ "$USING_CMS" -eq 0 ]; then
    JVM_OPTS="$JVM_OPTS -XX:+UseCondCardMark"
fi

# Hints for the compiler.
JVM_OPTS="$JVM_OPTS -XX:CompileCommandFile=$CASSANDRA_CONF/hotspot_compiler"

# Measures objects: the size of memtables depends on it.
JVM_OPTS="$JVM_OPTS -javaagent:$CASSANDRA_HOME/lib/jamm-0.4.0.jar"

# Heap dumps are written here.
if [ -z "$CASSANDRA_HEAPDUMP_DIR" ]; then
    CASSANDRA_HEAPDUMP_DIR="$CASSANDRA_LOG_DIR"
fi
JVM_OPTS="$JVM_OPTS -XX:HeapDumpPath=$CASSANDRA_HEAPDUMP_DIR/cassandra-$(date +%s)-pid$$.hprof"

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
