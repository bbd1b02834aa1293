package cluster

import (
	"strings"
	"testing"

	"helenus.io/helenus/dev/localkube/state"
)

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		name         string
		in           Options
		nodes, zones int
		err          string
	}{
		{name: "defaults", nodes: 3, zones: 3},
		{name: "one node", in: Options{Nodes: 1}, nodes: 1, zones: 1},
		{name: "nine nodes", in: Options{Nodes: 9}, nodes: 9, zones: 3},
		{name: "one zone", in: Options{Nodes: 2, Zones: 1}, nodes: 2, zones: 1},
		{name: "too many nodes", in: Options{Nodes: 61}, err: "nodes: 61 is not between 1 and 60"},
		{name: "no nodes", in: Options{Nodes: -1, Zones: 1}, err: "nodes: -1 is not between 1 and 60"},
		{name: "too many zones", in: Options{Nodes: 30, Zones: 27}, err: "zones: 27 is not between 1 and 26"},
		{name: "empty zones", in: Options{Nodes: 2, Zones: 3}, err: "3 zones need at least as many nodes, there are 2"},
		{name: "name", in: Options{Name: "../x"}, err: "cluster name"},
	} {
		tc.in.Cache = t.TempDir()
		got, err := tc.in.complete(nil)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.err)
			}
			continue
		}
		if err != nil || got.Nodes != tc.nodes || got.Zones != tc.zones {
			t.Errorf("%s: %d nodes in %d zones, error %v; want %d in %d", tc.name, got.Nodes, got.Zones, err, tc.nodes,
				tc.zones)
		}
	}
}

func TestWhatIsNotGivenIsAsInTheClusterThatIsThere(t *testing.T) {
	known := &state.Cluster{Name: "x", KubernetesVersion: "1.34.9", Cache: "/cache", APIServerArgs: []string{"--v=4"},
		Nodes: []state.Node{nodeAt(1, 2), nodeAt(2, 2), nodeAt(3, 2), nodeAt(4, 2)}}
	o, err := Options{Name: "x"}.complete(known)
	if err != nil {
		t.Fatal(err)
	}
	if o.KubernetesVersion != "1.34.9" || o.Cache != "/cache" || len(o.APIServerArgs) != 1 || o.Nodes != 4 ||
		o.Zones != 2 {
		t.Errorf("got %+v", o)
	}
	if err := sameCluster(known, o); err != nil {
		t.Error(err)
	}
	o, err = Options{Name: "x", Nodes: 6}.complete(known)
	if err != nil || o.Nodes != 6 || o.Zones != 2 {
		t.Errorf("more nodes: %+v, %v", o, err)
	}
}

func TestNodesAreSpreadOverZones(t *testing.T) {
	var zones strings.Builder
	for i := 1; i <= 7; i++ {
		zones.WriteString(nodeAt(i, 3).Zone)
	}
	if zones.String() != "abcabca" {
		t.Errorf("seven nodes are in zones %s, want abcabca", zones.String())
	}
}

func TestAnExistingClusterIsNotTurnedIntoAnother(t *testing.T) {
	known := &state.Cluster{Name: "x", KubernetesVersion: "1.35.4",
		Nodes: []state.Node{nodeAt(1, 3), nodeAt(2, 3), nodeAt(3, 3)}}
	same := Options{Name: "x", KubernetesVersion: "1.35.4", Nodes: 3, Zones: 3}
	for _, tc := range []struct {
		name   string
		change func(*Options)
		err    string
	}{
		{"same", func(*Options) {}, ""},
		{"more nodes", func(o *Options) { o.Nodes = 9 }, ""},
		{"fewer nodes", func(o *Options) { o.Nodes = 2 }, "nodes 3, wanted is 2"},
		{"other zones", func(o *Options) { o.Zones = 2 }, "node n3 in zone c, wanted is a"},
		{"other version", func(o *Options) { o.KubernetesVersion = "1.36.1" },
			"Kubernetes version 1.35.4, wanted is 1.36.1"},
		{"other kind", func(o *Options) { o.APIOnly = true }, "--api-only"},
		{"other flags", func(o *Options) { o.APIServerArgs = []string{"--v=4"} }, "API server flags"},
	} {
		o := same
		tc.change(&o)
		err := sameCluster(known, o)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.err)
		}
		if err != nil && !strings.Contains(err.Error(), "localkube down --name x") {
			t.Errorf("%s: the error does not say what to do: %v", tc.name, err)
		}
	}
}

func TestWaitingForSaysWhy(t *testing.T) {
	nodes := nodeList{Items: make([]nodeItem, 4)}
	for i, name := range []string{"ready", "silent", "broken", "old"} {
		nodes.Items[i].Metadata.Name = name
	}
	type condition = struct{ Type, Status, Reason, Message string }
	nodes.Items[0].Status.Conditions = []condition{{Type: "MemoryPressure", Status: "False"},
		{Type: "Ready", Status: "True"}}
	nodes.Items[2].Status.Conditions = []condition{{Type: "Ready", Status: "False", Reason: "KubeletNotReady",
		Message: "no network"}}
	nodes.Items[3].Status.Conditions = []condition{{Type: "Ready", Status: "True"}}
	started := map[string]bool{"ready": true, "broken": true}

	if waiting := waitingFor([]string{"ready"}, nodes, started); waiting != nil {
		t.Errorf("waiting for %v, want for nothing", waiting)
	}
	got := strings.Join(waitingFor([]string{"ready", "silent", "broken", "old", "absent"}, nodes, started), "\n")
	want := strings.Join([]string{
		"silent (it has no condition Ready yet)",
		"broken (KubeletNotReady: no network)",
		"old (its kubelet has not renewed the lease)",
		"absent (it has not registered)",
	}, "\n")
	if got != want {
		t.Errorf("waiting for\n%s\nwant\n%s", got, want)
	}
}
