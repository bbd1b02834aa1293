package cassandra

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/jolokia"
)

// Schema is the keyspaces of one schema version. It stays true for as long as a node reports this
// version, so it need not be read again until State.SchemaVersion differs.
type Schema struct {
	Version string
	// Keyspaces are those that are replicated by the ring (all but LocalStrategy), by name.
	Keyspaces []Keyspace
}

// schemaAttempts is how often Schema reads when a change comes between.
const schemaAttempts = 2

// Schema reads how every keyspace is replicated.
func (n *Node) Schema(ctx context.Context) (Schema, error) {
	for range schemaAttempts {
		schema, err := n.readSchema(ctx)
		if !errors.Is(err, ErrSchemaChanging) {
			return schema, err
		}
	}
	return Schema{}, ErrSchemaChanging
}

// readSchema reads the names, then each replication, and compares the version before and after.
func (n *Node) readSchema(ctx context.Context) (Schema, error) {
	var before struct {
		SchemaVersion             string
		NonLocalStrategyKeyspaces []string
	}
	if err := n.call(ctx, jolokia.Read(beanStorageService, "SchemaVersion", "NonLocalStrategyKeyspaces"),
		&before); err != nil {
		return Schema{}, fmt.Errorf("list keyspaces: %w", err)
	}
	names := slices.Sorted(slices.Values(before.NonLocalStrategyKeyspaces))
	requests := make([]jolokia.Request, 0, len(names)+1)
	for _, name := range names {
		requests = append(requests, jolokia.Exec(beanStorageService, "getKeyspaceReplicationInfo(java.lang.String)",
			name))
	}
	requests = append(requests, jolokia.Read(beanStorageService, "SchemaVersion"))
	answers, err := n.jmx.Do(ctx, requests...)
	if err != nil {
		return Schema{}, fmt.Errorf("read replication of keyspaces: %w", err)
	}
	var after struct{ SchemaVersion string }
	if err := answers[len(names)].Decode(&after); err != nil {
		return Schema{}, fmt.Errorf("read schema version: %w", err)
	}
	if after.SchemaVersion != before.SchemaVersion {
		return Schema{}, ErrSchemaChanging
	}
	schema := Schema{Version: after.SchemaVersion, Keyspaces: make([]Keyspace, 0, len(names))}
	for i, name := range names {
		var text string
		if err := answers[i].Decode(&text); err != nil {
			return Schema{}, fmt.Errorf("read replication of keyspace %s: %w", name, err)
		}
		replication, err := ParseReplication(text)
		if err != nil { // of a strategy of somebody's own: whoever needs to know where it lies says so
			replication = Replication{Strategy: text}
		}
		schema.Keyspaces = append(schema.Keyspaces, Keyspace{Name: name, Replication: replication})
	}
	return schema, nil
}

// SchemaVersions is which members hold which version of the schema.
type SchemaVersions struct {
	// Versions are the members that answered, by the version that they hold.
	Versions map[string][]netip.AddrPort
	// Unreachable are the members that did not answer.
	Unreachable []netip.AddrPort
}

// Agree says whether all members that answered hold one version.
func (v SchemaVersions) Agree() bool { return len(v.Versions) == 1 }

// unreachableVersion is the key under which Cassandra lists the members that did not answer.
const unreachableVersion = "UNREACHABLE"

// SchemaVersions has the node ask all members for their schema version. That is a message to each
// of them, and the request timeout of the server (10 s) if one that is thought alive does not
// answer.
func (n *Node) SchemaVersions(ctx context.Context) (SchemaVersions, error) {
	var wire struct{ SchemaVersionsWithPort map[string][]string }
	if err := n.call(ctx, jolokia.Read(beanStorageProxy, "SchemaVersionsWithPort"), &wire); err != nil {
		return SchemaVersions{}, fmt.Errorf("read schema versions of peers: %w", err)
	}
	result := SchemaVersions{Versions: map[string][]netip.AddrPort{}}
	for version, texts := range wire.SchemaVersionsWithPort {
		endpoints, err := parseEndpoints(texts)
		if err != nil {
			return SchemaVersions{}, fmt.Errorf("schema version %s: %w", version, err)
		}
		if version == unreachableVersion {
			result.Unreachable = endpoints
		} else {
			result.Versions[version] = endpoints
		}
	}
	return result, nil
}

// agreementPause is the time between two questions for agreement; gossip spreads a change in about
// a second.
const agreementPause = 200 * time.Millisecond

// AwaitSchemaAgreement returns when all members that answer hold one schema version, or when ctx
// ends. Members that are down do not delay it: they fetch the schema when they come back.
func (n *Node) AwaitSchemaAgreement(ctx context.Context) error {
	for {
		versions, err := n.SchemaVersions(ctx)
		if err != nil {
			return fmt.Errorf("await schema agreement: %w", err)
		}
		if versions.Agree() {
			return nil
		}
		timer := time.NewTimer(agreementPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("await schema agreement: %w: %s", ctx.Err(), versions)
		case <-timer.C:
		}
	}
}

// String lists how many members hold which version.
func (v SchemaVersions) String() string {
	parts := make([]string, 0, len(v.Versions)+1)
	for version, endpoints := range v.Versions {
		parts = append(parts, fmt.Sprintf("%s on %d", version, len(endpoints)))
	}
	slices.Sort(parts)
	if len(v.Unreachable) > 0 {
		parts = append(parts, fmt.Sprintf("%d unreachable", len(v.Unreachable)))
	}
	return strings.Join(parts, ", ")
}
