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
	document.set("seed_provider", seedProviderNode(seeds))
	out, err := document.bytes()
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
	return yamlOf([]any{map[string]any{
		"class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
		"parameters": []any{map[string]any{"seeds": strings.Join(list, ",")}},
	}})
}
