package tokens

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/core/ring"
)

// Expectations follow Murmur3Partitioner#midpoint and #split, whose ring has
// 2^64-1 positions where it wraps.
func TestMidpointAndSplit(t *testing.T) {
	tests := []struct {
		left, right ring.Token
		middle      ring.Token
		third       ring.Token // after a fraction of 0.25
	}{
		{0, 100, 50, 25},
		{-100, 0, -50, -75},
		{-3, 0, -2, -2}, // the middle is rounded down, the split towards zero
		{0, 1, 0, 0},
		{ring.MinToken, ring.MaxToken, -1, -4611686018427387904},
		{100, 0, -9223372036854775758, 4611686018427387978},
		{0, 0, ring.MaxToken, 4611686018427387903},
		{ring.MaxToken - 10, ring.MinToken + 10, ring.MaxToken, ring.MaxToken - 5},
		{ring.MaxToken - 10, ring.MinToken + 30, ring.MinToken + 10, ring.MaxToken},
	}
	for _, test := range tests {
		if got := midpoint(test.left, test.right); got != test.middle {
			t.Errorf("middle of %s and %s is %s, want %s", test.left, test.right, got, test.middle)
		}
		if got := split(test.left, test.right, 0.25); got != test.third {
			t.Errorf("a quarter of the way from %s to %s is %s, want %s", test.left, test.right, got, test.third)
		}
	}
}

// A split divides a range of some size in the ratio asked for.
func TestSplitDivides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, right := ring.Token(rapid.Int64().Draw(t, "left")), ring.Token(rapid.Int64().Draw(t, "right"))
		fraction := rapid.Float64Range(0.01, 0.99).Draw(t, "fraction")
		whole := left.SizeTo(right)
		if whole < 1e-9 {
			return
		}
		part := left.SizeTo(split(left, right, fraction)) / whole
		if math.Abs(part-fraction) > 1e-8 {
			t.Fatalf("from %s to %s: %f instead of %f", left, right, part, fraction)
		}
		if half := left.SizeTo(midpoint(left, right)) / whole; math.Abs(half-0.5) > 1e-8 {
			t.Fatalf("from %s to %s: %f instead of a half", left, right, half)
		}
	})
}

// The first numbers of java.util.Random for some seeds.
func TestJavaRandom(t *testing.T) {
	for seed, want := range map[int][]float64{
		0:  {0.730967787376657, 0.24053641567148587, 0.6374174253501083},
		42: {0.7275636800328681, 0.6832234717598454, 0.30871945533265976},
	} {
		random := newJavaRandom(seed)
		for i, number := range want {
			if got := random.float64(); got != number {
				t.Errorf("seed %d, number %d: %v, want %v", seed, i, got, number)
			}
		}
	}
}

func TestCircle(t *testing.T) {
	c := circle{}
	for i, token := range []ring.Token{5, 1, 3, 5} {
		c = c.insert(place{token, i})
	}
	if want := (circle{{1, 1}, {3, 2}, {5, 3}}); !slices.Equal(c, want) {
		t.Errorf("got %v, want %v", c, want)
	}
	if c.before(0) != 5 || c.before(2) != 3 {
		t.Errorf("before the first is %s, before the last %s", c.before(0), c.before(2))
	}
	if got := c.insert(place{4, 2}).owners(); got != 3 {
		t.Errorf("%d owners", got)
	}
}

func TestQueueGivesTheGreatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOf(rapid.Float64Range(-5, 5)).Draw(t, "weights")
		var q queue[int]
		for i, weight := range weights {
			q.push(weight, i)
		}
		slices.SortFunc(weights, func(a, b float64) int { return -slices.Compare([]float64{a}, []float64{b}) })
		for _, want := range weights {
			if q.empty() || q.peek().weight != want || q.pop().weight != want {
				t.Fatalf("want %f", want)
			}
		}
		if !q.empty() {
			t.Fatal("something is left")
		}
	})
}

// An owner with fewer tokens than it is to split: the rest splits what is largest
// then.
func TestTakeOverFromFewTokens(t *testing.T) {
	const half = ring.Token(1 << 62)
	c := circle{{-half, 0}, {-half + 1, 1}, {-half + 2, 1}, {-half + 3, 1}} // owner 0 has nearly all
	got := takeOver(slices.Clone(c), 2, 4, 0)
	if len(got) != 4 {
		t.Fatalf("tokens %v", got)
	}
	seen := map[ring.Token]bool{}
	for _, p := range c {
		seen[p.token] = true
	}
	for _, token := range got {
		if seen[token] {
			t.Errorf("token %s is taken", token)
		}
		seen[token] = true
	}
	owned := 0.0
	for _, token := range got {
		c = c.insert(place{token, 2})
	}
	for i, p := range c {
		if p.owner == 2 {
			owned += c.before(i).SizeTo(p.token)
		}
	}
	if owned < 0.4 || owned > 0.95 {
		t.Errorf("the newcomer owns %f", owned)
	}
}

// Too few groups for the replicas.
func TestSpreadSplitsWithoutGroups(t *testing.T) {
	c := circle{{-100, 0}, {0, 1}, {100, 2}}
	oneRack := func(int) string { return "r" }
	got := spread(slices.Clone(c), 3, 2, 2, oneRack, 0)
	if want := splitLargest(slices.Clone(c), 3, 2, 0); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	twoRacks := func(owner int) string { return []string{"r", "s", "r", "s"}[owner] }
	if got := spread(slices.Clone(c), 3, 2, 2, twoRacks, 0); slices.Equal(got, splitLargest(slices.Clone(c), 3, 2, 0)) {
		t.Errorf("with two groups the largest ranges were split: %v", got)
	}
}

// Two starts of a range: the one that makes it larger; a start that equals the
// end makes it empty, not full.
func TestFurther(t *testing.T) {
	for _, test := range []struct{ a, b, end, want ring.Token }{
		{1, 2, 10, 1}, {2, 1, 10, 1}, {5, 20, 10, 20}, {10, 7, 10, 7}, {7, 10, 10, 7},
		{ring.MaxToken, 3, 10, ring.MaxToken},
	} {
		if got := further(test.a, test.b, test.end); got != test.want {
			t.Errorf("further back from %s of %s and %s is %s", test.end, test.a, test.b, got)
		}
	}
}
