package journal_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/test/memdisk"
)

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// document is a memory in small.
type document struct {
	Number int               `json:"number"`
	At     time.Time         `json:"at,omitzero"`
	Begun  string            `json:"begun,omitempty"`
	Done   map[string]string `json:"done,omitempty"`
}

// killed is what a hook panics with.
type killed struct{ memdisk.Step }

// die makes a hook that kills the agent before or after one step.
func die(number int, after bool) memdisk.Hook {
	return func(s memdisk.Step, done bool) error {
		if s.Number == number && done == after {
			panic(killed{s})
		}
		return nil
	}
}

// survive runs f and says whether it was killed.
func survive(f func()) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	f()
	return false
}

// open opens a store that must be there or absent.
func open(t rapid.TB, disk *memdisk.Disk, where string) (*journal.Store[document], document) {
	t.Helper()
	store, found, status, err := journal.OpenStore[document](disk)
	if status != journal.Valid && status != journal.Absent {
		t.Fatalf("%s: %s: %v, files %v", where, status, err, disk.Files())
	}
	return store, found
}

// live puts the documents 1 to n, and tells the last one that was acknowledged.
func live(store *journal.Store[document], n int, acknowledged *int) error {
	for number := 1; number <= n; number++ {
		if err := store.Put(document{Number: number, At: start.Add(time.Duration(number) * time.Second)}); err != nil {
			return err
		}
		*acknowledged = number
	}
	return nil
}

const puts = 4

// steps counts those of an undisturbed life.
func steps(t *testing.T) int {
	t.Helper()
	disk, acknowledged := memdisk.New(), 0
	store, _ := open(t, disk, "empty")
	if err := live(store, puts, &acknowledged); err != nil {
		t.Fatal(err)
	}
	return disk.Steps()
}

// TestACrashLeavesTheOldOrTheNewVersion kills the agent before and after each step, and cuts the
// power then.
func TestACrashLeavesTheOldOrTheNewVersion(t *testing.T) {
	disks := 0
	for number := range steps(t) {
		for _, after := range []bool{false, true} {
			disk, acknowledged := memdisk.New(), 0
			disk.SetHook(die(number, after))
			store, _ := open(t, disk, "empty")
			if !survive(func() { _ = live(store, puts, &acknowledged) }) {
				t.Fatalf("step %d was not reached", number)
			}
			for _, found := range append(disk.PowerLoss(), disk.Kill()) {
				disks++
				where := fmt.Sprintf("step %d, after %v, document %d acknowledged", number, after, acknowledged)
				next, got := open(t, found, where)
				if got.Number != acknowledged && got.Number != acknowledged+1 {
					t.Fatalf("%s: found %d", where, got.Number)
				}
				// What was read is durable.
				for _, later := range found.PowerLoss() {
					if _, again := open(t, later, where); again.Number != got.Number {
						t.Fatalf("%s: found %d, and after a loss of power %d", where, got.Number, again.Number)
					}
				}
				// The next agent can write on what it found, and that is durable.
				if err := next.Put(document{Number: 99}); err != nil {
					t.Fatalf("%s: then: %v", where, err)
				}
				for _, later := range found.PowerLoss() {
					if _, got := open(t, later, where); got.Number != 99 {
						t.Fatalf("%s: then 99 was acknowledged, and %d found", where, got.Number)
					}
				}
			}
		}
	}
	t.Logf("%d steps, %d disks", steps(t), disks)
}

// TestAfterAFailedWrite lets each step fail, with and without effect; the same agent then
// continues, or takes back what it had tried.
func TestAfterAFailedWrite(t *testing.T) {
	broken := errors.New("input/output error")
	for number := range steps(t) {
		for _, effect := range []bool{false, true} {
			for _, next := range []string{"continues", "takes back"} {
				where := fmt.Sprintf("step %d failed, effect %v, then it %s", number, effect, next)
				disk, acknowledged := memdisk.New(), 0
				disk.SetHook(func(s memdisk.Step, done bool) error {
					if s.Number == number && done == effect {
						return broken
					}
					return nil
				})
				store, _ := open(t, disk, "empty")
				if err := live(store, puts, &acknowledged); !errors.Is(err, broken) {
					t.Fatalf("%s: nobody said so: %v", where, err)
				}
				if _, got := open(t, disk, where); got.Number != acknowledged && got.Number != acknowledged+1 {
					t.Fatalf("%s: found %d after %d", where, got.Number, acknowledged)
				}
				want := acknowledged + 1
				if next == "takes back" {
					want = acknowledged
				}
				if err := store.Put(document{Number: want,
					At: start.Add(time.Duration(want) * time.Second)}); err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				for _, found := range append(disk.PowerLoss(), disk.Kill()) {
					if _, got := open(t, found, where); got.Number != want {
						t.Fatalf("%s: %d was acknowledged, and %d found", where, want, got.Number)
					}
				}
			}
		}
	}
}

// TestAnIntentTakesEffectAtMostOnce kills an agent that carries out an intent at each step, and
// looks at what its successor makes of every disk.
func TestAnIntentTakesEffectAtMostOnce(t *testing.T) {
	const intent = "cleanup-1"
	effects := 0
	execute := func(disk *memdisk.Disk) string {
		store, memory := open(t, disk, "execute")
		put := func() {
			if err := store.Put(memory); err != nil {
				t.Fatal(err)
			}
		}
		if memory.Done[intent] == "" {
			outcome := "interrupted"
			if memory.Begun != intent {
				memory.Begun = intent
				put()
				effects++
				outcome = "succeeded"
			}
			memory.Done = map[string]string{intent: outcome}
			put()
		}
		return memory.Done[intent]
	}
	undisturbed := memdisk.New()
	if got := execute(undisturbed); got != "succeeded" || effects != 1 {
		t.Fatalf("undisturbed: %s, %d effects", got, effects)
	}
	for number := range undisturbed.Steps() {
		for _, after := range []bool{false, true} {
			disk := memdisk.New()
			disk.SetHook(die(number, after))
			effects = 0
			survive(func() { execute(disk) })
			done := effects
			for _, found := range append(disk.PowerLoss(), disk.Kill()) {
				effects = done
				got := execute(found)
				if effects > 1 || got == "succeeded" && effects != 1 {
					t.Fatalf("killed at step %d, after %v: %d effects, %s", number, after, effects, got)
				}
			}
		}
	}
}

// TestRandomLives: agents that write, fail and are killed in any order find what was acknowledged
// last, or what was tried since.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := memdisk.New()
		store, _ := open(t, disk, "empty")
		broken := errors.New("no space left on device")
		possible := map[int]bool{0: true}
		next := 1
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				if err := store.Put(document{Number: next}); err != nil {
					t.Fatal(err)
				}
				possible = map[int]bool{next: true}
				next++
			},
			"put fails": func(t *rapid.T) {
				const ofOne = 4 // changes of names that one may leave undecided
				if disk.Undecided() > memdisk.MostUndecided-ofOne {
					t.Skip("a loss of power could leave too many disks")
				}
				at, effect := disk.Steps()+rapid.IntRange(0, 12).Draw(t, "step"), rapid.Bool().Draw(t, "effect")
				disk.SetHook(func(s memdisk.Step, done bool) error {
					if s.Number == at && done == effect {
						return broken
					}
					return nil
				})
				if err := store.Put(document{Number: next}); err == nil {
					possible = map[int]bool{}
				}
				disk.SetHook(nil)
				possible[next] = true
				next++
			},
			"restart": func(t *rapid.T) {
				outcomes := append(disk.PowerLoss(), disk.Kill())
				disk = outcomes[rapid.IntRange(0, len(outcomes)-1).Draw(t, "outcome")]
				var found document
				if store, found = open(t, disk, "restart"); !possible[found.Number] {
					t.Fatalf("found %d, possible are %v", found.Number, possible)
				}
				possible = map[int]bool{found.Number: true}
			},
		})
	})
}

// TestAMarkerIsThereOrNot cuts the power at each step of marking a volume.
func TestAMarkerIsThereOrNot(t *testing.T) {
	marker := journal.Marker{ClusterUID: "u1", Node: "n", Volume: "data", CreatedAt: start}
	undisturbed := memdisk.New()
	if err := journal.CreateMarker(undisturbed, marker); err != nil {
		t.Fatal(err)
	}
	for number := range undisturbed.Steps() {
		for _, after := range []bool{false, true} {
			disk := memdisk.New()
			disk.SetHook(die(number, after))
			survive(func() { _ = journal.CreateMarker(disk, marker) })
			for _, found := range append(disk.PowerLoss(), disk.Kill()) {
				got, status, err := journal.ReadMarker(found)
				if status != journal.Absent && (status != journal.Valid || got != marker) {
					t.Fatalf("step %d, after %v: %s, %v, %+v", number, after, status, err, got)
				}
				if err := journal.CreateMarker(found, marker); err != nil {
					t.Fatalf("step %d, after %v: mark again: %v", number, after, err)
				}
				for _, later := range found.PowerLoss() {
					if _, status, err := journal.ReadMarker(later); status != journal.Valid {
						t.Fatalf("step %d, after %v: marked again, then %s, %v", number, after, status, err)
					}
				}
			}
		}
	}
	for _, found := range undisturbed.PowerLoss() {
		if _, status, err := journal.ReadMarker(found); status != journal.Valid {
			t.Errorf("a marker that was acknowledged is %s, %v", status, err)
		}
	}
}
