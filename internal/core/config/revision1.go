package config

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/layout"
)

// renderRevision1 changes of the image's files what a node in a pod needs:
//   - identity, addresses, seeds and directories;
//   - failures of a disk end the JVM (die), so that the agent decides what happens next;
//   - the wait for peers at the start is off: readiness is Helenus's, and members that left would
//     make every start wait;
//   - no token allocation: tokens come with the ticket;
//   - the log goes to standard output, and what the agent reads of it to a small file (see renderLogback);
//   - heap and direct memory by the memory limit, Jolokia and the metrics as Java agents;
//
// and after that what the user asks for.
func renderRevision1(base Files, node *Node) (Files, error) {
	table, err := settings.For(node.Configuration.Version)
	if err != nil {
		return nil, err
	}
	files := Files{}
	if files[CassandraYAML], err = revision1YAML(base[CassandraYAML], node, table); err != nil {
		return nil, fmt.Errorf("%s: %w", CassandraYAML, err)
	}
	if files[Logback], err = renderLogback(base[Logback]); err != nil {
		return nil, fmt.Errorf("%s: %w", Logback, err)
	}
	files[RackProperties] = setProperties(base[RackProperties], []property{
		{"dc", node.Configuration.DatacenterName},
		{"rack", node.Configuration.RackName},
	})
	files[JolokiaProperties] = revision1Jolokia(node.Jolokia, node.Directories.Configuration)
	if files[JolokiaAccess], err = jolokiaAccess(); err != nil {
		return nil, fmt.Errorf("%s: %w", JolokiaAccess, err)
	}
	options, err := revision1Options(base, node)
	if err != nil {
		return nil, err
	}
	for name, data := range options {
		files[name] = data
	}
	return files, nil
}

func revision1YAML(base []byte, node *Node, table *settings.Table) ([]byte, error) {
	document, err := parseDocument(base)
	if err != nil {
		return nil, err
	}
	asksForPassword := node.Configuration.Authentication == v1alpha1.AuthenticationPassword
	if asksForPassword {
		for _, name := range cachesOfRoles {
			setOnce(document, table, name+"_validity", yamlOf("60s"))
			setOnce(document, table, name+"_update_interval", yamlOf("2s"))
		}
	}
	if err := applyUserSettings(document, node.Configuration.CassandraYaml, table); err != nil {
		return nil, err
	}
	c, d := &node.Configuration, &node.Directories
	document.set("cluster_name", yamlOf(c.ClusterName))
	document.set("num_tokens", yamlOf(c.NumTokens))
	document.set("partitioner", yamlOf("org.apache.cassandra.dht.Murmur3Partitioner"))
	document.set("endpoint_snitch", yamlOf("GossipingPropertyFileSnitch"))
	document.set("seed_provider", seedProviderNode(node.Seeds))

	document.set("listen_address", yamlOf(node.Address.String()))
	document.set("rpc_address", yamlOf(nativeTransportAddress(node).String()))
	document.set("broadcast_rpc_address", yamlOf(node.Address.String()))
	document.set("storage_port", yamlOf(layout.StoragePort))
	document.set("ssl_storage_port", yamlOf(layout.TLSStoragePort))
	document.set("native_transport_port", yamlOf(layout.NativePort))
	document.set("start_native_transport", yamlOf(true))

	document.set("data_file_directories", yamlOf([]any{d.Data}))
	document.set("commitlog_directory", yamlOf(d.Commitlog))
	document.set("hints_directory", yamlOf(d.Hints))
	document.set("saved_caches_directory", yamlOf(d.SavedCaches))
	document.set("cdc_raw_directory", yamlOf(d.CDCRaw))

	document.set("disk_failure_policy", yamlOf("die"))
	document.set("commit_failure_policy", yamlOf("die"))
	document.set("block_for_peers_timeout_in_secs", yamlOf(-1))
	if asksForPassword {
		document.set("authenticator", yamlOf("PasswordAuthenticator"))
		document.set("authorizer", yamlOf("CassandraAuthorizer"))
		document.set("role_manager", yamlOf("CassandraRoleManager"))
	}
	setEncryption(document, node)
	for _, name := range revision1Removed {
		document.remove(name)
	}
	return document.bytes()
}

// cachesOfRoles are asked instead of the replicas of system_auth. They are believed for long and
// refreshed often, so that a moment without a quorum logs nobody out.
var cachesOfRoles = []string{"credentials", "roles", "permissions"}

// revision1Removed are settings that would contradict those above, if the image has them.
var revision1Removed = []string{
	"allocate_tokens_for_keyspace",
	"allocate_tokens_for_local_replication_factor",
	"auto_bootstrap",
	"block_for_peers_in_remote_dcs",
	"broadcast_address",
	"initial_token",
	"listen_interface",
	"listen_interface_prefer_ipv6",
	"listen_on_broadcast_address",
	"local_system_data_file_directory",
	"native_transport_port_ssl",
	"rpc_interface",
	"rpc_interface_prefer_ipv6",
}

// applyUserSettings sets what the user asks for, over the image's value of the same setting under
// any of its names.
func applyUserSettings(document *document, user v1alpha1.Settings, table *settings.Table) error {
	for _, name := range slices.Sorted(maps.Keys(user)) {
		if user[name].IsNull() {
			continue
		}
		value, err := yamlOfJSON(user[name].Raw)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		setOnce(document, table, name, merge(document.value(name), value))
	}
	return nil
}

// setOnce sets a setting and removes it under its other names: Cassandra takes it under one alone.
func setOnce(document *document, table *settings.Table, name string, value *yaml.Node) {
	document.set(name, value)
	for _, other := range table.Names(name) {
		if other != name {
			document.remove(other)
		}
	}
}

// nativeTransportAddress is where CQL listens: everywhere, since Cassandra binds it once in the
// life of a JVM.
func nativeTransportAddress(node *Node) netip.Addr {
	if node.Address.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

var versionOptions = regexp.MustCompile(`^jvm[0-9]+-server\.options$`)

// revision1Options renders the files of JVM options: jvm-server.options for every Java, and the one
// of each version of Java, of which bin/cassandra takes the one that fits.
func revision1Options(base Files, node *Node) (Files, error) {
	memory, err := MemoryOf(node.Configuration.JVM, node.MemoryLimit)
	if err != nil {
		return nil, err
	}
	firm, defaults := revision1OwnOptions(node, memory)
	user := withoutKeys(userOptions(node.Configuration.JVM), firm)
	ours := slices.Concat(firm, withoutKeys(defaults, user))
	overridden := keysOf(slices.Concat(ours, user))
	collector := collectorOf(user)
	ownGCLog := gcLogOf(node.Configuration.JVM) != v1alpha1.GCLogFile
	files := Files{}
	for name, data := range base {
		if name != ServerOptions && !versionOptions.MatchString(name) {
			continue
		}
		file := parseOptions(data)
		file.disable(func(option string) bool {
			return overridden[optionKey(option)] || ofOtherCollector(option, collector) ||
				(isLogOfGC(option) && ownGCLog)
		})
		if name == ServerOptions {
			file.add("Set by Helenus.", ours)
			file.add("Options of the user (jvm.options).", user)
		} else {
			file.add("Set by Helenus.", youngGeneration(file, user, memory))
		}
		files[name] = file.bytes()
	}
	return files, nil
}

// userOptions are the user's options, the last of each kind.
func userOptions(jvm *v1alpha1.JVM) []string {
	if jvm == nil {
		return nil
	}
	return lastOfEach(jvm.Options)
}

// revision1OwnOptions are the options a node needs, which win over the user's, and those that the
// user may set otherwise.
func revision1OwnOptions(node *Node, memory Memory) (firm, defaults []string) {
	heap := memory.Heap / mebibyte
	firm = []string{fmt.Sprintf("-Xms%dM", heap), fmt.Sprintf("-Xmx%dM", heap)}
	if option := gcLogOption(node.Configuration.JVM); option != "" {
		firm = append(firm, option)
	}
	if node.Address.Is6() {
		firm = append(firm, "-Djava.net.preferIPv4Stack=false")
	}
	// Gossip counts as settled after 1 s instead of 8 s: that CQL opens is decided by what its
	// peers see, not by time. The ring delay stays as it is.
	firm = append(firm,
		"-Dcassandra.gossip_settle_min_wait_ms=500",
		"-Dcassandra.gossip_settle_interval_ms=250",
		"-Dcassandra.gossip_settle_poll_success_required=2",
	)
	if node.Directories.Temporary != "" {
		firm = append(firm, "-Djava.io.tmpdir="+node.Directories.Temporary)
	}
	firm = append(firm, fmt.Sprintf("-javaagent:%s=config=%s/%s", node.Jolokia.Jar, node.Directories.Configuration,
		JolokiaProperties))
	if m := node.Metrics; m != nil {
		firm = append(firm, fmt.Sprintf("-javaagent:%s=%d", m.Jar, m.Port))
	}
	// Names that change are looked up again soon; some Java versions would keep them for ever under
	// Cassandra's security manager. What a row takes in memory beside its content is measured on
	// 1,000 rows instead of 100,000, which each start waits for: 179 to 181 bytes either way.
	defaults = []string{
		"-Dsun.net.inetaddr.ttl=10",
		"-Dcassandra.memtable_row_overhead_computation_step=1000",
	}
	if memory.Direct > 0 {
		defaults = append(defaults, fmt.Sprintf("-XX:MaxDirectMemorySize=%dM", memory.Direct/mebibyte))
	}
	return firm, defaults
}

func gcLogOf(jvm *v1alpha1.JVM) v1alpha1.GCLog {
	if jvm == nil || jvm.GCLog == "" {
		return v1alpha1.GCLogStdout
	}
	return jvm.GCLog
}

// gcLogOption is the option for Stdout and Off. Either also keeps cassandra-env.sh from adding its
// own log file, which is what File means.
func gcLogOption(jvm *v1alpha1.JVM) string {
	switch gcLogOf(jvm) {
	case v1alpha1.GCLogFile:
		return ""
	case v1alpha1.GCLogNone:
		return "-Xlog:gc=off"
	default:
		return "-Xlog:gc:stdout:time,uptime,level,tags"
	}
}

// youngGeneration sizes the young generation where the collector is CMS, which the options of Java
// 8 and 11 in Cassandra 4.1 choose: cassandra-env.sh would size it by the memory and the processors
// of the host. A quarter of the heap, at most 800 MiB, as that file advises for eight processors.
func youngGeneration(file *optionsFile, user []string, memory Memory) []string {
	all := append(file.options(), user...)
	usesCMS := false
	for _, option := range all {
		key := optionKey(option)
		if key == "-Xmn" || key == "-XX:NewSize" || key == "-XX:MaxNewSize" {
			return nil
		}
		if key == "-XX:UseConcMarkSweepGC" {
			usesCMS = strings.HasPrefix(option, "-XX:+")
		}
	}
	if !usesCMS {
		return nil
	}
	return []string{fmt.Sprintf("-Xmn%dM", min(memory.Heap/4, 800*mebibyte)/mebibyte)}
}

// revision1Jolokia is the configuration of Jolokia: threads on demand, because one long operation
// would block all questions otherwise.
func revision1Jolokia(j Jolokia, configuration string) []byte {
	return setProperties(nil, []property{
		{"host", "127.0.0.1"},
		{"port", fmt.Sprint(j.Port)},
		{"executor", "cached"},
		{"discoveryEnabled", "false"},
		{"user", j.User},
		{"password", j.Password},
		{"policyLocation", "file://" + configuration + "/" + JolokiaAccess},
	})
}
