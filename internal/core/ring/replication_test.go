package ring

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseReplication(t *testing.T) {
	tests := []struct {
		text, want string
		strategy   Strategy
		total      int
	}{
		{"NetworkTopologyStrategy {dc2=2, dc1=3}", "NetworkTopologyStrategy {dc1=3, dc2=2}", NetworkTopologyStrategy,
			5},
		{"NetworkTopologyStrategy {dc1=3/0, dc2=0}", "NetworkTopologyStrategy {dc1=3}", NetworkTopologyStrategy, 3},
		{"NetworkTopologyStrategy {}", "NetworkTopologyStrategy {}", NetworkTopologyStrategy, 0},
		{"NetworkTopologyStrategy {a=b=3}", "NetworkTopologyStrategy {a=b=3}", NetworkTopologyStrategy, 3},
		{"SimpleStrategy {replication_factor=1}", "SimpleStrategy {replication_factor=1}", SimpleStrategy, 1},
		{"SimpleStrategy {replication_factor=+2}", "SimpleStrategy {replication_factor=2}", SimpleStrategy, 2},
		{"LocalStrategy {}", "LocalStrategy {}", LocalStrategy, 0},
		{"EverywhereStrategy {}", "EverywhereStrategy {}", EverywhereStrategy, 0},
		{"com.example.EverywhereStrategy {x=y}", "EverywhereStrategy {}", EverywhereStrategy, 0},
	}
	for _, test := range tests {
		got, err := ParseReplication(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if got.String() != test.want || got.Strategy() != test.strategy || got.TotalFactor() != test.total {
			t.Errorf("%q: got %q, %s, %d in all", test.text, got, got.Strategy(), got.TotalFactor())
		}
	}
}

func TestReplicationFactors(t *testing.T) {
	r := topology(t, "dc2=2, dc1=3, dc4=0")
	if got := fmt.Sprint(r.Factor("dc1"), r.Factor("dc2"), r.Factor("dc3"), r.Factor("dc4"),
		r.Datacenters()); got != "3 2 0 0 [dc1 dc2]" {
		t.Errorf("got %s", got)
	}
	if simple := replicationOf(t, "SimpleStrategy {replication_factor=3}"); simple.Factor("dc1") != 0 ||
		len(simple.Datacenters()) != 0 {
		t.Error("SimpleStrategy has datacenters")
	}
	var none Replication
	if none.Strategy() != "" || none.TotalFactor() != 0 {
		t.Error("the zero value is a replication")
	}
}

func TestReplicationFaults(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "want a class name and options in braces"},
		{"SimpleStrategy", "want a class name and options in braces"},
		{"SimpleStrategy {replication_factor=1", "want a class name and options in braces"},
		{"NetworkTopologyStrategy {dc1}", `option "dc1": want name=value`},
		{"NetworkTopologyStrategy {dc1=1, dc1=2}", `option "dc1" is there twice`},
		{"NetworkTopologyStrategy {dc1=x}", `replication factor of dc1: "x": want an integer of 0 or more`},
		{"NetworkTopologyStrategy {dc1=}", `option "dc1=": want name=value`},
		{"NetworkTopologyStrategy {dc1=-1}", `replication factor of dc1: "-1": want an integer of 0 or more`},
		{"NetworkTopologyStrategy {dc1=3/}", `replication factor of dc1: "3/": want an integer of 0 or more`},
		{"NetworkTopologyStrategy {dc1=3/-1}", `"3/-1": want an integer of 0 or more`},
		{"NetworkTopologyStrategy {dc1=2147483648}", `"2147483648": want an integer of 0 or more`},
		{"NetworkTopologyStrategy {Replication_Factor=3}",
			"replication_factor is no option of a NetworkTopologyStrategy that is in use"},
		{"NetworkTopologyStrategy {=3}", `option "=3": want name=value`},
		{"SimpleStrategy {}", "SimpleStrategy has no option replication_factor"},
		{"SimpleStrategy {replication_factor=a}", `option replication_factor: "a": want an integer of 0 or more`},
		{
			"MetaStrategy {}", `replication strategy "MetaStrategy" is not known: want NetworkTopologyStrategy, SimpleStrategy, LocalStrategy or EverywhereStrategy`,
		},
	}
	for _, test := range tests {
		got, err := ParseReplication(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			!strings.HasPrefix(err.Error(), fmt.Sprintf("parse replication %q: ", test.text)) {
			t.Errorf("%q: got %v, %v; want %s", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"NetworkTopologyStrategy {dc1=3/1}", "SimpleStrategy {replication_factor=3/1}"} {
		if _, err := ParseReplication(text); !errors.Is(err, ErrTransientReplication) ||
			!strings.Contains(err.Error(), `"3/1": transient`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NetworkTopology(map[string]int{"dc1": -1}); err == nil ||
		err.Error() != "replication factor -1 of datacenter dc1: want 0 or more" {
		t.Errorf("factor -1: %v", err)
	}
	if _, err := NetworkTopology(map[string]int{"": 3}); err == nil ||
		err.Error() != "replication factor for a datacenter without a name" {
		t.Errorf("no name: %v", err)
	}
	if _, err := Simple(-1); err == nil || err.Error() != "replication factor -1: want 0 or more" {
		t.Errorf("factor -1: %v", err)
	}
}

func TestReplicationStringIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replication := drawReplication(t)
		again, err := ParseReplication(replication.String())
		if err != nil || again.String() != replication.String() || again.TotalFactor() != replication.TotalFactor() {
			t.Fatalf("%s read again is %s, %v", replication, again, err)
		}
	})
}

func FuzzParseReplication(f *testing.F) {
	for _, seed := range []string{
		"NetworkTopologyStrategy {dc2=2, dc1=3}", "SimpleStrategy {replication_factor=3}", "LocalStrategy {}",
		"EverywhereStrategy {}", "NetworkTopologyStrategy {dc1=3/1}", "NetworkTopologyStrategy {=}", " {", "x {}",
		"NetworkTopologyStrategy {a b=1, c=2}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		replication, err := ParseReplication(text)
		if err != nil {
			return
		}
		again, err := ParseReplication(replication.String())
		if err != nil || again.String() != replication.String() {
			t.Fatalf("%q is %q, which is %q, %v", text, replication, again, err)
		}
	})
}
