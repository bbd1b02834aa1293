package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTokensDivideTheCircleEvenly(t *testing.T) {
	want := [][]string{{"-9223372036854775808", "0"}, {"-4611686018427387904", "4611686018427387904"}}
	for i := range want {
		if got := tokens(2, i, 2); !slices.Equal(got, want[i]) {
			t.Errorf("node %d has %q, want %q", i, got, want[i])
		}
	}
	seen := map[string]bool{}
	for i := range 9 {
		for _, token := range tokens(9, i, serialTokens) {
			if seen[token] {
				t.Errorf("token %s is given twice", token)
			}
			seen[token] = true
		}
	}
}

func environment(p *corev1.Pod, name string) string {
	for _, e := range p.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func TestNodesWithoutHelenusAreLikeThoseOfTheSample(t *testing.T) {
	sample, err := readSample()
	if err != nil {
		t.Fatal(err)
	}
	sample.Spec.Node.JVM.Options = []string{"-XX:+UseSerialGC"}
	byDefault := serialPod(sample, 9, 4, bootstrap, "10.0.0.1")
	same := serialPod(sample, 9, 4, sameFlags, "10.0.0.1")
	for _, p := range []*corev1.Pod{byDefault, same} {
		c := p.Spec.Containers[0]
		if !c.Resources.Limits.Memory().Equal(*sample.Spec.Node.Resources.Limits.Memory()) ||
			environment(p, "MAX_HEAP_SIZE") != "384M" ||
			environment(p, "CASSANDRA_RACK") != "r2" || environment(p, "CASSANDRA_SEEDS") != "10.0.0.1" {
			t.Errorf("pod %+v", c)
		}
		if !strings.Contains(c.Command[2], "UseG1GC/d") {
			t.Errorf("the collector of the image is kept beside the sample's: %s", c.Command[2])
		}
	}
	if got := environment(byDefault, "JVM_EXTRA_OPTS"); got != "-XX:+UseSerialGC" {
		t.Errorf("a node that bootstraps has the options %q", got)
	}
	if got := environment(same, "JVM_EXTRA_OPTS"); !strings.Contains(got,
		"-Dcassandra.auto_bootstrap=false -Dcassandra.initial_token=") {
		t.Errorf("a node with the same flags has the options %q", got)
	}
}

func TestTheSampleIsShapedToSize(t *testing.T) {
	sample, err := readSample()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 3, 9} {
		if got := nodeCount(shaped(sample, size)); got != size {
			t.Errorf("a ring of %d has %d nodes", size, got)
		}
	}
	if nodeCount(sample) != 3 || sample.Name != "demo" {
		t.Error("shaping has changed the sample")
	}
}
