package garbage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a store, nodes that back up to it, and two that sweep it, each of which believes that it
// is the only one. Each step of an actor is one request; any other may come between two of them.
type model struct {
	Rules
	// every is how long after a look the next one is due.
	every time.Duration
	// pick chooses one of so many.
	pick func(n int) int
	now  time.Time

	blobs     map[Sum]time.Time
	manifests map[int][]Sum
	pins      map[pin]time.Time
	marks     Marks
	// unmarked are those that were marked at the look before, and marked is when the last look has
	// ended.
	unmarked Marks
	marked   time.Time

	nodes    [2]node
	backups  int
	sweepers [2]sweeper // the clock of the second is an hour ahead
	deleted  int

	// pinsLast, blind, forgetful: builds that are broken.
	pinsLast, blind, forgetful bool
}

type pin struct {
	backup int
	sum    Sum
}

// node is in a backup if it has a list of what to upload. Written says that its manifest is.
type node struct {
	backup  int
	began   time.Time
	marks   Marks
	all     []Sum
	done    int
	written bool
}

// sweeper is one at a sweep: it has read the marks, and deletes in batches before it marks.
type sweeper struct {
	step         int
	began, batch time.Time
	marks, next  Marks
	ended        time.Time
	named        map[Sum]bool
	delete, gone []Sum
}

// limit is how long a sweep takes at most.
const limit = 3 * time.Hour

func newModel(rules Rules, pick func(int) int) *model {
	return &model{Rules: rules, every: 24 * time.Hour, pick: pick, now: time.Unix(0, 0), blobs: map[Sum]time.Time{},
		manifests: map[int][]Sum{}, pins: map[pin]time.Time{}}
}

// run makes steps until something is lost.
func (m *model) run(steps int) error {
	for range steps {
		m.step()
		for backup, sums := range m.manifests {
			for _, sum := range sums {
				if _, there := m.blobs[sum]; !there {
					return fmt.Errorf("backup %d needs blob %x, which was deleted", backup, sum[:1])
				}
			}
		}
	}
	return nil
}

func (m *model) step() {
	switch m.pick(8) {
	case 0:
		passed := []time.Duration{time.Minute, 6 * time.Minute, 11 * time.Minute, time.Hour, 12 * time.Hour,
			25 * time.Hour, 8 * 24 * time.Hour}
		m.now = m.now.Add(passed[m.pick(len(passed))])
	case 1: // what has expired is removed
		if all := slices.Sorted(maps.Keys(m.manifests)); len(all) > 0 {
			delete(m.manifests, all[m.pick(len(all))])
		}
	case 2, 3, 4:
		m.backUp(&m.nodes[m.pick(len(m.nodes))])
	default:
		i := m.pick(len(m.sweepers))
		m.sweep(&m.sweepers[i], m.now.Add(time.Duration(i)*time.Hour))
	}
}

func (m *model) backUp(n *node) {
	switch {
	case n.all == nil:
		m.backups++
		*n = node{backup: m.backups, began: m.now, marks: maps.Clone(m.unmarked)}
		maps.Copy(n.marks, m.marks)
		for i := range 3 {
			if m.pick(2) == 0 {
				n.all = append(n.all, Sum{byte(i)})
			}
		}
	case m.pick(40) == 0: // it dies, and its pins stay
		*n = node{}
	case n.written:
		m.unpin(n)
	case n.done == len(n.all) && m.now.Sub(n.began) > m.Within:
		m.unpin(n)
	case n.done == len(n.all):
		m.manifests[n.backup], n.written = n.all, true
	default:
		m.reuse(n, n.all[n.done])
	}
}

func (m *model) unpin(n *node) {
	maps.DeleteFunc(m.pins, func(p pin, _ time.Time) bool { return p.backup == n.backup })
	*n = node{}
}

// reuse a blob that is there, or upload it.
func (m *model) reuse(n *node, sum Sum) {
	if _, marked := n.marks[sum]; marked && !m.blind {
		at, pinned := m.pins[pin{n.backup, sum}]
		if !pinned {
			m.pins[pin{n.backup, sum}] = m.now
			return
		}
		if m.now.Sub(at) < m.Settle {
			return
		}
	}
	if _, there := m.blobs[sum]; !there {
		m.blobs[sum] = m.now
	}
	n.done++
}

func (m *model) sweep(s *sweeper, now time.Time) {
	if s.step == 0 {
		if m.marked.IsZero() || m.marked.After(now) || now.Sub(m.marked) >= m.every {
			*s = sweeper{step: 1, began: now, marks: maps.Clone(m.marks)}
		}
		return
	}
	if now.Sub(s.began) > limit || m.pick(40) == 0 { // it dies
		*s = sweeper{}
		return
	}
	named := func(sum Sum) bool { return s.named[sum] }
	switch s.step++; s.step {
	case 2, 6:
		s.batch, s.named = now, map[Sum]bool{}
		m.read(s, !m.pinsLast)
	case 3, 7:
		m.read(s, m.pinsLast)
	case 4:
		s.delete = m.Due(s.marks, named, now)
	case 5:
		switch {
		case len(s.delete) == 0:
		case now.Sub(s.batch) > m.Batch:
			s.step = 1
		default:
			if _, there := m.blobs[s.delete[0]]; there {
				m.deleted++
			}
			delete(m.blobs, s.delete[0])
			s.gone = append(s.gone, s.delete[0])
			s.delete, s.step = s.delete[1:], 4
		}
	case 8:
		s.ended = now
		s.next = m.Mark(s.marks, func(yield func(Blob) bool) {
			for sum, written := range m.blobs {
				if !yield(Blob{Sum: sum, Written: written}) {
					return
				}
			}
		}, named, now)
	default:
		if s.ended.After(m.marked) { // the latest count
			m.marks, m.unmarked, m.marked = s.next, Marks{}, s.ended
			for sum, since := range s.marks {
				if _, is := s.next[sum]; !is && (!m.forgetful || slices.Contains(s.gone, sum)) {
					m.unmarked[sum] = since
				}
			}
		}
		*s = sweeper{}
	}
}

// read what pins or what manifests name.
func (m *model) read(s *sweeper, pins bool) {
	if pins {
		for p := range m.pins {
			s.named[p.sum] = true
		}
		return
	}
	for _, sums := range m.manifests {
		for _, sum := range sums {
			s.named[sum] = true
		}
	}
}

// No blob that a backup needs is ever deleted, and others are.
func TestNothingIsLost(t *testing.T) {
	deleted := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(Default, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		if err := m.run(300); err != nil {
			t.Fatal(err)
		}
		deleted += m.deleted
	})
	if deleted == 0 {
		t.Error("nothing was ever deleted")
	}
}

const trials = 20_000

// many runs by chance, which rapid would take long for.
func many(change func(*model)) (deleted int, err error) {
	for seed := range uint64(trials) {
		m := newModel(Default, rand.New(rand.NewPCG(1, seed)).IntN)
		change(m)
		if err := m.run(200); err != nil {
			return deleted, err
		}
		deleted += m.deleted
	}
	return deleted, nil
}

func TestNothingIsLostInManyRuns(t *testing.T) {
	if deleted, err := many(func(*model) {}); err != nil || deleted < trials/100 {
		t.Errorf("%d were deleted; %v", deleted, err)
	}
}

// Without any one of its rules something is lost.
func TestEachRuleIsNeeded(t *testing.T) {
	for name, change := range map[string]func(*model){
		"one mark alone":                      func(m *model) { m.Apart, m.every = 0, 0 },
		"marked blobs are relied on":          func(m *model) { m.blind = true },
		"a pin is relied on at once":          func(m *model) { m.Settle = 0 },
		"manifests are read before pins":      func(m *model) { m.pinsLast = true },
		"what is unmarked is relied on":       func(m *model) { m.forgetful = true },
		"a backup takes as long as it likes":  func(m *model) { m.Within = 1000 * time.Hour },
		"deletions take as long as they like": func(m *model) { m.Batch = 1000 * time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := many(change); err == nil {
				t.Errorf("nothing was lost in %d runs", trials)
			}
		})
	}
}

func TestAClockThatIsSetBack(t *testing.T) {
	now, old := time.Unix(1e9, 0), Sum{1}
	blobs := func(yield func(Blob) bool) { yield(Blob{Sum: old, Written: now.Add(-Default.Young - time.Hour)}) }
	nobody := func(Sum) bool { return false }
	marks := Default.Mark(Marks{old: now.Add(48 * time.Hour)}, blobs, nobody, now)
	if due := Default.Due(marks, nobody, now.Add(Default.Apart-1)); len(due) > 0 || len(marks) != 1 {
		t.Errorf("%v is due by %v", due, marks)
	}
	if due := Default.Due(marks, nobody, now.Add(Default.Apart)); !slices.Equal(due, []Sum{old}) {
		t.Errorf("%v is due by %v", due, marks)
	}
}
