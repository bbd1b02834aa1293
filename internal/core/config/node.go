package config

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

// Names of the files in Cassandra's configuration directory.
const (
	CassandraYAML     = "cassandra.yaml"
	RackProperties    = "cassandra-rackdc.properties"
	ServerOptions     = "jvm-server.options"
	Logback           = "logback.xml"
	JolokiaProperties = "jolokia.properties" // holds the credential; mode 0600
)

// Files are the contents of files by their path relative to the configuration directory.
type Files map[string][]byte

// Node is everything the configuration of one node depends on.
type Node struct {
	// Configuration is the effective input of the user, with the revision of the rules.
	Configuration v1alpha1.NodeConfiguration

	// Address of the pod, on which Cassandra listens and by which all others know it. IPv4 or IPv6.
	Address netip.Addr
	// Seeds of the ring. Never empty. They are no part of the hash: Cassandra reads them again at
	// run time.
	Seeds []netip.Addr

	Directories Directories

	// MemoryLimit of the Cassandra container in bytes; 0 if it has none, and then the heap must be
	// given.
	MemoryLimit int64

	Jolokia Jolokia
	// Metrics of Cassandra; nil for none.
	Metrics *Metrics
}

// Directories are absolute paths inside the Cassandra container.
type Directories struct {
	// Configuration is where the rendered files lie.
	Configuration string
	Data          string
	Commitlog     string
	Hints         string
	SavedCaches   string
	// CDCRaw must be on the volume of the commit log: Cassandra hard-links segments into it.
	CDCRaw string
	// Logs is for what is written beside the container's log: the end of system.log for the agent,
	// the garbage collection log (gcLog: File), and what the user's options name.
	Logs string
	// Temporary is java.io.tmpdir, from where native libraries are loaded: it must not be mounted
	// noexec. Empty leaves Java's default.
	Temporary string
}

// OnVolumes sets the directories of data by the mount paths of their volumes; an empty commitlog
// means that it has no volume of its own.
func (d Directories) OnVolumes(data, commitlog string) Directories {
	if commitlog == "" {
		commitlog = data
	}
	d.Data = path.Join(data, "data")
	d.Hints = path.Join(data, "hints")
	d.SavedCaches = path.Join(data, "saved_caches")
	d.Commitlog = path.Join(commitlog, "commitlog")
	d.CDCRaw = path.Join(commitlog, "cdc_raw")
	return d
}

// Jolokia is the agent inside the JVM through which JMX is reached, on the loopback address alone.
type Jolokia struct {
	// Jar is the absolute path of the agent.
	Jar string
	// Port on 127.0.0.1.
	Port uint16
	// User and Password are the credential of this pod.
	User, Password string
}

// Metrics is the agent inside the JVM that serves its metrics, on the loopback address alone.
type Metrics struct {
	// Jar is the absolute path of the agent.
	Jar string
	// Port on 127.0.0.1.
	Port uint16
}

// normalize writes addresses in one form: an IPv4 address that comes as an IPv6 one is IPv4.
func (n *Node) normalize() {
	n.Address = n.Address.Unmap()
	seeds := make([]netip.Addr, len(n.Seeds))
	for i, seed := range n.Seeds {
		seeds[i] = seed.Unmap()
	}
	n.Seeds = seeds
}

// check says what is missing for any rendering. What the user wrote is checked by Validate, before
// it becomes part of a record.
func (n *Node) check() error {
	if !n.Address.IsValid() || n.Address.IsUnspecified() {
		return fmt.Errorf("address %q is not the address of a pod", n.Address)
	}
	if len(n.Seeds) == 0 {
		return fmt.Errorf("no seeds: a node without seeds would form a ring of its own")
	}
	for _, seed := range n.Seeds {
		if !seed.IsValid() || seed.IsUnspecified() {
			return fmt.Errorf("seed %q is no address", seed)
		}
	}
	d := n.Directories
	for name, value := range map[string]string{
		"configuration": d.Configuration, "data": d.Data, "commitlog": d.Commitlog, "hints": d.Hints,
		"saved caches": d.SavedCaches,
		"cdc_raw":      d.CDCRaw, "logs": d.Logs, "Jolokia jar": n.Jolokia.Jar,
	} {
		if err := checkPath(value); err != nil {
			return fmt.Errorf("path of %s: %w", name, err)
		}
	}
	if n.Jolokia.Port == 0 || n.Jolokia.User == "" || n.Jolokia.Password == "" {
		return fmt.Errorf("port, user and password of Jolokia are not all given")
	}
	return nil
}

// checkPath refuses paths that bin/cassandra would take apart: it splits options at white space.
func checkPath(p string) error {
	if !path.IsAbs(p) || strings.ContainsAny(p, " \t\n\"'*?[") {
		return fmt.Errorf("%q is not an absolute path without white space, quotes and wildcards", p)
	}
	return nil
}

// rendered are the names of files that Helenus renders whatever the image has, with what the user
// can do instead.
var rendered = []struct {
	name    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`^cassandra\.yaml$`), "give settings in node.cassandraYaml"},
	{regexp.MustCompile(`^cassandra-rackdc\.properties$`), "the location is the datacenter and rack of the node"},
	{regexp.MustCompile(`^jvm[0-9]*-server\.options$`), "give options in node.jvm.options"},
	{regexp.MustCompile(`^jolokia\.properties$`), "JMX is for the agent and for commands inside the pod"},
}

// WithGiven puts the user's own files over those of the image. One that Helenus renders itself is
// refused.
func WithGiven(base, given Files) (Files, error) {
	out := maps.Clone(base)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		for _, r := range rendered {
			if r.name.MatchString(name) {
				return nil, fmt.Errorf("node.configFiles: the ConfigMap has %s, which Helenus renders itself: take "+
					"it out; %s", name, r.instead)
			}
		}
		out[name] = given[name]
	}
	return out, nil
}
