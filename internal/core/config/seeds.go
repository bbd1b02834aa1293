package config

import (
	"fmt"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"
)

// WithSeeds returns a rendered cassandra.yaml with other seeds and nothing else changed, for a JVM
// that runs: Cassandra reads the file again at every look at the seeds
// (locator/SimpleSeedProvider.java), and JMX reloadSeeds takes them over.
func WithSeeds(cassandraYAML []byte, seeds []netip.Addr) ([]byte, error) {
	if len(seeds) == 0 {
		return nil, fmt.Errorf("set seeds: none given")
	}
	document, err := parseDocument(cassandraYAML)
	if err != nil {
		return nil, fmt.Errorf("set seeds: %w", err)
	}
	var changes edits
	changes.set("seed_provider", seedProviderNode(seeds))
	out, err := document.apply(&changes)
	if err != nil {
		return nil, fmt.Errorf("set seeds: %w", err)
	}
	return out, nil
}

// seedProviderNode lists addresses, in the order given. An IPv6 address needs no brackets without a
// port.
func seedProviderNode(seeds []netip.Addr) *yaml.Node {
	list := make([]string, len(seeds))
	for i, seed := range seeds {
		list[i] = seed.String()
	}
	text := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.Join(list, ","),
		Style: yaml.DoubleQuotedStyle}
	parameters := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{
		{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{stringNode("seeds"), text}},
	}}
	provider := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		stringNode("class_name"), stringNode("org.apache.cassandra.locator.SimpleSeedProvider"),
		stringNode("parameters"), parameters,
	}}
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{provider}}
}
