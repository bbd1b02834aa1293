package execute

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/threads"
)

const (
	// initPause is between two attempts to reach an init that is not there: a container takes a
	// second or more to start.
	initPause = 250 * time.Millisecond
	// lookTimeout bounds one look at the ring.
	lookTimeout = 5 * time.Second
	// progressEvery is how often the processor time of a JVM that does not answer is looked at.
	progressEvery = 10 * time.Second
)

// followInit keeps init's state: it is told of every change, and asks again when init was away.
func (a *Agent) followInit(ctx context.Context) {
	var seen initapi.State
	for ctx.Err() == nil {
		var state initapi.State
		var err error
		if seen.Incarnation == "" {
			state, err = a.host.Init.State(ctx)
		} else {
			state, err = a.host.Init.WaitChange(ctx, seen, initapi.MaxWait)
		}
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			seen = initapi.State{}
			a.loseInit(err)
			a.host.Threads.Wait(ctx, initPause, nil)
			continue
		}
		seen = state
		a.mu.Lock()
		a.seeInit(state)
		a.mu.Unlock()
	}
}

// seeInit takes a state in. The lock is held. An older state of the same incarnation is none.
func (a *Agent) seeInit(state initapi.State) {
	if a.initAnswers && state.Incarnation == a.init.Incarnation && state.Seq < a.init.Seq {
		return
	}
	changed := !a.initAnswers || a.init.Incarnation != state.Incarnation || a.init.Seq != state.Seq
	before, ended := a.init.Process, endedBetween(a.init, state)
	if a.init.Unlocked != "" && state.Unlocked == "" {
		a.load() // whoever had the volume until now wrote to it
	}
	a.init, a.initAnswers, a.initAsked, a.initProblem = state, true, true, ""
	if p := state.Process; p != nil && (before == nil || before.StartID != p.StartID || a.jvm.StartID != p.StartID) {
		a.jvm = node.JVM{StartID: p.StartID}
		a.certificates, a.certificatesAt = nil, time.Time{}
		a.look.Set()
	}
	if ended {
		a.disk = node.Disk{}
		a.jvm.FatalLine = a.host.Files.FatalLine(startedAt(before, a.memory.Start))
	}
	if changed {
		a.wake.Set()
	}
}

// endedBetween says that a JVM has ended between two states of init, though it may have begun and
// ended in between: what was known of the disk is not known any more.
func endedBetween(before, after initapi.State) bool {
	if after.Process != nil {
		return false
	}
	if before.Incarnation != after.Incarnation {
		return before.Process != nil || after.LastStartID > 0
	}
	return before.Process != nil || after.LastStartID != before.LastStartID
}

// startedAt is when the JVM that has ended was started, at the latest.
func startedAt(p *initapi.Process, s *node.StartMemory) time.Time {
	switch {
	case p != nil:
		return p.StartedAt
	case s != nil:
		return s.At
	default:
		return time.Time{}
	}
}

func (a *Agent) loseInit(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	problem := ""
	if !errors.Is(err, initclient.ErrUnreachable) {
		problem = err.Error()
	}
	if !a.initAsked || problem != a.initProblem {
		a.initAsked, a.initProblem = true, problem
		a.wake.Set()
	}
	if !a.initAnswers {
		return
	}
	a.initAnswers = false
	if a.init.Process != nil {
		a.disk = node.Disk{} // whatever ran there has ended with its container
	}
	a.wake.Set()
}

// followJVM looks at the ring as often as the decision asks, and at once when it is told to.
func (a *Agent) followJVM(ctx context.Context) {
	for ctx.Err() == nil {
		a.mu.Lock()
		poll := a.decision.Poll
		a.mu.Unlock()
		if poll <= 0 {
			poll = threads.Forever
		}
		a.host.Threads.Wait(ctx, poll, a.look)
		if ctx.Err() != nil {
			return
		}
		a.LookAtRing(ctx)
		a.LookAtSpace()
		a.LookAtProgress(ctx)
		a.LookAtTables(ctx)
		a.LookAtUnfinished(ctx)
		a.LookAtCertificates()
	}
}

// LookAtRing asks the JVM for its view, and wakes the agent if that changed anything.
func (a *Agent) LookAtRing(ctx context.Context) {
	a.mu.Lock()
	process := a.init.Process
	if !a.initAnswers || process == nil {
		a.mu.Unlock()
		return
	}
	startID, started := process.StartID, a.host.Threads.Now()
	a.mu.Unlock()

	bounded, cancel := a.host.Threads.WithTimeout(ctx, lookTimeout)
	ring, err := a.host.JVM.Look(bounded)
	if ring != nil {
		a.lookAtStreams(bounded, startID, started)
	}
	cancel()
	if ctx.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.StartID != startID {
		return
	}
	before := a.jvm
	a.jvm.AskedAt = started
	if err != nil {
		a.jvm.Problem = err.Error()
		a.progress.due = true
		a.wake.Set()
		return
	}
	a.jvm.AnsweredAt, a.jvm.Problem = a.host.Threads.Now(), ""
	if ring != nil {
		seen := *ring
		seen.PlainClients = a.jvm.PlainClients
		seen.Streaming, seen.Hints, seen.Unfinished = a.jvm.Transfer.Plans > 0, a.jvm.Hints, a.jvm.Unfinished
		a.jvm.Ring = &seen
	}
	changed := !sameRing(before.Ring, a.jvm.Ring)
	if changed {
		a.jvm.ChangedAt = a.jvm.AnsweredAt
	}
	ended := len(a.memory.EndedBy(started)) != len(a.memory.EndedBy(before.AskedAt)) // since the last look
	if before.Problem != "" || changed || ended ||
		a.host.Threads.Now().Sub(a.decidedAt) >= time.Minute {
		a.wake.Set()
	}
}

// streamsEvery is how often the streams are asked for and the hints counted, and how often the
// words about them change.
const streamsEvery = 5 * time.Second

// lookAtStreams asks how far the streams of a JVM are, if that was not asked for a while, and
// counts its hints. What it does not tell of streams, on its way up or down, counts as none.
func (a *Agent) lookAtStreams(ctx context.Context, startID uint64, now time.Time) {
	a.mu.Lock()
	due := now.Sub(a.streamsAt) >= streamsEvery || a.jvm.StartID != startID
	if due {
		a.streamsAt = now
	}
	a.mu.Unlock()
	if !due {
		return
	}
	transfer, err := a.host.JVM.Streams(ctx)
	if err != nil {
		transfer = facts.Transfer{}
	}
	hints, err := a.host.Disk.Hints()
	if err != nil {
		hints = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.StartID != startID {
		return
	}
	a.jvm.Hints = hints
	if transfer.Plans > 0 {
		a.jvm.StreamedAt = now
	}
	if transfer != a.jvm.Transfer {
		a.jvm.Transfer = transfer
		a.wake.Set()
	}
}

// LookAtSpace asks how much room the data volume has, and wakes the agent when it becomes full.
func (a *Agent) LookAtSpace() {
	free, capacity, err := a.host.Disk.Space()
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.space
	if a.space = nil; err == nil {
		a.space = &facts.Space{Free: free, Capacity: capacity}
	}
	if a.space.Full() != was.Full() {
		a.wake.Set()
	}
}

// LookAtProgress asks init how much processor time the JVM has used, if that was not asked for a
// while: it tells a JVM that is frozen from one that is busy.
func (a *Agent) LookAtProgress(ctx context.Context) {
	a.mu.Lock()
	now := a.host.Threads.Now()
	due := a.progress.due && now.Sub(a.progress.at) >= progressEvery
	a.mu.Unlock()
	if !due {
		return
	}
	state, err := a.host.Init.State(ctx)
	if err != nil || state.Process == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.StartID != state.Process.StartID {
		return
	}
	next := progress{startID: a.jvm.StartID, at: now, used: time.Duration(state.CPUNanos)}
	if a.progress.moved(next) {
		a.jvm.ProgressAt = now
	}
	a.progress = next
}

const (
	// tablesEvery is how often a question about the tables is tried again.
	tablesEvery = time.Minute
	// sizesEvery is how often the sizes of tables are looked at.
	sizesEvery = 10 * time.Minute
)

// LookAtTables asks which tables there are and how long deletions are kept, when the schema is
// another one than at the last answer and CQL is open, and looks now and then how large they are.
func (a *Agent) LookAtTables(ctx context.Context) {
	a.mu.Lock()
	startID, ring, tables, grace := a.jvm.StartID, a.jvm.Ring, a.jvm.Tables, a.jvm.GCGrace
	now := a.host.Threads.Now()
	normal := ring != nil && ring.Mode == facts.ModeNormal && a.jvm.Problem == ""
	ask := normal && ring.NativeRunning && (grace == nil || a.tables.schema != ring.SchemaVersion) &&
		now.Sub(a.tables.askedAt) >= tablesEvery
	measure := normal && len(tables) > 0 && now.Sub(a.tables.measuredAt) >= sizesEvery
	if ask {
		a.tables.askedAt = now
	}
	a.mu.Unlock()
	if !ask && !measure {
		return
	}
	if ask {
		bounded, cancel := a.host.Threads.WithTimeout(ctx, lookTimeout)
		found, smallest, err := a.host.JVM.Tables(bounded)
		cancel()
		if err != nil {
			return // tried again in a while; until then the journal has the former value
		}
		tables, grace = found, &smallest
	}
	tables = a.measured(tables)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.jvm.StartID != startID {
		return
	}
	a.jvm.Tables, a.jvm.GCGrace, a.tables.measuredAt = tables, grace, now
	if ask {
		a.tables.schema = ring.SchemaVersion
	}
	a.wake.Set()
}

// measured are tables with the sizes that they have on the disk.
func (a *Agent) measured(tables []facts.Table) []facts.Table {
	out := slices.Clone(tables)
	var sizes map[string][]int64
	for i := range out {
		if t := &out[i]; i == 0 || t.Keyspace != out[i-1].Keyspace {
			sizes, _ = a.host.Disk.SSTables(t.Keyspace) // without, it counts as empty
		}
		total := int64(0)
		for _, size := range sizes[out[i].Name] {
			total += size
		}
		out[i].Bytes = 0
		if total > 0 {
			out[i].Bytes = 1 << bits.Len64(uint64(total-1))
		}
	}
	return out
}

// What is unfinished is counted every minute, and for no more than a hundredth of the time: for the
// batches Cassandra reads all that the table has, and where many are written that are mostly
// tombstones.
const (
	unfinishedEvery = time.Minute
	unfinishedShare = 100
)

// LookAtUnfinished counts what another release would find unfinished, if that is due, and asks for
// the clients that another stage of encryption would refuse.
func (a *Agent) LookAtUnfinished(ctx context.Context) {
	a.mu.Lock()
	startID, ring, now := a.jvm.StartID, a.jvm.Ring, a.host.Threads.Now()
	due := ring != nil && ring.Mode == facts.ModeNormal && a.jvm.Problem == "" &&
		!now.Before(a.unfinishedDue)
	a.mu.Unlock()
	if !due {
		return
	}
	bounded, cancel := a.host.Threads.WithTimeout(ctx, lookTimeout)
	unfinished, err := a.host.JVM.Unfinished(bounded)
	plain, unknown := a.host.JVM.PlainClients(bounded)
	cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	after := a.host.Threads.Now()
	a.unfinishedDue = after.Add(max(unfinishedEvery, unfinishedShare*after.Sub(now)))
	if a.jvm.StartID != startID {
		return
	}
	if a.jvm.Unfinished = &unfinished; err != nil {
		a.jvm.Unfinished = nil
	}
	if a.jvm.PlainClients = plain; unknown != nil {
		a.jvm.PlainClients = nil
	}
}

// progress is a look at the processor time of a JVM.
type progress struct {
	startID uint64
	at      time.Time
	used    time.Duration
	// due says that the JVM has not answered since.
	due bool
}

// moved says that the JVM has used its processor since an earlier look: more than the 0.5 % of one
// that its timers alone may take.
func (p progress) moved(next progress) bool {
	return p.startID != next.startID || p.at.IsZero() || next.used-p.used >= next.at.Sub(p.at)/200
}

// sameRing compares two views in everything that can matter to a decision.
func sameRing(a, b *facts.Ring) bool {
	if a == nil || b == nil {
		return a == b
	}
	return ringText(a) == ringText(b)
}

// oriented says that init was asked, and the JVM if one runs: before that an agent knows too little
// to report anything. The lock is held.
func (a *Agent) oriented() bool {
	if !a.initAsked {
		return false
	}
	return !a.initAnswers || a.init.Process == nil || a.jvm.StartID == a.init.Process.StartID && !a.jvm.AskedAt.IsZero()
}
