package rollout

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// change is what has to happen to a node to bring it to what the spec describes. A greater one
// includes the smaller.
type change int

const (
	// nothing: record, pod and JVM are what the spec describes.
	nothing change = iota
	// live: the record alone, which agent and operator carry out on what runs.
	live
	// restart: the JVM takes it over when it starts.
	restart
	// resize: the pod that runs gets other resources, and the JVM is restarted if its memory
	// follows from them.
	resize
	// newPod: the pod is made again.
	newPod
)

// pair is a record as it is and as it is to be: the nodes of a rack mostly have the same.
type pair struct{ have, want facts.Hashes }

// wanted is what a node is to be: as its record has it while the spec says nothing of it.
func (p *pass) wanted(n *facts.Node) render.Wanted {
	if w := p.Describes(n.Name); w != nil && !p.SpecRejected {
		return p.withNewestRules(n, render.Pinned(p.Cluster, *w, n.Record), w)
	}
	return render.Wanted{Name: n.Name, Datacenter: n.Record.Spec.Datacenter, Rack: n.Record.Spec.Rack,
		Configuration: n.Record.Spec.Configuration, Pod: n.Record.Spec.Pod}
}

// withNewestRules: what makes a new pod of a node, or restarts its JVM, brings it to the newest of
// Helenus' own rules. The agent that renders by them has to be of this release; that of a new pod
// is.
func (p *pass) withNewestRules(n *facts.Node, w render.Wanted, newest *render.Wanted) render.Wanted {
	if w.Pod.Revision == newest.Pod.Revision && w.Configuration.Revision == newest.Configuration.Revision {
		return w
	}
	switch change := p.recordChange(n, w); {
	case change == newPod:
		w.Pod.Revision, w.Configuration.Revision = newest.Pod.Revision, newest.Configuration.Revision
	case change == restart && n.CurrentAgent() != nil && n.Agent.Version == p.Install.Version:
		w.Configuration.Revision = newest.Configuration.Revision
	}
	return w
}

// changeOf a node that has a live record: it is asked for several times in a pass.
func (p *pass) changeOf(n *facts.Node) change {
	out, known := p.byNode[n]
	if !known {
		out = p.workOutChange(n)
		p.byNode[n] = out
	}
	return out
}

// workOutChange of a node. Of one whose disk is lost only the record can follow.
func (p *pass) workOutChange(n *facts.Node) change {
	if lost(n) {
		return min(p.recordChange(n, p.wanted(n)), live)
	}
	w := p.wanted(n)
	out := p.recordChange(n, w)
	if out != resize && n.Pod != nil && n.Pod.DeletionTimestamp == nil && p.MadeForAnother(n) {
		if out < resize && p.mayResize(n, w) { // back to what its record still says
			return resize
		}
		return newPod
	}
	if out < restart && behind(n) {
		return restart
	}
	return out
}

// recordChange compares the record of a node with what it is to be.
func (p *pass) recordChange(n *facts.Node, w render.Wanted) change {
	if p.SameAs(n, w) {
		return nothing
	}
	hashes := pair{p.HashesOf(n).Hashes, p.WantedHashes(w).Hashes}
	out, known := p.changes[hashes]
	if !known {
		out = compare(n.Record, w)
		p.changes[hashes] = out
	}
	if out == resize && !p.mayResize(n, w) {
		return newPod
	}
	return out
}

func compare(have *v1alpha1.CassandraNode, w render.Wanted) change {
	if render.PodHash(have.Spec.Pod) != render.PodHash(w.Pod) {
		if render.Resizable(have.Spec.Pod, w.Pod) && have.Spec.Configuration.Version == w.Configuration.Version {
			return resize
		}
		return newPod
	}
	changes, err := config.Diff(&have.Spec.Configuration, &w.Configuration)
	if err != nil || len(changes.Restart) > 0 {
		return restart
	}
	return live
}

// noteFormats has the SSTables of members upgraded later that are to write another format from now
// on: before any record has it, so that it is not forgotten.
func (p *pass) noteFormats() {
	var due []string
	for _, name := range p.Members() {
		n, w := p.Live(name), p.Describes(name)
		if n != nil && w != nil && !p.SpecRejected && config.SSTables(&n.Record.Spec.Configuration) !=
			config.SSTables(&w.Configuration) && !slices.Contains(p.Ledger.UpgradeSSTables, name) {
			due = append(due, name)
		}
	}
	if len(due) > 0 {
		p.step.Write(false, "the format of their SSTables changes", func(r *ledger.Ring, _ *ledger.Step) {
			r.UpgradeSSTables = append(r.UpgradeSSTables, due...)
		})
	}
}

// behind says that the JVM that runs cannot take over what the record says without a restart.
func behind(n *facts.Node) bool {
	c := n.Record.Status.Configuration
	return owesRestart(n) || c != nil && c.RestartNeeded && current(n) && n.CurrentAgent() != nil &&
		n.Agent.Process == facts.ProcessRunning
}

// current says that the status is of the present pod, and knows the present spec.
func current(n *facts.Node) bool {
	return n.StatusIsCurrent() && n.Record.Status.ObservedGeneration == n.Record.Generation
}

// renews says that a node gets a new pod, and that its data is in the one that it has.
func (p *pass) renews(n *facts.Node) bool { return p.HoldsData(n) && p.changeOf(n) == newPod }

// lost says that the disk of a member is lost: its JVM does not start, whatever the spec says.
func lost(n *facts.Node) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.Phase == v1alpha1.PhaseDataLost
}

// notBack says why a node is not yet back with what its record asks for; empty if it is.
func (p *pass) notBack(n *facts.Node) string {
	agent, status := n.CurrentAgent(), n.Record.Status
	switch {
	case p.state.Renews && (lost(n) || p.isLost(n.Name)):
		return "its data is to be streamed again"
	case lost(n):
		return ""
	case agent == nil:
		return assess.WhyNoAnswer(n)
	case p.MadeForAnother(n):
		return "its pod is not the new one yet"
	case agent.Ring == nil:
		if trouble := assess.Trouble(n); trouble != "" {
			return trouble
		}
		if agent.Message != "" {
			return assess.WithFields(agent.Message)
		}
		return "it is " + string(agent.Phase)
	case agent.Ring.Mode != facts.ModeNormal:
		return "it is " + string(agent.Ring.Mode)
	case !current(n):
		return "its agent has not seen its record yet"
	case unfinishedRestart(n):
		return "its restart is not over"
	case settings.LineOf(agent.Ring.ReleaseVersion) != settings.LineOf(n.Record.Spec.Configuration.Version):
		return fmt.Sprintf("it runs Cassandra %s, and version is %s: is its image %s of that release?",
			agent.Ring.ReleaseVersion, n.Record.Spec.Configuration.Version, n.Record.Spec.Pod.Image)
	case owesRestart(n):
		return "its JVM does not run with the new memory yet"
	case status.Configuration == nil || status.Configuration.RestartNeeded:
		return "its JVM does not run with the new configuration yet"
	case status.Configuration.Message != "":
		return status.Configuration.Message
	}
	if hash, err := config.Hash(&n.Record.Spec.Configuration); err != nil || hash != status.Configuration.Hash {
		return "its JVM has not taken over the new settings yet"
	}
	if n.Record.Spec.ClientTraffic == v1alpha1.TrafficOpen && (!agent.Ready || !ready(n)) {
		return "it is not ready yet"
	}
	return ""
}
