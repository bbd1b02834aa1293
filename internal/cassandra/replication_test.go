package cassandra

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseReplication(t *testing.T) {
	for text, want := range map[string]Replication{
		"SimpleStrategy {replication_factor=1}": {SimpleStrategy, map[string]string{"replication_factor": "1"}},
		"NetworkTopologyStrategy {dc2=2, dc1=3}": {NetworkTopologyStrategy,
			map[string]string{"dc1": "3", "dc2": "2"}},
		"NetworkTopologyStrategy {dc1=3/1}":             {NetworkTopologyStrategy, map[string]string{"dc1": "3/1"}},
		"EverywhereStrategy {}":                         {EverywhereStrategy, map[string]string{}},
		"org.apache.cassandra.locator.LocalStrategy {}": {LocalStrategy, map[string]string{}},
		"com.example.Strategy {a=b}":                    {"com.example.Strategy", map[string]string{"a": "b"}},
	} {
		if got, err := ParseReplication(text); err != nil || !got.Equal(want) {
			t.Errorf("%q is %+v, error %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "SimpleStrategy", "SimpleStrategy {", " {}", "S {a}", "S {=1}", "S {a=}",
		"S {a=1, a=2}", "S {a=1, }", "S {, }"} {
		if got, err := ParseReplication(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, got)
		}
	}
}

func FuzzParseReplication(f *testing.F) {
	f.Add("NetworkTopologyStrategy {dc2=2, dc1=3}")
	f.Add("SimpleStrategy {replication_factor=1}")
	f.Add("LocalStrategy {}")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseReplication(text)
		if err != nil {
			return
		}
		again, err := ParseReplication(parsed.String())
		if err != nil || !again.Equal(parsed) {
			t.Fatalf("%q parsed to %s, and that to %s, error %v", text, parsed, again, err)
		}
	})
}

// TestReplicationByJMXAndSchemaAreEqual shows that both sources of the same replication compare as
// equal.
func TestReplicationByJMXAndSchemaAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.MapOfN(rapid.StringMatching(`[A-Za-z][A-Za-z0-9_]{0,8}`).Filter(func(s string) bool {
			return s != "class"
		}), rapid.IntRange(0, 5), 0, 4).Draw(t, "replicas")
		wanted := PerDatacenter(replicas)
		byJMX, err := ParseReplication(wanted.String())
		if err != nil || !byJMX.Equal(wanted) {
			t.Fatalf("over JMX %s, error %v; want %s", byJMX, err, wanted)
		}
		row := map[string]string{"class": strategyPackage + NetworkTopologyStrategy}
		total := 0
		for datacenter, count := range replicas {
			total += count
			if count > 0 {
				row[datacenter] = wanted.Options[datacenter]
			}
		}
		bySchema, err := ReplicationFromSchema(row)
		if err != nil || !bySchema.Equal(wanted) {
			t.Fatalf("from the schema %s, error %v; want %s", bySchema, err, wanted)
		}
		if got, err := wanted.Replicas(); err != nil || got != total {
			t.Fatalf("%s has %d replicas, error %v; want %d", wanted, got, err, total)
		}
	})
}

func TestReplicas(t *testing.T) {
	for text, want := range map[string]int{
		"SimpleStrategy {replication_factor=3}": 3, "NetworkTopologyStrategy {dc1=3/1, dc2=2}": 5,
		"LocalStrategy {}": 1, "EverywhereStrategy {}": 0, "x.Own {a=b}": 0,
	} {
		parsed, err := ParseReplication(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parsed.Replicas(); err != nil || got != want {
			t.Errorf("%s has %d replicas, error %v; want %d", text, got, err, want)
		}
	}
	if _, err := (Replication{SimpleStrategy, map[string]string{"replication_factor": "many"}}).Replicas(); err == nil {
		t.Error("many replicas: no error")
	}
	if _, err := ReplicationFromSchema(map[string]string{"dc1": "3"}); err == nil {
		t.Error("replication without a class: no error")
	}
}

func TestReplicationIsOnlyRaised(t *testing.T) {
	for name, c := range map[string]struct {
		present string
		least   map[string]int
		system  bool
		want    string // empty: refused
	}{
		"one datacenter raised": {"NetworkTopologyStrategy {dc1=1}", map[string]int{"dc1": 3}, false,
			"NetworkTopologyStrategy {dc1=3}"},
		"one added": {"NetworkTopologyStrategy {dc1=3}", map[string]int{"dc2": 2}, false,
			"NetworkTopologyStrategy {dc1=3, dc2=2}"},
		"none lowered": {"NetworkTopologyStrategy {dc1=5, dc3=2}", map[string]int{"dc1": 3, "dc2": 1},
			false, "NetworkTopologyStrategy {dc1=5, dc2=1, dc3=2}"},
		"nothing to do": {"NetworkTopologyStrategy {dc1=3}", map[string]int{"dc1": 3}, false,
			"NetworkTopologyStrategy {dc1=3}"},
		"none of none": {"NetworkTopologyStrategy {dc1=3}", map[string]int{"dc2": 0}, false,
			"NetworkTopologyStrategy {dc1=3}"},
		"a user's SimpleStrategy": {"SimpleStrategy {replication_factor=3}", map[string]int{"dc1": 3}, false, ""},
		"a system one": {"SimpleStrategy {replication_factor=1}", map[string]int{"dc1": 3}, true,
			"NetworkTopologyStrategy {dc1=3}"},
		"a local one":        {"LocalStrategy {}", map[string]int{"dc1": 3}, true, ""},
		"transient replicas": {"NetworkTopologyStrategy {dc1=3/1}", map[string]int{"dc1": 5}, false, ""},
		"transient replicas elsewhere": {"NetworkTopologyStrategy {dc1=3/1}", map[string]int{"dc2": 3}, false,
			"NetworkTopologyStrategy {dc1=3/1, dc2=3}"},
	} {
		t.Run(name, func(t *testing.T) {
			present, err := ParseReplication(c.present)
			if err != nil {
				t.Fatal(err)
			}
			raised, err := present.Raised(c.least, c.system)
			if (err != nil) != (c.want == "") || err == nil && raised.String() != c.want {
				t.Errorf("%s, error %v; want %s", raised, err, c.want)
			}
			if again, _ := ParseReplication(c.present); !again.Equal(present) {
				t.Errorf("the present one became %s", present)
			}
		})
	}
}

// A datacenter with no replicas any more is not named, and no keyspace is left without any.
func TestReplicasAreTakenAway(t *testing.T) {
	for present, want := range map[string]string{
		"NetworkTopologyStrategy {dc1=3, dc2=2}": "NetworkTopologyStrategy {dc1=3}",
		"NetworkTopologyStrategy {dc1=3}":        "NetworkTopologyStrategy {dc1=3}",
		"NetworkTopologyStrategy {dc2=2}":        "",
		"SimpleStrategy {replication_factor=2}":  "",
	} {
		r, err := ParseReplication(present)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Exactly(map[string]int{"dc2": 0}, true)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%s becomes %s (%v), want %q", present, got, err, want)
		}
	}
}
