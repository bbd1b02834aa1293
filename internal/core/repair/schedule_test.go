package repair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sceneOf has a ring of nodes with tokens, three racks and some tables with three replicas.
func sceneOf(tb testing.TB, nodes, tokens, tables int) *Scene {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var members []ring.Node
	for i := range nodes {
		n := ring.Node{ID: fmt.Sprintf("host-%04d", i), Datacenter: "dc1", Rack: fmt.Sprintf("r%d", i%3)}
		for range tokens {
			n.Tokens = append(n.Tokens, ring.Token(random.Int64()-random.Int64()))
		}
		members = append(members, n)
	}
	r, err := ring.New(members)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Scene{Now: start, Ring: r, History: &History{}, Policy: Policy{Target: 80, Intensity: 50},
		Node: func(id string) (string, bool, bool) { return id, true, true }}
	for i := range tables {
		s.Tables = append(s.Tables, Table{TableOf: TableOf{ID: fmt.Sprint(i), Keyspace: fmt.Sprintf("k%d", i/10),
			Name: fmt.Sprintf("t%d", i), Replication: "NetworkTopologyStrategy {dc1=3}"}, GCGrace: 240 * time.Hour,
			Bytes: 64 << 30})
	}
	return s
}

// run repairs until nothing is due for a time, and returns how often something was.
func (s *Scene) run(t *testing.T, until time.Time) (waves int) {
	t.Helper()
	for s.Now.Before(until) {
		units, _, wait := s.Next()
		if len(units) == 0 {
			s.Now = s.Now.Add(max(wait, time.Second))
			continue
		}
		waves++
		busy := map[string]bool{}
		began := s.Now
		for _, u := range units {
			for _, r := range u.Replicas {
				if busy[r] {
					t.Fatalf("%s is in two units of %+v", r, units)
				}
				busy[r] = true
			}
			if e := u.Expected(); e > 2*unitTakes {
				t.Fatalf("a unit takes %s: %+v", e, u)
			}
		}
		took := unitTakes * time.Duration(1+waves%3)
		s.Now = s.Now.Add(took)
		s.History = s.History.With(units, began)
		s.History.Ended, s.History.Took = s.Now, took
	}
	return waves
}

// A year of a small ring: no deadline of any range passes, and between two rounds nothing is done.
func TestNoDeadlinePasses(t *testing.T) {
	s := sceneOf(t, 6, 8, 3)
	s.Tables[1].GCGrace, s.Tables[2].GCGrace = 72*time.Hour, time.Hour
	s.Tables[2].Bytes = 1 << 20
	for i := range s.Tables {
		s.Tables[i].Since = start
	}
	s.History, _ = s.History.Noted(s.Tables, start)
	waves := 0
	for day := range 60 {
		waves += s.run(t, start.Add(time.Duration(day+1)*24*time.Hour))
		for i := range s.Tables {
			table := &s.Tables[i]
			if r, last, _ := s.Oldest(table); s.Now.After(last.Add(table.Grace())) {
				t.Fatalf("on day %d: %s %s was last repaired at %s", day, table, r, last)
			}
		}
	}
	if waves < 60 || waves > 60*288/2 {
		t.Errorf("%d waves", waves)
	}
}

// What was never repaired counts as repaired when it was made only with the replication that it was
// first seen with, and if it was seen soon, until all of it is repaired.
func TestAnotherReplicationIsDue(t *testing.T) {
	const one, three = "NetworkTopologyStrategy {dc1=1}", "NetworkTopologyStrategy {dc1=3}"
	for name, c := range map[string]struct {
		seen []string // replication, from the first to the last
		late time.Duration
		due  bool
	}{
		"it is as it was made":           {[]string{three, three}, 0, false},
		"it was raised":                  {[]string{one, three}, 0, true},
		"it was raised and seen again":   {[]string{one, three, three}, 0, true},
		"it was lowered for a time":      {[]string{three, one, three}, 0, true},
		"it was not known at first":      {[]string{"", three}, 0, false},
		"nobody has seen it for an hour": {[]string{three}, time.Hour, true},
	} {
		s := sceneOf(t, 3, 4, 1)
		s.Tables[0].Since = start.Add(-c.late)
		for _, r := range c.seen {
			s.Tables[0].Replication = r
			s.History, _ = s.History.Noted(s.Tables, s.Now)
			read, err := Decode(Encode(s.History))
			if err != nil {
				t.Fatal(err)
			}
			s.History = read
		}
		if _, again := s.History.Noted(s.Tables, s.Now); again {
			t.Errorf("%s: it is noted again", name)
		}
		waves := 0
		for range 2 { // a part of it, then the others
			units, _, _ := s.Next()
			if len(units) > 0 {
				waves++
				units[0].Ranges = units[0].Ranges[:1]
				s.History = s.History.With(units, s.Now)
			}
		}
		if want := map[bool]int{true: 2}[c.due]; waves != want {
			t.Errorf("%s: %d waves, want %d", name, waves, want)
		}
	}
}

func TestWhatIsDue(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*Scene)
		units  bool
		wait   time.Duration
	}{
		"nothing is proven":      {func(*Scene) {}, true, 0},
		"the table is young":     {func(s *Scene) { s.Tables[0].Since = start.Add(-7 * day) }, false, day},
		"the table is old":       {func(s *Scene) { s.Tables[0].Since = start.Add(-8 * day) }, true, 0},
		"a short grace is a day": {func(s *Scene) { s.Tables[0].Since, s.Tables[0].GCGrace = start, 0 }, false, 80 * day / 100},
		"it was repaired":        {func(s *Scene) { s.all(start.Add(-15 * day / 2)) }, false, day / 2},
		"with another replication": {func(s *Scene) {
			s.all(start)
			s.Tables[0].Replication = "SimpleStrategy {replication_factor=3}"
		}, true, 0},
		"one that others hold now is as new": {func(s *Scene) {
			s.all(start)
			s.Tables[0].Since = start
			s.Tables[0].Replication = "SimpleStrategy {replication_factor=3}"
		}, true, 0},
		"a pause is never shorter than the time between two writes": {func(s *Scene) { s.History.Ended = start }, false,
			5 * time.Minute},
		"the window is shut": {func(s *Scene) {
			s.Tables[0].Since = start.Add(-8 * day)
			s.Policy.Window = &Window{Start: 22 * time.Hour, Duration: 4 * time.Hour, Zone: time.UTC}
		}, false, 10 * time.Hour},
		"a deadline falls before it opens": {func(s *Scene) {
			s.Tables[0].Since = start.Add(-240*time.Hour + 9*time.Hour)
			s.Policy.Window = &Window{Start: 22 * time.Hour, Duration: 4 * time.Hour, Zone: time.UTC}
		}, true, 0},
		"it opened yesterday": {func(s *Scene) {
			s.Tables[0].Since = start.Add(-8 * day)
			s.Policy.Window = &Window{Start: 22 * time.Hour, Duration: 15 * time.Hour, Zone: time.UTC}
		}, true, 0},
		"one replica": {func(s *Scene) { s.Tables[0].Replication = "NetworkTopologyStrategy {dc1=1}" }, false, pauseLeast},
	} {
		s := sceneOf(t, 3, 4, 1)
		c.change(s)
		units, _, wait := s.Next()
		if (len(units) > 0) != c.units || !c.units && wait != c.wait {
			t.Errorf("%s: %d units, wait %s, want %t, %s", name, len(units), wait, c.units, c.wait)
		}
	}
}

// A pause after a wave of a minute, with a small table due, is as long as its deadline allows.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		left   time.Duration // until the deadline
		change func(*Scene)
		want   time.Duration
	}{
		"the deadline is far": {48 * time.Hour, func(*Scene) {}, 199 * time.Minute},
		"it comes":            {40 * time.Minute, func(*Scene) {}, 14 * time.Minute},
		"in a window":         {80 * time.Minute, func(s *Scene) { s.open(12 * time.Hour) }, 915 * time.Second},
		"as intensity says":   {5 * time.Minute, func(s *Scene) { s.Policy.Intensity = 10 }, 9 * time.Minute},
		"with all intensity":  {48 * time.Hour, func(s *Scene) { s.Policy.Intensity = 100 }, pauseLeast},
		"the deadline is over": {-time.Hour, func(s *Scene) { s.History.Took = 10 * time.Minute },
			10 * time.Minute},
	} {
		s := sceneOf(t, 3, 4, 1)
		s.History.Ended, s.History.Took = start, time.Minute
		s.Tables[0].Since, s.Tables[0].Bytes = start.Add(c.left-s.Tables[0].GCGrace), 0
		c.change(s)
		for {
			units, _, wait := s.Next()
			if len(units) > 0 {
				break
			}
			s.Now = s.Now.Add(wait)
		}
		if got := s.Now.Sub(start); got != c.want {
			t.Errorf("%s: a pause of %s, want %s", name, got, c.want)
		}
	}
}

// open has a window that opened an hour ago.
func (s *Scene) open(d time.Duration) {
	s.Policy.Window = &Window{Start: 11 * time.Hour, Duration: d, Zone: time.UTC}
}

// all notes that all was repaired.
func (s *Scene) all(at time.Time) {
	s.History = s.History.With([]Unit{{Tables: []TableOf{s.Tables[0].TableOf},
		Ranges: []ring.Range{{Start: ring.MinToken, End: ring.MaxToken}}}}, at)
}

// What a node lacks rows of is repaired in front of all else, whatever else is due and however the
// window is, and nothing but that. What beside it is repaired for such a node alone is so once.
func TestWhatANodeLacksIsFirst(t *testing.T) {
	s := sceneOf(t, 9, 4, 3)
	for i := range s.Tables[:2] { // of the third nothing is proven
		s.History = s.History.With([]Unit{{Tables: []TableOf{s.Tables[i].TableOf},
			Ranges: []ring.Range{{Start: ring.MinToken, End: ring.MaxToken}}}}, start.Add(-time.Hour))
	}
	s.Policy.Window = &Window{Start: 22 * time.Hour, Duration: time.Hour, Zone: time.UTC}
	s.Tables[2].Since = start.Add(-220 * time.Hour) // it is due, in the window
	s.Beside = []Table{{TableOf: TableOf{ID: "system_traces", Keyspace: "system_traces",
		Replication: "SimpleStrategy {replication_factor=2}"}, Bytes: 1 << 30}}
	if units, _, _ := s.Next(); len(units) > 0 {
		t.Fatalf("units %+v", units)
	}
	lost := Lacking{HostID: "host-0001", Since: start.Add(time.Second)}
	s.Lacking = []Lacking{lost}
	repaired := func() float64 {
		share, left, err := s.Repaired(lost)
		if err != nil || len(left) > 0 {
			t.Fatalf("left out are %v: %v", left, err)
		}
		return share
	}
	if units, _, _ := s.Next(); len(units) > 0 || repaired() != 0 {
		t.Fatalf("units %+v within the minute, %f is repaired", units, repaired())
	}
	names := map[string]bool{}
	for s.Now = start.Add(time.Minute); s.Now.Before(start.Add(9 * time.Hour)); s.Now = s.Now.Add(pauseLeast) {
		units, _, _ := s.Next()
		for _, u := range units {
			for _, table := range u.Tables {
				names[table.String()] = true
			}
			if !slices.Contains(u.Replicas, "host-0001") {
				t.Fatalf("unit %+v", u)
			}
		}
		if len(units) > 0 && repaired() == 1 {
			t.Fatalf("all is repaired, and there are %+v", units)
		}
		s.History = s.History.With(units, s.Now)
	}
	if repaired() != 1 || len(names) != 4 || !names["system_traces"] {
		t.Errorf("%f is repaired, of %v", repaired(), names)
	}
	if s.Now = start.Add(240 * time.Hour); len(s.DueTables()) != 3 {
		t.Errorf("due are %v", s.DueTables())
	}
}

// What counts for a node that lacks rows.
func TestWhatEndsALack(t *testing.T) {
	lost := Lacking{HostID: "host-0001", Since: start}
	for name, c := range map[string]struct {
		change func(*Scene)
		share  float64
		left   int
	}{
		"nothing":                  {func(*Scene) {}, 0, 0},
		"a repair before":          {func(s *Scene) { s.all(start.Add(-time.Second)) }, 0, 0},
		"a repair since":           {func(s *Scene) { s.all(start) }, 1, 0},
		"with another replication": {func(s *Scene) { s.all(start); s.Tables[0].Replication = "SimpleStrategy {replication_factor=2}" }, 0, 0},
		"the table was made since": {func(s *Scene) { s.Tables[0].Since = start.Add(time.Minute) }, 1, 0},
		"there is nothing to compare": {func(s *Scene) {
			s.Tables[0].Replication = "NetworkTopologyStrategy {dc1=1}"
		}, 1, 0},
		"it has no replica": {func(s *Scene) {
			s.Tables[0].Replication = "NetworkTopologyStrategy {dc2=3}"
		}, 1, 0},
		"a table that is left out": {func(s *Scene) { s.LeftOut, s.Tables = s.Tables, nil }, 1, 1},
		"one of which it has no replica": {func(s *Scene) {
			s.all(start)
			s.leaveOut("NetworkTopologyStrategy {dc2=3}")
		}, 1, 0},
		"one that is unknown": {func(s *Scene) { s.all(start); s.leaveOut("OfOurOwn {}") }, 1, 1},
	} {
		s := sceneOf(t, 3, 4, 1)
		c.change(s)
		share, left, err := s.Repaired(lost)
		if share != c.share || len(left) != c.left || err != nil {
			t.Errorf("%s: %f, left out %v, %v", name, share, left, err)
		}
	}
}

func (s *Scene) leaveOut(replication string) {
	s.LeftOut = []Table{{TableOf: TableOf{ID: "x", Keyspace: "x", Name: "x", Replication: replication}}}
}

// A unit waits while one of its replicas uploads a backup, but not until its deadline.
func TestUnitsWaitForUploads(t *testing.T) {
	s := sceneOf(t, 3, 4, 1)
	s.Uploads = []string{"host-0002"}
	for hours, begins := range map[int]bool{193: false, 215: false, 217: true, 250: true} {
		s.Tables[0].Since = start.Add(-time.Duration(hours) * time.Hour)
		if units, _, _ := s.Next(); len(units) > 0 != begins {
			t.Errorf("%d hours after a repair: %+v", hours, units)
		}
	}
	s.Tables[0].Since = start
	s.Lacking = []Lacking{{HostID: "host-0000", Since: start.Add(time.Hour)}}
	if s.Now = start.Add(time.Hour); len(first(s.Next())) == 0 {
		t.Error("a node lacks rows, and its repair waits")
	}
}

func first(units []Unit, _ []string, _ time.Duration) []Unit { return units }

// What has a replica that is down waits, the rest goes on; one that is not to be asked is not.
func TestANodeThatIsDown(t *testing.T) {
	s := sceneOf(t, 9, 4, 1)
	s.Node = func(id string) (string, bool, bool) { return id, id != "host-0001", id != "host-0000" }
	seen, want := map[string]bool{}, map[string]bool{}
	for _, set := range s.place(s.Tables[0].Replication).sets {
		for _, id := range strings.Fields(set) {
			want[id] = want[id] || !strings.Contains(set, "host-0001")
		}
	}
	delete(want, "host-0001")
	maps.DeleteFunc(want, func(_ string, w bool) bool { return !w })
	for s.Now.Before(start.Add(4 * 24 * time.Hour)) {
		units, down, wait := s.Next()
		if len(units) == 0 {
			s.Now = s.Now.Add(wait)
			continue
		}
		if !slices.Equal(down, []string{"host-0001"}) {
			t.Fatalf("down are %q", down)
		}
		for _, u := range units {
			if u.Node == "host-0000" || slices.Contains(u.Replicas, "host-0001") {
				t.Fatalf("unit %+v", u)
			}
			for _, r := range u.Replicas {
				seen[r] = true
			}
		}
		s.History = s.History.With(units, s.Now)
		s.Now = s.Now.Add(5 * time.Minute)
		s.History.Ended = s.Now
	}
	if !maps.Equal(seen, want) {
		t.Errorf("repaired are %v, want %v", seen, want)
	}
}

// The size of units follows what they take.
func TestUnitsAreCutByWhatTheyTake(t *testing.T) {
	s := sceneOf(t, 3, 1, 1)
	sizes := func() float64 {
		units, _, _ := s.Next()
		share := 0.0
		for _, r := range units[0].Ranges {
			share += r.Size()
		}
		return share
	}
	units, _, _ := s.Next()
	usually := sizes()
	for _, c := range []struct {
		took time.Duration
		is   float64
	}{{units[0].Limit(), 0.5}, {time.Minute, 2}, {unitTakes, 1}} {
		h := s.History
		s.History = h.Learn(units[0], c.took)
		if got := sizes() / usually; got < c.is*0.99 || got > c.is*1.01 {
			t.Errorf("after %s a unit is %.2f of what it was, want %.2f", c.took, got, c.is)
		}
		s.History = h
	}
}

// The largest ring: what is proven of it is written, read, and planned with in time.
func BenchmarkPass(b *testing.B) {
	s := sceneOf(b, 1000, 16, 50)
	random := rand.New(rand.NewPCG(3, 4))
	s.History = &History{Tables: map[string]*Record{}}
	tokens := s.Ring.Tokens()
	for _, t := range s.Tables {
		r := &Record{Replication: t.Replication}
		for _, end := range append(slices.Clone(tokens), ring.MaxToken) {
			r.Runs = append(r.Runs, Run{end, start.Add(-time.Duration(random.IntN(196*60))*time.Minute).Unix() / 60})
		}
		s.History.Tables[t.ID] = r
	}
	text := Encode(s.History)
	b.Run("Next", func(b *testing.B) {
		for b.Loop() {
			if units, _, _ := s.Next(); len(units) == 0 {
				b.Fatal("nothing is due")
			}
		}
	})
	b.Run("Encode", func(b *testing.B) {
		for b.Loop() {
			Encode(s.History)
		}
		b.ReportMetric(float64(len(text)), "bytes")
	})
	b.Run("Decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
