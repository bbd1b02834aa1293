package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/config"
	table "helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/ring"
)

// settings are what a JVM reads at its start: cassandra.yaml, the properties of the rack, and Java
// properties, which win.
type settings struct {
	yaml           *yamlFile
	properties     map[string]string
	clusterName    string
	datacenter     string
	rack           string
	broadcast      netip.Addr
	seeds          []netip.Addr
	numTokens      int
	initialTokens  []ring.Token
	autoBootstrap  bool
	startNative    bool
	ringDelay      time.Duration
	broadcastEvery time.Duration
	settle         time.Duration
	blockForPeers  time.Duration
	user, password string
	encryption     encryption
	// assertions says that Java's are on.
	assertions bool
}

// optionFiles are what Java is started with.
var optionFiles = []string{config.ServerOptions, "jvm11-server.options", "jvm17-server.options"}

// noSuchOption is the only option of which the model says that Java does not know it.
const noSuchOption = "ThereIsNoSuchOption"

// UnknownOption is an option by which Java refuses to start; empty if there is none.
func UnknownOption(files config.Files) string {
	for _, name := range optionFiles {
		if strings.Contains(string(files[name]), "-XX:+"+noSuchOption) {
			return noSuchOption
		}
	}
	return ""
}

// readSettings reads the configuration as DatabaseDescriptor does, with its refusals.
func (n *Network) readSettings(release string, address netip.Addr, files config.Files, argv []string) (settings,
	*refusal) {
	s := settings{properties: javaProperties(files, argv)}
	if option := UnknownOption(files); option != "" {
		return s, &refusal{code: exitConfiguration, before: true,
			line: "Unrecognized VM option '" + option + "'\nError: Could not create the Java Virtual Machine."}
	}
	text, found := files[config.CassandraYAML]
	if !found {
		return s, configuration("Cannot locate cassandra.yaml")
	}
	var err error
	if s.yaml, err = n.parseYAML(text); err != nil {
		return s, configuration("Invalid yaml: cassandra.yaml: " + err.Error())
	}
	if unknown := unknownSettings(release, s.yaml); len(unknown) > 0 {
		return s, configuration(fmt.Sprintf("Invalid yaml. Please remove properties [%s] from your cassandra.yaml",
			strings.Join(unknown, ", ")))
	}
	s.encryption = s.yaml.encryption()
	n.encrypts = n.encrypts || s.encryption != (encryption{})
	s.clusterName = s.text("cluster_name", "Test Cluster")
	s.numTokens = int(s.number("num_tokens", 1))
	s.broadcast = address
	if text := s.text("broadcast_address", s.text("listen_address", "")); text != "" {
		if s.broadcast, err = netip.ParseAddr(text); err != nil {
			return s, configuration(fmt.Sprintf("Unknown listen_address '%s'", text))
		}
	}
	if s.seeds = s.yaml.seeds(); len(s.seeds) == 0 {
		return s, configuration("The seed provider lists no seeds.")
	}
	s.autoBootstrap = s.flag("cassandra.auto_bootstrap", s.text("auto_bootstrap", "true") == "true")
	s.startNative = s.flag("cassandra.start_native_transport", s.text("start_native_transport", "true") == "true")
	s.ringDelay = s.milliseconds("cassandra.ring_delay_ms", 30*time.Second)
	s.broadcastEvery = s.milliseconds("cassandra.broadcast_interval_ms", time.Minute)
	polls, err := strconv.Atoi(s.properties["cassandra.gossip_settle_poll_success_required"])
	if err != nil {
		polls = 3
	}
	s.settle = s.milliseconds("cassandra.gossip_settle_min_wait_ms", 5*time.Second) +
		time.Duration(polls)*s.milliseconds("cassandra.gossip_settle_interval_ms", time.Second)
	s.blockForPeers = time.Duration(s.number("block_for_peers_timeout_in_secs", 10)) * time.Second
	if refused := s.readTokens(); refused != nil {
		return s, refused
	}
	s.assertions = slices.Contains(strings.Fields(string(files[config.ServerOptions])), "-ea")
	rack := properties(files[config.RackProperties])
	s.datacenter, s.rack = rack["dc"], rack["rack"]
	if s.datacenter == "" || s.rack == "" {
		return s, configuration("DC or rack not found in snitch properties, check your configuration in: " +
			"cassandra-rackdc.properties")
	}
	jolokia := properties(files[config.JolokiaProperties])
	s.user, s.password = jolokia["user"], jolokia["password"]
	return s, nil
}

// readTokens reads the initial tokens, which the Java property gives before the file. Only those of
// the file are counted (seen on 5.0.6): a node that is given too few by the property joins with
// them, and its next start is refused.
func (s *settings) readTokens() *refusal {
	text, counted := s.properties["cassandra.initial_token"], false
	if text == "" {
		text, counted = s.text("initial_token", ""), true
	}
	if text == "" {
		return nil
	}
	var err error
	if s.initialTokens, err = parseTokens(text); err != nil {
		return configuration("Invalid initial_token: " + err.Error())
	}
	if counted && len(s.initialTokens) != s.numTokens {
		return configuration(fmt.Sprintf("The number of initial tokens (by initial_token) specified (%d) is "+
			"different from num_tokens value (%d)",
			len(s.initialTokens), s.numTokens))
	}
	return nil
}

func unknownSettings(release string, y *yamlFile) []string {
	known, err := table.For(release)
	if err != nil {
		return nil
	}
	var unknown []string
	for _, key := range y.keys {
		if known.Lookup(key) == nil {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

func (s *settings) text(key, otherwise string) string {
	if v, found := s.yaml.values[key]; found && v != "" {
		return v
	}
	return otherwise
}

func (s *settings) number(key string, otherwise int64) int64 {
	if v, err := strconv.ParseInt(s.text(key, ""), 10, 64); err == nil {
		return v
	}
	return otherwise
}

func (s *settings) flag(property string, otherwise bool) bool {
	if v, found := s.properties[property]; found {
		return v == "true"
	}
	return otherwise
}

func (s *settings) milliseconds(property string, otherwise time.Duration) time.Duration {
	if v, err := strconv.ParseInt(s.properties[property], 10, 64); err == nil {
		return time.Duration(v) * time.Millisecond
	}
	return otherwise
}

// javaProperties are the -D of the files of options and, over them, those of the command.
func javaProperties(files config.Files, argv []string) map[string]string {
	out := map[string]string{}
	for _, name := range optionFiles {
		for line := range strings.Lines(string(files[name])) {
			if option, found := strings.CutPrefix(strings.TrimSpace(line), "-D"); found {
				setProperty(out, option)
			}
		}
	}
	for i := 1; i < len(argv); i++ {
		option, found := strings.CutPrefix(argv[i], "-D")
		if found && option == "" && i+1 < len(argv) {
			i++
			option = argv[i]
		}
		if found {
			setProperty(out, option)
		}
	}
	return out
}

func setProperty(into map[string]string, option string) {
	name, value, _ := strings.Cut(option, "=")
	into[name] = value
}

// properties reads a Java properties file as far as Helenus writes such files.
func properties(text []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		out[strings.TrimSpace(name)] = strings.ReplaceAll(strings.TrimSpace(value), `\\`, `\`)
	}
	return out
}
