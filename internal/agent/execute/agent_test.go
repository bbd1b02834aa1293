package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/threads"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// agent makes an agent of the world.
func (w *world) agent() *Agent {
	return New(Host{
		Threads: threads.Goroutines{}, Init: fakeInit{w}, Journal: fakeJournal{w}, Disk: fakeDisk{w},
		Files: fakeFiles{w}, JVM: fakeJVM{world: w}, Record: fakeRecord{w},
		LogVolume: w.logVolume, Peers: fakePeers{w}, Logf: func(format string, arguments ...any) {
			w.change(func() { w.log = append(w.log, fmt.Sprintf(format, arguments...)) })
		},
		Store: func(context.Context, *v1alpha1.BackupStoreSpec) (store.Store, error) { return fakeStore{world: w}, nil },
	}, node.Self{ClusterUID: uid, Node: self, PodUID: "pod-1", Address: address, FactsPort: 7780, StartedAt: time.Now(),
		GracePeriod: 5 * time.Minute},
		Options{Random: func() float64 { return 0 }})
}

// run runs an agent until stop is called, or the test ends.
func (w *world) run() (a *Agent, stop func()) {
	a = w.agent()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { a.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	w.t.Cleanup(stop)
	return a, stop
}

// edit changes the spec of the record, and wakes the agent as the watch does.
func (w *world) edit(a *Agent, change func(*v1alpha1.CassandraNodeSpec)) {
	w.change(func() {
		next := w.record.DeepCopy()
		change(&next.Spec)
		next.Generation++
		w.record = next
	})
	a.Wake()
}

func ring(native bool) *facts.Ring {
	return &facts.Ring{
		Mode: facts.ModeNormal, HostID: hostID, ReleaseVersion: "5.0.6", GossipRunning: true, NativeRunning: native,
		Endpoints: []facts.Endpoint{{Address: address, HostID: hostID, Datacenter: "dc1", Rack: "r1",
			Status: facts.StatusNormal, Live: true, Tokens: []int64{-5, 5}}},
		Keyspaces: map[string]string{"system_auth": "SimpleStrategy {replication_factor=1}"},
	}
}

func ticket() *v1alpha1.JoinTicket {
	return &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "form/1"}, Mode: v1alpha1.JoinNew,
		Tokens: []string{"-5", "5"}}
}

// serve brings a new node to where it serves clients.
func (w *world) serve() (*Agent, func()) {
	w.t.Helper()
	a, stop := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket() })
	w.await("start", func() bool { return w.state.Process != nil })
	w.change(func() {
		w.ring = ring(false)
		w.disk.HasData, w.disk.Bootstrapped, w.disk.HostID = true, node.WordCompleted, hostID
	})
	w.await("join", func() bool { j := w.lastStatus().Join; return j != nil && j.FinishedAt != nil })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		s.Join, s.Member, s.ClientTraffic = nil, &v1alpha1.Member{HostID: hostID}, v1alpha1.TrafficOpen
	})
	w.await("ready", func() bool { return w.lastStatus().Ready })
	return a, stop
}

func TestANodeFormsAndServes(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.await("the time that deletions are kept, in the journal",
		func() bool { return w.memory.GCGrace == 240*time.Hour })
	if ok, words := a.Ready(); !ok {
		t.Errorf("not ready: %s", words)
	}
	answer, digest := a.Answer()
	if !answer.TrafficOpened || answer.HostID != hostID || answer.Ring == nil || digest == "" {
		t.Errorf("answer %+v", answer)
	}
	id := a.Identity(address, hostID)
	if id.AtAddress == nil || id.OfHostID == nil || !id.Ring || !id.TrafficOpened || len(id.Addresses) != 1 {
		t.Errorf("identity %+v", id)
	}
}

func TestTheNextAgentGoesOn(t *testing.T) {
	w := newWorld(t)
	_, stop := w.serve()
	stop()
	w.mu.Lock()
	starts, writes := w.called("start"), len(w.writes)
	w.mu.Unlock()
	a, _ := w.run()
	w.await("the next agent to see the ring", func() bool { ok, _ := lockFree(w, a.Ready); return ok })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.called("start") != starts || len(w.writes) != writes {
		t.Errorf("the next agent started %d JVMs and wrote %d times: %+v", w.called("start")-starts,
			len(w.writes)-writes, w.lastStatus())
	}
}

// lockFree calls something that takes locks of its own from within await.
func lockFree(w *world, f func() (bool, string)) (bool, string) {
	w.mu.Unlock()
	defer w.mu.Lock()
	return f()
}

func TestAnAgentEndsForALaterOne(t *testing.T) {
	w := newWorld(t)
	_, stop := w.serve()
	stop()
	a := w.agent()
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.AgentStartedAfter = &metav1.Time{Time: time.Now()} })
	a.Run(t.Context()) // until the record is known
	next, _ := w.run()
	w.await("the next agent to see the ring and keep the record, and have nothing else to do", func() bool {
		idle, _ := lockFree(w, func() (bool, string) {
			ready, _ := next.Ready()
			return ready && next.Decide().Action == nil, ""
		})
		return idle && w.memory.Record.Generation == w.record.Generation
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Process == nil || w.called("start") != 1 {
		t.Errorf("process %v, calls %v", w.state.Process, w.calls)
	}
}

func TestDeathsAreCountedAndExplained(t *testing.T) {
	w := newWorld(t)
	w.serve()
	hold := make(chan struct{})
	w.change(func() { w.block["start"] = hold })
	w.changeInit(func(s *initapi.State) {
		s.Exits = append(s.Exits, initapi.Exit{Process: *s.Process, EndedAt: time.Now(), Code: 100})
		s.Process = nil
	})
	w.await("word of the death", func() bool {
		r := w.lastStatus().Restarts
		return r != nil && r.Count == 1 && !w.lastStatus().Ready
	})
	w.mu.Lock()
	status := w.lastStatus()
	w.mu.Unlock()
	if status.Restarts.LastReason != v1alpha1.RestartDiskFailure || status.Message == "" {
		t.Errorf("reason %s, message %q", status.Restarts.LastReason, status.Message)
	}
	close(hold)
	w.await("the next start", func() bool { return w.state.Process != nil })
}

func TestStopInOrderWhenTheContainerEnds(t *testing.T) {
	w := newWorld(t)
	w.serve()
	hold := make(chan struct{})
	w.change(func() { w.block["drain"] = hold; w.calls = nil })
	w.changeInit(func(s *initapi.State) {
		s.Stopping = &initapi.Stopping{Since: time.Now(), Deadline: time.Now().Add(2 * time.Second)}
	})
	w.await("drain, and not ready", func() bool { return w.called("drain") == 1 && !w.lastStatus().Ready })
	w.change(func() { delete(w.block, "drain") })
	close(hold)
	w.await("the end of the JVM", func() bool { return w.state.Process == nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	var order []string
	for _, c := range w.calls {
		if c != "take-stop" {
			order = append(order, c)
		}
	}
	if want := []string{"close", "drain", "signal TERM"}; !slices.Equal(order, want) || w.calls[0] != "take-stop" {
		t.Errorf("calls %v, want take-stop and then %v", w.calls, want)
	}
}

func TestAFailedDrainDoesNotHoldTheStopUp(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.change(func() { w.failOn["drain"] = errors.New("no") })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateStopped })
	w.await("stopped", func() bool { return w.lastStatus().Phase == v1alpha1.PhaseStopped })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.called("drain") != 1 || w.called("signal TERM") != 1 {
		t.Errorf("calls %v", w.calls)
	}
}

func TestNothingHappensWithoutTheJournal(t *testing.T) {
	w := newWorld(t)
	a, _ := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.change(func() { w.putErr = errors.New("disk full") })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket() })
	w.await("word of it", func() bool { b := w.lastStatus().Blocked; return b != nil && b.Reason == "ActionFailing" })
	w.mu.Lock()
	if w.called("start") != 0 {
		t.Error("started without a line in the journal")
	}
	w.mu.Unlock()
	w.change(func() { w.putErr = nil })
	w.await("start", func() bool { return w.called("start") == 1 })
}

// join lets an agent begin to join, and waits until its JVM runs.
func (w *world) join() *Agent {
	w.t.Helper()
	a, _ := w.run()
	w.await("word of the empty disk", func() bool { return w.lastStatus().Disk == v1alpha1.DiskEmpty })
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket() })
	w.await("start", func() bool { return w.state.Process != nil })
	return a
}

func takeBack(s *v1alpha1.CassandraNodeSpec) { s.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "test"} }

func TestAJoinThatBeganIsTakenBack(t *testing.T) {
	w := newWorld(t)
	a := w.join()
	w.change(func() { w.disk.HasData = true })
	w.edit(a, takeBack)
	w.await("acknowledgement", func() bool { j := w.lastStatus().Join; return j != nil && j.WithdrawnAt != nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.memory.Join; j == nil || j.WithdrawnAt == nil || j.BegunAt == nil {
		t.Errorf("the journal has %+v", j)
	}
	if w.state.Process != nil || w.called("start") != 1 || w.lastStatus().Disk != v1alpha1.DiskJoining {
		t.Errorf("process %v, %d starts, disk %s", w.state.Process, w.called("start"), w.lastStatus().Disk)
	}
}

func TestAJoinThatSucceededIsNotTakenBack(t *testing.T) {
	w := newWorld(t)
	a := w.join()
	// Cassandra has written down that it is a member, and nobody has seen it yet.
	w.change(func() { w.disk.HasData, w.disk.Bootstrapped, w.disk.HostID = true, node.WordCompleted, hostID })
	w.edit(a, takeBack)
	w.await("the start as a member", func() bool { return w.called("start") == 2 && w.state.Process != nil })
	w.change(func() { w.ring = ring(false) })
	w.await("the end of the join", func() bool { j := w.lastStatus().Join; return j != nil && j.FinishedAt != nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.lastStatus().Join; j.WithdrawnAt != nil || w.called("start") != 2 {
		t.Errorf("join %+v, %d starts", j, w.called("start"))
	}
}

// A JVM that begins and ends before anybody looks has changed the disk all the same.
func TestTheDiskIsLookedAtAfterEveryJVM(t *testing.T) {
	process := &initapi.Process{StartID: 2}
	for name, c := range map[string]struct {
		before, after initapi.State
		ended         bool
	}{
		"nothing happened": {initapi.State{Incarnation: "i", LastStartID: 1},
			initapi.State{Incarnation: "i", LastStartID: 1}, false},
		"one began": {initapi.State{Incarnation: "i", LastStartID: 1},
			initapi.State{Incarnation: "i", LastStartID: 2, Process: process}, false},
		"it ended": {initapi.State{Incarnation: "i", LastStartID: 2, Process: process},
			initapi.State{Incarnation: "i", LastStartID: 2}, true},
		"it began and ended": {initapi.State{Incarnation: "i", LastStartID: 1},
			initapi.State{Incarnation: "i", LastStartID: 2}, true},
		"its container ended": {initapi.State{Incarnation: "i", LastStartID: 2, Process: process},
			initapi.State{Incarnation: "j"}, true},
		"init seen first":       {initapi.State{}, initapi.State{Incarnation: "i"}, false},
		"init seen after a JVM": {initapi.State{}, initapi.State{Incarnation: "i", LastStartID: 1}, true},
	} {
		if got := endedBetween(c.before, c.after); got != c.ended {
			t.Errorf("%s: %v, want %v", name, got, c.ended)
		}
	}
}

// TestAVolumeInUseIsWaitedFor: the agent says so, starts by itself when init has the volume, and
// goes by what whoever had it until then wrote to the journal.
func TestAVolumeInUseIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.record.Spec.Join = ticket()
	w.state.Unlocked = "another process holds the lock"
	w.run()
	w.await("the word of the volume", func() bool {
		b := w.lastStatus().Blocked
		return b != nil && b.Reason == v1alpha1.BlockedDataVolumeInUse && w.called("start") == 0
	})
	w.change(func() { w.memory.Replaced = []string{"by-another-agent"} })
	w.changeInit(func(s *initapi.State) { s.Unlocked = "" })
	w.await("the start", func() bool {
		return w.called("start") == 1 && slices.Contains(w.memory.Replaced, "by-another-agent")
	})
}

func TestAnUnreadableJournalStartsNothing(t *testing.T) {
	w := newWorld(t)
	w.failOn["load"] = errors.New("checksum")
	w.record.Spec.Join = ticket()
	w.run()
	w.await("word of it", func() bool { return w.lastStatus().Disk == v1alpha1.DiskUnreadable })
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.called("start") != 0 || w.puts != 0 {
		t.Errorf("%d starts, %d writes to the journal", w.called("start"), w.puts)
	}
}

func TestOperationsRunOnce(t *testing.T) {
	w := newWorld(t)
	a, stop := w.serve()
	operation := func(id string) {
		w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
			s.Operations = []v1alpha1.OperationIntent{{
				Intent: v1alpha1.Intent{ID: id}, Type: v1alpha1.OperationAlterSystemKeyspaces,
				Arguments: &v1alpha1.OperationArguments{},
			}}
		})
	}
	ended := func(phase v1alpha1.OperationPhase) func() bool {
		return func() bool { o := w.lastOperation(); return o != nil && o.Phase == phase }
	}
	operation("op-1")
	w.await("the first", ended(v1alpha1.OperationSucceeded))
	w.change(func() { w.failOn["alter"] = errors.New("no replica") })
	operation("op-2")
	w.await("the second", ended(v1alpha1.OperationFailed))

	// The agent ends in the middle of the third, and the next one sees to the end of it.
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	w.change(func() { w.failOn["alter"] = nil; w.block["alter"] = hold })
	operation("op-3")
	w.await("the third to begin", func() bool { return w.called("alter") == 3 })
	stop()
	w.change(func() { delete(w.failOn, "alter") })
	a, _ = w.run()
	w.await("the third to be followed", func() bool { return w.called("alter") == 4 })
	release()
	w.await("the end of the third", ended(v1alpha1.OperationSucceeded))
}

func TestStatusIsWrittenAgainAfterARefusal(t *testing.T) {
	w := newWorld(t)
	w.failOn["write"] = errors.New("away")
	w.run()
	w.await("a failed write in the log", func() bool {
		return slices.ContainsFunc(w.log, func(line string) bool { return strings.Contains(line, "away") })
	})
	w.change(func() { delete(w.failOn, "write") })
	w.await("the status", func() bool { return w.lastStatus().Phase == v1alpha1.PhaseWaiting })
}

func TestNothingIsWrittenForAnotherClustersRecord(t *testing.T) {
	w := newWorld(t)
	w.record.Spec.Cluster.UID = "another"
	a := w.agent()
	a.seeInit(w.state)
	a.Decide()
	if !a.reportable {
		t.Fatal("knows too little to report")
	}
	if record, status := a.statusToWrite(); record != nil {
		t.Errorf("would write %+v", status)
	}
}

func TestFreshLooksAtTheRing(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.change(func() { w.ring.SchemaVersion = "new" })
	a.mu.Lock()
	a.jvm.AskedAt = time.Now().Add(-time.Minute)
	a.mu.Unlock()
	answer, _ := a.Fresh(t.Context())
	if answer.Ring == nil || answer.Ring.SchemaVersion != "new" {
		t.Errorf("ring %+v", answer.Ring)
	}
}

func TestWaitAnswersAtTheNextChange(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	_, digest := a.Answer()
	got := make(chan *facts.Agent, 1)
	go func() {
		answer, _ := a.Wait(context.Background(), digest)
		got <- answer
	}()
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficClosed })
	if answer := <-got; answer == nil {
		t.Error("no answer")
	}
}

func TestProgress(t *testing.T) {
	at := func(s int, used time.Duration) progress {
		return progress{startID: 1, at: time.Unix(int64(s), 0), used: used}
	}
	for name, c := range map[string]struct {
		before, after progress
		want          bool
	}{
		"first look":    {progress{}, at(10, 0), true},
		"busy":          {at(10, time.Second), at(20, 2*time.Second), true},
		"timers only":   {at(10, time.Second), at(20, time.Second+20*time.Millisecond), false},
		"stopped":       {at(10, time.Second), at(20, time.Second), false},
		"another start": {at(10, time.Second), progress{startID: 2, at: time.Unix(20, 0)}, true},
	} {
		if got := c.before.moved(c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAnOperationGivesWayToTheEndOfTheContainer(t *testing.T) {
	w := newWorld(t)
	a, _ := w.serve()
	w.change(func() { w.block["alter"] = make(chan struct{}) }) // it never ends by itself
	w.edit(a, func(s *v1alpha1.CassandraNodeSpec) {
		s.Operations = []v1alpha1.OperationIntent{{
			Intent: v1alpha1.Intent{ID: "op-1"}, Type: v1alpha1.OperationAlterSystemKeyspaces,
			Arguments: &v1alpha1.OperationArguments{},
		}}
	})
	w.await("the operation to begin", func() bool { return w.called("alter") == 1 })
	w.changeInit(func(s *initapi.State) {
		s.Stopping = &initapi.Stopping{Since: time.Now(), Deadline: time.Now().Add(2 * time.Second)}
	})
	w.await("the end of the JVM", func() bool { return w.state.Process == nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.memory.Operation("op-1"); o.Phase == v1alpha1.OperationSucceeded {
		t.Errorf("operation %+v", o)
	}
}
