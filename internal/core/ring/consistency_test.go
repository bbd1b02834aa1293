package ring

import (
	"fmt"
	"strings"
	"testing"
)

func TestConsistency(t *testing.T) {
	tests := []struct {
		level    Consistency
		cql      string
		required [6]int // of factors 1 to 6
		local    bool
	}{
		{One, "ONE", [6]int{1, 1, 1, 1, 1, 1}, false},
		{LocalOne, "LOCAL_ONE", [6]int{1, 1, 1, 1, 1, 1}, true},
		{Two, "TWO", [6]int{2, 2, 2, 2, 2, 2}, false},
		{Three, "THREE", [6]int{3, 3, 3, 3, 3, 3}, false},
		{Quorum, "QUORUM", [6]int{1, 2, 2, 3, 3, 4}, false},
		{LocalQuorum, "LOCAL_QUORUM", [6]int{1, 2, 2, 3, 3, 4}, true},
		{EachQuorum, "EACH_QUORUM", [6]int{1, 2, 2, 3, 3, 4}, true},
		{All, "ALL", [6]int{1, 2, 3, 4, 5, 6}, false},
	}
	if len(tests) != len(consistencies) {
		t.Fatalf("%d levels tested of %d", len(tests), len(consistencies))
	}
	for _, test := range tests {
		if got := test.level.CQL(); got != test.cql {
			t.Errorf("%s in CQL is %s", test.level, got)
		}
		if test.level.byDatacenter() != test.local {
			t.Errorf("%s by datacenter: %t", test.level, !test.local)
		}
		for i, want := range test.required {
			if got := test.level.required(i + 1); got != want {
				t.Errorf("%s needs %d of %d, want %d", test.level, got, i+1, want)
			}
		}
		for _, text := range []string{string(test.level), test.cql, strings.ToLower(test.cql)} {
			if got, err := ParseConsistency(text); got != test.level || err != nil {
				t.Errorf("%q is %s, %v", text, got, err)
			}
		}
	}
	for _, text := range []string{"", "ANY", "localQuorum", "LOCALQUORUM", "SERIAL"} {
		want := fmt.Sprintf("consistency level %q is not known: want one of [One LocalOne Two Three Quorum "+
			"LocalQuorum EachQuorum All]", text)
		if got, err := ParseConsistency(text); err == nil || err.Error() != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
}
