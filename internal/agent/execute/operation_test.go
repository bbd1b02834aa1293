package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/jolokia"
)

// asks has the record ask for an operation.
func (w *world) asks(a *Agent, o v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) {
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		s.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "op-1"}, Type: o, Arguments: arguments}}
	})
}

// ended is the operation in the status, once it is over.
func (w *world) ended(phase v1alpha1.OperationPhase) *v1alpha1.OperationStatus {
	w.t.Helper()
	w.await("an operation that is "+string(phase), func() bool {
		o := w.lastOperation()
		return o != nil && o.Phase == phase
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastOperation()
}

func (w *world) keyspaces(names ...string) {
	w.change(func() {
		w.ring.Keyspaces = map[string]string{}
		for _, name := range names {
			w.ring.Keyspaces[name] = "NetworkTopologyStrategy {dc1=3}"
		}
	})
}

// callsOf are the calls that begin with a word, in order.
func (w *world) callsOf(word string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.calls), func(c string) bool { return !strings.HasPrefix(c, word+" ") })
}

func TestACleanupGoesKeyspaceByKeyspace(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.keyspaces("shop", "accounts", "system_auth")
	hold := make(chan struct{})
	w.change(func() { w.block["cleanup shop 2"] = hold })
	w.asks(a, v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{Jobs: 2})
	w.await("words on how far it is", func() bool {
		o := w.lastOperation()
		return o != nil && o.Phase == v1alpha1.OperationRunning && o.Message == "keyspace shop, 2 of 3" &&
			o.Progress != nil && *o.Progress == 33
	})
	// Nothing else waits for it.
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficClosed })
	w.await("closed traffic", func() bool { return w.called("close") == 1 })
	close(hold)
	if o := w.ended(v1alpha1.OperationSucceeded); o.Message != "cleaned up accounts, shop, system_auth" ||
		o.Progress != nil {
		t.Errorf("operation %+v", o)
	}
	if got := fmt.Sprint(w.callsOf("cleanup")); got != "[cleanup accounts 2 cleanup shop 2 cleanup system_auth 2]" {
		t.Errorf("calls %s", got)
	}
}

// What is cancelled is stopped in the JVM on the keyspace in work, and begins no other.
func TestAnOperationIsCancelled(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.keyspaces("shop", "accounts", "system_auth")
	w.change(func() {
		w.block["cleanup shop 2"] = make(chan struct{})
		w.failOn["cleanup shop 2"] = errors.New("compaction interrupted")
	})
	w.asks(a, v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{Jobs: 2})
	w.await("the second keyspace", func() bool { return w.called("cleanup shop 2") == 1 })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		s.Operations[0].Withdraw = &v1alpha1.Withdrawal{Reason: "the task is deleted", Cancel: true}
	})
	const want = "cancelled: keyspace shop: compaction interrupted (cleaned up before: accounts)"
	if o := w.ended(v1alpha1.OperationCancelled); o.Message != want || o.FinishedAt == nil {
		t.Errorf("operation %+v", o)
	}
	if got := fmt.Sprint(w.callsOf("cleanup"), slices.Compact(w.callsOf("stop"))); got !=
		"[cleanup accounts 2 cleanup shop 2] [stop shop]" {
		t.Errorf("calls %s", got)
	}
}

func TestOperationsThatDoNotConflictRunSideBySide(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.keyspaces("shop")
	hold := make(chan struct{})
	w.change(func() { w.block["cleanup shop 0"] = hold })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		for _, o := range []v1alpha1.OperationType{v1alpha1.OperationCleanup, v1alpha1.OperationRebuild,
			v1alpha1.OperationAssassinate} {
			s.Operations = append(s.Operations, v1alpha1.OperationIntent{
				Intent: v1alpha1.Intent{ID: string(o)}, Type: o,
				Arguments: &v1alpha1.OperationArguments{Endpoint: "10.0.0.77", SourceDatacenter: "dc1"},
			})
		}
	})
	phase := func(o v1alpha1.OperationType) v1alpha1.OperationPhase {
		status := w.lastStatus()
		if s := status.Operation(string(o)); s != nil {
			return s.Phase
		}
		return ""
	}
	w.await("the end of the assassination", func() bool {
		return phase(v1alpha1.OperationAssassinate) == v1alpha1.OperationSucceeded
	})
	w.mu.Lock()
	if phase(v1alpha1.OperationCleanup) != v1alpha1.OperationRunning || phase(v1alpha1.OperationRebuild) != "" {
		t.Errorf("cleanup %q, rebuild %q", phase(v1alpha1.OperationCleanup), phase(v1alpha1.OperationRebuild))
	}
	w.mu.Unlock()
	close(hold)
	w.await("the end of the others", func() bool {
		return phase(v1alpha1.OperationCleanup) == v1alpha1.OperationSucceeded &&
			phase(v1alpha1.OperationRebuild) == v1alpha1.OperationSucceeded
	})
}

func TestTheEndOfAnOperationThatIsNotKnown(t *testing.T) {
	for name, cut := range map[string]func(w *world){
		"the JVM goes silent": func(w *world) {
			w.failOn["rebuild shop from dc1"] = fmt.Errorf("%w: connection reset", jolokia.ErrUnreachable)
		},
		"the JVM ends": func(w *world) {
			w.state.Exits = []initapi.Exit{{Process: *w.state.Process, EndedAt: time.Now(), Code: 137,
				Signal: "SIGKILL"}}
			w.state.Process = nil
			w.state.Seq++
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, _ := w.serve()
			w.keyspaces("shop")
			hold := make(chan struct{})
			defer func() {
				select {
				case <-hold:
				default:
					close(hold)
				}
			}()
			silent := name == "the JVM goes silent"
			want := v1alpha1.OperationInterrupted
			w.change(func() {
				w.block["rebuild shop from dc1"] = hold
				if silent {
					cut(w)
				}
			})
			w.asks(a, v1alpha1.OperationRebuild, &v1alpha1.OperationArguments{SourceDatacenter: "dc1"})
			w.await("the rebuild", func() bool { return w.called("rebuild shop from dc1") == 1 })
			if silent { // it lives, and is asked again what came of it
				want = v1alpha1.OperationSucceeded
				close(hold)
				w.await("another call", func() bool { return w.called("rebuild shop from dc1") > 1 })
				w.change(func() { clear(w.failOn) })
			} else {
				w.change(func() { cut(w) })
			}
			if o := w.ended(want); o.FinishedAt == nil || o.Message == "" {
				t.Errorf("operation %+v", o)
			}
		})
	}
}

// Who waits for facts is told as soon as the ring was seen after an operation, and not before.
func TestFactsSayWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.keyspaces("shop")
	w.asks(a, v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{})
	w.ended(v1alpha1.OperationSucceeded)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	answer, digest := a.Answer()
	for len(answer.Ended) == 0 && ctx.Err() == nil {
		answer, digest = a.Wait(ctx, digest)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ended := *a.memory.Operation("op-1").FinishedAt
	if !slices.Equal(answer.Ended, []string{"op-1"}) || answer.ObservedAt.Before(ended) {
		t.Errorf("ended %q, observed at %s, and that ended at %s", answer.Ended, answer.ObservedAt, ended)
	}
	if early := a.memory.EndedBy(ended.Add(-1)); len(early) > 0 {
		t.Errorf("%q had ended before it did", early)
	}
}

func TestFactsSayHowMuchRoomThereIs(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.change(func() { w.ring.Endpoints[0].Load = 123 })
	a.LookAtRing(t.Context())
	a.LookAtSpace()
	a.Decide()
	answer, before := a.Answer()
	if s := answer.Space; s == nil || *s != (facts.Space{Free: 3 << 30, Capacity: 4 << 30, Data: 123}) {
		t.Errorf("space %+v", s)
	}
	w.change(func() { w.taken = 3<<30 - 100<<20 })
	a.LookAtSpace()
	bounded, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, digest := a.Wait(bounded, before); digest == before {
		t.Error("a volume that becomes full is no news")
	}
	w.change(func() { w.taken = 0 })
	a.LookAtSpace()
	w.change(func() { w.failOn["space"] = errors.New("no such volume") })
	a.LookAtSpace()
	a.Decide()
	if answer, after := a.Answer(); answer.Space != nil || after != before {
		t.Errorf("space %+v, digest %s after %s", answer.Space, after, before)
	}
}

func TestManySmallKeyspacesAreFewWritesOfTheStatus(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("k%02d", i))
	}
	w.keyspaces(names...)
	w.asks(a, v1alpha1.OperationCleanup, nil)
	w.ended(v1alpha1.OperationSucceeded)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.called("cleanup k39 0"); n != 1 {
		t.Errorf("the last keyspace was cleaned up %d times", n)
	}
	said := map[string]bool{}
	for _, s := range w.writes {
		if o := s.Operation("op-1"); o != nil && o.Phase == v1alpha1.OperationRunning {
			said[o.Message] = true
		}
	}
	if len(said) > 5 {
		t.Errorf("the status said %v", said)
	}
}

func TestStreamsAreAskedForNowAndThen(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	a.Fresh(t.Context())
	streaming := func() bool {
		answer, _ := a.Answer()
		return answer.Ring.Streaming
	}
	if streaming() {
		t.Fatal("it streams before it does")
	}
	w.change(func() { w.transfer = facts.Transfer{Plans: 1, Received: 1, ToReceive: 2} })
	a.LookAtRing(t.Context())
	a.Decide()
	if streaming() {
		t.Error("it was asked again at once")
	}
	force := func() {
		a.mu.Lock()
		a.streamsAt = time.Time{}
		a.mu.Unlock()
		a.LookAtRing(t.Context())
		a.Decide()
	}
	force()
	a.mu.Lock()
	jvm := a.jvm
	a.mu.Unlock()
	if !streaming() || jvm.StreamedAt.IsZero() || jvm.Transfer.ToReceive != 2 {
		t.Errorf("streaming %v, last at %s, %+v", streaming(), jvm.StreamedAt, jvm.Transfer)
	}
	w.change(func() { w.failOn["streams"] = errors.New("no such bean") })
	force()
	if streaming() {
		t.Error("it streams by a word that it did not say")
	}
}

// Hints are counted with the streams, what is unfinished once a minute, and what is not known is
// not said.
func TestWhatANodeKeepsForOthers(t *testing.T) {
	w := newWorld(t)
	w.hints, w.unfinished = map[string]int{"other": 2}, facts.Unfinished{Batches: 3}
	a, _ := w.serve()
	look := func() *facts.Ring {
		a.mu.Lock()
		a.streamsAt = time.Time{}
		a.mu.Unlock()
		a.LookAtUnfinished(t.Context())
		a.LookAtRing(t.Context())
		a.Decide()
		answer, _ := a.Answer()
		return answer.Ring
	}
	if r := look(); r.Hints["other"] != 2 || r.Unfinished == nil || r.Unfinished.Batches != 3 {
		t.Errorf("hints %v, unfinished %v", r.Hints, r.Unfinished)
	}
	w.change(func() { w.unfinished, w.failOn["hints"] = facts.Unfinished{}, errors.New("input/output error") })
	if r := look(); r.Hints != nil || r.Unfinished == nil || r.Unfinished.Batches != 3 {
		t.Errorf("hints %v, unfinished %v", r.Hints, r.Unfinished)
	}
	a.mu.Lock()
	left := a.unfinishedDue.Sub(a.host.Threads.Now())
	a.unfinishedDue = time.Time{}
	a.mu.Unlock()
	w.change(func() { w.failOn["unfinished"] = errors.New("no such bean") })
	if r := look(); r.Unfinished != nil || left < 50*time.Second {
		t.Errorf("unfinished %v; counted again after %s", r.Unfinished, left)
	}
}

// An operation that the next agent resumes reads the Secrets of its cluster, though the API server
// has not shown that agent the record yet.
func TestAnOperationIsResumedBeforeTheRecordIsSeen(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.change(func() { w.known, w.failOn["secret orders-roles"] = false, errors.New("there is none") })
	a.mu.Lock()
	f := a.gather()
	f.Record = f.Memory.Record.Object(self)
	a.startJob(t.Context(), &f, &v1alpha1.OperationIntent{Type: v1alpha1.OperationProveLogin,
		Arguments: &v1alpha1.OperationArguments{SuperuserSecret: "people"}}, nil)
	w.change(func() { w.record = nil })
	a.mu.Unlock()
	w.await("the roles of the cluster", func() bool { return w.called("secret orders-roles") == 1 })
}
