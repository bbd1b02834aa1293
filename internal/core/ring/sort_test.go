package ring

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However many tokens there are, they end up as a stable sort by comparison leaves them.
func TestSortByToken(t *testing.T) {
	token := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3),
		rapid.SampledFrom([]int64{int64(MinToken), int64(MaxToken), int64(MinToken) + 1, -1, 0, 1 << 33}))
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(token, 1, 50).Draw(t, "tokens")
		count := rapid.SampledFrom([]int{0, 1, len(few), fewTokens - 1, fewTokens, 3 * fewTokens}).Draw(t, "count")
		all := make([]owned, count)
		for i := range all {
			all[i] = owned{Token(few[i%len(few)] + int64(i/len(few)/2)), int32(i)}
		}
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b owned) int { return cmp.Compare(a.token, b.token) })
		if got := sortByToken(all); !slices.Equal(got, want) {
			t.Fatalf("sorted %v, want %v", got, want)
		}
	})
}
