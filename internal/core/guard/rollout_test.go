package guard

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// While two releases are in the ring, or one is on its way there, only a roll-out may begin.
func TestReleases(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Snapshot)
		want   string
	}{
		"one": {func(*facts.Snapshot) {}, ""},
		// no roll-out would end this: every record is what the spec describes
		"the patch release of the image of a user": {func(s *facts.Snapshot) {
			s.Nodes["b"].Agent.Ring.ReleaseVersion = "5.0.9"
		}, ""},
		"another line that runs": {func(s *facts.Snapshot) { s.Nodes["b"].Agent.Ring.ReleaseVersion = "4.1.10" },
			"[] the members have different releases of Cassandra: 5.0 (node a), 4.1 (node b)"},
		"a record": {func(s *facts.Snapshot) { s.Nodes["c"].Record.Spec.Configuration.Version = "4.1.10" },
			"[c] Cassandra 5.0.6 has not reached c yet"},
		"the spec": {func(s *facts.Snapshot) { s.Cluster.Spec.Version = "5.0.9" },
			"[a b c] Cassandra 5.0.9 has not reached a, b, c yet"},
		"a record of a member without one": {func(s *facts.Snapshot) { s.Nodes["c"].Record = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{"a", "b", "c"}
			s := ringOf(names...)
			s.Cluster = &v1alpha1.CassandraCluster{Spec: v1alpha1.CassandraClusterSpec{Version: "5.0.6"}}
			for _, n := range s.Nodes {
				n.Record = &v1alpha1.CassandraNode{}
				n.Record.Spec.Configuration.Version = "5.0.6"
			}
			c.change(s)
			var got string
			for _, r := range Check(Nodes{s, names}, releases...) {
				got += fmt.Sprintf("%v %s", r.Nodes, r.Message)
			}
			if got != c.want {
				t.Errorf("they say %q, want %q", got, c.want)
			}
		})
	}
}

// Incremental repairs are named with what ends them, and a node that does not say is waited for as
// with its batches.
func TestNoIncrementalRepair(t *testing.T) {
	s := ringOf("a", "b", "c")
	s.Nodes["a"].Agent.Ring.Unfinished = &facts.Unfinished{IncrementalRepairs: 2}
	s.Nodes["b"].Agent.Ring.Unfinished = &facts.Unfinished{Batches: 4}
	found := Check(Nodes{s, []string{"a", "b", "c"}}, newRelease...)
	if len(found) != 1 || !strings.HasPrefix(found[0].Message, "node a takes part in 2 incremental repairs. nodetool") {
		t.Errorf("%+v", found)
	}
}

// A pod that asks for more than the one host has where its volumes are is named, with both; where
// there may be other hosts, or nothing is known, nothing is said.
func TestHostHasRoom(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory)}
	}
	on := func(key string, values ...string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn,
				Values: values}}}}}}
	}
	local := on(corev1.LabelHostname, "m-1")
	for name, c := range map[string]struct {
		asks, has corev1.ResourceList
		affinity  *corev1.VolumeNodeAffinity
		want      string
	}{
		"all that there is":   {list("4", "8Gi"), list("4", "8Gi"), local, ""},
		"too much memory":     {list("4", "9Gi"), list("4", "8Gi"), local, "9Gi of memory, and host m-1, where its volumes are, has 8Gi"},
		"too much processor":  {list("5", "8Gi"), list("4", "8Gi"), local, "5 of cpu, and host m-1, where its volumes are, has 4"},
		"by another driver":   {list("5", "8Gi"), list("4", "8Gi"), on("topology.topolvm.io/node", "m-1"), "5 of cpu"},
		"of one of two hosts": {list("5", "8Gi"), list("4", "8Gi"), on(corev1.LabelHostname, "m-1", "m-2"), ""},
		"of a zone":           {list("5", "8Gi"), list("4", "8Gi"), on(corev1.LabelTopologyZone, "a"), ""},
		"wherever":            {list("5", "8Gi"), list("4", "8Gi"), nil, ""},
		"unknown host":        {list("5", "8Gi"), nil, local, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := ringOf("a")
			n := s.Nodes["a"]
			n.Pod.Spec.NodeName = "m-1"
			n.Claims = map[string]*facts.Claim{"data": {Volume: &corev1.PersistentVolume{
				Spec: corev1.PersistentVolumeSpec{NodeAffinity: c.affinity}}}, "commitlog": {}}
			s.Hosts = map[string]*corev1.Node{"m-1": {ObjectMeta: metav1.ObjectMeta{Name: "m-1"},
				Status: corev1.NodeStatus{Allocatable: c.has}}}
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: c.asks}}}}}
			found := Check(Recreated{Nodes{s, []string{"a"}}, map[string]*corev1.Pod{"a": pod}}, room...)
			if (len(found) > 0) != (c.want != "") || len(found) > 0 && !strings.Contains(found[0].Message, c.want) {
				t.Errorf("%+v, want %q", found, c.want)
			}
		})
	}
}

// What members keep for others is named, and what they do not say is no pass.
func TestNothingKept(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*facts.Ring)
		batches bool
		want    string
	}{
		"nothing":                   {func(*facts.Ring) {}, true, ""},
		"hints for b":               {func(r *facts.Ring) { r.Hints["host-b"] = 2 }, false, "[a] 2 node a keeps hints for b"},
		"hints for another":         {func(r *facts.Ring) { r.Hints["host-c"], r.Hints["left"] = 2, 1 }, false, ""},
		"batches":                   {func(r *facts.Ring) { r.Unfinished.Batches = 3 }, true, "[a] 3 node a has batches that wait to be replayed"},
		"batches that do not count": {func(r *facts.Ring) { r.Unfinished.Batches = 3 }, false, ""},
		"no word":                   {func(r *facts.Ring) { r.Hints = nil }, false, "[a] 1 node a does not say whether it keeps hints"},
		"no word of batches":        {func(r *facts.Ring) { r.Unfinished = nil }, true, "[a] 1 node a does not say whether batches wait"},
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{"a", "b", "c"}
			s := ringOf(names...)
			for _, n := range s.Nodes {
				n.Agent.Ring.Hints, n.Agent.Ring.Unfinished = map[string]int{}, new(facts.Unfinished)
			}
			c.change(s.Nodes["a"].Agent.Ring)
			var got string
			for _, r := range Check(Kept{Nodes{s, names}, []string{"b"}, c.batches}, undelivered...) {
				got += fmt.Sprintf("%v %d %s", r.Nodes, r.Left, r.Message)
			}
			if got != c.want {
				t.Errorf("they say %q, want %q", got, c.want)
			}
		})
	}
}
