//go:build cassandra

package cassandra_test

import (
	"os"
	"testing"

	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/test/conformance"
)

// realClient reaches the node that the environment names.
func realClient(t *testing.T) *jolokia.Client {
	t.Helper()
	url := os.Getenv("HELENUS_JOLOKIA_URL")
	if url == "" {
		t.Skip("HELENUS_JOLOKIA_URL is not set: no node to check")
	}
	client, err := jolokia.New(jolokia.Config{URL: url, User: os.Getenv("HELENUS_JOLOKIA_USER"),
		Password: os.Getenv("HELENUS_JOLOKIA_PASSWORD")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// TestRealNode runs the list of checks on a real node; with HELENUS_DRAIN=1 also those after which
// it must be started again. The tests of this package and of package cql change the same node, so
// they run one package after the other: go test -p 1 -tags cassandra -run Real
// ./internal/cassandra/...
func TestRealNode(t *testing.T) {
	conformance.Run(t, conformance.Target{Client: realClient(t), Traffic: true,
		Drain: os.Getenv("HELENUS_DRAIN") != ""})
}
