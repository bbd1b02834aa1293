package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/core/facts"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/jolokia"
)

// schemaChecks are about keyspaces and what the ring agrees on.
var schemaChecks = []Check{
	{Name: "the schema holds the replicated system keyspaces", Run: func(t *testing.T, s *Subject) {
		schema, err := s.Node.Schema(s.Context)
		if err != nil {
			t.Fatal(err)
		}
		names := make([]string, 0, len(schema.Keyspaces))
		for _, keyspace := range schema.Keyspaces {
			names = append(names, keyspace.Name)
			if replicas, err := keyspace.Replication.Replicas(); err != nil || replicas < 1 ||
				keyspace.Replication.Strategy == cassandra.LocalStrategy {
				t.Errorf("keyspace %s has replication %s, error %v", keyspace.Name, keyspace.Replication, err)
			}
		}
		for _, name := range []string{"system_auth", "system_distributed", "system_traces"} {
			if !slices.Contains(names, name) {
				t.Errorf("keyspace %s is not among %v", name, names)
			}
		}
		if schema.Version != s.view(t).SchemaVersion {
			t.Errorf("schema version is %s, in the view %s", schema.Version, s.View.SchemaVersion)
		}
	}},
	{Name: "every live member has a schema version, the node its own", Run: func(t *testing.T, s *Subject) {
		versions, err := s.Node.SchemaVersions(s.Context)
		if err != nil {
			t.Fatal(err)
		}
		answered := map[string]int{}
		for version, endpoints := range versions.Versions {
			for _, endpoint := range endpoints {
				answered[endpoint.String()]++
				if endpoint == s.self(t) && version != s.view(t).SchemaVersion {
					t.Errorf("the node is listed under version %s", version)
				}
			}
		}
		for endpoint := range s.View.HostIDs {
			if slices.Contains(s.View.Live, endpoint) && answered[endpoint.String()] != 1 {
				t.Errorf("live member %s is listed under %d versions", endpoint, answered[endpoint.String()])
			}
		}
	}},
	{Name: "no keyspace has pending ranges", Run: func(t *testing.T, s *Subject) {
		pending, err := s.Node.PendingRanges(s.Context, []string{"system_auth", "system_distributed", "system_traces"})
		if err != nil || len(pending) != 0 {
			t.Errorf("pending ranges are %+v, error %v", pending, err)
		}
	}},
	{Name: "nothing is streamed", Run: func(t *testing.T, s *Subject) {
		if streams, err := s.Node.Streams(s.Context); err != nil || streams != (facts.Transfer{}) {
			t.Errorf("streams are %+v, error %v", streams, err)
		}
	}},
}

// refusalChecks hold the node to refuse what cannot be, as an exception and without an effect.
var refusalChecks = []Check{
	{Name: "rebuild from an unknown datacenter is refused", Run: func(t *testing.T, s *Subject) {
		wantException(t, s.Node.Rebuild(s.Context, "no_such_datacenter", ""))
	}},
	{Name: "rebuild of an unknown keyspace is refused", Run: func(t *testing.T, s *Subject) {
		wantAssertion(t, s.Node.Rebuild(s.Context, s.gossipOfSelf(t, s.View).Datacenter, noSuchKeyspace))
	}},
	{Name: "cleanup of an unknown keyspace is refused", Run: func(t *testing.T, s *Subject) {
		wantException(t, s.Node.Cleanup(s.Context, 1, noSuchKeyspace))
	}},
	{Name: "cleanup of an unknown table is refused", Run: func(t *testing.T, s *Subject) {
		wantException(t, s.Node.Cleanup(s.Context, 1, "system_traces", "no_such_table"))
	}},
	{Name: "repair of an unknown keyspace is refused", Run: func(t *testing.T, s *Subject) {
		_, err := s.Node.StartRepair(s.Context, noSuchKeyspace, cassandra.RepairOptions{})
		wantAssertion(t, err)
	}},
	{Name: "a repair that was never started is unknown", Run: func(t *testing.T, s *Subject) {
		const never = 1 << 30
		if status, err := s.Node.RepairStatus(s.Context, never); err != nil || status.State != cassandra.RepairUnknown {
			t.Errorf("status is %+v, error %v", status, err)
		}
	}},
}

// wantAssertion is wantException where Cassandra asserts. With assertions on, as in the image's JVM
// options, Jolokia answers the AssertionError in the place of the whole bulk.
func wantAssertion(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, jolokia.ErrProtocol) &&
		strings.Contains(err.Error(), "java.lang.AssertionError: Unknown keyspace "+noSuchKeyspace) {
		return
	}
	wantException(t, err)
}

// wantException fails the check if the node did not refuse with an exception.
func wantException(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, jolokia.ErrException) {
		t.Errorf("error is %v, want a Java exception", err)
	}
}
