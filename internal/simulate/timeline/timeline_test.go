package timeline

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEventsHappenInTheOrderOfTheirTime(t *testing.T) {
	line := New(start, 1)
	var got []string
	note := func(what string) func() {
		return func() { got = append(got, fmt.Sprintf("%s@%s", what, line.Now().Sub(start))) }
	}
	line.After(2*time.Second, "late", note("late"))
	line.After(time.Second, "first", note("first"))
	line.After(time.Second, "second", note("second"))
	gone := line.After(time.Second, "cancelled", note("cancelled"))
	line.Cancel(gone)
	line.Cancel(gone)
	line.RunFor(time.Minute)
	if want := []string{"first@1s", "second@1s", "late@2s"}; !slices.Equal(got, want) {
		t.Errorf("happened %v, want %v", got, want)
	}
	if line.Now() != start.Add(time.Minute) {
		t.Errorf("it is %s", line.Now().Sub(start))
	}
}

func TestTasksTakeTurnsWhileOneSleeps(t *testing.T) {
	line := New(start, 1)
	var got []string
	for _, name := range []string{"a", "b"} {
		line.Go(name, func() {
			for i := range 2 {
				got = append(got, fmt.Sprint(name, i))
				line.Sleep(time.Second)
			}
		}, func() { got = append(got, name+" ends") })
	}
	line.RunFor(time.Minute)
	if want := []string{"a0", "b0", "a1", "b1", "a ends", "b ends"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAKilledTaskUnwindsAndDoesNotGoOn(t *testing.T) {
	line := New(start, 1)
	var got []string
	task := line.Go("victim", func() {
		defer func() { got = append(got, "deferred") }()
		line.Sleep(time.Hour)
		got = append(got, "continued")
	}, func() { got = append(got, "ended") })
	line.Go("killer", func() {
		line.Sleep(time.Second)
		task.Kill()
		task.Kill()
		got = append(got, "killed")
		line.Sleep(time.Second)
		line.Running().Kill()
		got = append(got, "not reached")
	}, func() { got = append(got, "killer ended") })
	never := line.Go("never", func() { got = append(got, "never") }, nil)
	never.Kill()
	line.RunFor(2 * time.Hour)
	if want := []string{"deferred", "ended", "killed", "killer ended"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !task.Done() || !never.Done() {
		t.Error("a killed task is not done")
	}
}

func TestAParkedTaskGoesOnWhenItIsWoken(t *testing.T) {
	line := New(start, 1)
	woken := false
	task := line.Go("parked", func() {
		line.Running().Park()
		woken = true
	}, nil)
	line.RunFor(time.Hour)
	if woken {
		t.Fatal("it continued by itself")
	}
	task.Wake()
	line.RunFor(time.Hour)
	if !woken || !task.Done() {
		t.Errorf("woken %v, done %v", woken, task.Done())
	}
}

func TestAPanicOfATaskIsTheCallersPanic(t *testing.T) {
	line := New(start, 1)
	line.Go("broken", func() { panic("broken") }, nil)
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("recovered %v", r)
		}
	}()
	line.RunFor(time.Second)
	t.Error("no panic")
}

func TestTheSameSeedChoosesTheSame(t *testing.T) {
	a, b, c := New(start, 7), New(start, 7), New(start, 8)
	same := true
	for range 20 {
		x, y, z := a.Between(0, time.Hour), b.Between(0, time.Hour), c.Between(0, time.Hour)
		if x != y {
			t.Fatal("one seed chose twice differently")
		}
		same = same && x == z
	}
	if same {
		t.Error("two seeds chose alike")
	}
}

func BenchmarkSleep(b *testing.B) {
	line := New(start, 1)
	line.Go("sleeper", func() {
		for {
			line.Sleep(time.Millisecond)
		}
	}, nil)
	for b.Loop() {
		line.Step()
	}
}
