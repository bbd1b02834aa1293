package operation

import (
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

const (
	dc1 = "dc1"
	dc2 = "dc2"
)

// twoDatacenters is a ring of three nodes, of which the first, in dc1, has the view.
func twoDatacenters() *facts.Ring {
	member := func(address, datacenter string, token int64) facts.Endpoint {
		return facts.Endpoint{
			Address: address, HostID: "host-" + address, Datacenter: datacenter, Rack: "r1", Status: facts.StatusNormal,
			Live: true, Tokens: []int64{token},
		}
	}
	gone := member("10.0.0.9", "dc9", 9)
	gone.Status, gone.Tokens = facts.StatusLeft, nil
	return &facts.Ring{
		Mode: facts.ModeNormal, HostID: "host-10.0.0.1", NativeRunning: true,
		Endpoints: []facts.Endpoint{member("10.0.0.1", dc1, 1), member("10.0.0.2", dc2, 2), member("10.0.0.3", dc2, 3),
			gone},
		Keyspaces: map[string]string{
			"both": "NetworkTopologyStrategy {dc1=1, dc2=2}", "here": "NetworkTopologyStrategy {dc1=1}",
			"there":  "NetworkTopologyStrategy {dc2=2}",
			"simple": "SimpleStrategy {replication_factor=2}", "single": "SimpleStrategy {replication_factor=1}",
		},
	}
}

func TestKeyspaces(t *testing.T) {
	for name, c := range map[string]struct {
		operation v1alpha1.OperationType
		arguments *v1alpha1.OperationArguments
		want      string // or a part of the error
		fails     bool
	}{
		"a cleanup of all": {v1alpha1.OperationCleanup, nil, "both here simple single there", false},
		"a cleanup of some": {v1alpha1.OperationCleanup,
			&v1alpha1.OperationArguments{Keyspaces: []string{"simple", "both"}}, "both simple", false},
		"a cleanup of a local one": {v1alpha1.OperationCleanup,
			&v1alpha1.OperationArguments{Keyspaces: []string{"both", "system"}}, `"system" is not there, or is local`,
			true},
		"a snapshot of all": {v1alpha1.OperationSnapshot, nil, "both here simple single system system_schema there",
			false},
		"a snapshot of what is local": {v1alpha1.OperationSnapshot,
			&v1alpha1.OperationArguments{Keyspaces: []string{"system_schema", "system"}}, "system system_schema",
			false},
		"a repair of all": {v1alpha1.OperationRepair, nil, "both simple there", false},
		"a repair of one replica": {v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Keyspaces: []string{"here"}}, "has one replica", true},
		"a repair of both": {v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Datacenters: []string{"dc1", "dc2"}, Full: true, Keyspaces: []string{"both"}},
			"both", false},
		"a repair of others": {v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Datacenters: []string{"dc2"}, Full: true},
			"do not include that of this node, dc1", true},
		"a repair of nobody": {v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Datacenters: []string{"dc1", "dc3"}, Full: true}, `"dc3" has no member`, true},
		"a rebuild of all": {v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc2"}, "both simple single", false},
		"a rebuild from nowhere": {v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc3"},
			`"dc3" has no member: those of the ring are dc1, dc2`, true},
		"a rebuild from one that left": {v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc9"}, `"dc9" has no member`, true},
		"a rebuild of what is here": {v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc2", Keyspaces: []string{"here"}},
			"no replica in the datacenter dc2", true},
		"a rebuild for nothing": {v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc2", Keyspaces: []string{"there"}},
			"no replica in the datacenter of this node, dc1", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, skipped, err := Keyspaces(&v1alpha1.OperationIntent{Type: c.operation, Arguments: c.arguments},
				twoDatacenters())
			switch {
			case (err != nil) != c.fails:
				t.Errorf("%v, error %v", got, err)
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Errorf("error %v, want %q", err, c.want)
			case err == nil && strings.Join(got, " ") != c.want:
				t.Errorf("%v, want %s", got, c.want)
			}
			if len(skipped) > 0 {
				t.Errorf("skipped %v", skipped)
			}
		})
	}
	strange := twoDatacenters()
	strange.Keyspaces["odd"] = "NetworkTopologyStrategy {dc1=3/1}"
	got, skipped, err := Keyspaces(&v1alpha1.OperationIntent{Type: v1alpha1.OperationCleanup}, strange)
	if err != nil || slices.Contains(got, "odd") || len(got) != 5 || len(skipped) != 1 ||
		!strings.Contains(skipped[0], `keyspace odd: parse replication "NetworkTopologyStrategy {dc1=3/1}"`) {
		t.Errorf("%v without %v, error %v", got, skipped, err)
	}
	if got, skipped, err := Keyspaces(&v1alpha1.OperationIntent{Type: v1alpha1.OperationFlush}, strange); err != nil ||
		!slices.Contains(got, "odd") || len(skipped) > 0 {
		t.Errorf("%v without %v, error %v", got, skipped, err)
	}
	if _, _, err := Keyspaces(&v1alpha1.OperationIntent{Type: v1alpha1.OperationRepair,
		Arguments: &v1alpha1.OperationArguments{Keyspaces: []string{"odd"}}}, strange); err == nil ||
		!strings.Contains(err.Error(), "keyspace odd") {
		t.Errorf("error %v", err)
	}
}

func TestGossipStateAt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   GossipState
	}{
		"on its way and down":  {func(*facts.Endpoint) {}, GossipPresent},
		"elsewhere":            {func(e *facts.Endpoint) { e.Address = "10.0.0.78" }, GossipAbsent},
		"left":                 {func(e *facts.Endpoint) { e.Status = facts.StatusLeft }, GossipLeft},
		"removed":              {func(e *facts.Endpoint) { e.Status = facts.StatusRemoved }, GossipLeft},
		"up":                   {func(e *facts.Endpoint) { e.Live = true }, GossipAlive},
		"a member":             {func(e *facts.Endpoint) { e.Status = facts.StatusNormal }, GossipAlive},
		"a member that leaves": {func(e *facts.Endpoint) { e.Status = facts.StatusLeaving }, GossipAlive},
		"of unknown state":     {func(e *facts.Endpoint) { e.Status = facts.StatusUnknown }, GossipAlive},
	} {
		ring := twoDatacenters()
		e := facts.Endpoint{Address: "10.0.0.77", HostID: "host-x", Status: facts.StatusBootstrap, Tokens: []int64{7}}
		c.change(&e)
		ring.Endpoints = append(ring.Endpoints, e)
		got, why := GossipStateAt(ring, "10.0.0.77", nil)
		if got != c.want || (why != "") != (got == GossipAlive) {
			t.Errorf("%s: %s %q, want %s", name, got, why, c.want)
		}
		if got, why := GossipStateAt(ring, "10.0.0.77", []string{"c"}); got != GossipAlive ||
			!strings.Contains(why, "node c") {
			t.Errorf("%s, and a node is there: %s %q", name, got, why)
		}
	}
}

func TestConflictsGoBothWays(t *testing.T) {
	families := [][]v1alpha1.OperationType{
		{v1alpha1.OperationRepair, v1alpha1.OperationRebuild, v1alpha1.OperationCleanup,
			v1alpha1.OperationUpgradeSSTables, v1alpha1.OperationCompact, v1alpha1.OperationGarbageCollect,
			v1alpha1.OperationScrub, v1alpha1.OperationVerify},
		{v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAssassinate},
		{v1alpha1.OperationCleanup, v1alpha1.OperationAlterKeyspaces},
		{v1alpha1.OperationCleanup, v1alpha1.OperationAlterSystemKeyspaces},
		{v1alpha1.OperationSnapshot, v1alpha1.OperationClearSnapshot},
		{v1alpha1.OperationRebuildIndex, v1alpha1.OperationRebuild},
		{v1alpha1.OperationDecommission, v1alpha1.OperationRemoveNode},
		{v1alpha1.OperationImportSuperuser, v1alpha1.OperationSetRoles, v1alpha1.OperationProveLogin},
		{v1alpha1.OperationSetPassword, v1alpha1.OperationImportSuperuser},
		{v1alpha1.OperationSetPassword, v1alpha1.OperationSetRoles},
		{v1alpha1.OperationSetPassword, v1alpha1.OperationProveLogin},
		{v1alpha1.OperationKeepRoles, v1alpha1.OperationImportSuperuser},
		{v1alpha1.OperationKeepRoles, v1alpha1.OperationKeepRoles},
		{v1alpha1.OperationKeepRoles, v1alpha1.OperationSetPassword},
		{v1alpha1.OperationKeepRoles, v1alpha1.OperationSetRoles},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationAlterSystemKeyspaces},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationAlterKeyspaces},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationAssassinate},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationCleanup},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationDecommission},
		{v1alpha1.OperationSetRoles, v1alpha1.OperationRemoveNode},
		{v1alpha1.OperationUpload},
		{v1alpha1.OperationStageTables, v1alpha1.OperationLoadTables},
		{v1alpha1.OperationLoadTables, v1alpha1.OperationAlterKeyspaces},
		{v1alpha1.OperationLoadTables, v1alpha1.OperationDecommission},
		{v1alpha1.OperationLoadTables, v1alpha1.OperationRemoveNode},
		{v1alpha1.OperationLoadTables, v1alpha1.OperationTruncate},
	}
	for _, o := range besideRewrites {
		families = append(families, []v1alpha1.OperationType{v1alpha1.OperationImportSuperuser, o})
	}
	for _, o := range []v1alpha1.OperationType{
		v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationCleanup,
		v1alpha1.OperationRebuild, v1alpha1.OperationRepair,
	} {
		families = append(families, []v1alpha1.OperationType{v1alpha1.OperationDecommission, o},
			[]v1alpha1.OperationType{v1alpha1.OperationRemoveNode, o})
	}
	for _, kindA := range Kinds {
		for _, kindB := range Kinds {
			a, b := kindA.Type, kindB.Type
			want := slices.ContainsFunc(families, func(f []v1alpha1.OperationType) bool {
				return slices.Contains(f, a) && slices.Contains(f, b)
			})
			if got := Conflict(a, b); got != want {
				t.Errorf("%s and %s: conflict %v, want %v", a, b, got, want)
			}
		}
	}
	if Conflict("Dance", "Dance") || Conflict("Dance", v1alpha1.OperationRepair) {
		t.Error("what is not known conflicts")
	}
}
