package config

import (
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

// ownedSetting says whether Helenus owns a key of cassandra.yaml, and what to do instead. An
// admission policy refuses the same keys.
func ownedSetting(name string) (instead string, owned bool) {
	at := slices.IndexFunc(v1alpha1.OwnedSettings, func(o v1alpha1.OwnedSetting) bool { return o.Key == name })
	if at < 0 {
		return "", false
	}
	return v1alpha1.OwnedSettings[at].Instead, true
}

// startOptions are options that change how the JVM is started rather than how it runs, beside those
// that the API lists.
var startOptions = []v1alpha1.OwnedName{
	{Instead: "set jvm.heap", Names: []string{
		"-XX:MinHeapSize", "-XX:MaxRAM", "-XX:InitialRAMFraction", "-XX:MinRAMFraction", "-XX:MaxRAMFraction",
	}},
	{Instead: "the class path is the image's; add jars with jvm.classPath", Names: []string{
		"-cp", "-classpath", "--class-path", "-jar",
	}},
	{Instead: "Cassandra is what is started",
		Names: []string{"-version", "--version", "-showversion", "-help", "--help", "-h", "-XshowSettings"}},
	{Instead: "options are listed here, one by one", Names: []string{"@"}},
	{Instead: "a node's address is that of its pod",
		Names: []string{"-Djava.net.preferIPv4Stack", "-Djava.net.preferIPv6Addresses"}},
	{Instead: "directories follow from node.storage", Names: []string{"-Djava.io.tmpdir"}},
	{Instead: "each setting of cassandra.yaml is given once, under one name", Names: []string{
		"-Dcassandra.allow_duplicate_config_keys", "-Dcassandra.allow_new_old_config_keys",
	}},
	{Instead: "whether and how a node joins is decided by its ticket",
		Names: []string{"-Dcassandra.schema_delay_ms", "-Dcassandra.skip_schema_check"}},
	{Instead: "Helenus sets the replication of system keyspaces", Names: []string{
		"-Dcassandra.system_distributed.default_rf", "-Dcassandra.system_traces.default_rf",
	}},
}

// ownedOption says whether Helenus owns a JVM option, and what to do instead.
func ownedOption(option string) (instead string, owned bool) {
	for _, groups := range [][]v1alpha1.OwnedName{v1alpha1.OwnedJVMOptions, startOptions} {
		for _, group := range groups {
			if slices.ContainsFunc(group.Names, func(beginning string) bool { return begins(option, beginning) }) {
				return group.Instead, true
			}
		}
	}
	return "", false
}

// begins says whether an option is the one that a list names or of the family that it begins: -cp,
// -cp=x, but not -cpuset. Names that end in a punctuation mark, and those of Cassandra's and Java's
// properties, are beginnings as they stand.
func begins(option, name string) bool {
	rest, found := strings.CutPrefix(option, name)
	if !found {
		return false
	}
	isWord := strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "-D") && !strings.HasPrefix(name, "-X")
	return !isWord || rest == "" || strings.HasSuffix(name, ":") || rest[0] == '=' || rest[0] == ':'
}

// ownedVariable says whether Helenus owns an environment variable, and what to do instead.
func ownedVariable(name string) (instead string, owned bool) {
	for _, group := range v1alpha1.OwnedVariables {
		if slices.Contains(group.Names, name) {
			return group.Instead, true
		}
	}
	return "", false
}
