package cluster

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// volumesAndPods gives every record its claims, its certificate and its pod. A claim that a member had is never made again: another disk under its name
// would be an empty one.
func volumesAndPods(p *pass) result {
	before := len(p.plan.Writes)
	waiting := 0
	for _, n := range p.Records() {
		if n.Record.DeletionTimestamp != nil || p.unwanted[n.Name] {
			continue
		}
		if !p.claimsReady(n) {
			waiting++
			if n.Pod != nil && n.Pod.DeletionTimestamp == nil && !p.started(n) && p.madeForAnother(n) {
				p.replacePod(n) // a claim goes when no pod uses it
			}
			continue
		}
		p.certificate(n)
		p.pod(n)
	}
	p.leaveHosts("VolumesAndPods")
	p.sayWhereDisksAre()
	p.sayWhoDoesNotCome()
	switch writes := len(p.plan.Writes) - before; {
	case writes > 0:
		return act("making volumes and pods: %s", plural(writes, "write"))
	case waiting > 0:
		return wait("%s without all volumes", plural(waiting, "node"))
	}
	return done()
}

// sayWhoDoesNotCome names the nodes with a part in the ring that do not come up, and what of the spec that may come from. Of others the guards of their tickets
// say it, and of one that joins its step does.
func (p *pass) sayWhoDoesNotCome() {
	var names, why []string
	var joining []string
	if s := p.Ledger.Step; s != nil && s.Kind == ledger.JoinNode {
		joining = s.Wave()
	}
	for _, n := range p.Records() {
		said := slices.ContainsFunc(p.plan.Blocked, func(b v1alpha1.BlockedStep) bool {
			return b.Step == "VolumesAndPods" && slices.Contains(b.Nodes, n.Name)
		}) || slices.ContainsFunc(p.plan.Notices, func(o v1alpha1.Notice) bool { return slices.Contains(o.Nodes, n.Name) })
		if said || !p.started(n) || n.Pod == nil || n.Pod.DeletionTimestamp != nil || slices.Contains(joining, n.Name) {
			continue
		}
		words := guard.Trouble(n)
		if agent := n.CurrentAgent(); agent != nil && agent.Phase == v1alpha1.PhaseFailed && agent.Message != "" {
			words = guard.WithFields(agent.Message)
		}
		if words != "" {
			names, why = append(names, n.Name), append(why, n.Name+": "+words)
		}
	}
	if len(names) > 0 {
		p.notice(v1alpha1.NoticeNodeNotStarting, names, "%s", list(why, 3))
	}
}

// started says that a node has, or had, a part in the ring: a ticket or more. Until then it can be made anew in every way.
func (p *pass) started(n *facts.Node) bool {
	if n.Record.Spec.Member != nil || n.Record.Spec.Join != nil {
		return true
	}
	if p.lost && len(n.Record.Spec.Claims) > 0 && !p.neverHadDisk(n) {
		return true // its disk may be a member's
	}
	if _, member := p.Ledger.Members[n.Name]; member {
		return true
	}
	if p.Ledger.Step == nil {
		return false
	}
	_, ticket := p.Ledger.Step.Tickets[n.Name]
	return ticket
}

// claimsReady makes the claims of a node and pins them in its record, and says whether all are there and pinned.
func (p *pass) claimsReady(n *facts.Node) bool {
	var missing []render.Volume
	pins := map[string]v1alpha1.ClaimReference{}
	for _, c := range n.Record.Spec.Claims {
		pins[c.Volume] = c
	}
	var lost []string
	changed := false
	if !p.started(n) {
		changed = p.dropVolumes(n, pins)
	}
	for _, v := range render.Volumes(n.Record.Spec.Pod) {
		pin, isPinned := pins[v.Name]
		var claim *corev1.PersistentVolumeClaim
		if c := n.Claims[v.Name]; c != nil {
			claim = c.Claim
		}
		switch {
		case claim != nil && !p.started(n) && p.leavesVolume(n, v, n.Claims[v.Name]):
			switch { // another is made when it is gone
			case isPinned: // a pin without its claim would be a member's lost disk, should the ledger be lost just then
				delete(pins, v.Name)
				changed = true
			case claim.DeletionTimestamp == nil:
				p.write(plan.Write{Verb: plan.Delete, Object: named(claim), UID: claim.UID, ResourceVersion: claim.ResourceVersion, Why: "it has no volume yet, and the spec has changed"})
			}
		case isPinned && claim != nil && claim.UID == pin.UID && claim.DeletionTimestamp == nil:
			p.rightClaim(n, v, claim)
		case isPinned && p.started(n):
			lost = append(lost, pin.Name)
		case isPinned:
			// Nothing was ever on it that counts: take what is there under the name, or make another.
			delete(pins, v.Name)
			changed = true
		case claim != nil && p.mayUse(claim):
			pins[v.Name] = render.Reference(v.Name, claim)
			changed = true
		case claim == nil && p.started(n):
			lost = append(lost, v1alpha1.ClaimName(v.Name, n.Name))
		case claim == nil:
			missing = append(missing, v)
		}
	}
	if len(lost) > 0 {
		p.block("VolumesAndPods", v1alpha1.BlockedMemberClaimMissing, []string{n.Name},
			"claim %s of node %s is gone: its pod is not created, since it would start with an empty disk. Waits until the claim is restored with the same volume", list(lost, 3), n.Name)
		return n.Pod != nil
	}
	for _, v := range missing {
		p.write(plan.Write{Verb: plan.Create, Object: render.Claim(p.owner(), n.Record, v)})
	}
	if changed {
		p.pin(n, pins, "pinning its claims")
	}
	return len(pins) == len(render.Volumes(n.Record.Spec.Pod))
}

// pin writes into the record of a node which claims are its own.
func (p *pass) pin(n *facts.Node, pins map[string]v1alpha1.ClaimReference, why string) {
	record := render.ForApply(p.owner(), n.Record)
	record.Spec.Claims = nil
	for _, v := range render.Volumes(n.Record.Spec.Pod) {
		if pin, ok := pins[v.Name]; ok {
			record.Spec.Claims = append(record.Spec.Claims, pin)
		}
	}
	p.write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID, ResourceVersion: n.Record.ResourceVersion, Why: why})
}

// dropVolumes takes away what a node that never had a ticket has of volumes that the spec no longer describes: first the pins, of which it says whether there
// were any, then the claims. What is bound is no concern here: the spec is refused then, or the ring has not begun and the claim stays for the user to delete.
func (p *pass) dropVolumes(n *facts.Node, pins map[string]v1alpha1.ClaimReference) bool {
	described := map[string]bool{}
	for _, v := range render.Volumes(n.Record.Spec.Pod) {
		described[v.Name] = true
	}
	before := len(pins)
	maps.DeleteFunc(pins, func(volume string, _ v1alpha1.ClaimReference) bool { return !described[volume] })
	if len(pins) != before {
		return true
	}
	p.deleteUnbound(n, described, "the spec no longer describes it")
	return false
}

// leavesVolume says that a claim of a node that never had a ticket goes: it is on its way already, or is not what the spec says now. One that is bound stays:
// only the user deletes a disk, even an empty one. Until that is resolved nothing begins.
func (p *pass) leavesVolume(n *facts.Node, v render.Volume, c *facts.Claim) bool {
	claim, want := c.Claim, render.Claim(p.owner(), n.Record, v)
	if claim.DeletionTimestamp != nil {
		return true
	}
	if claim.Labels[v1alpha1.LabelClusterUID] != string(p.Cluster.UID) || sameVolume(claim, want) {
		return false
	}
	if c.Bound() {
		p.held = true
		p.stall(v1alpha1.ReasonUnsupportedChange, "node.storage: volume %s: %s → %s: claim %s is bound to a volume, which does not change; take the change back, "+
			"or delete the claim and its pod so that both are made anew", v.Name, volumeInWords(claim), volumeInWords(want), claim.Name)
		return false
	}
	return true
}

// sameVolume compares what is asked for. A class that the spec does not name is the default one of the Kubernetes cluster, which the API server fills in.
func sameVolume(have, want *corev1.PersistentVolumeClaim) bool {
	a, b := have.Spec.Resources.Requests[corev1.ResourceStorage], want.Spec.Resources.Requests[corev1.ResourceStorage]
	if a.Cmp(b) != 0 {
		return false
	}
	if !slices.Equal(have.Spec.AccessModes, want.Spec.AccessModes) || !equality.Semantic.DeepEqual(have.Spec.Selector, want.Spec.Selector) ||
		sourceInWords(have.Spec.DataSource) != sourceInWords(want.Spec.DataSource) {
		return false
	}
	if class := want.Spec.StorageClassName; class != nil {
		return have.Spec.StorageClassName != nil && *have.Spec.StorageClassName == *class
	}
	_, named := have.Annotations[v1alpha1.AnnotationStorageClass]
	return !named
}

func volumeInWords(claim *corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	words := []string{size.String()}
	if class := claim.Spec.StorageClassName; class != nil && *class != "" {
		words = append(words, "of class "+*class)
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce {
			words = append(words, string(mode))
		}
	}
	if selector := claim.Spec.Selector; selector != nil {
		words = append(words, "selected by "+metav1.FormatLabelSelector(selector))
	}
	if source := sourceInWords(claim.Spec.DataSource); source != "" {
		words = append(words, "from "+source)
	}
	return strings.Join(words, " ")
}

// sourceInWords names what a volume is filled from. The group is the API server's to fill in.
func sourceInWords(source *corev1.TypedLocalObjectReference) string {
	if source == nil {
		return ""
	}
	return source.Kind + " " + source.Name
}

// certificate issues the certificate of a node's agent, and another when two thirds of its life are over.
func (p *pass) certificate(n *facts.Node) {
	// One of a former record goes with that record.
	if n.Pod != nil && n.Pod.Status.Phase == corev1.PodPending {
		p.wakeIn(secretsAgain) // it may wait for a Secret that somebody deletes
	}
	if p.unsigned {
		return
	}
	if n.Secret != nil && !n.SecretEdited && facts.Owned(n.Secret, string(n.Record.UID)) && render.HasCertificateLabels(n.Secret.Labels, p.owner(), n.Record) {
		renew, err := time.Parse(time.RFC3339, n.Secret.Annotations[v1alpha1.AnnotationRenewAfter])
		if err == nil && p.now.Before(renew) {
			p.wakeIn(renew.Sub(p.now))
			return
		}
	}
	w := plan.Write{Verb: plan.IssueCertificate, Object: render.CertificateSecret(p.owner(), n.Record), Node: n.Name}
	if n.Secret != nil {
		w.UID = n.Secret.UID
		w.Why = "two thirds of its life are over, its record was made anew, or somebody edited it"
	}
	p.write(w)
}

// pod makes a node's pod where there is none, takes an orphaned one back, and clears away one that has ended or that was made for a spec the node never
// ran under.
func (p *pass) pod(n *facts.Node) {
	if n.Pod == nil {
		if n.Record.Spec.State != v1alpha1.StateRunning || p.goesWithoutPod(n.Name) {
			return
		}
		pod, err := render.Pod(p.owner(), n.Record, p.Install)
		if err != nil {
			p.notice(v1alpha1.NoticePodRenderingFailed, []string{n.Name}, "%s", err)
			return
		}
		p.write(plan.Write{Verb: plan.Create, Object: pod})
		return
	}
	if n.Pod.DeletionTimestamp != nil || p.leaves(n) {
		return
	}
	p.rightPod(n)
	if metav1.GetControllerOfNoCopy(n.Pod) == nil {
		pod := named(n.Pod)
		pod.SetOwnerReferences(render.RecordReference(n.Record))
		p.write(plan.Write{Verb: plan.SetOwners, Object: pod, UID: n.Pod.UID, ResourceVersion: n.Pod.ResourceVersion, Why: "its record was made anew"})
		return
	}
	switch n.Pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		p.failedPod(n)
	default:
		p.forgetFailures(n)
		switch {
		case p.madeForAnother(n):
			p.replacePod(n)
		case hasTakenAddress(n):
			p.takenAddress(n)
		}
	}
}

// madeForAnother says that the pod of a node was made for another spec than its record has.
func (p *pass) madeForAnother(n *facts.Node) bool {
	return n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] != p.compared.HashesOf(n).PodTemplate
}

// replacePod deletes a pod that was made for another spec than its record has, if the node is not up. Of nodes that have a ticket one goes at a
// time: each is looked at live, and after the first one nothing is as it was seen.
func (p *pass) replacePod(n *facts.Node) {
	w := deletePod(n.Pod, "the node is not up, and the spec has changed")
	switch {
	case !p.started(n):
		p.write(w)
	case p.podMayGo(n):
		if w.Live = true; !slices.ContainsFunc(p.plan.Writes, func(w plan.Write) bool { return w.Verb == plan.Delete && w.Live }) {
			p.write(w)
		}
	case !p.joined(n):
		p.block("VolumesAndPods", v1alpha1.BlockedAgentUnreachable, []string{n.Name},
			"the spec of node %s was corrected, but its agent does not answer: %s. Waits until the agent reports that the node is down, then recreates the pod; deleting the pod helps, too", n.Name, orElse(n.Unreachable, "no answer yet"))
	}
}
