package ring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Strategy is the simple class name of a replication strategy.
type Strategy string

// The strategies that this package can place.
const (
	// NetworkTopologyStrategy places a number of replicas in each datacenter,
	// on different racks as far as there are racks.
	NetworkTopologyStrategy Strategy = "NetworkTopologyStrategy"
	// SimpleStrategy places replicas on the next nodes of the ring, whatever
	// their rack and datacenter.
	SimpleStrategy Strategy = "SimpleStrategy"
	// LocalStrategy keeps on each node what that node writes for itself; nothing
	// is replicated (the keyspaces system and system_schema).
	LocalStrategy Strategy = "LocalStrategy"
	// EverywhereStrategy places a replica on every node. Apache Cassandra has no
	// such strategy; derived servers do.
	EverywhereStrategy Strategy = "EverywhereStrategy"
)

const factorOption = "replication_factor"

// ErrTransientReplication is in the error for a replication factor such as "3/1". Transient
// replicas hold only unrepaired data, so none of this package's answers would be right for them.
var ErrTransientReplication = errors.New("transient replication is not supported")

// Replication says how a keyspace is replicated. The zero value is no valid
// replication; make one with the functions below.
type Replication struct {
	strategy Strategy
	// factors are those of NetworkTopologyStrategy, by datacenter, none of them 0.
	factors []datacenterFactor
	// factor is that of SimpleStrategy.
	factor int
}

type datacenterFactor struct {
	datacenter string
	factor     int
}

// NetworkTopology is NetworkTopologyStrategy with a replication factor for each
// datacenter. A datacenter with the factor 0 counts as not named, as Cassandra
// has it (NetworkTopologyStrategy#prepareOptions).
func NetworkTopology(factors map[string]int) (Replication, error) {
	replication := Replication{strategy: NetworkTopologyStrategy}
	for _, datacenter := range slices.Sorted(maps.Keys(factors)) {
		factor := factors[datacenter]
		switch {
		case datacenter == "":
			return Replication{}, errors.New("replication factor for a datacenter without a name")
		case strings.EqualFold(datacenter, factorOption):
			return Replication{}, fmt.Errorf("%s is no option of a %s that is in use: want datacenters", factorOption,
				NetworkTopologyStrategy)
		case factor < 0:
			return Replication{}, fmt.Errorf("replication factor %d of datacenter %s: want 0 or more", factor,
				datacenter)
		case factor > 0:
			replication.factors = append(replication.factors, datacenterFactor{datacenter, factor})
		}
	}
	return replication, nil
}

// Simple is SimpleStrategy with a replication factor over all datacenters.
func Simple(factor int) (Replication, error) {
	if factor < 0 {
		return Replication{}, fmt.Errorf("replication factor %d: want 0 or more", factor)
	}
	return Replication{strategy: SimpleStrategy, factor: factor}, nil
}

// Local is LocalStrategy.
func Local() Replication { return Replication{strategy: LocalStrategy} }

// Everywhere is EverywhereStrategy.
func Everywhere() Replication { return Replication{strategy: EverywhereStrategy} }

// ParseReplication reads what the operation getKeyspaceReplicationInfo of StorageService answers,
// for example "NetworkTopologyStrategy {dc2=2, dc1=3}" (StorageService#getKeyspaceReplicationInfo:
// the simple class name and Java's text of the option map). A name that itself holds ", " cannot be
// told from two options and is refused as faulty.
func ParseReplication(text string) (Replication, error) {
	class, options, err := SplitReplication(text)
	if err != nil {
		return Replication{}, err
	}
	replication, err := OfOptions(class, options)
	if err != nil {
		return Replication{}, fmt.Errorf("parse replication %q: %w", text, err)
	}
	return replication, nil
}

// SplitReplication reads the same text for any strategy: its class and its options.
func SplitReplication(text string) (class string, options map[string]string, err error) {
	class, rest, ok := strings.Cut(text, " {")
	inner, closed := strings.CutSuffix(rest, "}")
	if !ok || !closed || class == "" {
		return "", nil, fmt.Errorf("parse replication %q: want a class name and options in braces, such as "+
			`"NetworkTopologyStrategy {dc1=3}"`, text)
	}
	options = map[string]string{}
	if inner == "" {
		return class, options, nil
	}
	for option := range strings.SplitSeq(inner, ", ") {
		at := strings.LastIndexByte(option, '=')
		if at <= 0 || at == len(option)-1 {
			return "", nil, fmt.Errorf("parse replication %q: option %q: want name=value", text, option)
		}
		if _, twice := options[option[:at]]; twice {
			return "", nil, fmt.Errorf("parse replication %q: option %q is there twice", text, option[:at])
		}
		options[option[:at]] = option[at+1:]
	}
	return class, options, nil
}

// OfOptions makes a replication of a class and its options, as SplitReplication gives them.
func OfOptions(class string, options map[string]string) (Replication, error) {
	switch Strategy(class[strings.LastIndexByte(class, '.')+1:]) {
	case NetworkTopologyStrategy:
		factors := map[string]int{}
		for _, datacenter := range slices.Sorted(maps.Keys(options)) {
			factor, err := parseFactor(options[datacenter])
			if err != nil {
				return Replication{}, fmt.Errorf("replication factor of %s: %w", datacenter, err)
			}
			factors[datacenter] = factor
		}
		return NetworkTopology(factors)
	case SimpleStrategy:
		text, ok := options[factorOption]
		if !ok {
			return Replication{}, fmt.Errorf("%s has no option %s", SimpleStrategy, factorOption)
		}
		factor, err := parseFactor(text)
		if err != nil {
			return Replication{}, fmt.Errorf("option %s: %w", factorOption, err)
		}
		return Simple(factor)
	case LocalStrategy:
		return Local(), nil
	case EverywhereStrategy:
		return Everywhere(), nil
	}
	return Replication{}, fmt.Errorf("replication strategy %q is not known: want %s, %s, %s or %s",
		class, NetworkTopologyStrategy, SimpleStrategy, LocalStrategy, EverywhereStrategy)
}

// parseFactor reads "3"; also "3/0", which Cassandra takes for the same
// (ReplicationFactor#fromString).
func parseFactor(text string) (int, error) {
	all, transient, _ := strings.Cut(text, "/")
	factor, err := strconv.ParseInt(all, 10, 32)
	if err != nil || factor < 0 {
		return 0, fmt.Errorf("%q: want an integer of 0 or more", text)
	}
	if transient == "" && all == text {
		return int(factor), nil
	}
	count, err := strconv.ParseInt(transient, 10, 32)
	if err != nil || count < 0 {
		return 0, fmt.Errorf("%q: want an integer of 0 or more", text)
	}
	if count > 0 {
		return 0, fmt.Errorf("%q: %w", text, ErrTransientReplication)
	}
	return int(factor), nil
}

// Strategy is the replication's strategy; "" for the zero value.
func (r Replication) Strategy() Strategy { return r.strategy }

// Factor is the number of replicas that the replication asks for in a datacenter. It is 0 unless
// the strategy is NetworkTopologyStrategy: the others do not look at datacenters.
func (r Replication) Factor(datacenter string) int {
	i, found := slices.BinarySearchFunc(r.factors, datacenter, func(f datacenterFactor, name string) int {
		return cmp.Compare(f.datacenter, name)
	})
	if !found {
		return 0
	}
	return r.factors[i].factor
}

// Datacenters are the datacenters that a NetworkTopologyStrategy names, sorted;
// some of them may have no members.
func (r Replication) Datacenters() []string {
	names := make([]string, len(r.factors))
	for i, f := range r.factors {
		names[i] = f.datacenter
	}
	return names
}

// TotalFactor is the number of replicas that the replication asks for in all, from which Cassandra
// counts QUORUM and ALL (ConsistencyLevel#quorumFor): for NetworkTopologyStrategy the sum over all
// named datacenters, those without members included. It is 0 for the strategies without a factor.
func (r Replication) TotalFactor() int {
	total := r.factor
	for _, f := range r.factors {
		total += f.factor
	}
	return total
}

// String is the replication in the form that ParseReplication reads, options
// sorted. Equal replications have equal strings.
func (r Replication) String() string {
	var options []string
	if r.strategy == SimpleStrategy {
		options = append(options, factorOption+"="+strconv.Itoa(r.factor))
	}
	for _, f := range r.factors {
		options = append(options, f.datacenter+"="+strconv.Itoa(f.factor))
	}
	return string(r.strategy) + " {" + strings.Join(options, ", ") + "}"
}

// SystemKeyspaces are the names of the system keyspaces that are replicated, sorted
// (SchemaConstants.REPLICATED_SYSTEM_KEYSPACE_NAMES). They begin as SimpleStrategy and belong on
// NetworkTopologyStrategy, with replicas in every datacenter that serves clients.
func SystemKeyspaces() []string {
	return []string{"system_auth", "system_distributed", "system_traces"}
}
