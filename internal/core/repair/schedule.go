package repair

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

const (
	// unitTakes is how long a unit is to take, by what is known of its tables.
	unitTakes = 5 * time.Minute
	// startTakes is what a repair takes that has nothing to compare.
	startTakes = 15 * time.Second
	// mostRanges and mostTables are how many an operation takes.
	mostRanges = 64
	mostTables = 64
	// mostEntries is how many tables and ranges a wave has: its step is kept in the ledger.
	mostEntries = 2000
	// leastGrace is what a shorter gc_grace counts as.
	leastGrace = 24 * time.Hour
	// pauseLeast is the time between two waves: what was repaired is written down once for each.
	pauseLeast = 5 * time.Minute
	// thinnest is the least share of the time in which repairs run while any is due. One of 100
	// requests of clients may be slow: half of these are left for other reasons.
	thinnest = 0.005
)

// TableOf names a table; without a name all tables of the keyspace.
type TableOf struct {
	ID       string `json:"id"`
	Keyspace string `json:"keyspace"`
	Name     string `json:"name"`
	// Replication of the keyspace as text.
	Replication string `json:"replication"`
}

// Table is a table of a keyspace with more than one replica.
type Table struct {
	TableOf
	// GCGrace is how long deletions are kept, and Bytes how large one replica of all its data is.
	GCGrace time.Duration
	Bytes   int64
	// Compaction is the class of its strategy.
	Compaction string
	// Since is before anything was deleted from it: it was made then.
	Since time.Time
}

// String is the name of the table for people, and in excludeTables; of a whole keyspace its name.
func (t TableOf) String() string { return strings.TrimSuffix(t.Keyspace+"."+t.Name, ".") }

// Grace is how long deletions count as kept.
func (t *Table) Grace() time.Duration { return max(t.GCGrace, leastGrace) }

// Short says that the table keeps deletions for less time than it is repaired in.
func (t *Table) Short() bool { return t.GCGrace < leastGrace }

// Policy is what the user asks for.
type Policy struct {
	// Target and Intensity are percentages: of gc_grace until a repair begins, and of the time in
	// which repairs run at most while any is due. At 100 nothing but pauseLeast is between them.
	Target, Intensity int
	// Window in which they begin; nil for any time.
	Window *Window
}

// Window is open every day from Start, a time since midnight, for some time.
type Window struct {
	Start, Duration time.Duration
	Zone            *time.Location
}

// Next says until when the window is shut; a time that has come if it is open.
func (w *Window) Next(now time.Time) time.Time {
	if w == nil {
		return now
	}
	for day := -1; ; day++ { // one that began yesterday may be open
		y, m, d := now.In(w.Zone).Date()
		begin := time.Date(y, m, d+day, 0, int(w.Start/time.Minute), 0, 0, w.Zone)
		if now.Before(begin.Add(w.Duration)) {
			return begin
		}
	}
}

// Unit is what one node repairs at a time: ranges of one set of replicas in tables of a keyspace.
type Unit struct {
	Node   string       `json:"node"`
	Tables []TableOf    `json:"tables"`
	Ranges []ring.Range `json:"ranges"`
	// Replicas are all nodes that hold them, by name.
	Replicas []string `json:"replicas"`
	// Bytes and Rate are what the unit is expected to take.
	Bytes int64 `json:"bytes"`
	Rate  int64 `json:"rate"`
}

// Expected is how long the unit takes by what is known.
func (u *Unit) Expected() time.Duration {
	return startTakes + time.Duration(float64(u.Bytes)/float64(u.Rate)*float64(time.Second))
}

// large says that what the unit takes tells how fast tables are repaired.
func (u *Unit) large() bool { return u.Expected() > unitTakes/4 }

// Limit is when a unit has failed that does not end.
func (u *Unit) Limit() time.Duration { return 3 * max(u.Expected(), unitTakes) }

// Scene is what is asked about.
type Scene struct {
	Now    time.Time
	Ring   *ring.Ring
	Tables []Table
	// Lacking are nodes that must be repaired, Beside what is repaired for them alone, and LeftOut
	// what they hold that is not repaired here. Single has one replica.
	Lacking                 []Lacking
	Beside, LeftOut, Single []Table
	// Uploads are the names of nodes that upload a backup.
	Uploads []string
	// Fill sets Ring and the bytes of tables; it is called once, if anything is due. Nil if they
	// are set.
	Fill    func(*Scene) error
	History *History
	Policy  Policy
	// Node is the name of the node with a host id, and whether it is up and lets itself be asked.
	Node func(hostID string) (name string, up, asked bool)
}

// Lacking is a node that lacks rows since a time: what it holds is due, in front of all else, until
// a repair has succeeded that began later.
type Lacking struct {
	HostID string
	Since  time.Time
}

// minute from which a repair counts for the node, as runs have it: the first whole one.
func (l Lacking) minute() int64 {
	return max(l.Since.Add(time.Minute-1).Truncate(time.Minute).Unix()/60, 1)
}

// lackingAt is when a range counts as repaired that a node lacks: before any other.
const lackingAt = -1 << 26

// Next are the units that begin now, no two of which have a replica in common. Wait is how long
// there are none; Down are nodes that others wait for.
func (s *Scene) Next() (units []Unit, down []string, wait time.Duration) {
	due, first := s.due()
	if len(due) == 0 {
		return nil, nil, first.Sub(s.Now)
	}
	open := s.Policy.Window.Next(s.Now)
	if open.After(s.Now) {
		later := slices.DeleteFunc(slices.Clone(due), func(g *group) bool { return !g.deadline.Before(open) })
		if len(later) == 0 {
			return nil, nil, open.Sub(s.Now)
		}
		due = later
	}
	if left := s.pausedUntil(due).Sub(s.Now); left > 0 {
		return nil, nil, min(left, pauseLeast) // it becomes less as the deadline comes
	}
	slices.SortStableFunc(due, func(a, b *group) int {
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.keyspace, b.keyspace),
			slices.Compare(a.replicas, b.replicas))
	})
	busy, silent := map[string]bool{}, map[string]bool{}
	entries := 0
	for _, g := range due {
		if u, ok := s.unit(g, busy, silent); ok && entries < mostEntries {
			units = append(units, u)
			entries += len(u.Tables) + len(u.Ranges) + len(u.Replicas)
		}
	}
	for name := range silent {
		down = append(down, name)
	}
	slices.Sort(down)
	return units, down, pauseLeast
}

// Look is after what time it may be time for a wave, while any is due.
func (s *Scene) Look() time.Duration {
	if s.History == nil {
		return time.Minute
	}
	return max(s.History.Ended.Add(pauseLeast).Sub(s.Now), time.Minute)
}

// pausedUntil is when the next wave may begin, of what is due.
func (s *Scene) pausedUntil(due []*group) time.Time {
	if s.History == nil {
		return time.Time{}
	}
	pause := time.Duration(float64(s.History.Took) * (1/s.share(due) - 1))
	return s.History.Ended.Add(max(pause, pauseLeast))
}

// share of the time in which repairs run: as little as is enough for all that is due in half of the
// time until the first deadline.
func (s *Scene) share(due []*group) float64 {
	most := float64(s.Policy.Intensity) / 100
	if most == 1 {
		return most
	}
	first, work := due[0].deadline, 0.0
	least := max(startTakes, s.History.Took).Seconds() // of a unit
	for _, g := range due {
		if g.deadline.Before(first) {
			first = g.deadline
		}
		takes := 0.0
		for _, d := range g.tables {
			share := 0.0
			for _, p := range d.parts {
				share += p.Size()
			}
			takes += share * float64(d.Bytes) / float64(s.rate(d.Table))
		}
		work += takes + least*math.Ceil(max(takes/unitTakes.Seconds(), 1))
	}
	left := first.Sub(s.Now).Seconds() / 2
	if w := s.Policy.Window; w != nil {
		left *= w.Duration.Hours() / 24
	}
	if left <= 0 {
		return most
	}
	return min(most, max(thinnest, work/left))
}

// group is what is due of a keyspace on one set of replicas.
type group struct {
	keyspace      string
	replicas      []string // host ids
	tables        []*dueTable
	due, deadline time.Time
}

// urgent is when it is not put off any more for what can be late itself: half of the time until the
// deadline is over.
func (g *group) urgent() time.Time { return g.due.Add(g.deadline.Sub(g.due) / 2) }

// dueTable is what is due of a table in a group: the oldest first.
type dueTable struct {
	*Table
	parts []duePart
}

type duePart struct {
	span
	at int64
}

// proven is what is known to be repaired of a table; nil if nothing is.
func (s *Scene) proven(t *Table) (r *Record, since time.Time) {
	if s.History != nil {
		r = s.History.Tables[t.ID]
	}
	switch {
	case r == nil || r.Made && r.Replication == t.Replication:
		return r, t.Since
	case r.Replication != t.Replication:
		return nil, time.Time{} // others hold it now
	}
	return r, time.Time{}
}

// Oldest is the part of a table that was not repaired for the longest time, and when that was last:
// at the latest when the table was made, which is said by made, as it is of what never was.
func (s *Scene) Oldest(t *Table) (r ring.Range, last time.Time, made bool) {
	record, since := s.proven(t)
	r, at := record.oldest()
	if last = time.Unix(60*at, 0).UTC(); !last.After(since) {
		return r, since, true
	}
	return r, last, at == 0
}

// Deadline is when a replica may forget the first deletion that was made since a repair.
func (t *Table) Deadline(last time.Time) time.Time { return last.Add(t.Grace()) }

// DueTables are those of which anything is due.
func (s *Scene) DueTables() []*Table {
	var out []*Table
	for i := range s.Tables {
		if _, last, _ := s.Oldest(&s.Tables[i]); !last.Add(s.target(&s.Tables[i])).After(s.Now) {
			out = append(out, &s.Tables[i])
		}
	}
	return out
}

// target is how long after a repair of a table the next one begins.
func (s *Scene) target(t *Table) time.Duration {
	return t.Grace() * time.Duration(s.Policy.Target) / 100
}

// due are the groups of which anything is due, and when the next table will be if none is.
func (s *Scene) due() (out []*group, first time.Time) {
	first = s.Now.Add(leastGrace)
	places := map[string]*places{}
	groups := map[string]*group{}
	for i := range len(s.Tables) + len(s.Beside) {
		t := s.table(i)
		_, last, _ := s.Oldest(t)
		if next := last.Add(s.target(t)); i >= len(s.Tables) || next.After(s.Now) {
			if i < len(s.Tables) && next.Before(first) {
				first = next
			}
			if !slices.ContainsFunc(s.Lacking, func(l Lacking) bool { return last.Unix()/60 < l.minute() }) {
				continue
			}
		}
		if s.Fill != nil {
			if err := s.Fill(s); err != nil {
				return nil, s.Now.Add(pauseLeast)
			}
			s.Fill = nil
		}
		p := places[t.Replication]
		if p == nil {
			p = s.place(t.Replication)
			places[t.Replication] = p
		}
		latest := s.Now.Add(-s.target(t)).Unix() / 60 // what was repaired later is not due
		if i >= len(s.Tables) {
			latest = math.MinInt64
		}
		out = s.dueOf(t, p, latest, groups, out)
	}
	return out, first
}

// table is one of those that are repaired, by its number.
func (s *Scene) table(i int) *Table {
	if i < len(s.Tables) {
		return &s.Tables[i]
	}
	return &s.Beside[i-len(s.Tables)]
}

// places are the ranges of a replication, each of which is of one of the sets.
type places struct {
	ring.Placement
	sets []string
	of   []int32
	// lacking is, by set, the minute from which a repair counts for a node of it; 0 for any.
	lacking []int64
}

func (s *Scene) place(replication string) *places {
	parsed, err := ring.ParseReplication(replication)
	if err != nil {
		return &places{}
	}
	p := &places{Placement: s.Ring.Place(parsed)}
	p.of = make([]int32, p.Len())
	known := map[string]int32{}
	row := make([]string, 0, 8)
	for i := range p.of {
		row = row[:0]
		for _, n := range p.Replicas(i) {
			row = append(row, p.Node(n))
		}
		slices.Sort(row)
		key := strings.Join(row, " ")
		at, seen := known[key]
		if !seen {
			at = int32(len(p.sets)) //nolint:gosec // no more than ranges
			known[key], p.sets = at, append(p.sets, key)
			p.lacking = append(p.lacking, s.lackingIn(row))
		}
		p.of[i] = at
	}
	return p
}

// lackingIn is the minute from which a repair counts for all of some nodes. Before it has come none
// begins for them, and one replica is compared with nothing.
func (s *Scene) lackingIn(hostIDs []string) (out int64) {
	for _, l := range s.Lacking {
		if len(hostIDs) > 1 && slices.Contains(hostIDs, l.HostID) && l.minute() <= s.Now.Unix()/60 {
			out = max(out, l.minute())
		}
	}
	return out
}

// dueOf adds what is due of a table to the groups: what was not repaired after latest, or since a
// replica lacks rows.
func (s *Scene) dueOf(t *Table, p *places, latest int64, groups map[string]*group, out []*group) []*group {
	record, since := s.proven(t)
	target, lacking := s.target(t), slices.Max(append([]int64{0}, p.lacking...))
	mine := make([]*dueTable, len(p.sets))
	record.within(span{Start: ring.MinToken, End: ring.MaxToken}, func(run span, at int64) {
		at = max(at, since.Unix()/60)
		if at > latest && at >= lacking {
			return
		}
		p.parts(run, func(part span, set int32) {
			at := at
			if at < p.lacking[set] {
				at = lackingAt
			} else if at > latest {
				return
			}
			key := t.Keyspace + " " + p.sets[set]
			g := groups[key]
			if g == nil {
				g = &group{keyspace: t.Keyspace, replicas: strings.Fields(p.sets[set])}
				groups[key], out = g, append(out, g)
			}
			if mine[set] == nil {
				mine[set] = &dueTable{Table: t}
				g.tables = append(g.tables, mine[set])
			}
			mine[set].parts = append(mine[set].parts, duePart{part, at})
			last := time.Unix(60*at, 0).UTC()
			if due := last.Add(target); g.due.IsZero() || due.Before(g.due) {
				g.due = due
			}
			if deadline := last.Add(t.Grace()); g.deadline.IsZero() || deadline.Before(g.deadline) {
				g.deadline = deadline
			}
		})
	})
	return out
}

// parts calls do for each part of a span that lies in one range, with the set of that.
func (p *places) parts(s span, do func(part span, set int32)) {
	if len(p.of) == 0 {
		return
	}
	for i := p.After(s.Start); s.Start < s.End; i++ {
		end, at := s.End, 0 // after the last token it is the first range again
		if i < len(p.of) {
			end, at = min(end, p.Range(i).End), i
		}
		do(span{Start: s.Start, End: end}, p.of[at])
		s.Start = end
	}
}

// unit is what of a group begins now, unless a replica is busy or down.
func (s *Scene) unit(g *group, busy, silent map[string]bool) (Unit, bool) {
	var u Unit
	held := len(g.replicas) < 2 // nothing to compare
	for _, id := range g.replicas {
		name, up, asked := s.Node(id)
		u.Replicas = append(u.Replicas, name)
		held = held || !up || busy[name] || slices.Contains(s.Uploads, name) && s.Now.Before(g.urgent())
		if !up {
			silent[cmp.Or(name, id)] = true
		}
		if asked && u.Node == "" {
			u.Node = name
		}
	}
	if held || u.Node == "" {
		return Unit{}, false
	}
	s.fill(&u, g)
	for _, name := range u.Replicas {
		busy[name] = true
	}
	return u, true
}

// fill takes the table of a group that is due first, and of its ranges, the oldest first, as many
// as can be done in time, then the other tables of which the same is due.
func (s *Scene) fill(u *Unit, g *group) {
	due := func(d *dueTable) int64 {
		at := slices.MinFunc(d.parts, func(a, b duePart) int { return cmp.Compare(a.at, b.at) }).at
		return at + int64(s.target(d.Table)/time.Minute)
	}
	slices.SortStableFunc(g.tables, func(a, b *dueTable) int {
		return cmp.Or(cmp.Compare(due(a), due(b)), strings.Compare(a.Name, b.Name))
	})
	lead := g.tables[0]
	slices.SortStableFunc(lead.parts, func(a, b duePart) int { return cmp.Compare(a.at, b.at) })
	room := unitTakes.Seconds()
	takes := func(d *dueTable, share float64) float64 {
		return share * float64(d.Bytes) / float64(s.rate(d.Table))
	}
	share := 0.0
	for _, p := range lead.parts {
		most := 1.0 // of the part
		if t := takes(lead, p.Size()); t > room {
			most = room / t
		}
		if most < 1 && len(u.Ranges) > 0 || len(u.Ranges) == mostRanges {
			break
		}
		if most < 1 {
			width := float64(uint64(p.End - p.Start)) //nolint:gosec // overflow is wanted
			p.End = p.Start + ring.Token(max(1, most*width))
		}
		u.Ranges = append(u.Ranges, p.span)
		share += p.Size()
		room -= takes(lead, p.Size())
	}
	seconds := 0.0
	for _, d := range g.tables {
		t := takes(d, share)
		if d != lead && (len(u.Tables) == mostTables || seconds+t > unitTakes.Seconds() || !d.covers(u.Ranges)) {
			continue
		}
		u.Tables = append(u.Tables, d.TableOf)
		u.Bytes += int64(share * float64(d.Bytes))
		seconds += t
	}
	u.Rate = usual
	if seconds > 0 {
		u.Rate = max(1, int64(float64(u.Bytes)/seconds))
	}
}

func (s *Scene) rate(t *Table) int64 {
	if s.History == nil {
		return usual
	}
	return s.History.Tables[t.ID].rate()
}

// covers says that all of some ranges is due of the table.
func (d *dueTable) covers(ranges []ring.Range) bool {
	for _, r := range ranges {
		if !slices.ContainsFunc(d.parts, func(p duePart) bool { return p.Start <= r.Start && r.End <= p.End }) {
			return false
		}
	}
	return true
}

// Repaired is how much of what a node holds is repaired since it lacks rows, from 0 to 1, and which
// of that are left out.
func (s *Scene) Repaired(l Lacking) (share float64, leftOut []*Table, err error) {
	if s.Fill != nil {
		if err := s.Fill(s); err != nil {
			return 0, nil, err
		}
		s.Fill = nil
	}
	held, done := 0.0, 0.0
	of := map[string]*places{}
	for i := range len(s.Tables) + len(s.Beside) {
		t := s.table(i)
		p := of[t.Replication]
		if p == nil {
			p = s.place(t.Replication)
			of[t.Replication] = p
		}
		h, d := s.repaired(t, p, l)
		held, done = held+h, done+d
	}
	for i := range s.LeftOut {
		t := &s.LeftOut[i]
		if _, err := ring.ParseReplication(t.Replication); err != nil {
			leftOut = append(leftOut, t) // nobody can say who holds it
		} else if h, d := s.repaired(t, s.place(t.Replication), l); d < h {
			leftOut = append(leftOut, t)
		}
	}
	if done == held {
		return 1, leftOut, nil
	}
	return done / held, leftOut, nil
}

// repaired are the shares of the ring of which a node holds a table beside others, and that are
// repaired since it lacks rows. A table that was made since lacks none.
func (s *Scene) repaired(t *Table, p *places, l Lacking) (held, done float64) {
	holds := make([]bool, len(p.sets))
	for i, set := range p.sets {
		all := strings.Fields(set)
		holds[i] = len(all) > 1 && slices.Contains(all, l.HostID)
	}
	record, since := s.proven(t)
	record.within(span{Start: ring.MinToken, End: ring.MaxToken}, func(run span, at int64) {
		p.parts(run, func(part span, set int32) {
			if !holds[set] {
				return
			}
			held += part.Size()
			if max(at, since.Unix()/60) >= l.minute() {
				done += part.Size()
			}
		})
	})
	return held, done
}
