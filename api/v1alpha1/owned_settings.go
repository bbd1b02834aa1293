package v1alpha1

// OwnedSetting is a key of cassandra.yaml that Helenus sets by itself.
//
// +kubebuilder:object:generate=false
type OwnedSetting struct {
	// Key in cassandra.yaml.
	Key string
	// Instead says what the user can do instead, or why there is nothing to be done.
	Instead string
}

const (
	insteadTokens   = "Helenus assigns every token; see datacenters[].numTokens and plannedReplicationFactor"
	insteadSeeds    = "the seeds are chosen among the members of the ring"
	insteadAddress  = "a node's address is that of its pod"
	insteadPort     = "services and network policies rely on the standard ports"
	insteadDirs     = "directories follow from node.storage"
	insteadLocation = "the location is the datacenter and rack of the node; see datacenterName and rackName"
	insteadSecurity = "classes of one's own cannot be configured yet"
	insteadTLS      = "set security.encryption; names in certificates of nodes are not verified " +
		"(require_endpoint_verification), since Cassandra's servers refuse every connection then"
	insteadPassword = "set security.authentication"
	insteadFailure  = "a disk error must end the JVM, so that the agent can see it and act"
	insteadReady    = "a node is ready when the ring says so, not after a wait"
)

// OwnedSettings are the keys that node.cassandraYaml may not have. The admission policy
// helenus-settings is generated from this list, and rendering refuses them too. It holds the names
// of all releases from 4.0, so that none changes its meaning by an upgrade.
var OwnedSettings = []OwnedSetting{
	{"cluster_name", "set spec.clusterName"},
	{"partitioner", "tokens are computed for Murmur3Partitioner"},

	{"num_tokens", "set datacenters[].numTokens"},
	{"initial_token", insteadTokens},
	{"allocate_tokens_for_keyspace", insteadTokens},
	{"allocate_tokens_for_local_replication_factor", insteadTokens},
	{"auto_bootstrap", "it follows from how the node joins"},

	{"seed_provider", insteadSeeds},
	{"block_for_peers_timeout_in_secs", insteadReady},
	{"block_for_peers_in_remote_dcs", insteadReady},

	{"listen_address", insteadAddress},
	{"listen_interface", insteadAddress},
	{"listen_interface_prefer_ipv6", insteadAddress},
	{"listen_on_broadcast_address", insteadAddress},
	{"broadcast_address", insteadAddress},
	{"rpc_address", insteadAddress},
	{"rpc_interface", insteadAddress},
	{"rpc_interface_prefer_ipv6", insteadAddress},
	{"broadcast_rpc_address", insteadAddress},

	{"storage_port", insteadPort},
	{"ssl_storage_port", insteadPort},
	{"native_transport_port", insteadPort},
	{"native_transport_port_ssl", insteadPort},
	{"start_native_transport", "clients are let in when the node is a complete member"},

	{"endpoint_snitch", insteadLocation},
	{"initial_location_provider", insteadLocation},

	{"data_file_directories", insteadDirs},
	{"local_system_data_file_directory", insteadDirs},
	{"commitlog_directory", insteadDirs},
	{"hints_directory", insteadDirs},
	{"saved_caches_directory", insteadDirs},
	{"cdc_raw_directory", insteadDirs},
	{"disk_failure_policy", insteadFailure},
	{"commit_failure_policy", insteadFailure},

	{"authenticator", insteadPassword},
	{"authorizer", insteadPassword},
	{"network_authorizer", insteadSecurity},
	{"cidr_authorizer", insteadSecurity},
	{"role_manager", insteadPassword},
	{"internode_authenticator", insteadSecurity},
	{"server_encryption_options", insteadTLS},
	{"client_encryption_options", insteadTLS},
	{"jmx_server_options", "JMX is for the agent and for commands inside the pod"},
}

// OwnedName is a group of JVM options or environment variables that Helenus sets by itself.
//
// +kubebuilder:object:generate=false
type OwnedName struct {
	// Instead says what the user can do instead, or why there is nothing to be done.
	Instead string
	// Names are beginnings of options, or whole names of variables.
	Names []string
}

// OwnedJVMOptions are the beginnings of options that node.jvm.options may not have.
var OwnedJVMOptions = []OwnedName{
	{"set jvm.heap", []string{
		"-Xms", "-Xmx", "-XX:InitialHeapSize", "-XX:MinHeapSize", "-XX:MaxHeapSize", "-XX:InitialRAM", "-XX:MinRAM",
		"-XX:MaxRAM",
	}},
	{"set jvm.gcLog", []string{"-Xlog:gc", "-Xloggc", "-Xlog:disable"}},
	{"whether and how a node joins is decided by its ticket", []string{
		"-Dcassandra.replace_", "-Dcassandra.allow_empty_replace_address", "-Dcassandra.allow_unsafe_",
		"-Dcassandra.initial_token",
		"-Dcassandra.auto_bootstrap", "-Dcassandra.allocate_tokens", "-Dcassandra.join_ring",
		"-Dcassandra.write_survey", "-Dcassandra.load_ring_state",
		"-Dcassandra.start_gossip", "-Dcassandra.start_native_transport", "-Dcassandra.reset_bootstrap_progress",
		"-Dcassandra.override_decommission",
		"-Dcassandra.consistent.", "-Dcassandra.ignore_dc", "-Dcassandra.ignore_rack", "-Dcassandra.partitioner",
		"-Dcassandra.unsafesystem",
	}},
	{"the replication of system keyspaces follows from datacenters[].plannedReplicationFactor", []string{
		"-Dcassandra.system_auth.", "-Dcassandra.system_distributed.", "-Dcassandra.system_traces.",
	}},
	{"how long a node waits for the ring is part of how Helenus forms and checks it", []string{
		"-Dcassandra.ring_delay_ms", "-Dcassandra.gossip_settle", "-Dcassandra.skip_wait_for_gossip_to_settle",
		"-Dcassandra.shutdown_announce_in_ms",
		"-Dcassandra.broadcast_interval_ms", "-Dcassandra.gossip_quarantine_delay_ms", "-Dcassandra.schema_delay_ms",
		"-Dcassandra.skip_schema_check",
	}},
	{"settings belong in cassandraYaml, each once and under one name", []string{
		"-Dcassandra.settings.", "-Dcassandra.config", "-Dcassandra.allow_new_old_config_keys",
		"-Dcassandra.allow_duplicate_config_keys",
	}},
	{"files and directories of Cassandra follow from the image and node.storage", []string{
		"-Dcassandra.storagedir", "-Dcassandra.logdir", "-Dcassandra-pidfile", "-Dcassandra-foreground",
		"-Dcassandra-rackdc.properties",
		"-Dlogback.configurationFile", "-Djava.io.tmpdir",
	}},
	{"the class path is the image's; add jars with jvm.classPath",
		[]string{"-cp", "-classpath", "--class-path", "-jar"}},
	{"a node's address is that of its pod, and services rely on the standard ports", []string{
		"-Dcassandra.storage_port", "-Dcassandra.ssl_storage_port", "-Dcassandra.native_transport_port",
		"-Djava.net.prefer",
	}},
	{"JMX is for the agent and for commands inside the pod", []string{
		"-Dcassandra.jmx.", "-Dcom.sun.management.jmxremote", "-Djava.rmi.server.hostname",
	}},
	{"code beside Cassandra's own belongs in an image of one's own",
		[]string{"-javaagent:", "-agentlib:", "-agentpath:", "-Xbootclasspath", "-Xrun"}},
	{"the JVM must end when its memory is exhausted, so that the agent can start it again", []string{
		"-XX:-ExitOnOutOfMemoryError", "-XX:-CrashOnOutOfMemoryError", "-XX:OnOutOfMemoryError", "-XX:OnError",
	}},
	{"options are listed here, one by one", []string{"-XX:Flags=", "-XX:VMOptionsFile="}},
}

// OwnedVariables are the names that node.environment may not have.
var OwnedVariables = []OwnedName{
	{"list options in jvm.options", []string{"JVM_OPTS", "JVM_EXTRA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
		"_JAVA_OPTIONS"}},
	{"set jvm.heap", []string{"MAX_HEAP_SIZE", "HEAP_NEWSIZE"}},
	{"the image and the agent decide where Cassandra finds its files", []string{
		"CASSANDRA_HOME", "CASSANDRA_CONF", "CASSANDRA_INCLUDE", "CASSANDRA_LOG_DIR", "JAVA_HOME", "CLASSPATH", "PATH",
		"LD_PRELOAD", "LD_LIBRARY_PATH",
	}},
	{"JMX is for the agent and for commands inside the pod", []string{"LOCAL_JMX", "JMX_PORT"}},
}
