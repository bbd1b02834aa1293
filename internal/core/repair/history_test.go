package repair

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/core/ring"
)

// A record says of every token when it was last repaired, whatever was repaired in which order, and
// after it was written and read.
func TestARecordSaysWhenEachTokenWasRepaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.OneOf(rapid.Int64Range(-5, 5),
			rapid.SampledFrom([]int64{int64(ring.MinToken), int64(ring.MaxToken)}))
		h, table := &History{}, TableOf{ID: "a", Keyspace: "shop", Name: "rows", Replication: "x"}
		type done struct {
			r  ring.Range
			at time.Time
		}
		var all []done
		for range rapid.IntRange(0, 6).Draw(t, "repairs") {
			d := done{ring.Range{Start: ring.Token(token.Draw(t, "start")), End: ring.Token(token.Draw(t, "end"))},
				time.Unix(60*rapid.Int64Range(1, 9).Draw(t, "at"), 0)}
			all = append(all, d)
			h = h.With([]Unit{{Tables: []TableOf{table}, Ranges: unwrapped(d.r)}}, d.at)
		}
		read, err := Decode(Encode(h))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int64{-5, -1, 0, 1, 5, int64(ring.MaxToken), int64(ring.MaxToken) - 1} {
			want := int64(0)
			for _, d := range all {
				if slices.ContainsFunc(unwrapped(d.r), func(s span) bool {
					return s.Start < ring.Token(at) && ring.Token(at) <= s.End
				}) {
					want = max(want, d.at.Unix()/60)
				}
			}
			for name, of := range map[string]*History{"kept": h, "read": read} {
				got := int64(-1)
				of.Tables["a"].within(span{Start: ring.Token(at - 1), End: ring.Token(at)},
					func(_ span, at int64) { got = at })
				if got != want {
					t.Fatalf("%s: token %d was repaired at %d, want %d: %+v", name, at, got, want, of.Tables["a"])
				}
			}
		}
	})
}

// The rate is a mean of what was repaired by all units of a time, also by those that failed; it is
// kept, also where an earlier release has kept none.
func TestTheRateIsAMeanOfTheLastRepairs(t *testing.T) {
	large, small := Unit{Bytes: 3 << 30, Rate: usual}, Unit{Bytes: 1 << 20, Rate: usual}
	const each = (3 << 30) / 300 // a second
	for name, c := range map[string]struct {
		was             int64
		units, repaired []Unit
		took            time.Duration
		want            int64
	}{
		"the first":                 {0, []Unit{large}, []Unit{large}, 5 * time.Minute, each},
		"two at a time":             {0, []Unit{large, large}, []Unit{large, large}, 5 * time.Minute, 2 * each},
		"a short one hardly counts": {7 * each, []Unit{large}, []Unit{large}, 5 * time.Minute, 7*each - 6*each/7},
		"a long one counts half":    {each, []Unit{large}, []Unit{large}, 30 * time.Minute, each * 7 / 12},
		"it has failed":             {7 * each, []Unit{large}, nil, 5 * time.Minute, 6 * each},
		"nothing to compare":        {each, []Unit{small, small}, []Unit{small, small}, time.Minute, each},
		"it took no time":           {each, []Unit{large}, []Unit{large}, 0, each},
	} {
		h, err := Decode(Encode((&History{Rate: c.was}).Ran(c.units, c.repaired, start, start.Add(c.took))))
		if err != nil {
			t.Fatal(err)
		}
		if d := h.Rate - c.want; d < -2 || d > 2 || h.Took != c.took || !h.Ended.Equal(start.Add(c.took)) {
			t.Errorf("%s: rate %d, want %d; took %s until %s", name, h.Rate, c.want, h.Took, h.Ended)
		}
	}
	raw := (&History{}).bytes(1)
	earlier := decoder{raw: raw[:len(raw)-1]}
	if h := earlier.history(); earlier.failed || h.Rate != 0 {
		t.Errorf("of an earlier release: %+v, failed %v", h, earlier.failed)
	}
}

func FuzzDecode(f *testing.F) {
	h := (&History{}).With([]Unit{{Tables: []TableOf{{ID: "a"}}, Ranges: []ring.Range{{Start: 1, End: 9}}}},
		time.Unix(600, 0))
	f.Add(Encode(h))
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := Decode(text); err == nil {
			Encode(h)
		}
	})
}
