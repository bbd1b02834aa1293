package cassandra

import "fmt"

const toolPackage = "org.apache.cassandra.tools."

// tool is a command-line program whose class is in Cassandra's jar.
type tool struct {
	// path below CASSANDRA_HOME, as in the release.
	path  string
	class string
	heap  string
	// since is the first release line that has it.
	since string
}

// tools are those of the release but cassandra-stress and fqltool, whose jars
// are not published.
var tools = []tool{
	{"bin/sstableloader", "BulkLoader", "256M", ""},
	{"bin/sstablescrub", "StandaloneScrubber", "256M", ""},
	{"bin/sstableupgrade", "StandaloneUpgrader", "256M", ""},
	{"bin/sstableutil", "StandaloneSSTableUtil", "256M", ""},
	{"bin/sstableverify", "StandaloneVerifier", "256M", ""},
	{"tools/bin/auditlogviewer", "AuditLogViewer", "256M", ""},
	{"tools/bin/generatetokens", "GenerateTokens", "256M", ""},
	{"tools/bin/hash_password", "HashPassword", "256M", ""},
	{"tools/bin/jmxtool", "JMXTool", "512m", ""},
	{"tools/bin/sstabledump", "SSTableExport", "256M", ""},
	{"tools/bin/sstableexpiredblockers", "SSTableExpiredBlockers", "256M", ""},
	{"tools/bin/sstablelevelreset", "SSTableLevelResetter", "256M", ""},
	{"tools/bin/sstablemetadata", "SSTableMetadataViewer", "256M", ""},
	{"tools/bin/sstableofflinerelevel", "SSTableOfflineRelevel", "256M", ""},
	{"tools/bin/sstablepartitions", "SSTablePartitions", "256M", "5.0"},
	{"tools/bin/sstablerepairedset", "SSTableRepairedAtSetter", "256M", ""},
	{"tools/bin/sstablesplit", "StandaloneSplitter", "256M", ""},
}

// script starts the tool as the script of the release does.
func (t tool) script() string {
	return fmt.Sprintf(`#!/bin/sh
. "${CASSANDRA_INCLUDE:-${CASSANDRA_HOME:-/opt/cassandra}/bin/cassandra.in.sh}"

# Options are lists of words.
# shellcheck disable=SC2086
exec "$JAVA" $JAVA_AGENT -ea -cp "$CLASSPATH" $JVM_OPTS "-Xmx${MAX_HEAP_SIZE:-%s}" \
    "-Dcassandra.storagedir=$cassandra_storagedir" \
    -Dlogback.configurationFile=logback-tools.xml \
    %s%s "$@"
`, t.heap, toolPackage, t.class)
}
