package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
)

func keyspacesOf(t *testing.T, texts map[string]string) []ring.Keyspace {
	t.Helper()
	var out []ring.Keyspace
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if texts[name] == "" {
			continue
		}
		replication, err := ring.ParseReplication(texts[name])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ring.Keyspace{Name: name, Replication: replication})
	}
	return out
}

func TestGuardsOfAnAddedDatacenter(t *testing.T) {
	const (
		here  = "NetworkTopologyStrategy {DC1=3}"
		there = "NetworkTopologyStrategy {DC1=3, DC2=1}"
		only  = "NetworkTopologyStrategy {DC2=1}"
	)
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprintf("k%d", i)] = here
	}
	for name, c := range map[string]struct {
		extend    *v1alpha1.Extend
		source    string
		keyspaces map[string]string
		want      []string
	}{
		"nothing is extended": {&v1alpha1.Extend{LocalConsistencyOnly: true}, "DC1",
			map[string]string{"a": here}, nil},
		"nothing is extended from nowhere": {&v1alpha1.Extend{LocalConsistencyOnly: true}, "",
			map[string]string{"a": here}, nil},
		"one is extended": {&v1alpha1.Extend{LocalConsistencyOnly: true,
			Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "a"}}}, "DC1", map[string]string{"a": here}, nil},
		"one is extended from one by name": {&v1alpha1.Extend{LocalConsistencyOnly: true,
			Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "a"}}, From: "dc1"}, "DC1", map[string]string{"a": here},
			nil},
		"a source, and nothing": {&v1alpha1.Extend{LocalConsistencyOnly: true, From: "dc1"}, "DC1", nil, nil},
		"no word of consistency": {nil, "DC1", nil,
			[]string{"LocalConsistencyNotConfirmed: datacenter dc2 is added"}},
		"clients may read anywhere": {&v1alpha1.Extend{}, "DC1", nil,
			[]string{"LocalConsistencyNotConfirmed: datacenter dc2 is added"}},
		"two are there already": {
			&v1alpha1.Extend{LocalConsistencyOnly: true}, "DC1", map[string]string{"a": there, "b": here, "c": there},
			[]string{"ReplicasAlreadyPlaced: keyspace a, c already has replicas in datacenter DC2"},
		},
		"some have no datacenters": {
			&v1alpha1.Extend{LocalConsistencyOnly: true}, "DC1",
			map[string]string{"a": "SimpleStrategy {replication_factor=1}", "b": "EverywhereStrategy {}",
				"c": "LocalStrategy {}"},
			[]string{"ReplicasAlreadyPlaced: keyspace a, b is replicated without regard to datacenters"},
		},
		"both": {
			&v1alpha1.Extend{LocalConsistencyOnly: true}, "DC1",
			map[string]string{"a": "SimpleStrategy {replication_factor=1}", "b": there},
			[]string{"ReplicasAlreadyPlaced: keyspace b already has",
				"ReplicasAlreadyPlaced: keyspace a is replicated"},
		},
		"from nowhere": {
			&v1alpha1.Extend{LocalConsistencyOnly: true, From: "dc9"}, "", nil,
			[]string{`ExtensionSourceMissing: datacenters[dc2].extend.from is "dc9"`},
		},
		"one to be extended from nowhere": {
			&v1alpha1.Extend{LocalConsistencyOnly: true, Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "a"}}}, "",
			map[string]string{"a": here},
			[]string{`ExtensionSourceMissing: datacenters[dc2].extend.from is ""`},
		},
		"unknown and absent": {
			&v1alpha1.Extend{LocalConsistencyOnly: true,
				Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "x"}, {Name: "a"}, {Name: "b"}, {Name: "c"}}}, "DC1",
			map[string]string{"a": here, "b": "NetworkTopologyStrategy {DC3=1}",
				"c": "NetworkTopologyStrategy {DC3=2}"},
			[]string{
				"ExtensionSourceMissing: datacenters[dc2].extend.keyspaces: there is no keyspace x",
				"ExtensionSourceMissing: datacenters[dc2].extend: keyspace b, c has no replicas in datacenter DC1",
			},
		},
		"all are extended": {
			&v1alpha1.Extend{LocalConsistencyOnly: true, All: true}, "DC1",
			map[string]string{"a": here, "b": "NetworkTopologyStrategy {DC3=1}",
				"system_auth": "NetworkTopologyStrategy {DC3=1}", "l": "LocalStrategy {}"},
			[]string{"ExtensionSourceMissing: datacenters[dc2].extend: keyspace b has no replicas in datacenter DC1"},
		},
		"more than can be extended": {
			&v1alpha1.Extend{LocalConsistencyOnly: true, All: true}, "DC1", many,
			[]string{"ExtensionSourceMissing: datacenters[dc2].extend.all: the ring has 65 keyspaces to extend, and " +
				"64 is the most"},
		},
		"one is only there": {
			&v1alpha1.Extend{LocalConsistencyOnly: true, Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "a"}}}, "DC1",
			map[string]string{"a": only},
			[]string{"ReplicasAlreadyPlaced: keyspace a already has",
				"ExtensionSourceMissing: datacenters[dc2].extend: keyspace a has no replicas in datacenter DC1"},
		},
	} {
		refusals := Check(Adding{
			Datacenter: &v1alpha1.Datacenter{Name: "dc2", Extend: c.extend}, DatacenterName: "DC2",
			SourceDatacenter: c.source, Keyspaces: keyspacesOf(t, c.keyspaces),
		}, addedDatacenter...)
		var got []string
		for _, r := range refusals {
			got = append(got, string(r.Reason)+": "+r.Message)
			if r.Stalled != v1alpha1.ReasonInvalidSpec {
				t.Errorf("%s: %s is the user's to resolve", name, r.Reason)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}
