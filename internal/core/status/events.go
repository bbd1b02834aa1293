package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/words"
)

// Event tells people of one change of the status of a cluster.
type Event struct {
	// Type is Normal or Warning.
	Type string
	// Reason is one of v1alpha1.
	Reason string
	// Action tells changes of one reason apart: the recorder may count Events as one that differ in
	// nothing but their message.
	Action string
	// Node that it is about; empty if it is about several or none.
	Node    string
	Message string
}

// Events are the changes from one status of a cluster to the next. Before is the status in the API,
// so that a change is told once, by whichever operator writes it. That the nodes of a cluster that
// is being deleted go down is what was asked for.
func Events(before, after v1alpha1.CassandraClusterStatus) []Event {
	c := changes{before: before, after: after}
	c.formed()
	c.steps()
	c.stalled()
	if ready := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady); ready == nil ||
		ready.Reason != v1alpha1.ReasonDeleting {
		c.available()
		c.nodes()
	}
	c.restarts()
	c.certificates()
	c.noticed(v1alpha1.NoticeCertificateNotRenewed, v1alpha1.EventCertificateNotRenewed)
	c.overruled()
	c.noticed(v1alpha1.NoticeDiskFailing, v1alpha1.EventDiskFailing)
	return c.events
}

// changes are collected from two statuses.
type changes struct {
	before, after v1alpha1.CassandraClusterStatus
	events        []Event
}

func (c *changes) add(kind, reason, action, node, format string, args ...any) {
	c.events = append(c.events, Event{Type: kind, Reason: reason, Action: action, Node: node,
		Message: words.Shorten(fmt.Sprintf(format, args...), longestField)})
}

func (c *changes) formed() {
	names := func(of v1alpha1.CassandraClusterStatus) (out []string) {
		for _, d := range of.Datacenters {
			if d.Formed {
				out = append(out, d.Name)
			}
		}
		return out
	}
	was := names(c.before)
	fresh := slices.DeleteFunc(names(c.after), func(name string) bool { return slices.Contains(was, name) })
	if len(fresh) > 0 {
		c.add(corev1.EventTypeNormal, v1alpha1.EventFormed, "Form/"+strings.Join(fresh, ","), "",
			"the ring of datacenter %s exists", words.List(fresh, 3))
	}
}

func (c *changes) steps() {
	for _, s := range c.after.OpenSteps {
		if slices.ContainsFunc(c.before.OpenSteps, func(b v1alpha1.OpenStep) bool { return b.ID == s.ID }) {
			continue
		}
		if ledger.Kind(s.Step) == ledger.RepairTables {
			continue // one follows on another for ever
		}
		message, nodes := s.Step, []string(nil)
		if now := c.after.Step; now != nil && now.Name == s.Step {
			message, nodes = s.Step+": "+now.Message, now.Nodes
		}
		c.add(corev1.EventTypeNormal, v1alpha1.EventStepStarted, s.Step+"/"+s.ID, only(nodes), "%s", message)
	}
	for _, s := range slices.Backward(c.after.History) {
		if slices.ContainsFunc(c.before.History, func(b v1alpha1.StepRecord) bool {
			return b.Step == s.Step && b.StartedAt.Equal(&s.StartedAt) && b.Message == s.Message
		}) {
			continue
		}
		kind, reason := corev1.EventTypeNormal, v1alpha1.EventStepFinished
		switch s.Result {
		case v1alpha1.StepSucceeded:
		case v1alpha1.StepFailed:
			kind, reason = corev1.EventTypeWarning, v1alpha1.EventStepFailed
		case v1alpha1.StepWithdrawn:
			reason = v1alpha1.EventStepWithdrawn
		}
		c.add(kind, reason, s.Step+"/"+s.StartedAt.UTC().Format(time.RFC3339), "", "%s: %s", s.Step, s.Message)
	}
	for _, b := range c.after.Blocked {
		if !slices.ContainsFunc(c.before.Blocked, func(was v1alpha1.BlockedStep) bool {
			return was.Step == b.Step && was.Reason == b.Reason
		}) {
			c.add(corev1.EventTypeWarning, v1alpha1.EventStepBlocked, b.Step+"/"+string(b.Reason), only(b.Nodes),
				"%s waits, %s: %s", b.Step, b.Reason, b.Message)
		}
	}
}

// certificates tells when the first one of the ring is about to end.
func (c *changes) certificates() {
	within := func(s v1alpha1.CassandraClusterStatus) *v1alpha1.EncryptionStatus {
		if s.Security == nil || s.Security.Encryption == nil {
			return &v1alpha1.EncryptionStatus{}
		}
		return s.Security.Encryption
	}
	if old, now := within(c.before).EndsWithinDays, within(c.after); now.EndsWithinDays != 0 &&
		(old == 0 || now.EndsWithinDays < old) {
		c.add(corev1.EventTypeWarning, v1alpha1.EventCertificateEnds, fmt.Sprintf("Ends/%d", now.EndsWithinDays), "",
			"a certificate of the ring, or an authority of it, ends at %s, within %s: no new connection is made by it "+
				"then", now.NextExpiry.UTC().Format(time.RFC3339), words.Plural(int(now.EndsWithinDays), "day"))
	}
}

// overruled tells when an exception has let pass what a guard has found.
func (c *changes) overruled() {
	for _, e := range c.after.Exceptions {
		if e.UsedAt != nil && !slices.ContainsFunc(c.before.Exceptions, func(b v1alpha1.ExceptionStatus) bool {
			return b.Name == e.Name && b.UsedAt != nil
		}) {
			c.add(corev1.EventTypeWarning, v1alpha1.EventGuardOverruled, e.Name, "", "exception %s: %s", e.Name,
				e.Message)
		}
	}
}

// noticed tells of a notice that is new, or names further nodes: that a certificate is not renewed,
// or that a disk fails, nothing else tells before it is too late.
func (c *changes) noticed(reason v1alpha1.Reason, event string) {
	is := func(n v1alpha1.Notice) bool { return n.Reason == reason }
	now := slices.IndexFunc(c.after.Notices, is)
	if now < 0 {
		return
	}
	n := c.after.Notices[now]
	fresh := slices.Clone(n.Nodes)
	if before := slices.IndexFunc(c.before.Notices, is); before >= 0 {
		fresh = slices.DeleteFunc(fresh,
			func(name string) bool { return slices.Contains(c.before.Notices[before].Nodes, name) })
	}
	if len(fresh) > 0 {
		c.add(corev1.EventTypeWarning, event, string(n.Reason), only(fresh), "%s", n.Message)
	}
}

// only is the one name of a list that has one.
func only(nodes []string) string {
	if len(nodes) == 1 {
		return nodes[0]
	}
	return ""
}

// condition is one as it was, and as it is now.
func (c *changes) condition(kind string) (old, now *metav1.Condition) {
	return meta.FindStatusCondition(c.before.Conditions, kind), meta.FindStatusCondition(c.after.Conditions, kind)
}

func (c *changes) stalled() {
	old, now := c.condition(v1alpha1.ConditionStalled)
	if now != nil && (old == nil || old.Reason != now.Reason) {
		c.add(corev1.EventTypeWarning, v1alpha1.EventStalled, now.Reason, "", "%s: %s", now.Reason, now.Message)
	}
}

func (c *changes) available() {
	old, now := c.condition(v1alpha1.ConditionAvailable)
	if now == nil || old == nil || now.Status == old.Status {
		return
	}
	switch {
	case old.Reason == v1alpha1.ReasonForming || slices.ContainsFunc(c.before.OpenSteps,
		func(s v1alpha1.OpenStep) bool { return forms(ledger.Kind(s.Step)) }): // Formed says so
	case now.Status == metav1.ConditionTrue:
		c.add(corev1.EventTypeNormal, v1alpha1.EventAvailable, now.Reason, "", "%s", now.Message)
	default:
		c.add(corev1.EventTypeWarning, v1alpha1.EventUnavailable, now.Reason, "", "%s: %s", now.Reason, now.Message)
	}
}

// forms says that a kind of step makes the first ring, which serves nobody before it ends.
func forms(kind ledger.Kind) bool { return kind == ledger.FormRing || kind == ledger.AdoptRing }

// nodes says which nodes are in another trouble than before. Of nodes that a step works on it says
// nothing but that they wait for the user: that they are down is part of the step.
func (c *changes) nodes() {
	worked := func(name string) bool {
		return slices.ContainsFunc([]*v1alpha1.StepStatus{c.before.Step, c.after.Step},
			func(s *v1alpha1.StepStatus) bool { return s != nil && slices.Contains(s.Nodes, name) })
	}
	for _, u := range c.after.Unhealthy {
		old := troubleBefore(c.before.Unhealthy, u.Name)
		cut := len(c.before.Unhealthy) >= mostNodes && u.Name > c.before.Unhealthy[mostNodes-1].Name
		if old == u.Trouble || cut { // of what was cut off nobody knows what it was
			continue
		}
		switch u.Trouble {
		case v1alpha1.TroubleUnreachable: // the condition Healthy says so: Cassandra may be well
		case v1alpha1.TroubleDown:
			if !worked(u.Name) && (old == "" || old == v1alpha1.TroubleUnreachable) {
				c.add(corev1.EventTypeWarning, v1alpha1.EventNodeDown, string(u.Trouble), u.Name,
					"node %s is down", u.Name)
			}
		case v1alpha1.NodeTrouble(v1alpha1.PhaseDataLost):
			c.add(corev1.EventTypeWarning, v1alpha1.EventDataLost, string(u.Trouble), u.Name,
				"the data of node %s is not on its disk", u.Name)
		default:
			c.add(corev1.EventTypeWarning, v1alpha1.EventNodeFailed, string(u.Trouble), u.Name,
				"node %s is %s and waits for the user", u.Name, u.Trouble)
		}
	}
	for _, u := range c.before.Unhealthy {
		cut := len(c.after.Unhealthy) >= mostNodes && u.Name > c.after.Unhealthy[mostNodes-1].Name
		if u.Trouble != v1alpha1.TroubleUnreachable && troubleBefore(c.after.Unhealthy, u.Name) == "" &&
			!worked(u.Name) && !cut {
			c.add(corev1.EventTypeNormal, v1alpha1.EventNodeUp, "Up", u.Name, "node %s is no longer %s", u.Name,
				u.Trouble)
		}
	}
}

func (c *changes) restarts() {
	for _, r := range slices.Backward(c.after.JVMRestarts) {
		if !slices.ContainsFunc(c.before.JVMRestarts, func(b v1alpha1.JVMRestart) bool { return sameRestart(b, r) }) {
			c.add(corev1.EventTypeWarning, v1alpha1.EventJVMRestarted, string(r.Reason), r.Node,
				"the JVM of node %s ended at %s and is started again: %s", r.Node, r.At.UTC().Format(time.RFC3339),
				r.Reason)
		}
	}
}
