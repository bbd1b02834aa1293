package cassandra

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"helenus.io/helenus/internal/core/ring"
)

// Replication strategies by their short names.
const (
	NetworkTopologyStrategy = string(ring.NetworkTopologyStrategy)
	SimpleStrategy          = string(ring.SimpleStrategy)
	LocalStrategy           = string(ring.LocalStrategy)
	EverywhereStrategy      = string(ring.EverywhereStrategy)
)

// strategyPackage is the package that Cassandra leaves out when it prints its own strategies to an
// administrator.
const strategyPackage = "org.apache.cassandra.locator."

// Keyspace is the name of a keyspace and how it is replicated.
type Keyspace struct {
	Name        string
	Replication Replication
}

// Replication is how a keyspace is replicated.
type Replication struct {
	// Strategy is the class; Cassandra's own are without their package.
	Strategy string
	// Options are replicas by datacenter for NetworkTopologyStrategy, and "replication_factor" for
	// SimpleStrategy. A value is a number, or "3/1" with one transient replica among three.
	Options map[string]string
}

// PerDatacenter is NetworkTopologyStrategy with so many replicas in each datacenter. A datacenter
// with none is left out.
func PerDatacenter(replicas map[string]int) Replication {
	options := make(map[string]string, len(replicas))
	for datacenter, count := range replicas {
		if count != 0 {
			options[datacenter] = strconv.Itoa(count)
		}
	}
	return Replication{Strategy: NetworkTopologyStrategy, Options: options}
}

// Raised is the replication with at least so many replicas in each datacenter. What it has more, or
// in others, stays: whoever put it there relies on it. Only NetworkTopologyStrategy can be raised,
// since any other moves the replicas that are there; fromSimple is for keyspaces of which that is
// known and wanted, and takes SimpleStrategy for none.
func (r Replication) Raised(least map[string]int, fromSimple bool) (Replication, error) {
	switch {
	case r.Strategy == NetworkTopologyStrategy:
	case r.Strategy == SimpleStrategy && fromSimple:
		return PerDatacenter(least), nil
	default:
		return Replication{}, fmt.Errorf("it is on %s: replicas can be added datacenter by datacenter only on %s, to "+
			"which the user must alter it, and repair it", r, NetworkTopologyStrategy)
	}
	raised := Replication{Strategy: r.Strategy, Options: maps.Clone(r.Options)}
	for datacenter, count := range least {
		text, there := r.Options[datacenter]
		present := 0
		if there {
			var err error
			if present, err = strconv.Atoi(text); err != nil {
				return Replication{}, fmt.Errorf("it has %s replicas in datacenter %s, which is no whole number: it "+
					"is not changed", text, datacenter)
			}
		}
		if count > present {
			raised.Options[datacenter] = strconv.Itoa(count)
		}
	}
	return raised, nil
}

// Exactly is the replication with exactly so many replicas in each of the datacenters. What it has
// in others stays. FromSimple is that of Raised.
func (r Replication) Exactly(replicas map[string]int, fromSimple bool) (Replication, error) {
	exact, err := r.Raised(replicas, fromSimple)
	if err != nil {
		return Replication{}, err
	}
	for datacenter, count := range replicas {
		exact.Options[datacenter] = strconv.Itoa(count)
		if count == 0 {
			delete(exact.Options, datacenter)
		}
	}
	if n, err := exact.Replicas(); err != nil || n == 0 {
		return Replication{}, fmt.Errorf("it is on %s, and would have no replicas left", r)
	}
	return exact, nil
}

// Equal says whether both mean the same to Cassandra.
func (r Replication) Equal(other Replication) bool {
	return r.Strategy == other.Strategy && maps.Equal(r.Options, other.Options)
}

// String is the form in which Cassandra prints it to an administrator, with the options in order.
func (r Replication) String() string {
	pairs := make([]string, 0, len(r.Options))
	for _, option := range slices.Sorted(maps.Keys(r.Options)) {
		pairs = append(pairs, option+"="+r.Options[option])
	}
	return r.Strategy + " {" + strings.Join(pairs, ", ") + "}"
}

// ParseReplication reads the text of StorageService.getKeyspaceReplicationInfo:
// "NetworkTopologyStrategy {dc2=2, dc1=3}".
func ParseReplication(text string) (Replication, error) {
	class, options, err := ring.SplitReplication(text)
	if err != nil {
		return Replication{}, err
	}
	return Replication{Strategy: strings.TrimPrefix(class, strategyPackage), Options: options}, nil
}

// ReplicationFromSchema reads the map of system_schema.keyspaces: "class" is the full class, the
// rest are options.
func ReplicationFromSchema(row map[string]string) (Replication, error) {
	class := row["class"]
	if class == "" {
		return Replication{}, fmt.Errorf("parse replication %v: no class", row)
	}
	r := Replication{Strategy: strings.TrimPrefix(class, strategyPackage), Options: map[string]string{}}
	for name, value := range row {
		if name != "class" {
			r.Options[name] = value
		}
	}
	return r, nil
}

// Replicas is the number of copies of each row, transient ones included; 0 for a strategy for which
// no number is known. One copy is what LocalStrategy keeps.
func (r Replication) Replicas() (int, error) {
	switch r.Strategy {
	case LocalStrategy:
		return 1, nil
	case NetworkTopologyStrategy, SimpleStrategy:
	default:
		return 0, nil
	}
	total := 0
	for name, value := range r.Options {
		all, _, _ := strings.Cut(value, "/")
		count, err := strconv.Atoi(all)
		if err != nil || count < 0 {
			return 0, fmt.Errorf("replication %s: option %s is %q, not a number of replicas", r, name, value)
		}
		total += count
	}
	return total, nil
}
