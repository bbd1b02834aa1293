package trial

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/pod"
)

// turn judges roll-outs: a node is as a spec describes it, the old one or the new, and only as many
// as may be, of one rack, are on their way from one to the other.
type turn struct {
	*checker
	// described is what any spec has described the nodes of a rack as.
	described map[[2]string]map[facts.Hashes]bool
	// modes are those of authentication that any spec asked for: a node takes over the rest of a
	// spec before there are roles.
	modes []v1alpha1.AuthenticationMode
	// made is the encryption that the first spec asked for, and walks says that one asked for
	// another.
	made  v1alpha1.NodeEncryption
	walks bool
	// recreated are nodes whose records somebody deleted: another is made by the spec.
	recreated map[string]bool
	// last is the node that was asked last to go down.
	last string
	// over are restarts that a status has told the end of, though it is lost later.
	over map[string]bool
}

func (t *turn) describe(c *v1alpha1.CassandraCluster) {
	wanted := wantedNodes(c)
	asked := wanted[0].Configuration.Encryption.OrNotEncrypted()
	if len(t.described) == 0 {
		t.made = asked
	}
	t.walks = t.walks || asked != t.made
	if mode := wanted[0].Configuration.Authentication; !slices.Contains(t.modes, mode) {
		t.modes = append(t.modes, mode)
	}
	for _, w := range wanted {
		rack := [2]string{w.Datacenter, w.Rack}
		if t.described[rack] == nil {
			t.described[rack] = map[facts.Hashes]bool{}
		}
		for _, w.Configuration.Authentication = range t.modes {
			t.described[rack][w.Hashes()] = true
		}
		w.Configuration.Authentication = wanted[0].Configuration.Authentication
		for _, stage := range stages(asked.ClientCertificates) {
			if !t.walks {
				break
			}
			w.Configuration.Encryption, w.Pod.Certificates = &stage, stage.Uses()
			t.described[rack][w.Hashes()] = true
		}
	}
}

// stages of encryption in which a ring may be that is asked for another one than it was made with.
// Of the order of stages it is the nodes that tell, by refusing each other.
func stages(certificates v1alpha1.ClientCertificates) (out []v1alpha1.NodeEncryption) {
	modes := []v1alpha1.EncryptionMode{v1alpha1.EncryptionDisabled, v1alpha1.EncryptionOptional,
		v1alpha1.EncryptionRequired}
	for _, internode := range modes {
		for _, clients := range modes {
			for _, plain := range []bool{false, internode == v1alpha1.EncryptionOptional} {
				out = append(out, v1alpha1.NodeEncryption{Internode: internode, ConnectsPlain: plain, Clients: clients,
					ClientCertificates: certificates})
			}
		}
	}
	return out
}

// bySpec are the hashes of a record without the restart that a task has asked for.
func (t *turn) bySpec(n *v1alpha1.CassandraNode) facts.Hashes {
	for _, o := range t.w.Server.Objects("CassandraTask") {
		task := o.(*v1alpha1.CassandraTask)
		if at := n.Spec.Configuration.RestartedAt; task.Spec.Type == v1alpha1.TaskRestart && at != nil &&
			at.Equal(task.Status.StartedAt) {
			n = n.DeepCopy()
			n.Spec.Configuration.RestartedAt = nil
		}
	}
	return render.HashesOf(n).Hashes
}

// changed judges the record of a member.
func (t *turn) changed(old, n *v1alpha1.CassandraNode) {
	c := get(t.w)
	if r := n.Status.Restart; r != nil && (r.FinishedAt != nil || r.WithdrawnAt != nil) {
		t.over[r.ID] = true
	}
	if old == nil {
		_, before := t.recreated[n.Name]
		t.recreated[n.Name] = before
	}
	if c == nil || c.DeletionTimestamp != nil || n.Spec.Member == nil || old == nil || old.Spec.Member == nil {
		return
	}
	if is := t.bySpec(n); !t.described[[2]string{n.Spec.Datacenter, n.Spec.Rack}][is] && is != t.bySpec(old) {
		t.violated("node %s gets a record that no spec describes", n.Name)
	}
	if t.stopsWith(n.Spec.Datacenter) {
		if t.asked(n) && !t.asked(old) {
			t.stops(n)
		}
		return
	}
	if t.asked(n) && !t.asked(old) && t.Fault == nil {
		serving := map[string]bool{}
		for _, s := range t.w.Pods.Sandboxes() {
			serving[s.Name()] = s.JVM() != nil && s.JVM().NativeOpen()
		}
		for _, w := range wantedNodes(c) {
			if t.otherRack(w.Name, n.Name) && !serving[w.Name] && t.isMember(w.Name) && !t.diskLost(w.Name) &&
				t.lastLedger.StoppedDatacenter(w.Datacenter) == nil {
				t.violated("node %s is asked to go down while %s is", n.Name, w.Name)
			}
		}
	}
	if t.asked(n) && !t.asked(old) {
		t.missed(n, c)
		t.repaired(n, c)
		t.budgets.closed("node " + n.Name + " is asked to go down")
		t.last = n.Name
	}
	if !t.inTurn(n) || t.inTurn(old) || t.recreated[n.Name] {
		return
	}
	var together []string
	for _, o := range t.w.Server.Objects("CassandraNode") {
		other := o.(*v1alpha1.CassandraNode)
		if !t.inTurn(other) || other.Spec.Cluster.UID != c.UID || t.recreated[other.Name] || t.diskLost(other.Name) ||
			t.lastLedger.StoppedDatacenter(other.Spec.Datacenter) != nil {
			continue
		}
		together = append(together, other.Name)
		if other.Spec.Datacenter != n.Spec.Datacenter || other.Spec.Rack != n.Spec.Rack {
			t.violated("nodes %s and %s of two racks are changed together", other.Name, n.Name)
		}
	}
	if most := mostTogether(c, n); len(together) > most {
		t.violated("%d nodes are changed together, at most %d may: %v", len(together), most, together)
	}
}

// missed: no node is asked to go down while another one keeps hints for that of the last wave,
// which has just come back. Beside a fault nobody may know of them yet.
func (t *turn) missed(n *v1alpha1.CassandraNode, c *v1alpha1.CassandraCluster) {
	const unchangedFor = 2 * time.Minute
	for _, s := range t.w.Pods.Sandboxes() {
		if t.Fault != nil || s.Name() != t.last || s.JVM() == nil || s.JVM().NormalFor() >= unchangedFor ||
			!t.otherRack(t.last, n.Name) && mostTogether(c, n) > 1 {
			continue
		}
		for _, other := range t.w.Pods.Sandboxes() {
			if j := other.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) && !t.diskLost(other.Name()) &&
				other.Content(v1alpha1.VolumeData).Data.Hints()[s.JVM().HostID()] > 0 {
				t.violated("node %s is asked to go down while %s keeps hints for %s", n.Name, other.Name(), t.last)
			}
		}
	}
}

// repaired: no member gets another release while one takes part in an incremental repair.
func (t *turn) repaired(n *v1alpha1.CassandraNode, c *v1alpha1.CassandraCluster) {
	for _, s := range t.w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.IncrementalRepairs() > 0 && n.Spec.Configuration.Version != c.Spec.Version {
			t.violated("node %s is to get another release while %s takes part in an incremental repair", n.Name,
				s.Name())
		}
	}
}

// diskLost says that a node's disk is lost: it is not waited for, and the ranges alone say who may
// go down beside it, which the scenario of that judges by its client. The operator may know it from
// the agent before the status says so.
func (t *turn) diskLost(name string) bool {
	n, _ := t.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode)
	if !t.Scenario.LosesDisk && !t.may().writes || n == nil {
		return false
	}
	empty := func(s *pod.Sandbox) bool {
		return s.Name() == name && s.JVM() == nil && s.Content(v1alpha1.VolumeData).Data.HostID() == ""
	}
	return n.Status.Phase == v1alpha1.PhaseDataLost || slices.ContainsFunc(t.w.Pods.Sandboxes(), empty)
}

// isMember says that a node has joined: one that is still to join serves nobody.
func (t *turn) isMember(name string) bool {
	n, _ := t.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode)
	return n != nil && n.Spec.Member != nil
}

// otherRack says that two nodes are in different racks: ordinals are of one digit here.
func (t *turn) otherRack(a, b string) bool { return a[:len(a)-1] != b[:len(b)-1] }

// resized: a pod gets other resources in the turn of its node alone.
func (t *turn) resized(old, p *corev1.Pod) {
	if p.DeletionTimestamp != nil || equality.Semantic.DeepEqual(old.Spec, p.Spec) ||
		render.ImageOf(old, layout.AgentContainer) != render.ImageOf(p, layout.AgentContainer) {
		return
	}
	for _, o := range t.w.Server.Objects("CassandraNode") {
		other := o.(*v1alpha1.CassandraNode)
		if t.otherRack(other.Name, p.Name) && t.inTurn(other) && !t.recreated[other.Name] && !t.diskLost(other.Name) &&
			t.lastLedger.StoppedDatacenter(other.Spec.Datacenter) == nil {
			t.violated("pod %s is resized while node %s of another rack is changed", p.Name, other.Name)
		}
	}
}

// inTurn says that a node is asked to go down for a change, or was given one that its JVM does not
// have yet, or that its pod has other resources than its record.
func (t *turn) inTurn(n *v1alpha1.CassandraNode) bool {
	p, _ := t.w.Server.Object("Pod", keyOf(n.Name)).(*corev1.Pod)
	return t.asked(n) || p != nil && halfResized(n, p) ||
		n.Status.Configuration != nil && n.Status.Configuration.RestartNeeded
}

// halfResized says that a pod is being resized: once its record has taken that over it is done,
// whatever else the record is given later, such as while the disk is lost.
func halfResized(n *v1alpha1.CassandraNode, p *corev1.Pod) bool {
	asked, _ := render.ResizeAsked(p)
	is := n.Spec.Resized
	return render.HalfResized(n, p) && (is == nil || is.PodUID != p.UID || is.PodTemplate != asked)
}

func (t *turn) asked(n *v1alpha1.CassandraNode) bool {
	return n.Spec.State == v1alpha1.StateStopped || n.Spec.Restart != nil && !t.over[n.Spec.Restart.ID]
}

func mostTogether(c *v1alpha1.CassandraCluster, n *v1alpha1.CassandraNode) int {
	limit := c.Spec.Disruption.MaxUnavailable
	if limit == nil {
		return 1
	}
	size := 0
	for _, w := range wantedNodes(c) {
		if w.Datacenter == n.Spec.Datacenter && w.Rack == n.Spec.Rack {
			size++
		}
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, size, false)
	if err != nil {
		panic(fmt.Sprintf("disruption.maxUnavailable: %v", err)) // of the scenario
	}
	return most
}

// takesDown judges an agent that takes its node down because it is asked to: no node of another
// rack is down. Beside a fault one may be, of which nobody knows yet.
func (t *turn) takesDown(s *pod.Sandbox) bool {
	n, _ := t.w.Server.Object("CassandraNode", keyOf(s.Name())).(*v1alpha1.CassandraNode)
	if t.stopsWith(s.Datacenter()) {
		return true
	}
	if n == nil || !t.asked(n) {
		return false
	}
	for _, other := range t.w.Pods.Sandboxes() {
		if t.Fault == nil && t.otherRack(other.Name(), s.Name()) && t.isMember(other.Name()) &&
			(other.JVM() == nil || !other.JVM().NativeOpen()) && !t.diskLost(other.Name()) &&
			!t.lastLedger.StopsDatacenter(other.Datacenter()) {
			t.violated("I1: the agent of node %s takes it down while %s is", s.Name(), other.Name())
		}
	}
	return true
}
