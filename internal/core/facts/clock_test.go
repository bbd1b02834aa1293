package facts

import (
	"strings"
	"testing"
	"time"
)

func TestHowFarAClockIsAhead(t *testing.T) {
	sent := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		asked, answered, came, ahead, doubt int64 // in milliseconds, the times after sent
	}{
		"as long there as back":        {10, 10, 20, 0, 10},
		"at once back":                 {20, 20, 20, 10, 10},
		"an answer that was held":      {10, 30010, 30020, 0, 10},
		"a second ahead, and held":     {1010, 31010, 30020, 1000, 10},
		"a second behind":              {-990, -990, 20, -1000, 10},
		"set a second ahead meanwhile": {10, 31010, 30020, 500, 490},
	} {
		at := func(ms int64) time.Time { return sent.Add(time.Duration(ms) * time.Millisecond) }
		clock := Clock{Asked: at(c.asked), Answered: at(c.answered)}
		clock.Compare(sent, at(c.came))
		if clock.Ahead.Milliseconds() != c.ahead || clock.Doubt.Milliseconds() != c.doubt {
			t.Errorf("%s: %s ahead, give or take %s", name, clock.Ahead, clock.Doubt)
		}
	}
}

func TestClocksThatDifferFromMost(t *testing.T) {
	for name, c := range map[string]struct {
		ahead      []int // of the nodes a, b, …, in milliseconds, give or take doubt
		doubt      int
		said, want string // their letters
	}{
		"none":                {nil, 5, "", ""},
		"one":                 {[]int{9000}, 5, "a", ""},
		"all true":            {[]int{0, 5, -5}, 5, "", ""},
		"the operator's own":  {[]int{9000, 9100, 8900}, 5, "", ""},
		"one ahead":           {[]int{0, 511, 0}, 5, "", "b"},
		"one behind":          {[]int{0, 0, -511}, 5, "", "c"},
		"perhaps":             {[]int{0, 510, 0}, 5, "", ""},
		"slow answers":        {[]int{0, 3000, 0}, 1500, "", ""},
		"still":               {[]int{0, 250, 0}, 5, "b", "b"},
		"no longer":           {[]int{0, 249, 0}, 5, "b", ""},
		"another than before": {[]int{0, 300, 0}, 5, "a", ""},
		"one that is silent":  {[]int{0, 5, -5}, 5, "d", "d"},
		"two of two":          {[]int{0, 600}, 5, "", "ab"},
		"two of two, still":   {[]int{0, 300}, 5, "ab", "ab"},
		"all of three":        {[]int{0, 600, 1200}, 5, "", "abc"},
		"two against two":     {[]int{0, 0, 600, 600}, 5, "", "abcd"},
	} {
		clocks := map[string]*Clock{}
		for i, ahead := range c.ahead {
			clocks[string(rune('a'+i))] = &Clock{Ahead: time.Duration(ahead) * time.Millisecond,
				Doubt: time.Duration(c.doubt) * time.Millisecond}
		}
		said := strings.Split(c.said, "")
		if got := strings.Join(ClocksOff(clocks, said), ""); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
