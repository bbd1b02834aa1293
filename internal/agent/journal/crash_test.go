package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/agent/journal/memdisk"
)

var start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// ticking is a clock that goes on by a minute with each look.
func ticking() func() time.Time {
	now := start
	return func() time.Time {
		now = now.Add(time.Minute)
		return now
	}
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

// life is what an agent writes, one durable change after the other.
var life = []func(j *journal.Journal) error{
	func(j *journal.Journal) error { return j.UseAddress("10.0.0.1") },
	func(j *journal.Journal) error {
		return j.BeginJoin(journal.Join{ID: "t1", Mode: journal.JoinNew, Tokens: []int64{-5, 7}})
	},
	func(j *journal.Journal) error { _, err := j.BeginStart(0, "h1"); return err },
	func(j *journal.Journal) error {
		return j.Identify(journal.Identity{HostID: "11111111-2222-3333-4444-555555555555", ClusterName: "shop.orders"})
	},
	func(j *journal.Journal) error { return j.FinishJoin("t1") },
	func(j *journal.Journal) error {
		return j.SeePeers([]journal.Peer{{Node: "b", HostID: "hb", Address: "10.0.0.2"}, {Node: "a", HostID: "ha", Address: "10.0.0.3"}})
	},
	(*journal.Journal).OpenTraffic,
	func(j *journal.Journal) error { _, _, err := j.Begin("restart", "r1"); return err },
	func(j *journal.Journal) error { _, err := j.Finish("restart", "r1", journal.Succeeded, ""); return err },
	func(j *journal.Journal) error { _, err := j.WithdrawJoin("t2"); return err },
}

func live(disk *memdisk.Disk, acknowledged *int) error {
	j, err := journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u1", Node: "orders-dc1-r1-0"})
	if err != nil {
		return err
	}
	*acknowledged = 1
	for _, change := range life {
		if err := change(j); err != nil {
			return err
		}
		*acknowledged++
	}
	return nil
}

// versions are the contents that an undisturbed life goes through; the first stands for no journal.
func versions(t *testing.T) []string {
	t.Helper()
	disk, all := memdisk.New(), []string{""}
	j, err := journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u1", Node: "orders-dc1-r1-0"})
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, show(t, j.Content()))
	for i, change := range life {
		if err := change(j); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
		all = append(all, show(t, j.Content()))
	}
	return all
}

func show(t testing.TB, c journal.Content) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestACrashLeavesTheOldOrTheNewVersion kills the agent before and after each step of its life, and cuts the power then.
func TestACrashLeavesTheOldOrTheNewVersion(t *testing.T) {
	all := versions(t)
	undisturbed, ignored := memdisk.New(), 0
	if err := live(undisturbed, &ignored); err != nil {
		t.Fatal(err)
	}
	var disks int
	for number := range undisturbed.Steps() {
		for _, after := range []bool{false, true} {
			disk, acknowledged := memdisk.New(), 0
			disk.SetHook(die(number, after))
			if !survive(func() { _ = live(disk, &acknowledged) }) {
				t.Fatalf("step %d was not reached", number)
			}
			for _, found := range append(disk.PowerLoss(), disk.Kill()) {
				disks++
				where := fmt.Sprintf("step %d, after %v, %d changes acknowledged, files %v", number, after, acknowledged, found.Files())
				got := ""
				j, status, err := journal.Open(found, ticking())
				switch status {
				case journal.Absent:
				case journal.Valid:
					got = show(t, j.Content())
				default:
					t.Fatalf("%s: %s: %v", where, status, err)
				}
				if got != all[acknowledged] && got != all[min(acknowledged+1, len(all)-1)] {
					t.Fatalf("%s: found neither the old nor the new version:\n%s", where, got)
				}
				goesOn(t, found, j, where)
			}
		}
	}
	t.Logf("%d steps, %d disks", undisturbed.Steps(), disks)
}

// goesOn checks that the next agent can write on what it found, and that this is durable.
func goesOn(t *testing.T, disk *memdisk.Disk, j *journal.Journal, where string) {
	t.Helper()
	var err error
	if j == nil {
		if j, err = journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u1", Node: "orders-dc1-r1-0"}); err != nil {
			t.Fatalf("%s: then: %v", where, err)
		}
	}
	if err := j.UseAddress("10.9.9.9"); err != nil {
		t.Fatalf("%s: then: %v", where, err)
	}
	want := show(t, j.Content())
	for _, found := range disk.PowerLoss() {
		again, status, err := journal.Open(found, ticking())
		if status != journal.Valid || show(t, again.Content()) != want {
			t.Fatalf("%s: then, after the next write: %s, %v", where, status, err)
		}
	}
}

// TestAFailedWriteChangesNothingInMemory lets each step fail, with and without effect, and goes on with the same agent.
func TestAFailedWriteChangesNothingInMemory(t *testing.T) {
	broken := errors.New("input/output error")
	undisturbed, ignored := memdisk.New(), 0
	if err := live(undisturbed, &ignored); err != nil {
		t.Fatal(err)
	}
	all := versions(t)
	for number := range undisturbed.Steps() {
		for _, effect := range []bool{false, true} {
			disk := memdisk.New()
			disk.SetHook(func(s memdisk.Step, done bool) error {
				if s.Number == number && done == effect {
					return broken
				}
				return nil
			})
			acknowledged := 0
			if err := live(disk, &acknowledged); !errors.Is(err, broken) {
				t.Fatalf("step %d failed and nobody said so: %v", number, err)
			}
			if acknowledged == 0 {
				continue // Create returned no journal
			}
			disk.SetHook(nil)
			j, status, err := journal.Open(disk, ticking())
			if status != journal.Valid {
				t.Fatalf("step %d failed: %s, %v", number, status, err)
			}
			if got := show(t, j.Content()); got != all[acknowledged] && got != all[acknowledged+1] {
				t.Errorf("step %d failed: neither old nor new version:\n%s", number, got)
			}
		}
	}
}

func TestAfterAFailedWriteTheSameAgentGoesOn(t *testing.T) {
	broken := errors.New("no space left on device")
	for number := range 16 { // a change after the first takes fewer
		disk := memdisk.New()
		j, err := journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u1", Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		before, first, failed := show(t, j.Content()), disk.Steps(), false
		disk.SetHook(func(s memdisk.Step, done bool) error {
			if s.Number == first+number && !done {
				failed = true
				return broken
			}
			return nil
		})
		_, began, err := j.Begin("restart", "r1")
		if !failed {
			if number == 0 {
				t.Fatal("no step was reached")
			}
			return
		}
		if !errors.Is(err, broken) || began {
			t.Fatalf("step %d: began %v, %v", number, began, err)
		}
		if got := show(t, j.Content()); got != before {
			t.Errorf("step %d: in memory there is %s", number, got)
		}
		if _, began, err := j.Begin("restart", "r1"); err != nil || !began {
			t.Errorf("step %d, tried again: began %v, %v", number, began, err)
		}
		if _, status, err := journal.Open(disk, ticking()); status != journal.Valid {
			t.Errorf("step %d, tried again: %s, %v", number, status, err)
		}
	}
	t.Fatal("a change takes more steps than were tried")
}

// TestAnIntentTakesEffectAtMostOnce kills an agent that carries out an intent at each step, and its successor too.
func TestAnIntentTakesEffectAtMostOnce(t *testing.T) {
	var effects int
	execute := func(disk *memdisk.Disk) journal.Intent {
		j, status, err := journal.Open(disk, ticking())
		if status == journal.Absent {
			j, err = journal.Create(disk, ticking(), journal.Identity{ClusterUID: "u1", Node: "n"})
		}
		if err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		intent, began, err := j.Begin("operation", "cleanup-1")
		if err != nil {
			t.Fatal(err)
		}
		outcome := journal.Interrupted
		if began {
			effects++
			outcome = journal.Succeeded
		}
		if !intent.Done() {
			if _, err := j.Finish("operation", "cleanup-1", outcome, ""); err != nil {
				t.Fatal(err)
			}
		}
		intent, _ = j.Intent("operation", "cleanup-1")
		return intent
	}
	undisturbed := memdisk.New()
	if got := execute(undisturbed); got.Outcome != journal.Succeeded || effects != 1 {
		t.Fatalf("undisturbed: %+v, %d effects", got, effects)
	}
	var points int
	for first := range undisturbed.Steps() {
		for _, after := range []bool{false, true} {
			disk := memdisk.New()
			disk.SetHook(die(first, after))
			effects = 0
			survive(func() { execute(disk) })
			done := effects
			for _, found := range append(disk.PowerLoss(), disk.Kill()) {
				points++
				effects = done
				survive(func() { execute(found) })
				got := execute(found)
				if effects > 1 || !got.Done() || got.Outcome == journal.Succeeded && effects != 1 {
					t.Fatalf("killed at step %d, after %v: %d effects, %+v", first, after, effects, got)
				}
			}
		}
	}
	t.Logf("%d disks", points)
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
			}
		}
	}
	for _, found := range undisturbed.PowerLoss() {
		if _, status, err := journal.ReadMarker(found); status != journal.Valid {
			t.Errorf("a marker that was acknowledged is %s, %v", status, err)
		}
	}
}
