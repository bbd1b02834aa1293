package ring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// candidatesOf reads candidates from words such as "a:dc1/r1"; a trailing "!"
// makes one suspect.
func candidatesOf(words string) []SeedCandidate {
	var candidates []SeedCandidate
	for word := range strings.FieldsSeq(words) {
		word, suspect := strings.CutSuffix(word, "!")
		id, place, _ := strings.Cut(word, ":")
		datacenter, rack, _ := strings.Cut(place, "/")
		candidates = append(candidates, SeedCandidate{id, datacenter, rack, suspect})
	}
	return candidates
}

func TestSeeds(t *testing.T) {
	tests := []struct{ name, candidates, present, want string }{
		{"one node", "a:dc1/r1", "", "a"},
		{"two nodes", "b:dc1/r1 a:dc1/r1", "", "a b"},
		{"one rack", "d:dc1/r1 c:dc1/r1 b:dc1/r1 a:dc1/r1", "", "a b c"},
		{"one of each rack", "a:dc1/r1 b:dc1/r1 c:dc1/r2 d:dc1/r2 e:dc1/r3", "", "a c e"},
		{"more racks than seeds", "a:dc1/r1 b:dc1/r2 c:dc1/r3 d:dc1/r4", "", "a b c"},
		{"two racks", "a:dc1/r1 b:dc1/r1 c:dc1/r2 d:dc1/r2", "", "a b c"},
		{"present ones stay", "a:dc1/r1 b:dc1/r1 c:dc1/r2 d:dc1/r2 e:dc1/r3", "b d e", "b d e"},
		{"present ones stay on other racks", "a:dc1/r1 b:dc1/r2 c:dc1/r3 d:dc1/r4 e:dc1/r5", "d e", "a d e"},
		{"who left goes", "a:dc1/r1 c:dc1/r2 e:dc1/r3", "b c x", "a c e"},
		{"a present one gives way to a new rack", "a:dc1/r1 b:dc1/r1 c:dc1/r1 d:dc1/r2", "b c a", "a b d"},
		{"both seats of a rack stay", "a:dc1/r1 b:dc1/r1 c:dc1/r1 d:dc1/r2 e:dc1/r2", "b c d", "b c d"},
		{"suspects go", "a:dc1/r1! b:dc1/r1 c:dc1/r2 d:dc1/r3! e:dc1/r3!", "a c d", "b c"},
		{"only suspects", "a:dc1/r1! b:dc1/r1! c:dc2/r1", "b", "a b c"},
		{"datacenters apart", "a:dc2/r1 b:dc1/r1 c:dc1/r1 d:dc1/r1 e:dc1/r1", "", "b c d a"},
		{"racks of one name", "a:dc1/r1 b:dc1/r2 c:dc2/r1 d:dc2/r1", "", "a b c d"},
	}
	for _, test := range tests {
		got, err := Seeds(candidatesOf(test.candidates), strings.Fields(test.present))
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %v, %v; want %s", test.name, got, err, test.want)
		}
	}
	if got, err := Seeds(nil, []string{"a"}); !errors.Is(err, ErrNoSeeds) || got != nil {
		t.Errorf("nobody: %v, %v", got, err)
	}
}

func TestSeedsOfManyDatacenters(t *testing.T) {
	for datacenters, want := range map[int]int{6: 18, 7: 14, 10: 20} {
		var candidates []SeedCandidate
		for dc := range datacenters {
			for n := range 4 {
				candidates = append(candidates, SeedCandidate{ID: fmt.Sprint(dc, "-", n),
					Datacenter: fmt.Sprint("dc", dc), Rack: fmt.Sprint("r", n)})
			}
		}
		seeds, err := Seeds(candidates, nil)
		if err != nil || len(seeds) != want {
			t.Errorf("%d datacenters: %d seeds, want %d, %v", datacenters, len(seeds), want, err)
		}
	}
}

func TestSeedsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var candidates []SeedCandidate
		for i := range rapid.IntRange(1, 20).Draw(t, "candidates") {
			candidates = append(candidates, SeedCandidate{
				ID:         fmt.Sprintf("n%02d", i),
				Datacenter: rapid.SampledFrom([]string{"dc1", "dc2", "dc3"}).Draw(t, "datacenter"),
				Rack:       rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "rack"),
				Suspect:    rapid.IntRange(0, 3).Draw(t, "suspect") == 0,
			})
		}
		present := rapid.SliceOf(rapid.SampledFrom([]string{"n00", "n01", "n02", "n03", "n05", "n09", "gone"})).Draw(t,
			"present")
		seeds, err := Seeds(candidates, present)
		if err != nil || len(seeds) == 0 {
			t.Fatalf("seeds %v, %v", seeds, err)
		}
		again, err := Seeds(rapid.Permutation(candidates).Draw(t, "order"), seeds)
		if err != nil || !slices.Equal(again, seeds) {
			t.Fatalf("%v chosen, and then %v, %v", seeds, again, err)
		}
		for _, datacenter := range []string{"dc1", "dc2", "dc3"} {
			local, usable := map[string]int{}, map[string]int{}
			count, nodes, healthy := 0, 0, 0
			for _, c := range candidates {
				if c.Datacenter != datacenter {
					continue
				}
				nodes++
				if !c.Suspect {
					healthy++
					usable[c.Rack]++
				}
				if slices.Contains(seeds, c.ID) {
					count++
					local[c.Rack]++
					if c.Suspect && healthy > 0 {
						t.Fatalf("suspect %s is a seed of %v", c.ID, candidates)
					}
				}
			}
			if healthy > 0 {
				if want := min(3, healthy); count != want {
					t.Fatalf("%d seeds in %s, want %d", count, datacenter, want)
				}
				if want := min(3, len(usable)); len(local) != min(want, healthy) {
					t.Fatalf("seeds on %d racks of %s, want %d", len(local), datacenter, want)
				}
			} else if want := min(3, nodes); count != want {
				t.Fatalf("%d seeds in %s of suspects, want %d", count, datacenter, want)
			}
		}
	})
}
