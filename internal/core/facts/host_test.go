package facts

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAVolumeReachesHosts(t *testing.T) {
	host := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m1",
		Labels: map[string]string{corev1.LabelHostname: "host-1", corev1.LabelTopologyZone: "a", "generation": "7"}}}
	is := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	all := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	for name, c := range map[string]struct {
		terms  []corev1.NodeSelectorTerm
		want   bool
		places []string
	}{
		"of its name": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn,
			"host-1"))}, true, []string{"host-1"}},
		"of another name": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn,
			"host-2"))}, false, []string{"host-2"}},
		"of one of two names": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn,
			"host-2", "host-1"))}, true, []string{"host-2", "host-1"}},
		"of its name and its zone": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn,
			"host-1"), is(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "a"))}, true, []string{"host-1", "a"}},
		"of its name, another zone": {
			[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn, "host-1"),
				is(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "b"))}, false, []string{"host-1", "b"},
		},
		"of one term of two": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelHostname, corev1.NodeSelectorOpIn, "x")),
			all(is(corev1.LabelTopologyZone, corev1.NodeSelectorOpExists))}, true, []string{"x"}},
		"of no term":       {[]corev1.NodeSelectorTerm{}, false, nil},
		"of an empty term": {[]corev1.NodeSelectorTerm{{}}, false, nil},
		"not in a zone": {[]corev1.NodeSelectorTerm{all(is(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn,
			"b"))}, true, nil},
		"not with a label": {[]corev1.NodeSelectorTerm{all(is("generation", corev1.NodeSelectorOpDoesNotExist))},
			false, nil},
		"newer": {[]corev1.NodeSelectorTerm{all(is("generation", corev1.NodeSelectorOpGt, "6"))}, true,
			nil},
		"older": {[]corev1.NodeSelectorTerm{all(is("generation", corev1.NodeSelectorOpLt, "6"))}, false,
			nil},
		"by an operator of new": {[]corev1.NodeSelectorTerm{all(is("generation", "Near", "6"))}, false, nil},
		"by field": {
			[]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{is("metadata.name",
				corev1.NodeSelectorOpIn, "m1")}}}, true, []string{"m1"},
		},
		"by another field": {
			[]corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{is("metadata.name",
				corev1.NodeSelectorOpIn, "m2")}}}, false, []string{"m2"},
		},
	} {
		v := &corev1.PersistentVolume{
			Spec: corev1.PersistentVolumeSpec{
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: c.terms}},
			},
		}
		if got := Reaches(v, host); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := Places(v); !slices.Equal(got, c.places) {
			t.Errorf("%s: places %v, want %v", name, got, c.places)
		}
	}
	for _, v := range []*corev1.PersistentVolume{{},
		{Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{}}}} {
		if !Reaches(v, host) || Places(v) != nil {
			t.Errorf("%+v reaches every host", v.Spec)
		}
	}
}

func TestAHostIsGone(t *testing.T) {
	host := func(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		m := &corev1.Node{}
		if ready != "" {
			m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure,
				Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}
		}
		for _, key := range taints {
			m.Spec.Taints = append(m.Spec.Taints, corev1.Taint{Key: key})
		}
		return m
	}
	out := "is out of service, as the taint of its Node object says"
	for name, c := range map[string]struct {
		host *corev1.Node
		want string
	}{
		"without a Node object": {nil, "is gone: it has no Node object"},
		"ready":                 {host(corev1.ConditionTrue), ""},
		"silent":                {host(corev1.ConditionUnknown, corev1.TaintNodeUnreachable), ""},
		"not ready":             {host(corev1.ConditionFalse, corev1.TaintNodeNotReady), ""},
		"without a word":        {host(""), ""},
		"tainted and silent": {host(corev1.ConditionUnknown, corev1.TaintNodeUnreachable,
			corev1.TaintNodeOutOfService), out},
		"tainted and not ready":        {host(corev1.ConditionFalse, corev1.TaintNodeOutOfService), out},
		"tainted and without a word":   {host("", corev1.TaintNodeOutOfService), out},
		"tainted, and back since then": {host(corev1.ConditionTrue, corev1.TaintNodeOutOfService), ""},
	} {
		s := &Snapshot{Hosts: map[string]*corev1.Node{}}
		if c.host != nil {
			s.Hosts["m"] = c.host
		}
		if got := s.HostGone("m"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
