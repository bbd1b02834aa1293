package config

import (
	"encoding/xml"
	"maps"
	"slices"
)

// JolokiaAccess is the name of the file that says what Jolokia may be asked for.
const JolokiaAccess = "jolokia-access.xml"

// operations that an agent calls, by bean, beside those that change settings. Names without their
// signatures: all forms of one do the same.
var operations = map[string][]string{
	storageService: {
		"bulkLoad", "clearSnapshot", "decommission", "drain", "forceKeyspaceCleanup", "forceKeyspaceCompaction",
		"forceKeyspaceFlush", "forceTerminateAllRepairSessions", "garbageCollect", "getKeyspaceReplicationInfo",
		"getParentRepairStatus", "getPendingRangeToEndpointWithPortMap", "loadNewSSTables", "rebuild",
		"rebuildSecondaryIndex", "removeNode", "repairAsync", "scrub", "startNativeTransport", "stopNativeTransport",
		"takeSnapshot", "truncate", "upgradeSSTables", "verify",
	},
	"org.apache.cassandra.auth:type=*":             {"invalidate"},
	"org.apache.cassandra.db:type=BatchlogManager": {"countAllBatches"},
	"org.apache.cassandra.db:type=Caches": {
		"invalidateCounterCache", "invalidateKeyCache", "invalidateRowCache",
	},
	"org.apache.cassandra.db:type=CompactionManager":  {"stopCompactionById"},
	"org.apache.cassandra.db:type=EndpointSnitchInfo": {"getDatacenter", "getRack"},
	"org.apache.cassandra.db:type=RepairService":      {"getSessions"},
	"org.apache.cassandra.db:type=Tables,*":           {"getSSTablesForKey"},
	"org.apache.cassandra.net:type=Gossiper":          {"assassinateEndpoint", "reloadSeeds"},
	"org.apache.cassandra.net:type=MessagingService":  {"reloadSslCertificates"},
}

// Calls says that an agent may call an operation of some bean, by its name without its signature.
func Calls(operation string) bool {
	for _, names := range operations {
		if slices.Contains(names, operation) {
			return true
		}
	}
	return false
}

// access is Jolokia's policy (https://jolokia.org/reference/html/manual/security.html): what is
// not allowed by a command must be allowed by the name of its bean.
type access struct {
	XMLName  xml.Name `xml:"restrict"`
	Methods  []string `xml:"http>method"`
	Commands []string `xml:"commands>command"`
	Beans    []bean   `xml:"allow>mbean"`
}

type bean struct {
	Name       string   `xml:"name"`
	Attributes []string `xml:"attribute"`
	Operations []string `xml:"operation"`
}

// jolokiaAccess lets Jolokia read everything, write the settings that are changed while Cassandra
// runs, and call what agents call. So nobody who has its credential can run code in the JVM or have
// it write its memory to a file (com.sun.management, DiagnosticCommand).
func jolokiaAccess() ([]byte, error) {
	attributes, calls := map[string][]string{}, map[string][]string{}
	for name, names := range operations {
		for _, operation := range names {
			calls[name] = append(calls[name], operation+"*")
		}
	}
	for _, forms := range setters {
		for _, s := range forms {
			if s.operation == "" {
				attributes[s.bean] = append(attributes[s.bean], s.attribute)
			} else {
				calls[s.bean] = append(calls[s.bean], s.operation)
			}
		}
	}
	a := access{Methods: []string{"post"}, Commands: []string{"read"}}
	names := slices.Concat(slices.Collect(maps.Keys(attributes)), slices.Collect(maps.Keys(calls)))
	for _, name := range distinct(names) {
		a.Beans = append(a.Beans, bean{name, distinct(attributes[name]), distinct(calls[name])})
	}
	text, err := xml.MarshalIndent(a, "", "  ")
	return append(text, '\n'), err
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
