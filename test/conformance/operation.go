package conformance

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/test/hotsettings"
	"helenus.io/helenus/test/nodeview"
)

// settingChecks are about what changes without a restart. Every change is taken back.
var settingChecks = []Check{
	{Name: "every hot setting of the release can be read", Run: func(t *testing.T, s *Subject) {
		var keys []string
		for _, setting := range hotsettings.All() {
			if _, here := hotsettings.Lookup(setting.Key, s.View.ReleaseVersion); here && setting.Attribute != "" {
				keys = append(keys, setting.Key)
			}
		}
		values, err := hotsettings.Read(s.Context, s.JMX, s.View.ReleaseVersion, keys)
		if err != nil || len(values) != len(keys) {
			t.Errorf("%d of %d settings read, error %v", len(values), len(keys), err)
		}
	}},
	{Name: "a setting changes once, and back", Run: func(t *testing.T, s *Subject) {
		s.changeAndRestore(t, "max_hint_window", "90m", "91m")
		s.changeAndRestore(t, "compaction_throughput", "7MiB/s", "8MiB/s")
		s.changeAndRestore(t, "hinted_handoff_enabled", false, true)
		s.changeAndRestore(t, "phi_convict_threshold", 9.5, 10)
	}},
	{Name: "one threshold of a pair changes and the other stays", Run: func(t *testing.T, s *Subject) {
		s.changeAndRestore(t, "keyspaces_fail_threshold", 1000, 1001)
		s.changeAndRestore(t, "collection_size_fail_threshold", "3GiB", "4GiB")
	}},
	{Name: "a warning above the failure is refused", Run: func(t *testing.T, s *Subject) {
		_, err := hotsettings.Apply(s.Context, s.JMX, s.View.ReleaseVersion,
			map[string]any{"tables_warn_threshold": 20, "tables_fail_threshold": 10})
		wantException(t, err)
	}},
}

// changeAndRestore sets one setting to one of two values, that which it does not have, looks for
// the effect, and sets the former value again.
func (s *Subject) changeAndRestore(t *testing.T, key string, value, otherwise any) {
	t.Helper()
	release := s.View.ReleaseVersion
	setting, _ := hotsettings.Lookup(key, release)
	read := func() string {
		values, err := hotsettings.Read(s.Context, s.JMX, release, []string{key})
		if err != nil {
			t.Fatal(err)
		}
		return values[key]
	}
	canonical := func(value any) string {
		text, err := setting.Canonical(value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := read()
	if before == canonical(value) {
		value = otherwise
	}
	changed, err := hotsettings.Apply(s.Context, s.JMX, release, map[string]any{key: value})
	if err != nil || !slices.Equal(changed, []string{key}) || read() != canonical(value) {
		t.Errorf("setting %s: changed %v to %s, error %v; want %v", key, changed, read(), err, value)
	}
	if changed, err = hotsettings.Apply(s.Context, s.JMX, release, map[string]any{key: value}); err != nil ||
		len(changed) != 0 {
		t.Errorf("setting %s again: changed %v, error %v", key, changed, err)
	}
	if _, err = hotsettings.Apply(s.Context, s.JMX, release, map[string]any{key: setting.InYAML(before)}); err != nil ||
		read() != before {
		t.Errorf("setting %s restored to %s, error %v; want %s", key, read(), err, before)
	}
}

// operationChecks are about operations that leave an idle node as it was.
var operationChecks = []Check{
	{Name: "cleanup of a keyspace without surplus succeeds", Run: func(t *testing.T, s *Subject) {
		if err := s.Node.Cleanup(s.Context, 1, "system_traces"); err != nil {
			t.Error(err)
		}
	}},
	{Name: "cleanup of every replicated keyspace succeeds, with as many jobs as there are compactors",
		Run: func(t *testing.T, s *Subject) {
			schema, err := s.Node.Schema(s.Context)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range schema.Keyspaces {
				if err := s.Node.Cleanup(s.Context, 0, k.Name); err != nil {
					t.Error(err)
				}
			}
		}},
	{Name: "cleanup of what is local to a node is refused", Run: func(t *testing.T, s *Subject) {
		wantException(t, s.Node.Cleanup(s.Context, 1, "system"))
	}},
	{Name: "no batch waits on an idle node, and no incremental repair runs", Run: func(t *testing.T, s *Subject) {
		if left, err := s.Node.Unfinished(s.Context); err != nil || left != (facts.Unfinished{}) {
			t.Errorf("unfinished: %+v, error %v", left, err)
		}
	}},
	{Name: "SSTables of every keyspace can be upgraded, and again", Run: func(t *testing.T, s *Subject) {
		for _, keyspace := range []string{"system", "system_schema", "system_traces", "system_traces"} {
			if err := s.Node.UpgradeSSTables(s.Context, 2, keyspace); err != nil {
				t.Error(err)
			}
		}
		wantException(t, s.Node.UpgradeSSTables(s.Context, 2, "no_such_keyspace"))
	}},
	{Name: "a snapshot is refused under a tag that is there, until that goes", Run: func(t *testing.T, s *Subject) {
		const tag = "conformance"
		for _, keyspace := range []string{"system", "system_traces"} {
			for range 2 {
				if err := errors.Join(s.Node.ClearSnapshot(s.Context, tag, keyspace),
					s.Node.TakeSnapshot(s.Context, tag, time.Hour, keyspace)); err != nil {
					t.Error(err)
				}
			}
			if err := s.Node.TakeSnapshot(s.Context, tag, time.Hour, keyspace); !errors.Is(err, cassandra.ErrSnapshotExists) {
				t.Errorf("a second snapshot of keyspace %s: error %v", keyspace, err)
			}
			if err := s.Node.ClearSnapshot(s.Context, tag, keyspace); err != nil {
				t.Error(err)
			}
		}
		wantException(t, s.Node.TakeSnapshot(s.Context, tag, 0, "no_such_keyspace"))
	}},
	{Name: "a snapshot of a table is under its tag, and no TTL is shorter than a minute",
		Run: func(t *testing.T, s *Subject) {
			const tag, keyspace = "conformance-table", "system_traces"
			if err := s.Node.TakeSnapshot(s.Context, tag, 0, keyspace, "events", "sessions"); err != nil {
				t.Error(err)
			}
			err := s.Node.TakeSnapshot(s.Context, tag, 0, keyspace, "events")
			if !errors.Is(err, cassandra.ErrSnapshotExists) {
				t.Errorf("a second one: error %v", err)
			}
			if err := s.Node.ClearSnapshot(s.Context, tag, keyspace); err != nil {
				t.Error(err)
			}
			wantException(t, s.Node.TakeSnapshot(s.Context, tag, time.Second, keyspace))
		}},
	{Name: "SSTables are compacted, collected, scrubbed and verified, of all tables or some, and again",
		Run: func(t *testing.T, s *Subject) {
			const keyspace, table, none = "system_traces", "events", "no_such_table"
			for range 2 {
				if err := errors.Join(s.Node.Flush(s.Context, keyspace, table),
					s.Node.Compact(s.Context, false, keyspace), s.Node.Compact(s.Context, true, keyspace, table),
					s.Node.GarbageCollect(s.Context, 2, keyspace), s.Node.GarbageCollect(s.Context, 2, keyspace, table),
					s.Node.Scrub(s.Context, 2, keyspace), s.Node.Scrub(s.Context, 2, keyspace, table),
					s.Node.Verify(s.Context, keyspace), s.Node.Verify(s.Context, keyspace, table),
					s.Node.Scrub(s.Context, 2, "system"), s.Node.Verify(s.Context, "system_schema")); err != nil {
					t.Error(err)
				}
			}
			wantException(t, s.Node.Compact(s.Context, false, keyspace, none))
			wantException(t, s.Node.GarbageCollect(s.Context, 2, keyspace, none))
			wantException(t, s.Node.Scrub(s.Context, 2, keyspace, none))
			wantException(t, s.Node.Verify(s.Context, keyspace, none))
		}},
	{Name: "nothing is loaded where no new SSTable is, and caches of roles can be emptied", Run: func(t *testing.T, s *Subject) {
		const keyspace, table = "system_auth", "roles"
		if err := errors.Join(s.Node.LoadNewSSTables(s.Context, keyspace, table),
			s.Node.InvalidateAuthCaches(s.Context)); err != nil {
			t.Error(err)
		}
		if paths, err := s.Node.SSTablesForKey(s.Context, keyspace, table, "no_such_role"); err != nil || len(paths) > 0 {
			t.Errorf("a role that is not there is in %v, error %v", paths, err)
		}
	}},
	{Name: "what does not run can be stopped", Run: func(t *testing.T, s *Subject) {
		if err := errors.Join(s.Node.StopCompactions(s.Context, "system_traces", cassandra.CompactionCleanup),
			s.Node.StopRepairs(s.Context)); err != nil {
			t.Error(err)
		}
	}},
	{Name: "caches can be emptied, and an index that is not there is an error", Run: func(t *testing.T, s *Subject) {
		if err := s.Node.InvalidateCaches(s.Context); err != nil {
			t.Error(err)
		}
		err := s.Node.RebuildIndex(s.Context, "system_traces", "events", []string{"no_such_index"})
		if err == nil || !strings.Contains(err.Error(), "no_such_index is not there") {
			t.Errorf("error %v", err)
		}
		wantException(t, s.Node.RebuildIndex(s.Context, "system_traces", "no_such_table", []string{"x"}))
	}},
	{Name: "reads of clients are counted, with the time that they took", Run: func(t *testing.T, s *Subject) {
		first, err := s.Node.Reads(s.Context)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Node.Reads(s.Context)
		if since := second.Since(first); err != nil || since.Count < 0 || since.Took < 0 ||
			second.Count > 0 && (second.Mean() <= 0 || second.Mean() > time.Minute) {
			t.Errorf("%+v, then %+v, error %v", first, second, err)
		}
	}},
	{Name: "a rebuild from the node's own datacenter streams from the others", Run: func(t *testing.T, s *Subject) {
		if len(s.View.HostIDs) < 2 || len(s.View.Unreachable) > 0 {
			t.Skip("there is nobody, or not everybody, to stream from")
		}
		if err := s.Node.Rebuild(s.Context, s.gossipOfSelf(t, s.View).Datacenter, "system_traces"); err != nil {
			t.Error(err)
		}
		if streams, err := s.Node.Streams(s.Context); err != nil || streams.Plans != 0 {
			t.Errorf("streams afterwards are %+v, error %v", streams, err)
		}
	}},
	{Name: "a rebuild can be done twice", Run: func(t *testing.T, s *Subject) {
		if len(s.View.HostIDs) < 2 || len(s.View.Unreachable) > 0 {
			t.Skip("there is nobody, or not everybody, to stream from")
		}
		for range 2 {
			if err := s.Node.Rebuild(s.Context, s.gossipOfSelf(t, s.View).Datacenter, "system_traces"); err != nil {
				t.Error(err)
			}
		}
	}},
	{Name: "a repair ends, and a second one has another number", Run: func(t *testing.T, s *Subject) {
		for endpoint := range s.View.HostIDs {
			if slices.Contains(s.View.Unreachable, endpoint) {
				t.Skip("a member is unreachable: a repair would fail")
			}
		}
		first := s.repair(t)
		if second := s.repair(t); first != 0 && second <= first {
			t.Errorf("repair %d followed repair %d", second, first)
		}
	}},
}

// repair repairs a small keyspace and returns the number of the command.
func (s *Subject) repair(t *testing.T) int {
	t.Helper()
	command, err := s.Node.StartRepair(s.Context, "system_traces", cassandra.RepairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if command == 0 {
		if len(s.View.HostIDs) > 1 {
			t.Errorf("nothing to repair in a ring of %d nodes", len(s.View.HostIDs))
		}
		return 0
	}
	s.await(t, "the end of the repair", func() (bool, error) {
		status, err := s.Node.RepairStatus(s.Context, command)
		if err == nil && (status.State == cassandra.RepairFailed || status.State == cassandra.RepairUnknown) {
			t.Fatalf("repair %d is %+v", command, status)
		}
		return status.State == cassandra.RepairCompleted, err
	})
	return command
}

// trafficChecks close CQL and open it again.
var trafficChecks = []Check{
	{Name: "CQL closes and opens, twice each", Traffic: true, Run: func(t *testing.T, s *Subject) {
		for _, open := range []bool{false, false, true, true} {
			act := s.Node.StopNativeTransport
			if open {
				act = s.Node.StartNativeTransport
			}
			if err := act(s.Context); err != nil {
				t.Fatal(err)
			}
			view := s.view(t)
			if view.NativeTransportRunning != open || view.Mode != nodeview.ModeNormal {
				t.Errorf("CQL should be open: %v; the node says %v in mode %s", open, view.NativeTransportRunning,
					view.Mode)
			}
			// Closing CQL over JMX is not gossiped.
			if !s.gossipOfSelf(t, view).NativeTransportReady {
				t.Errorf("gossip says that CQL is not ready; CQL should be open: %v", open)
			}
		}
	}},
}

// drainChecks end the node's service, or leave the ring with a memory.
var drainChecks = []Check{
	{Name: "an endpoint that nobody knows is remembered as one that has left, when it is assassinated", Drain: true,
		Run: func(t *testing.T, s *Subject) {
			nobody := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), s.self(t).Port()) // of TEST-NET-1, RFC 5737
			if err := s.Node.Assassinate(s.Context, nobody.Addr().String()); err != nil {
				t.Fatal(err)
			}
			view := s.view(t)
			i := slices.IndexFunc(view.Gossip, func(g nodeview.GossipState) bool { return g.Endpoint == nobody })
			if i < 0 || view.Gossip[i].Status != nodeview.StatusLeft || view.Gossip[i].Alive ||
				view.Gossip[i].HostID != "" || view.Gossip[i].StatusExpires.IsZero() {
				t.Errorf("gossip is %+v", view.Gossip)
			}
			if !maps.Equal(view.HostIDs, s.View.HostIDs) || !slices.Equal(view.Tokens, s.View.Tokens) ||
				view.Mode != nodeview.ModeNormal {
				t.Errorf("members %v with %d tokens, mode %s; before it %v with %d", view.HostIDs, len(view.Tokens),
					view.Mode, s.View.HostIDs, len(s.View.Tokens))
			}
		}},
	{Name: "a drained node has left CQL and gossip and still answers", Drain: true,
		Run: func(t *testing.T, s *Subject) {
			for range 2 {
				if err := s.Node.Drain(s.Context); err != nil {
					t.Fatal(err)
				}
				state, err := s.Node.State(s.Context)
				if err != nil {
					t.Fatal(err)
				}
				if state.Mode != nodeview.ModeDrained || !state.Drained || state.Draining || state.GossipRunning ||
					state.NativeTransportRunning {
					t.Errorf("state of a drained node is %+v", state)
				}
			}
		}},
	{Name: "a drained node says so in its gossip, and its picture of the ring stays", Drain: true,
		Run: func(t *testing.T, s *Subject) {
			view := s.view(t)
			if own := s.gossipOfSelf(t, view); own.Status != nodeview.StatusShutdown || own.NativeTransportReady {
				t.Errorf("own gossip is %+v", own)
			}
			if !maps.Equal(view.HostIDs, s.View.HostIDs) || !slices.Equal(view.Tokens, s.View.Tokens) ||
				!slices.Equal(view.Live, s.View.Live) {
				t.Errorf("members %v with %d tokens, live %v; before the drain %v with %d, live %v",
					view.HostIDs, len(view.Tokens), view.Live, s.View.HostIDs, len(s.View.Tokens), s.View.Live)
			}
		}},
	{Name: "a drained node does not open CQL", Drain: true, Run: func(t *testing.T, s *Subject) {
		err := s.Node.StartNativeTransport(s.Context)
		state, stateErr := s.Node.State(s.Context)
		if stateErr != nil {
			t.Fatal(stateErr)
		}
		if !errors.Is(err, jolokia.ErrException) || state.NativeTransportRunning {
			t.Errorf("error is %v, CQL open is %v", err, state.NativeTransportRunning)
		}
	}},
}
