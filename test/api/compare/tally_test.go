package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tally counts what came of the requests, by what they were.
type tally struct {
	mu    sync.Mutex
	done  map[string]int
	total map[string]int
	// verdicts are the answers of the real server other than yes.
	verdicts map[string]int
}

func (t *tally) add(r request, err error) {
	what := r.Verb
	if r.Patch != "" {
		what = string(r.Patch)
	}
	if r.Sub != "" {
		what += " of " + r.Sub
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total == nil {
		t.done, t.total, t.verdicts = map[string]int{}, map[string]int{}, map[string]int{}
	}
	t.total[what]++
	if err == nil {
		t.done[what]++
		return
	}
	// The fields that are wrong do not matter here.
	words := strings.Fields(verdict(err))
	t.verdicts[strings.Join(words[:min(2, len(words))], " ")]++
}

// check tells what was asked, and fails if something was never carried out, or never refused, so
// that nothing was compared of it.
func (t *tally) check(test *testing.T) {
	test.Helper()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(t.total)) {
		lines = append(lines, fmt.Sprintf("%6d of %6d %s", t.done[what], t.total[what], what))
		if t.total[what] >= enough && (t.done[what] == 0 || t.done[what] == t.total[what] && !alwaysDone[what]) {
			test.Errorf("%s: %d of %d were carried out", what, t.done[what], t.total[what])
		}
	}
	for _, answer := range slices.Sorted(maps.Keys(t.verdicts)) {
		lines = append(lines, fmt.Sprintf("%16d %s", t.verdicts[answer], answer))
	}
	test.Logf("carried out, and refused:\n%s", strings.Join(lines, "\n"))
}

// alwaysDone are requests that find what there is.
var alwaysDone = map[string]bool{"list": true, "deleteAll": true}

// enough is how many requests must have been made of a sort before it is strange that all of them
// had the same end.
const enough = 30
