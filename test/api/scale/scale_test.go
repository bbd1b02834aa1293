package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// TestAFewClusters keeps the measurement able to run: what it measures counts with a hundred
// clusters alone.
func TestAFewClusters(t *testing.T) {
	o := options{operator: build(t), definitions: "../../../config/crd", clusters: 2, perRack: 1, changes: 4,
		idle: time.Second}
	f, err := run(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.changes) != o.changes || f.afterForming.now == 0 || f.afterChanges.most < f.afterStart.now {
		t.Errorf("%+v", f)
	}
	t.Log("\n" + f.markdown(o))
}

// build the operator's program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "helenus")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/helenus")
	build.Dir = "../../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, text)
	}
	return program
}

func TestPercentiles(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = time.Duration(i + 1)
	}
	for percent, want := range map[int]time.Duration{0: 1, 1: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(hundred, percent); got != want {
			t.Errorf("%d %%: %d, want %d", percent, got, want)
		}
	}
	if got := percentile([]time.Duration{3, 1, 2}, 50); got != 2 {
		t.Errorf("of three: %d", got)
	}
}

// Nodes that a change adds get no pod that runs.
func TestWhoRuns(t *testing.T) {
	f := &fleet{perRack: 3}
	for node, want := range map[string]bool{"c001-dc1-r1-0": true, "c001-dc1-r1-2": true, "c001-dc1-r1-3": false,
		"c001-dc1-r1-10": false, "other": false} {
		labels := map[string]string{v1alpha1.LabelCluster: "c001", v1alpha1.LabelDatacenter: "dc1",
			v1alpha1.LabelRack: "r1", v1alpha1.LabelNode: node}
		if got := f.runs(labels); got != want {
			t.Errorf("%s: %v", node, got)
		}
	}
	if f.runs(map[string]string{v1alpha1.LabelNode: strings.Repeat("x", 3)}) {
		t.Error("a node of nothing runs")
	}
}
