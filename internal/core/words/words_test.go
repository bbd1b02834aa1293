package words

import "testing"

func TestWordsForManyThings(t *testing.T) {
	for _, c := range []struct{ want, got string }{
		{"", List([]string{}, 2)},
		{"a", List([]string{"a"}, 2)},
		{"a, b", List([]string{"a", "b"}, 2)},
		{"a, b and 1 other", List([]string{"a", "b", "c"}, 2)},
		{"a, b and 3 others", List([]string{"a", "b", "c", "d", "e"}, 2)},
		{"1 node", Plural(1, "node")},
		{"0 nodes", Plural(0, "node")},
		{"0th", Ordinal(0)},
		{"first", Ordinal(1)},
		{"third", Ordinal(3)},
		{"4th", Ordinal(4)},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
