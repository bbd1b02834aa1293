package settings

import (
	"strings"
	"testing"
)

func TestCheckChange(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"5.0.6", "5.0.9", ""},
		{"5.0.9", "5.0.6", ""},
		{"5.0.9-ours", "5.0.6", ""},
		{"4.1.10", "5.0.9", ""},
		{"5.0.0", "4.1.10", "5.0.0 → 4.1.10: Cassandra 4.1 does not read a disk on which 5.0 was NORMAL"},
		{"5.1-alpha1", "5.0.9", "Cassandra 5.0 does not read a disk on which 5.1 was NORMAL"},
		{"10.0.0", "5.0.9", "Cassandra 5.0 does not read a disk on which 10.0 was NORMAL"},
		{"4.0.17", "5.0.9", "Cassandra 5.0 cannot follow 4.0: change to 4.1 first"},
		{"4.0.17", "4.1.10", "Cassandra 4.1 cannot follow 4.0"},
		{"5.0.9", "6.0.0", "Cassandra 6.0 cannot follow 5.0"},
		{"", "5.0.9", "Cassandra 5.0 cannot follow"},
	} {
		err := CheckChange(c.from, c.to)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
}

func TestLineOf(t *testing.T) {
	for release, want := range map[string]string{
		"5.0.9": "5.0", "5.0": "5.0", "5.0-beta1": "5.0", "10.12.3": "10.12",
		"": "", "5": "", "5.": "", ".0": "", "5.x": "", "latest": "", "v5.0.9": "", "5-1.0": "",
	} {
		if got := LineOf(release); got != want {
			t.Errorf("%q: %q, want %q", release, got, want)
		}
	}
}
