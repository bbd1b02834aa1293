package config

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
)

// Start is how bin/cassandra of the image is started.
type Start struct {
	// Arguments of bin/cassandra.
	Arguments []string
	// Environment is added to that of the container and overrides it.
	Environment []v1alpha1.EnvironmentVariable
}

// StartOf returns the start of a node. What a ticket needs are properties of this one start: they
// are in no file and in no hash, and a later start without them is a plain restart. For a member
// the ticket is nil.
//
// Every stream of ranges starts from zero, be it of a join, a replacement or a rebuild: 5.0 refuses
// to go on after an earlier one unless it is told what to do with what that has streamed, and 4.1
// would take it for complete in a join, without what was written since (RangeStreamer#fetchAsync,
// CASSANDRA-17679). A member needs it for its rebuilds.
//
// The heap is in the files of JVM options. MAX_HEAP_SIZE and HEAP_NEWSIZE are not set:
// cassandra-env.sh takes the files' word.
func StartOf(node Node, ticket *v1alpha1.JoinTicket) (Start, error) {
	node.normalize()
	properties, err := ticketProperties(&node, ticket)
	if err != nil {
		return Start{}, fmt.Errorf("start with ticket: %w", err)
	}
	// Every JVM starts closed to clients. The agent opens it when the node is NORMAL and its record
	// says so.
	properties = append(properties, "cassandra.reset_bootstrap_progress=true", "cassandra.start_native_transport=false")
	if node.Configuration.Authentication != "" {
		properties = append(properties, NoDefaultSuperuser)
	}
	start := Start{Arguments: []string{"-f"}}
	for _, p := range properties {
		start.Arguments = append(start.Arguments, "-D", p)
	}
	start.Environment = startEnvironment(&node)
	return start, nil
}

// NoDefaultSuperuser has Cassandra wait for ten years before it looks whether there is a superuser,
// and makes one with a password that everybody knows if there is none. It looks at every start.
const NoDefaultSuperuser = setupDelay + "=315360000000"

const setupDelay = "cassandra.superuser_setup_delay_ms"

// startEnvironment are the user's variables, sorted, and after them those that Helenus sets.
func startEnvironment(node *Node) []v1alpha1.EnvironmentVariable {
	ours := []v1alpha1.EnvironmentVariable{
		{Name: "CASSANDRA_CONF", Value: node.Directories.Configuration},
		{Name: "CASSANDRA_LOG_DIR", Value: node.Directories.Logs},
		{Name: "LOCAL_JMX", Value: "yes"},
	}
	if jvm := node.Configuration.JVM; jvm != nil && len(jvm.ClassPath) > 0 {
		ours = append(ours, v1alpha1.EnvironmentVariable{Name: extraClassPath, Value: classPath(jvm.ClassPath)})
	}
	var environment []v1alpha1.EnvironmentVariable
	for _, v := range node.Configuration.Environment {
		if !slices.ContainsFunc(ours, func(our v1alpha1.EnvironmentVariable) bool { return our.Name == v.Name }) {
			environment = append(environment, v)
		}
	}
	sort.SliceStable(environment, func(i, j int) bool { return environment[i].Name < environment[j].Name })
	return append(environment, ours...)
}

// extraClassPath is the variable whose value the start script adds to the class path.
const extraClassPath = "EXTRA_CLASSPATH"

// classPath is what java takes: it finds all jars of a directory by a star alone.
func classPath(jars []string) string {
	entries := make([]string, len(jars))
	for i, jar := range jars {
		entries[i] = jar
		if directory, all := strings.CutSuffix(jar, "/*.jar"); all {
			entries[i] = directory + "/*"
		}
	}
	return strings.Join(entries, ":")
}

// ticketProperties are the Java properties, name=value, with which a node joins.
func ticketProperties(node *Node, ticket *v1alpha1.JoinTicket) ([]string, error) {
	if ticket == nil {
		return nil, nil
	}
	if ticket.SystemAuthReplicationFactor != 0 && ticket.Mode != v1alpha1.JoinNew {
		return nil, fmt.Errorf("the replication factor of system_auth belongs to the mode New, not to %s", ticket.Mode)
	}
	if (ticket.Replace != nil) != (ticket.Mode == v1alpha1.JoinReplace) {
		return nil, fmt.Errorf("a replaced member belongs to the mode Replace, and only to it; the mode is %s",
			ticket.Mode)
	}
	switch ticket.Mode {
	case v1alpha1.JoinNew:
		if len(ticket.Tokens) == 0 {
			return nil, fmt.Errorf("the mode New needs tokens")
		}
		properties, err := tokenProperty(node, ticket.Tokens)
		if err != nil {
			return nil, err
		}
		properties = append(properties, "cassandra.auto_bootstrap=false")
		if ticket.SystemAuthReplicationFactor > 0 {
			properties = append(properties, fmt.Sprintf("cassandra.system_auth.default_rf=%d",
				ticket.SystemAuthReplicationFactor))
		}
		return properties, nil
	case v1alpha1.JoinBootstrap:
		return bootstrapProperties(node, ticket)
	case v1alpha1.JoinReplace:
		return replaceProperty(node, ticket)
	default:
		return nil, fmt.Errorf("mode %q is not known", ticket.Mode)
	}
}

// bootstrapProperties are those of a node that streams the data of its ranges.
func bootstrapProperties(node *Node, ticket *v1alpha1.JoinTicket) ([]string, error) {
	if len(ticket.Tokens) == 0 {
		return []string{"cassandra.auto_bootstrap=true"}, nil
	}
	tokens, err := tokenProperty(node, ticket.Tokens)
	return append(tokens, "cassandra.auto_bootstrap=true"), err
}

func replaceProperty(node *Node, ticket *v1alpha1.JoinTicket) ([]string, error) {
	if len(ticket.Tokens) > 0 {
		return nil, fmt.Errorf("the mode Replace takes the tokens of the replaced member; the ticket has tokens of " +
			"its own")
	}
	replaced, err := netip.ParseAddr(ticket.Replace.Address)
	if err != nil {
		return nil, fmt.Errorf("address of the replaced member: %w", err)
	}
	if replaced.Unmap() == node.Address {
		return nil, fmt.Errorf("the replaced member has the address of this pod, %s: a replacement needs another one",
			replaced)
	}
	return []string{"cassandra.auto_bootstrap=true",
		"cassandra.replace_address_first_boot=" + replaced.Unmap().String()}, nil
}

// tokenProperty checks that the tokens are as many as num_tokens, distinct, and of the range of
// Murmur3Partitioner: Cassandra gives up otherwise, or worse, takes one token away from another
// node without a word.
func tokenProperty(node *Node, tokens []string) ([]string, error) {
	if len(tokens) != int(node.Configuration.NumTokens) {
		return nil, fmt.Errorf("the ticket has %d tokens, the node %d (num_tokens)", len(tokens),
			node.Configuration.NumTokens)
	}
	seen := map[int64]bool{}
	for _, text := range tokens {
		token, ok := new(big.Int).SetString(text, 10)
		if !ok || !token.IsInt64() || token.String() != text {
			return nil, fmt.Errorf("%q is no token: want a whole number of 64 bits", text)
		}
		if seen[token.Int64()] {
			return nil, fmt.Errorf("token %s occurs twice", text)
		}
		seen[token.Int64()] = true
	}
	return []string{"cassandra.initial_token=" + strings.Join(tokens, ",")}, nil
}
