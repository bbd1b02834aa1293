package status_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/status"
)

func TestReplicas(t *testing.T) {
	one := func(s *facts.Snapshot) { // of each row a single replica
		for _, n := range s.Nodes {
			n.Agent.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=1}"
		}
	}
	gone := func(n1, n2 *facts.Node, _ *facts.Snapshot) { // n2, as n1 and others see it
		n2.Agent, n1.Agent.Ring.Endpoints[1].Live = nil, false
	}
	joining := func(n1 *facts.Node, status facts.GossipStatus, live bool) {
		n1.Agent.Ring.Endpoints = append(n1.Agent.Ring.Endpoints, facts.Endpoint{HostID: "h3", Datacenter: "dc1",
			Rack: "r1", Status: status, Live: live, Tokens: []int64{3}})
	}
	const needs = "keyspace shop: LOCAL_QUORUM needs 1 of the 1 replicas of range "
	at := func(token ring.Token) *ring.Token { return &token }
	for name, c := range map[string]struct {
		change   func(n1, n2 *facts.Node, s *facts.Snapshot)
		keyspace string
		token    *ring.Token
		want     string // nodes, and what is served; or the error
	}{
		"a keyspace": {nil, "shop", nil,
			"n1 dc1/r1 up 1, n2 dc1/r1 up 1; served: every range is served at LocalQuorum"},
		"a keyspace with a replica that is down": {gone, "shop", nil, "n1 dc1/r1 up 1, n2 dc1/r1 down 1; not " +
			"served: 2 ranges are not served at LocalQuorum: keyspace shop: LOCAL_QUORUM needs 2 of the 2 " +
			"replicas of range (2,1] in dc1, 1 up (n2 down)"},
		"a key": {func(_, _ *facts.Node, s *facts.Snapshot) { one(s) }, "shop", at(2),
			"n2 dc1/r1 up 0; served dc1: " + needs + "(1,2] in dc1, 1 up"},
		"a key beyond the last token": {func(n1, n2 *facts.Node, s *facts.Snapshot) { one(s); gone(n1, n2, s) },
			"shop", at(3), "n1 dc1/r1 up 0; served dc1: " + needs + "(2,1] in dc1, 1 up"},
		"a key of one that is down": {func(n1, n2 *facts.Node, s *facts.Snapshot) { one(s); gone(n1, n2, s) },
			"shop", at(2), "n2 dc1/r1 down 0; not served dc1: " + needs + "(1,2] in dc1, 0 up (n2 down)"},
		"one that joins holds nothing yet": {func(n1, _ *facts.Node, s *facts.Snapshot) {
			one(s)
			joining(n1, facts.StatusBootstrap, true)
		}, "shop", at(3), "n1 dc1/r1 up 0; served dc1: " + needs + "(2,1] in dc1, 1 up"},
		"one that joins and is down is waited for": {func(n1, _ *facts.Node, s *facts.Snapshot) {
			one(s)
			joining(n1, facts.StatusBootstrap, false)
		}, "shop", at(3), "n1 dc1/r1 up 0; not served dc1: " + needs + "(2,1] in dc1, 1 " +
			"up, and writes need 1 more for what joins and is down"},
		"one that leaves holds it until it has left": {func(n1, _ *facts.Node, s *facts.Snapshot) {
			one(s)
			joining(n1, facts.StatusLeaving, true)
		}, "shop", at(3), "h3 dc1/r1 up 0; served dc1: " + needs + "(2,3] in dc1, 1 up"},
		"too few nodes for the level": {func(n1, _ *facts.Node, _ *facts.Snapshot) {
			n1.Agent.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc1=5}"
		}, "shop", at(2), "n1 dc1/r1 up 0, n2 dc1/r1 up 0; not served dc1: keyspace shop: " +
			"LOCAL_QUORUM needs 3 of the 2 replicas of range (1,2] in dc1, 2 up"},
		"a datacenter without members": {func(n1, _ *facts.Node, s *facts.Snapshot) {
			s.Cluster.Spec.Disruption.Consistency = v1alpha1.ConsistencyEachQuorum
			n1.Agent.Ring.Keyspaces["shop"] = "NetworkTopologyStrategy {dc9=1}"
		}, "shop", at(2), "; not served dc9: keyspace shop: EACH_QUORUM needs 1 of the 0 replicas in dc9, 0 up"},
		"no keyspace": {nil, "shops", at(2), `no such keyspace: "shops"; the ring replicates shop`},
		"nobody to ask": {func(n1, n2 *facts.Node, _ *facts.Snapshot) { n1.Agent, n2.Agent = nil, nil }, "shop", nil,
			"no node can say what the ring is like"},
		"no ring": {func(_, _ *facts.Node, s *facts.Snapshot) { s.Ledger = nil }, "shop", nil,
			"the members are unknown: there is no ledger of a formed ring"},
		"an unknown replication strategy": {func(n1, _ *facts.Node, _ *facts.Snapshot) {
			n1.Agent.Ring.Keyspaces["shop"] = "OldStrategy {}"
		}, "shop", at(2), `read the replication: keyspace shop: parse replication "OldStrategy {}": replication ` +
			`strategy "OldStrategy" is not known: want NetworkTopologyStrategy, SimpleStrategy, LocalStrategy or ` +
			"EverywhereStrategy"},
		"an unknown replication strategy of another keyspace": {func(n1, _ *facts.Node, s *facts.Snapshot) {
			one(s)
			n1.Agent.Ring.Keyspaces["other"] = "OldStrategy {}"
		}, "shop", at(2), "n2 dc1/r1 up 0; served dc1: " + needs + "(1,2] in dc1, 1 up"},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoNodes(c.change)
			text := func() string {
				out, err := json.Marshal(s.Nodes)
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			before := text()
			got, err := status.ReplicasOf(s, c.keyspace, c.token)
			if said := toldOf(got, err); said != c.want {
				t.Errorf("\n got %s\nwant %s", said, c.want)
			}
			if errors.Is(err, status.ErrNoKeyspace) != strings.HasPrefix(c.want, "no such keyspace") {
				t.Errorf("error %v", err)
			}
			if text() != before {
				t.Error("the snapshot was changed")
			}
		})
	}
}

func toldOf(r *status.Replicas, err error) string {
	if err != nil {
		return err.Error()
	}
	said := map[bool]string{true: "served", false: "not served"}
	up := map[bool]string{true: "up", false: "down"}
	var nodes, served []string
	for _, n := range r.Nodes {
		nodes = append(nodes, fmt.Sprint(n.Node, " ", n.Datacenter, "/", n.Rack, " ", up[n.Up], " ", n.Share))
	}
	for _, s := range r.Served {
		served = append(served, strings.TrimSpace(said[s.Served]+" "+s.Datacenter)+": "+s.Message)
	}
	return strings.Join(nodes, ", ") + "; " + strings.Join(served, "; ")
}
