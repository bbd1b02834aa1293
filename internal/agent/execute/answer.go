package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/threads"
)

// publish makes the answer to questions for facts anew. The lock is held.
func (a *Agent) publish(f *node.Facts, d node.Decision) {
	if !a.reportable {
		return
	}
	answer := &facts.Agent{
		ClusterUID: a.self.ClusterUID, Node: a.self.Node, PodUID: a.self.PodUID, Version: a.self.AgentVersion,
		ObservedAt:       a.decidedAt,
		RecordGeneration: d.Status.ObservedGeneration,
		Address:          a.self.Address,
		Disk:             d.Status.Disk, Owner: d.Status.DiskOwner, HostID: d.Status.HostID,
		Phase: d.Status.Phase, Message: d.Status.Message, Process: processState(f.Init), Ready: d.Ready,
		Join:          d.Status.Join,
		TrafficOpened: f.Memory.TrafficOpenedAt != nil, Traffic: d.Status.ClientTraffic,
		Addresses: a.addresses(f), Replaced: f.Memory.Replaced,
		DiskRelease: f.Memory.Release, Normal: f.Memory.Normal, GCGrace: f.Memory.GCGrace,
		Tables: f.JVM.Tables,
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionDiskFailing); c != nil {
		answer.DiskFailing = c.Message
	}
	if c := d.Status.Configuration; c != nil {
		answer.Revision = c.Revision
	}
	if a.space != nil {
		space := *a.space
		answer.Space = &space
	}
	if f.Init.Process != nil && f.JVM.StartID == f.Init.Process.StartID && f.JVM.Problem == "" {
		answer.Ring = f.JVM.Ring
		if self, found := answer.Ring.ByHostID(hostIDOf(answer.Ring)); found && answer.Space != nil {
			answer.Space.Data = self.Load
		}
		if answer.Ring != nil {
			answer.ObservedAt, answer.Ended = f.JVM.AnsweredAt, f.Memory.EndedBy(f.JVM.AskedAt)
		}
	}
	digest := agentapi.Digest(answer)
	changed := digest != a.digest
	a.answer, a.digest = answer, digest
	if changed {
		a.answered.all()
	}
}

func hostIDOf(r *facts.Ring) string {
	if r == nil {
		return ""
	}
	return r.HostID
}

func processState(i node.Init) facts.ProcessState {
	switch {
	case !i.Answers:
		return facts.ProcessUnknown
	case i.Process != nil:
		return facts.ProcessRunning
	default:
		return facts.ProcessAbsent
	}
}

// addresses are those the node has and had. The present one counts from the first start in this
// pod; its last use is given to whole minutes while the JVM runs, so that an answer does not change
// by itself.
func (a *Agent) addresses(f *node.Facts) []facts.AddressUse {
	uses := slices.Clone(f.Memory.Addresses)
	if len(uses) > 0 && f.Init.Process != nil && uses[0].Address == a.self.Address {
		uses[0].LastUsed = a.host.Threads.Now().UTC().Truncate(time.Minute)
	}
	return uses
}

// Answer is the present answer to questions for facts, with its digest. The answer is not to be
// changed.
func (a *Agent) Answer() (*facts.Agent, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer, a.digest
}

// freshEnough is the age at which an answer is made anew for somebody who asks for the present.
const freshEnough = time.Second

// Fresh looks at the ring, if the last look is older than a second, and answers.
func (a *Agent) Fresh(ctx context.Context) (*facts.Agent, string) {
	a.mu.Lock()
	stale := a.host.Threads.Now().Sub(a.decidedAt) > freshEnough ||
		a.host.Threads.Now().Sub(a.jvm.AskedAt) > freshEnough && a.init.Process != nil
	a.mu.Unlock()
	if stale {
		a.mu.Lock()
		a.streamsAt = time.Time{}
		a.mu.Unlock()
		a.LookAtSpace()
		a.LookAtRing(ctx)
		a.Decide()
		a.wake.Set() // what was decided here is carried out by the loop alone
	}
	return a.Answer()
}

// Wait returns the answer as soon as its digest is another one, or when ctx ends.
func (a *Agent) Wait(ctx context.Context, digest string) (*facts.Agent, string) {
	changed := a.answered.join()
	defer a.answered.leave(changed)
	for {
		answer, now := a.Answer()
		if now != digest || ctx.Err() != nil {
			return answer, now
		}
		a.host.Threads.Wait(ctx, threads.Forever, changed)
	}
}

// Identity is what a peer is told before it starts its JVM.
func (a *Agent) Identity(address, hostID string) facts.Peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.gather()
	id := facts.Peer{
		ClusterUID: a.self.ClusterUID, Node: a.self.Node, PodUID: a.self.PodUID, Addresses: a.addresses(&f),
		Replaced: f.EveryReplaced(), TrafficOpened: f.Memory.TrafficOpenedAt != nil,
		GoingDown: node.GoesDown(&f, a.decision.Action),
	}
	if m := f.Memory.Member; m != nil {
		id.HostID = m.HostID
	} else if f.Record != nil && f.Record.Spec.Member != nil { // its disk is lost, and the journal with it
		id.HostID = f.Record.Spec.Member.HostID
	}
	if id.GCGrace = f.JVM.GCGrace; id.GCGrace == nil && f.Memory.GCGrace > 0 {
		id.GCGrace = &f.Memory.GCGrace
	}
	if f.Record != nil {
		id.Datacenter = f.Record.Spec.Datacenter
	}
	ring := f.JVM.Ring
	if f.Init.Process == nil || f.JVM.StartID != f.Init.Process.StartID || ring == nil || f.JVM.Problem != "" {
		return id
	}
	id.Ring, id.JVM = true, fmt.Sprintf("%s/%d", f.Init.Incarnation, f.JVM.StartID)
	if ring.Mode == facts.ModeNormal {
		id.Down = ring.Down()
	}
	if e, found := ring.ByAddress(address); found {
		id.AtAddress = e.Sighting()
	}
	if e, found := ring.ByHostID(hostID); found {
		id.OfHostID = e.Sighting()
		if e.Member() && ring.Mode == facts.ModeNormal {
			id.Up = ring.Up()
		}
	}
	return id
}

// Ready is the answer to the readiness probe.
func (a *Agent) Ready() (bool, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decision.Ready, fmt.Sprintf("phase %s, client traffic %s: %s", a.decision.Status.Phase,
		a.decision.Status.ClientTraffic, a.decision.Status.Message)
}

// liveWithin is how long the loop may be silent: decisions and the journal take milliseconds,
// everything longer runs beside it.
const liveWithin = 2 * time.Minute

// Live says whether the agent itself works: its lock can be taken, and it has decided lately. An
// idle agent is made to decide.
func (a *Agent) Live() (bool, string) {
	a.mu.Lock()
	silent := a.host.Threads.Now().Sub(a.decidedAt)
	a.mu.Unlock()
	if silent > liveWithin/4 {
		a.wake.Set()
	}
	if silent > liveWithin {
		return false, fmt.Sprintf("the agent has decided nothing for %s", silent.Round(time.Second))
	}
	return true, "ok"
}

// Figures are the agent's own metrics.
type Figures struct {
	Phase    v1alpha1.NodePhase
	Ready    bool
	Restarts int32
	// Failures are actions that fail, with how often in a row.
	Failures map[node.ActionKind]int
	// APIHeard and JVMHeard are when API server and JVM last answered; zero if never.
	APIHeard, JVMHeard time.Time
	// Choice of the metrics of Cassandra.
	Choice v1alpha1.Metrics
	// Certificates that the JVM has shown.
	Certificates []node.Certificate
	// LogCovered is up to when the commit log is in the store, or, before that, since when it is
	// kept; zero if it is not.
	LogCovered time.Time
}

// Figures as they are now.
func (a *Agent) Figures() Figures {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := Figures{
		Phase: a.decision.Status.Phase, Ready: a.decision.Ready, Failures: map[node.ActionKind]int{},
		JVMHeard: a.jvm.AnsweredAt,
	}
	if r := a.decision.Status.Restarts; r != nil {
		f.Restarts = r.Count
	}
	for kind, failed := range a.failures {
		f.Failures[kind] = failed.row
	}
	for _, c := range a.certificates {
		if c.Served != "" {
			f.Certificates = append(f.Certificates, c)
		}
	}
	if a.log.Log != nil {
		from, to, _ := a.log.Covered()
		f.LogCovered = latest(from, to)
	}
	if a.host.Record != nil {
		f.APIHeard = a.host.Record.HeardAt()
		if record, _ := a.host.Record.Record(); record != nil {
			f.Choice = v1alpha1.Metrics{Tables: record.Spec.TableMetrics, Extra: record.Spec.ExtraMetrics}
		}
	}
	return f
}

// ringText tells two views apart. The load of the nodes, which changes all the time and decides
// nothing here, does not count.
func ringText(r *facts.Ring) string {
	copied := *r
	copied.Endpoints = slices.Clone(r.Endpoints)
	for i := range copied.Endpoints {
		copied.Endpoints[i].Load = 0
	}
	text, err := json.Marshal(&copied)
	if err != nil {
		panic(fmt.Sprintf("encode ring: %v", err)) // plain data: cannot happen
	}
	return string(text)
}
