package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// Problem is something the user must change.
type Problem struct {
	// Field of the spec below node: cassandraYaml.concurrent_reads.
	Field string
	// Message says what is wrong with it, what is allowed and what to do.
	Message string
}

func (p Problem) String() string { return p.Field + ": " + p.Message }

// Problems of a configuration, sorted by field.
type Problems []Problem

// Validate says everything that is wrong with the effective input of the user for a node, nil if
// nothing is. The memory limit is that of the Cassandra container in bytes, 0 if there is none.
//
// It is for the operator, before anything is written or touched. Rendering does not ask it.
func Validate(configuration *v1alpha1.NodeConfiguration, memoryLimit int64) Problems {
	var problems Problems
	table, err := settings.For(configuration.Version)
	if err != nil {
		problems = append(problems, Problem{"version", err.Error()})
	} else {
		problems = append(problems, validateSettings(configuration, table)...)
	}
	problems = append(problems, validateJVM(configuration, memoryLimit)...)
	problems = append(problems, validateEnvironment(configuration.Environment)...)
	if jvm := configuration.JVM; jvm != nil && len(jvm.ClassPath) > 0 {
		for _, v := range configuration.Environment {
			if v.Name == extraClassPath {
				problems = append(problems, Problem{"jvm.classPath",
					"is set beside environment[" + extraClassPath + "], and both mean the same: keep jvm.classPath"})
			}
		}
	}
	sort.SliceStable(problems, func(i, j int) bool { return problems[i].Field < problems[j].Field })
	return problems
}

func validateSettings(c *v1alpha1.NodeConfiguration, table *settings.Table) Problems {
	var problems Problems
	for _, name := range slices.Sorted(maps.Keys(c.CassandraYaml)) {
		value := c.CassandraYaml[name]
		if value.IsNull() {
			continue
		}
		field := "cassandraYaml." + name
		setting := table.Lookup(name)
		if instead, owned := ownedSetting(table.Present(name)); owned {
			problems = append(problems, Problem{field, "is set by Helenus: " + instead})
			continue
		}
		if setting == nil {
			problems = append(problems, Problem{field, unknownSetting(name, c.Version, table)})
			continue
		}
		if known, why := setting.KnownIn(c.Version); !known {
			problems = append(problems, Problem{field, fmt.Sprintf("is not known to Cassandra %s: %s", c.Version, why)})
			continue
		}
		for _, problem := range setting.Check(value.Raw) {
			problems = append(problems, Problem{field + problem.Path, problem.Message})
		}
		if other := otherNameOf(setting, c.CassandraYaml, table); other != "" {
			problems = append(problems, Problem{field,
				fmt.Sprintf("is the same setting as %s under its old name; Cassandra accepts only one of them: keep %s",
					other, setting.Present())})
		}
	}
	return problems
}

// otherNameOf returns the present name, or another old one, under which a setting with an old name
// is set too; "" if there is none. For the present name it returns nothing, so that a pair is
// reported once.
func otherNameOf(setting *settings.Setting, user v1alpha1.Settings, table *settings.Table) string {
	if setting.ReplacedBy == "" {
		return ""
	}
	for _, other := range table.Names(setting.Name) {
		value, set := user[other]
		if set && !value.IsNull() && (other == setting.Present() || other < setting.Name) {
			return other
		}
	}
	return ""
}

// longGone are settings of Cassandra 3.11 and 4.0 that people still have in their files, with what
// took their place.
var longGone = map[string]string{
	"commitlog_sync_batch_window_in_ms":                "removed in 5.0",
	"commitlog_periodic_queue_size":                    "removed in 5.0",
	"concurrent_replicates":                            "removed in 5.0",
	"native_transport_max_negotiable_protocol_version": "removed in 5.0",
	"start_rpc":                                "removed in 4.0 with Thrift",
	"rpc_port":                                 "removed in 4.0 with Thrift",
	"rpc_server_type":                          "removed in 4.0 with Thrift",
	"rpc_min_threads":                          "removed in 4.0 with Thrift",
	"rpc_max_threads":                          "removed in 4.0 with Thrift",
	"rpc_send_buff_size_in_bytes":              "removed in 4.0 with Thrift",
	"rpc_recv_buff_size_in_bytes":              "removed in 4.0 with Thrift",
	"rpc_listen_backlog":                       "removed in 4.0 with Thrift",
	"thrift_framed_transport_size_in_mb":       "removed in 4.0 with Thrift",
	"thrift_max_message_length_in_mb":          "removed in 4.0 with Thrift",
	"thrift_prepared_statements_cache_size_mb": "removed in 4.0 with Thrift",
	"request_scheduler":                        "removed in 4.0",
	"request_scheduler_id":                     "removed in 4.0",
	"request_scheduler_options":                "removed in 4.0",
	"encryption_options":                       "removed in 4.0: server_encryption_options, which is set by Helenus",
	"index_interval": "removed in 4.0: a property of each table (min_index_interval, " +
		"max_index_interval)",
	"streaming_socket_timeout_in_ms": "removed in 4.0: use streaming_keep_alive_period",
}

// unknownSetting explains why a key is refused: a line of Cassandra that has it, what became of it,
// or which one may be meant.
func unknownSetting(name, version string, table *settings.Table) string {
	message := "is not known to Cassandra " + version
	if strings.Contains(name, ".") {
		return message + ": write nested settings as a mapping, not with dots"
	}
	if fate, gone := longGone[name]; gone {
		return message + ": " + fate
	}
	if lines := table.Elsewhere(name); len(lines) > 0 {
		return fmt.Sprintf("%s: only Cassandra %s knows it", message, strings.Join(lines, " and "))
	}
	if near := table.Nearest(name); near != "" {
		if present := table.Present(near); present != near {
			return fmt.Sprintf("%s; did you mean %s (the old name of %s)?", message, near, present)
		}
		return fmt.Sprintf("%s; did you mean %s?", message, near)
	}
	return message
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func validateEnvironment(environment []v1alpha1.EnvironmentVariable) Problems {
	var problems Problems
	for _, v := range environment {
		field := fmt.Sprintf("environment[%s]", v.Name)
		if instead, owned := ownedVariable(v.Name); owned {
			problems = append(problems, Problem{field, "is set by Helenus: " + instead})
			continue
		}
		if !variableName.MatchString(v.Name) {
			problems = append(problems, Problem{field,
				"is no name of a variable: letters, digits and underscores, no digit first"})
		}
		if strings.ContainsRune(v.Value, 0) {
			problems = append(problems, Problem{field, "the value contains a NUL character"})
		}
	}
	return problems
}
