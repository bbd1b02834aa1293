package trial

import (
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// Trial is one run.
type Trial struct {
	Scenario *Scenario
	Seed     uint64
	// Fault is nil for none.
	Fault *Fault
	// Quiet is how long nothing may be written at the end; 0 for an hour after what happens to the
	// world, and after one of twenty other faults, and for a few minutes otherwise.
	Quiet time.Duration
	// Tell keeps the scenario.
	Tell bool
	// Wrap is for tests of the product's safeguards. It has no part in the name.
	Wrap world.Wrap
}

// String is the one line by which a trial is run again.
func (t Trial) String() string {
	name := fmt.Sprintf("%s/%d", t.Scenario.Name, t.Seed)
	if t.Fault != nil {
		name += "/" + t.Fault.String()
	}
	return name
}

// Undisturbed is the run without a fault that others are held against.
func Undisturbed(s *Scenario, seed uint64) Trial { return Trial{Scenario: s, Seed: seed, Quiet: hour} }

// Hash of the name, by which some trials are chosen from all of them.
func (t Trial) Hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.String()))
	return h.Sum64()
}

// quiet is how long nothing may be written at the end. An hour takes longer than most scenarios.
func (t Trial) quiet() time.Duration {
	const oneOf = 20
	switch {
	case t.Quiet > 0:
		return t.Quiet
	case t.Fault != nil && kindOf(t.Fault).class == ClassWorld: // of what else goes wrong programs only hear
		return hour
	case t.Fault != nil && t.Hash()>>32%oneOf == 0: // by other bits than those that make shares of a sweep
		return hour
	}
	return settle
}

// Result of a trial.
type Result struct {
	// Violations of what must hold, each in a sentence.
	Violations []string
	// Fired says that the fault injected.
	Fired bool
	// Points of writes and durable steps, in order.
	Points []Point
	// Requests are all of them, reads too.
	Requests []Point
	// At is when each point was, and Changes when objects of a kind were changed, of those that an
	// operator sees.
	At      map[Point]time.Time
	Changes map[string][]time.Time
	End     End
	// Took is virtual time to the end of the last act.
	Took   time.Duration
	Events uint64
	Trace  []string
}

// run is a trial under way.
type run struct {
	Trial
	w       *world.World
	checker *checker
	count   counter
	open    map[uint64]Point
	result  Result
	// stepping is whose durable step the fault is of, while that is under way.
	stepping *pod.Sandbox
	// unserved says that no node served the client when it was to write.
	unserved bool
	// over says that nothing is left to happen: other runs may end before the points from then on.
	over bool
	// injects are parts of the fault that are still to come, injected is when it was injected last.
	injects  int
	injected time.Time
	// second is the operator that believes that it leads.
	second string
	// lag of the view that the fault is of, skipping the kind of which a change wakes nobody,
	// merging that the watch starts over.
	lag      int
	skipping string
	merging  bool
}

const (
	// patience is what a fault may add to an act.
	patience = 30 * time.Minute
	// settle is how long nothing must have been written for the world to count as silent, and
	// silence how long that may take.
	settle  = 2 * time.Minute
	silence = 2 * time.Hour
	hour    = time.Hour
	// unfinished is how long an act may take that was left because of what was lost.
	unfinished = 15 * time.Minute
)

// Run runs the trial. Expected is the end of the run without a fault; nil for that run itself.
func (t Trial) Run(kinds *apiserver.Kinds, expected *End) (result Result) {
	r := &run{Trial: t, count: counter{}, open: map[uint64]Point{}}
	r.result.At, r.result.Changes = map[Point]time.Time{}, map[string][]time.Time{}
	var err error
	if r.w, err = world.New(world.Options{Kinds: kinds, Seed: t.Seed, Zones: t.Scenario.Zones,
		HostsPerZone: t.Scenario.HostsPerZone, Wrap: t.Wrap}); err != nil {
		panic(fmt.Sprintf("make the world: %v", err)) // a defect of the simulator
	}
	if t.Tell {
		r.w.Trace = r.tell
		r.w.Server.Watch(func(apiserver.Event) {
			writes := r.w.Server.Writes()
			r.tell("write", writes[len(writes)-1].String())
		})
	}
	defer func() {
		if p := recover(); p != nil {
			r.violated("panic: %v", p)
			panicked(r, p)
		}
		r.result.Events = r.w.Line.Events()
		result = r.result
		r.w.End()
	}()
	r.checker = newChecker(r)
	r.w.Faults = world.Faults{Before: r.before, After: r.after, Lag: r.lagOf, Misled: r.misled, Blinded: r.fired,
		Skip: r.skips, Merge: r.merges}
	r.w.Pods.Hook = r.step
	r.w.Pods.Start = r.checker.jvmStarts
	r.w.Pods.Host = r.checker.below(r.w.Pods.Host)
	r.w.StartOperator(r.w.Installed)
	r.acts()
	r.quiet()
	r.checker.atTheEnd()
	r.result.End = endOf(r)
	if expected != nil && !r.instead() && !r.differs() {
		r.compare(expected)
	}
	return r.result
}

func (r *run) tell(who, line string) {
	r.result.Trace = append(r.result.Trace, fmt.Sprintf("%9.3fs %-12s %s", r.w.Line.Now().Sub(world.Began).Seconds(),
		who, line))
}

// Violation is who speaks, in a scenario, where something was violated.
const Violation = "VIOLATION"

func (r *run) violated(format string, args ...any) {
	text := fmt.Sprintf("%.3fs: ", r.w.Line.Now().Sub(world.Began).Seconds()) + fmt.Sprintf(format, args...)
	for _, v := range r.result.Violations {
		if _, rest, _ := strings.Cut(v, ": "); strings.HasSuffix(text, ": "+rest) {
			return // once is enough
		}
	}
	r.result.Violations = append(r.result.Violations, text)
	if r.Tell {
		r.tell(Violation, text)
	}
}

// acts plays the scenario.
func (r *run) acts() {
	for _, a := range r.Scenario.Acts {
		if r.Tell {
			r.tell("act", a.Name)
		}
		if a.Do != nil {
			// A fault may leave no node, for now or for good, that a client can write to, or have
			// its own end, from which the act does not come back.
			err := a.Do(r.w)
			unserved := errors.Is(err, world.ErrUnserved)
			r.unserved = r.unserved || unserved
			if err != nil && (r.Fault == nil || !unserved) && (a.Despite || !r.instead()) {
				r.violated("act %s: %v", a.Name, err)
				return
			}
		}
		within := a.Within
		if r.Fault != nil {
			within += patience
		}
		if a.Until != nil && !r.w.Line.RunUntil(r.w.Line.Now().Add(within),
			func() bool { return a.Until(r.w) || !a.Despite && r.instead() }) {
			r.violated("act %s is not over after %s: %s", a.Name, within, r.checker.why())
			return
		}
	}
	r.result.Took = r.w.Line.Now().Sub(world.Began)
}

// instead says that the run has come to the other end that is right after its fault.
func (r *run) instead() bool {
	if r.Fault == nil || r.injects > 0 {
		return false
	}
	other := kindOf(r.Fault).instead
	return other != nil && other(r) || r.Scenario.Renews && tellsOfLostPods(r.w)
}

// differs says that the end may be another one. What the client could not write is not there.
func (r *run) differs() bool {
	if r.Fault == nil {
		return false
	}
	k := kindOf(r.Fault)
	return r.unserved || r.takenAlong() || k.differs != nil && k.differs(r)
}

// takenAlong says that a roll-out which waits at the end has changed a node that was down anyway.
func (r *run) takenAlong() bool {
	c := get(r.w)
	if !r.Scenario.Waits || c == nil || c.Status.Step == nil {
		return false
	}
	s := c.Status.Step
	return s.Name == string(ledger.RollOut) && s.Progress != nil && *s.Progress > 0
}

// quiet waits until nothing is written any more, and sees to it that it stays so.
func (r *run) quiet() {
	if len(r.result.Violations) > 0 {
		return
	}
	if r.instead() {
		r.w.Line.RunFor(unfinished) // an act was left before its own end
	}
	over := r.w.Line.Now() // an API server that is back is told of the past only now
	if !r.w.Line.RunUntil(over.Add(silence), func() bool {
		now := r.w.Line.Now()
		return r.injects == 0 && now.Sub(over) > settle && now.Sub(r.checker.lastWrite) > settle &&
			now.Sub(r.injected) > settle && !comesDue(r.w)
	}) {
		r.violated("still writing %s after the end: %s", silence, r.checker.lastWritten)
		return
	}
	length := r.Trial.quiet()
	before, began := r.checker.writes, r.w.Line.Now()
	r.over = true
	r.w.Line.RunFor(length)
	switch n := r.checker.writes - before; {
	case n > 0 && r.injected.After(began):
		r.quiet() // the fault injected just then
	case n > 0:
		r.violated("I10: %d writes in %s in which nothing happened, the last: %s", n, length, r.checker.lastWritten)
	}
}

// comesDue says that something begins within the hour: a postponed operation or a repair that was
// due before, if all nodes serve, the replacement of a lost member, or the next stage of an
// authority that clients get time for.
func comesDue(w *world.World) bool {
	c := get(w)
	for _, o := range w.Server.Objects("CassandraBackup") {
		if o.(*v1alpha1.CassandraBackup).Status.FinishedAt == nil { // a node tries again for an hour
			return true
		}
	}
	return c != nil && slices.ContainsFunc(c.Status.Notices, func(n v1alpha1.Notice) bool {
		if n.Reason == v1alpha1.NoticeOperationPostponed || n.Reason == v1alpha1.NoticeRepairDeadlineMissed ||
			n.Reason == v1alpha1.NoticeRepairScheduled {
			return ready(w)
		}
		if n.Reason == v1alpha1.NoticeMemberLost {
			return strings.Contains(n.Message, "it is replaced at")
		}
		return n.Reason == v1alpha1.NoticeClientsAuthorityChanges
	})
}

// before and after stand around each request of an operator or agent.
func (r *run) before(request *apiserver.Request) error {
	m := pointOfRequest(request)
	if m == nil {
		return nil
	}
	r.checker.asks(request)
	if request.User == r.second {
		r.fired()
	}
	at := r.count.next(*m)
	r.note(at)
	if r.Fault == nil || r.Fault.At != at {
		return nil
	}
	k := kindOf(r.Fault)
	if k.after != nil {
		r.open[request.Sequence] = at
	}
	if k.world != nil {
		r.inject(k)
	}
	if k.before == nil {
		return nil
	}
	r.fired()
	return k.before(r, request)
}

// note keeps a point at which a fault may be injected in another run.
func (r *run) note(m Point) {
	switch {
	case r.over:
		return
	case m.Who != WhoDisk:
		r.result.Requests = append(r.result.Requests, m)
		if !m.writes() {
			return
		}
		r.result.At[m] = r.w.Line.Now()
	}
	r.result.Points = append(r.result.Points, m)
}

func (r *run) after(request *apiserver.Request, err error) error {
	// What is invalid is tried again for ever, and nothing else is said meanwhile; by its uid
	// another object is refused, as it is to be, and one whose status was lost after it was read.
	n, _ := r.w.Server.Object(request.Kind, keyOf(request.Name)).(*v1alpha1.CassandraNode)
	lost := r.Fault != nil && r.Fault.Kind == "status-lost" && n != nil && n.Status.Phase == ""
	if apierrors.IsInvalid(err) && !lost && !strings.Contains(err.Error(), "metadata.uid") {
		r.violated("%s is refused: %v", request, err)
	}
	if _, here := r.open[request.Sequence]; !here {
		return nil
	}
	delete(r.open, request.Sequence)
	if err == nil { // otherwise it had no effect
		r.fired()
		return kindOf(r.Fault).after(r, request)
	}
	return err
}

// inject has the world go wrong beside the point.
func (r *run) inject(k kind) {
	r.injects++
	r.w.Line.After(time.Millisecond, "fault", func() {
		r.injects--
		r.injected = r.w.Line.Now()
		if k.world(r) {
			r.fired()
		}
		if k.class == ClassWorld {
			r.w.WriteOn(6)
		}
	})
}

// later keeps the world from counting as silent until something has happened.
func (r *run) later(d time.Duration, what string, do func()) {
	r.injects++
	r.w.Line.After(d, what, func() {
		r.injects--
		r.injected = r.w.Line.Now()
		do()
	})
}

func (r *run) fired() {
	first := !r.result.Fired
	r.result.Fired, r.injected = true, r.w.Line.Now()
	if r.Tell && first {
		r.tell("FAULT", r.Fault.String())
	}
}

func kindOf(f *Fault) kind { return kinds[f.Kind] }

// step stands around each durable step of an agent.
func (r *run) step(s *pod.Sandbox, step memdisk.Step, done bool) error {
	if done {
		if r.stepping == s {
			r.stepping = nil
			r.fired()
			kindOf(r.Fault).stepped(r, s.Name())
		}
		return nil
	}
	at := r.count.next(pointOfStep(s.Name(), step))
	r.note(at)
	if r.Fault == nil || r.Fault.At != at {
		return nil
	}
	switch k := kindOf(r.Fault); {
	case k.step != nil:
		r.fired()
		k.step(r, s.Name())
	case k.stepped != nil:
		r.stepping = s
	case k.world != nil:
		r.inject(k)
	}
	return nil
}

// panicked adds the place of a panic to the scenario.
func panicked(r *run, p any) {
	r.tell("PANIC", fmt.Sprint(p))
	for line := range strings.SplitSeq(string(debug.Stack()), "\n") {
		r.tell("PANIC", line)
	}
}
