package execute

import (
	"context"
	"fmt"
	"sync"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/threads"
)

// Agent is one agent at work.
type Agent struct {
	host Host
	self node.Self
	// memoryLimit of the Cassandra container in bytes when the agent started; 0 if it had none.
	memoryLimit int64
	random      func() float64

	mu            sync.Mutex
	memory        node.Memory
	memoryProblem string
	disk          node.Disk
	init          initapi.State
	initAnswers   bool
	// initAsked says that init was asked once, with whatever result.
	initAsked bool
	// initProblem says why an init that is there cannot be talked to.
	initProblem string
	jvm         node.JVM
	peers       node.Peers
	doing       *node.Doing
	// jobs are the operations that run, or have ended and are not in the journal as ended yet.
	jobs []*job
	// space on the data volume when it was last looked at; nil if it is not known.
	space *facts.Space
	// probed is what the probes of the volumes have come to. One is under way while probing, at the
	// volume probeAt; probeFound is what the last one that ended has found.
	probed     node.DiskHealth
	probing    bool
	probeAt    string
	probeFound node.DiskProblem
	probeEnded *threads.Signal
	// streamsAt is when the streams were last asked for.
	streamsAt time.Time
	// interrupt ends the action under way before its time.
	interrupt     context.CancelFunc
	failures      map[node.ActionKind]failure
	configuration comparison
	// progress is the last look at the processor time of a JVM that does not answer.
	progress progress
	// tables is the last question about the tables of users.
	tables struct {
		askedAt, measuredAt time.Time
		schema              string
	}
	// log is what is kept of the commit log in a store, and logSaid what was last decided on.
	log     commitLog
	logSaid node.Log
	// unfinishedDue is when what is unfinished may be counted again.
	unfinishedDue time.Time
	// certificates are those of the running JVM, and certificatesAt when they were last looked at.
	certificates   []node.Certificate
	certificatesAt time.Time
	verified       map[v1alpha1.CertificateUse]verified
	decision       node.Decision
	decidedAt      time.Time
	// reportable says that the decision was made by an agent that knew enough: see oriented.
	reportable bool
	// logged is the last line about a decision.
	logged  string
	leaseAt time.Time
	answer  *facts.Agent
	digest  string

	wake     *threads.Signal
	look     *threads.Signal
	report   *threads.Signal
	answered broadcast
	// ended is the result of the action under way, when there is one.
	ended *result
}

// failure counts how often an action failed in a row.
type failure struct {
	node.Failure
	row int
}

// result of an action.
type result struct {
	action node.Action
	// record by which it was begun.
	record *v1alpha1.CassandraNode
	err    error
	// apply changes what is known; called in the loop, with the lock held.
	apply func(a *Agent)
}

// Options of an agent beside who it is.
type Options struct {
	// MemoryLimit of the Cassandra container in bytes; 0 if it has none.
	MemoryLimit int64
	// Random is between 0 and 1, for the jitter of back-offs.
	Random func() float64
}

// New makes an agent and reads its journal. A journal that cannot be read is no error: the agent
// reports it and starts nothing.
func New(host Host, self node.Self, o Options) *Agent {
	a := &Agent{
		host: host, self: self, memoryLimit: o.MemoryLimit, random: o.Random,
		failures: map[node.ActionKind]failure{}, verified: map[v1alpha1.CertificateUse]verified{},
		wake: threads.NewSignal(), look: threads.NewSignal(), report: threads.NewSignal(),
		probeEnded: threads.NewSignal(),
	}
	a.load()
	return a
}

// load reads the journal.
func (a *Agent) load() {
	memory, err := a.host.Journal.Load()
	a.memory, a.memoryProblem = memory, ""
	if err != nil {
		a.memoryProblem = err.Error()
	}
}

// Wake has the agent decide anew: something changed.
func (a *Agent) Wake() { a.wake.Set() }

// Connect gives the agent the parts of its host that need the agent to exist first.
func (a *Agent) Connect(record Record) { a.host.Record = record }

// Run works until ctx ends, or the record asks the agent to end. Cassandra keeps running, and the
// next agent takes over.
func (a *Agent) Run(ctx context.Context) {
	ctx, end := a.host.Threads.WithTimeout(ctx, threads.Forever)
	a.host.Threads.Together(0,
		func() { a.loop(ctx); end() },
		func() { a.followInit(ctx) },
		func() { a.followJVM(ctx) },
		func() { a.followVolumes(ctx) },
		func() { a.followLog(ctx) },
		func() { a.writeStatus(ctx) },
	)
}

// loop decides after every event, and carries out what was decided.
func (a *Agent) loop(ctx context.Context) {
	for ctx.Err() == nil {
		a.finish()
		f, decision := a.decide()
		if _, ends := decision.Action.(node.EndAgent); ends {
			return
		}
		a.holdStop(ctx, decision)
		if decision.Action != nil {
			a.begin(ctx, &f, decision.Action)
			continue
		}
		pause := threads.Forever
		if again := a.nextLook(decision); !again.IsZero() {
			pause = max(again.Sub(a.host.Threads.Now()), 10*time.Millisecond)
		}
		a.host.Threads.Wait(ctx, pause, a.wake)
	}
}

// Decide gathers the facts and decides on them.
func (a *Agent) Decide() node.Decision {
	_, d := a.decide()
	return d
}

// decide is Decide, and says on which facts.
func (a *Agent) decide() (node.Facts, node.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.host.Threads.Now()
	f := a.gather()
	a.giveWay(&f)
	d := node.Next(f, now)
	a.logChange(d)
	polled := a.decision.Poll
	a.decision, a.decidedAt, a.reportable = d, now, a.oriented()
	if d.Poll != polled {
		a.look.Set()
	}
	a.report.Set()
	a.publish(&f, d)
	return f, d
}

// nextLook is when to decide again without an event.
func (a *Agent) nextLook(d node.Decision) time.Time {
	again := d.Again
	if d.HoldStop {
		a.mu.Lock()
		renew := a.leaseAt.Add(stopLease / 3)
		a.mu.Unlock()
		if again.IsZero() || renew.Before(again) {
			again = renew
		}
	}
	return again
}

// stopLease is how long init leaves a stop to an agent that was last heard.
const stopLease = initapi.MaxStopLease

// holdStop renews the lease on the stop of the container. If it fails init stops Cassandra by
// itself, which its state then says.
func (a *Agent) holdStop(ctx context.Context, d node.Decision) {
	if !d.HoldStop {
		return
	}
	a.mu.Lock()
	due := a.host.Threads.Now().Sub(a.leaseAt) >= stopLease/3
	seen := a.init
	a.mu.Unlock()
	if !due {
		return
	}
	state, err := a.host.Init.TakeStop(ctx, seen, stopLease)
	if err != nil {
		a.host.Logf("take the stop of the container over: %v", err)
		return
	}
	a.mu.Lock()
	a.leaseAt = a.host.Threads.Now()
	a.seeInit(state)
	a.mu.Unlock()
}

// logChange writes a line whenever the step that decided, its action or its words are others than
// in the line before. What is asked again and again while a node waits is not said.
func (a *Agent) logChange(d node.Decision) {
	if a.doing != nil && d.Status.Phase == a.decision.Status.Phase || len(d.Steps) == 0 {
		return // that it is under way was said when it was decided
	}
	if d.Action != nil && a.failures[node.KindOf(d.Action)].NotYet {
		return // one attempt of many at what Cassandra is not ready for
	}
	last := d.Steps[len(d.Steps)-1]
	verdict := string(last.Verdict)
	if last.Verdict == node.Act {
		verdict += " " + string(node.KindOf(d.Action))
	}
	line := fmt.Sprintf("%s phase=%s %s=%s: %s", a.self.Node, d.Status.Phase, last.Name, verdict, last.Message)
	if line != a.logged {
		a.logged = line
		a.host.Logf("%s", line)
	}
}
