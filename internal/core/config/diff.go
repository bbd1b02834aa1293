package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config/settings"
)

// Changes between two configurations of a node.
type Changes struct {
	// Hot are settings, by their present names, that Cassandra takes over at run time (HotWrites).
	// The files are rendered again all the same.
	Hot []string
	// Restart are fields whose change needs a restart of the JVM: cassandraYaml.concurrent_reads,
	// jvm.heap, environment[X].
	Restart []string
}

// Diff says what has to happen to a JVM that was started with one configuration and is to have
// another. Two ways to write the same value are no change: an old name with its number and the
// present name with the unit, 60s and 1m.
func Diff(old, wanted *v1alpha1.NodeConfiguration) (Changes, error) {
	table, err := settings.For(wanted.Version)
	if err != nil {
		return Changes{}, fmt.Errorf("compare configurations: %w", err)
	}
	before, err := canonicalOf(old)
	if err != nil {
		return Changes{}, fmt.Errorf("compare configurations: %w", err)
	}
	after, err := canonicalOf(wanted)
	if err != nil {
		return Changes{}, fmt.Errorf("compare configurations: %w", err)
	}
	var changes Changes
	changes.compareSettings(before, after, table)
	for _, field := range []struct {
		name    string
		differs bool
	}{
		{"revision", before.Revision != after.Revision},
		{"version", old.Version != wanted.Version},
		{"clusterName", old.ClusterName != wanted.ClusterName},
		{"datacenterName", old.DatacenterName != wanted.DatacenterName},
		{"rackName", old.RackName != wanted.RackName},
		{"numTokens", old.NumTokens != wanted.NumTokens},
		{"authentication", (old.Authentication == v1alpha1.AuthenticationPassword) !=
			(wanted.Authentication == v1alpha1.AuthenticationPassword)},
		{"jvm.heap", before.Heap != after.Heap},
		{"jvm.options", !slices.Equal(before.Options, after.Options)},
		{"jvm.gcLog", before.GCLog != after.GCLog},
		{"jvm.classPath", !slices.Equal(before.ClassPath, after.ClassPath)},
		{"encryption", old.Encryption.OrNotEncrypted() != wanted.Encryption.OrNotEncrypted()},
		{"restartedAt", before.RestartedAt != after.RestartedAt},
	} {
		if field.differs {
			changes.Restart = append(changes.Restart, field.name)
		}
	}
	for _, name := range unionOf(before.Environment, after.Environment) {
		a, hadIt := before.Environment[name]
		b, hasIt := after.Environment[name]
		if a != b || hadIt != hasIt {
			changes.Restart = append(changes.Restart, fmt.Sprintf("environment[%s]", name))
		}
	}
	return changes, nil
}

// named is a value with the name under which it is set.
type named struct {
	name string
	raw  []byte
}

func (c *Changes) compareSettings(before, after *canonical, table *settings.Table) {
	a, b := byPresentName(before, table), byPresentName(after, table)
	for _, name := range unionOf(a, b) {
		from, had := a[name]
		to, has := b[name]
		if had == has && sameSetting(from, to, table) {
			continue
		}
		var value *v1alpha1.Value
		if has {
			value = &v1alpha1.Value{Raw: to.raw}
		}
		if isHot(name, value, to.name, table) {
			c.Hot = append(c.Hot, name)
		} else {
			c.Restart = append(c.Restart, "cassandraYaml."+name)
		}
	}
}

func byPresentName(c *canonical, table *settings.Table) map[string]named {
	out := map[string]named{}
	for name, raw := range c.CassandraYaml {
		out[table.Present(name)] = named{name, raw}
	}
	return out
}

func sameSetting(a, b named, table *settings.Table) bool {
	if a.name == b.name && bytes.Equal(a.raw, b.raw) {
		return true
	}
	first, second := table.Lookup(a.name), table.Lookup(b.name)
	if first == nil || second == nil {
		return false
	}
	x, known := first.Quantity(a.raw)
	y, alsoKnown := second.Quantity(b.raw)
	if known && alsoKnown {
		return x == y
	}
	renamedOnly := func(s *settings.Setting) bool { return s.Converter == "" || s.Converter == "IDENTITY" }
	return renamedOnly(first) && renamedOnly(second) && bytes.Equal(a.raw, b.raw)
}

func unionOf[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
