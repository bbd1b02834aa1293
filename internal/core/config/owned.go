package config

import (
	"slices"
	"sort"
	"strings"
)

// What Helenus itself sets, with what to do instead. The schema of the API refuses the same keys of cassandra.yaml (OwnedSettings).
const (
	byTokens     = "Helenus gives every node its tokens; the number is datacenters[].tokens"
	byAddresses  = "addresses and ports are those of the pod"
	bySeeds      = "Helenus chooses the seeds and keeps them up to date"
	byVolumes    = "directories follow from the volumes (node.storage)"
	byJoining    = "Helenus decides when and how a node joins"
	byTraffic    = "Helenus opens the native transport when the node may serve clients"
	byRacks      = "datacenters and racks follow from the spec (datacenters[].racks)"
	byFailures   = "a node with a failed disk stops (die), and Helenus decides what happens next"
	byReadiness  = "readiness of a node is decided by Helenus"
	bySecurity   = "authentication and encryption are set up by Helenus"
	byHeap       = "set jvm.heap"
	byClassPath  = "the class path is the image's; add jars with the environment variable EXTRA_CLASSPATH"
	byManagement = "JMX listens on the loopback address alone, for nodetool and the agent"
	byOptions    = "set jvm.options, where options are checked"
	byStart      = "Helenus starts Cassandra with it"
)

// ownedSettings are the keys of cassandra.yaml that the user cannot set.
var ownedSettings = map[string]string{
	"allocate_tokens_for_keyspace":                 byTokens,
	"allocate_tokens_for_local_replication_factor": "Helenus computes tokens with datacenters[].replicationFactor",
	"authenticator":                                bySecurity,
	"authorizer":                                   bySecurity,
	"auto_bootstrap":                               byJoining,
	"block_for_peers_in_remote_dcs":                byReadiness,
	"block_for_peers_timeout_in_secs":              byReadiness,
	"broadcast_address":                            byAddresses,
	"broadcast_rpc_address":                        byAddresses,
	"cdc_raw_directory":                            byVolumes,
	"cidr_authorizer":                              bySecurity,
	"client_encryption_options":                    bySecurity,
	"cluster_name":                                 "set spec.clusterName",
	"commit_failure_policy":                        byFailures,
	"commitlog_directory":                          "set node.storage.commitlog for a volume of its own",
	"data_file_directories":                        byVolumes,
	"disk_failure_policy":                          byFailures,
	"endpoint_snitch":                              byRacks,
	"hints_directory":                              byVolumes,
	"initial_token":                                byTokens,
	"internode_authenticator":                      bySecurity,
	"listen_address":                               byAddresses,
	"listen_interface":                             byAddresses,
	"listen_interface_prefer_ipv6":                 byAddresses,
	"listen_on_broadcast_address":                  byAddresses,
	"local_system_data_file_directory":             byVolumes,
	"native_transport_port":                        byAddresses,
	"native_transport_port_ssl":                    byAddresses,
	"network_authorizer":                           bySecurity,
	"num_tokens":                                   "set datacenters[].tokens",
	"partitioner":                                  "Helenus computes tokens for Murmur3Partitioner",
	"role_manager":                                 bySecurity,
	"rpc_address":                                  byAddresses,
	"rpc_interface":                                byAddresses,
	"rpc_interface_prefer_ipv6":                    byAddresses,
	"saved_caches_directory":                       byVolumes,
	"seed_provider":                                bySeeds,
	"server_encryption_options":                    bySecurity,
	"ssl_storage_port":                             byAddresses,
	"start_native_transport":                       byTraffic,
	"storage_port":                                 byAddresses,
}

// OwnedSettings are the keys of cassandra.yaml that Helenus owns, sorted.
func OwnedSettings() []string {
	names := make([]string, 0, len(ownedSettings))
	for name := range ownedSettings {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// ownedOptions are JVM options that the user cannot set, by key (see optionKey).
var ownedOptions = map[string]string{
	"-Xms":                                       byHeap,
	"-Xmx":                                       byHeap,
	"-XX:InitialHeapSize":                        byHeap,
	"-XX:MaxHeapSize":                            byHeap,
	"-XX:MinHeapSize":                            byHeap,
	"-XX:InitialRAMPercentage":                   byHeap,
	"-XX:MaxRAMPercentage":                       byHeap,
	"-XX:MinRAMPercentage":                       byHeap,
	"-XX:InitialRAMFraction":                     byHeap,
	"-XX:MaxRAMFraction":                         byHeap,
	"-XX:MinRAMFraction":                         byHeap,
	"-XX:MaxRAM":                                 byHeap,
	"-XX:Flags":                                  byOptions,
	"-XX:VMOptionsFile":                          byOptions,
	"-cp":                                        byClassPath,
	"-classpath":                                 byClassPath,
	"-jar":                                       byClassPath,
	"-version":                                   byStart,
	"-help":                                      byStart,
	"-Djava.net.preferIPv4Stack":                 byAddresses,
	"-Djava.io.tmpdir":                           byVolumes,
	"-Dlogback.configurationFile":                "logging goes to the container's log",
	"-Dcassandra-foreground":                     byStart,
	"-Dcassandra-pidfile":                        byStart,
	"-Dcassandra-rackdc.properties":              byRacks,
	"-Dcassandra.allow_unsafe_join":              byJoining,
	"-Dcassandra.allow_unsafe_replace":           byJoining,
	"-Dcassandra.allow_new_old_config_keys":      "set each setting under one name",
	"-Dcassandra.allow_duplicate_config_keys":    "set each setting once",
	"-Dcassandra.allocate_tokens_for_keyspace":   byTokens,
	"-Dcassandra.auto_bootstrap":                 byJoining,
	"-Dcassandra.broadcast_interval_ms":          byJoining,
	"-Dcassandra.config":                         byStart,
	"-Dcassandra.config.allow_system_properties": "set node.cassandraYaml",
	"-Dcassandra.config.loader":                  byStart,
	"-Dcassandra.gossip_quarantine_delay_ms":     byJoining,
	"-Dcassandra.ignore_dc":                      byRacks,
	"-Dcassandra.ignore_rack":                    byRacks,
	"-Dcassandra.initial_token":                  byTokens,
	"-Dcassandra.join_ring":                      byJoining,
	"-Dcassandra.load_ring_state":                byJoining,
	"-Dcassandra.logdir":                         "logging goes to the container's log",
	"-Dcassandra.native_transport_port":          byAddresses,
	"-Dcassandra.override_decommission":          byJoining,
	"-Dcassandra.partitioner":                    "Helenus computes tokens for Murmur3Partitioner",
	"-Dcassandra.replace_address":                byJoining,
	"-Dcassandra.replace_address_first_boot":     byJoining,
	"-Dcassandra.replace_node":                   byJoining,
	"-Dcassandra.replace_token":                  byJoining,
	"-Dcassandra.reset_bootstrap_progress":       byJoining,
	"-Dcassandra.ring_delay_ms":                  byJoining,
	"-Dcassandra.schema_delay_ms":                byJoining,
	"-Dcassandra.skip_schema_check":              byJoining,
	"-Dcassandra.ssl_storage_port":               byAddresses,
	"-Dcassandra.start_gossip":                   byJoining,
	"-Dcassandra.start_native_transport":         byTraffic,
	"-Dcassandra.storage_port":                   byAddresses,
	"-Dcassandra.storagedir":                     byVolumes,
}

// ownedOptionPrefixes are families of such options.
var ownedOptionPrefixes = []struct{ prefix, advice string }{
	{"-Dcassandra.settings.", "set node.cassandraYaml"},
	{"-Dcassandra.consistent.", byJoining},
	{"-Dcassandra.gossip_settle_", byReadiness},
	{"-Dcassandra.skip_wait_for_gossip_to_settle", byReadiness},
	{"-Dcassandra.system_auth.", "Helenus sets the replication of system keyspaces"},
	{"-Dcassandra.system_distributed.", "Helenus sets the replication of system keyspaces"},
	{"-Dcassandra.system_traces.", "Helenus sets the replication of system keyspaces"},
	{"-Dcassandra.jmx.", byManagement},
	{"-Dcom.sun.management.jmxremote", byManagement},
	{"-Djava.rmi.server.hostname", byManagement},
	{"--class-path", byClassPath},
	{"@", byOptions},
}

// ownedOption says whether Helenus owns a JVM option, and what to do instead.
func ownedOption(option string) (advice string, owned bool) {
	if advice, owned = ownedOptions[optionKey(option)]; owned {
		return advice, true
	}
	for _, family := range ownedOptionPrefixes {
		if strings.HasPrefix(option, family.prefix) {
			return family.advice, true
		}
	}
	return "", false
}

// ownedVariables are environment variables that the user cannot set: those that bin/cassandra and cassandra-env.sh read, and those with which a JVM takes
// options from elsewhere. The variables of the image's own entry point are among them, because that script does not run.
var ownedVariables = map[string]string{
	"CASSANDRA_BROADCAST_ADDRESS":     byAddresses,
	"CASSANDRA_BROADCAST_RPC_ADDRESS": byAddresses,
	"CASSANDRA_CLUSTER_NAME":          "set spec.clusterName",
	"CASSANDRA_CONF":                  byStart,
	"CASSANDRA_DC":                    byRacks,
	"CASSANDRA_ENDPOINT_SNITCH":       byRacks,
	"CASSANDRA_HOME":                  byStart,
	"CASSANDRA_INCLUDE":               byStart,
	"CASSANDRA_LISTEN_ADDRESS":        byAddresses,
	"CASSANDRA_LOG_DIR":               "logging goes to the container's log",
	"CASSANDRA_NUM_TOKENS":            "set datacenters[].tokens",
	"CASSANDRA_RACK":                  byRacks,
	"CASSANDRA_RPC_ADDRESS":           byAddresses,
	"CASSANDRA_SEEDS":                 bySeeds,
	"CASSANDRA_START_RPC":             byTraffic,
	"CLASSPATH":                       byClassPath,
	"HEAP_NEWSIZE":                    "set jvm.options, -Xmn…",
	"JAVA_OPTS":                       byOptions,
	"JAVA_TOOL_OPTIONS":               byOptions,
	"JDK_JAVA_OPTIONS":                byOptions,
	"JMX_PORT":                        byManagement,
	"JVM_EXTRA_OPTS":                  byOptions,
	"JVM_OPTS":                        byOptions,
	"LOCAL_JMX":                       byManagement,
	"MAX_HEAP_SIZE":                   byHeap,
	"_JAVA_OPTIONS":                   byOptions,
}

// OwnedVariables are the environment variables that Helenus owns, sorted.
func OwnedVariables() []string {
	names := make([]string, 0, len(ownedVariables))
	for name := range ownedVariables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
