package upkeep

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// VolumesAndPods gives every record its claims, its certificate and its pod. A claim that a member
// had is never made again: another disk under its name would be an empty one.
func (k *Keeper) VolumesAndPods() plan.Result {
	before := len(k.draft.Writes)
	waiting := 0
	for i, n := range k.Records() {
		if n.Record.DeletionTimestamp != nil || k.unwanted[n.Name] ||
			n.Record.Spec.State == v1alpha1.StateDecommissioned {
			continue
		}
		if !k.claimsReady(n) {
			waiting++
			if n.Pod != nil && n.Pod.DeletionTimestamp == nil && !k.Of(n.Name).Started() &&
				(k.MadeForAnother(n) || unboundClaimGoes(n)) {
				k.replacePod(n) // a claim goes when no pod uses it
			}
			continue
		}
		k.certificates(i, n)
		k.pod(n)
	}
	k.forceDeleteFromLostHosts("VolumesAndPods")
	k.noticeUnusableDisks()
	k.noticeFailingDisks()
	k.noticeNotStarting()
	k.noticeUnused()
	k.noticeGrowing()
	k.noticeClocks()
	k.noticeCertificates()
	switch writes := len(k.draft.Writes) - before; {
	case writes > 0:
		return plan.Acting("created or updated volumes and pods: %s", words.Plural(writes, "write"))
	case waiting > 0:
		return plan.Waiting("%s without all volumes", words.Plural(waiting, "node"))
	}
	return plan.Nothing()
}

func unboundClaimGoes(n *facts.Node) bool {
	for _, c := range n.Claims {
		if c.Unbound() && c.Claim.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// noticeUnused names the bound claims of nodes that the spec no longer has: that never joined, or
// that have left. Nobody has said that they may go: only the user deletes a disk, even an empty
// one.
func (k *Keeper) noticeUnused() {
	if k.SpecRejected || !k.HasRing() {
		return
	}
	var nodes, claims []string
	for _, name := range k.Names() {
		n := k.Nodes[name]
		if _, member := k.Ledger.HostID(name); n.Record != nil || n.Pod != nil || member || k.Of(name).Wanted ||
			k.Ledger.Step.Has(name) {
			continue
		}
		for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
			if c := n.Claims[volume]; c.Bound() && k.OwnsClaim(n, c.Claim) {
				nodes, claims = append(nodes, name), append(claims, c.Claim.Name)
			}
		}
	}
	if len(claims) > 0 {
		k.draft.Notice(v1alpha1.NoticeClaimUnused, slices.Compact(nodes), "claim %s is left of a node that was "+
			"abandoned before it joined, or that has left, and no node uses it: kubectl delete persistentvolumeclaim "+
			"--namespace %s %s removes it; a node of that name would use it again, and would not join with the data "+
			"of one that has left", words.List(claims, 3), k.Cluster.Namespace,
			strings.Join(claims, " "))
	}
}

// noticeClocks names the nodes whose clocks differ from those of most others.
func (k *Keeper) noticeClocks() {
	clocks := map[string]*facts.Clock{}
	for _, n := range k.Records() {
		if agent := n.CurrentAgent(); agent != nil && agent.Clock != nil {
			clocks[n.Name] = agent.Clock
		}
	}
	var said []string
	for _, o := range k.Cluster.Status.Notices {
		if o.Reason == v1alpha1.NoticeClocksDiffer {
			said = slices.DeleteFunc(slices.Clone(o.Nodes), func(name string) bool { return k.Live(name) == nil })
		}
	}
	if off := facts.ClocksOff(clocks, said); len(off) > 0 {
		k.draft.Notice(v1alpha1.NoticeClocksDiffer, off, "the clocks of the hosts of %s differ by more than half a "+
			"second from those of most other nodes, and the later of two writes is lost if its time is the earlier "+
			"one: have NTP, such as chrony, set them", words.List(off, 3))
	}
}

// noticeNotStarting names the nodes with a part in the ring that do not come up, and what of the
// spec that may come from. Of others the guards of their tickets say it, and of one that joins its
// step does.
func (k *Keeper) noticeNotStarting() {
	var names, why []string
	var joining []string
	if s := k.Ledger.Step; s != nil && s.Kind == ledger.JoinNode {
		joining = s.Wave()
	}
	for _, n := range k.Records() {
		said := slices.ContainsFunc(k.draft.Blocked, func(b v1alpha1.BlockedStep) bool {
			return b.Step == "VolumesAndPods" && slices.Contains(b.Nodes, n.Name)
		}) || slices.ContainsFunc(k.draft.Notices,
			func(o v1alpha1.Notice) bool { return slices.Contains(o.Nodes, n.Name) })
		if said || !k.Of(n.Name).Started() || n.Pod == nil || n.Pod.DeletionTimestamp != nil ||
			slices.Contains(joining, n.Name) {
			continue
		}
		words := assess.Trouble(n)
		if agent := n.CurrentAgent(); agent != nil && agent.Phase == v1alpha1.PhaseFailed && agent.Message != "" {
			words = assess.WithFields(agent.Message)
		}
		if words != "" {
			names, why = append(names, n.Name), append(why, n.Name+": "+words)
		}
	}
	if len(names) > 0 {
		k.draft.Notice(v1alpha1.NoticeNodeNotStarting, names, "%s", words.List(why, 3))
	}
}

// claimsReady makes the claims of a node and pins them in its record, and says whether all are
// there and pinned.
func (k *Keeper) claimsReady(n *facts.Node) bool {
	var missing []render.Volume
	pins := map[string]v1alpha1.ClaimReference{}
	for _, c := range n.Record.Spec.Claims {
		pins[c.Volume] = c
	}
	var lost []string
	changed, started := false, k.Of(n.Name).Started()
	if !started {
		changed = k.dropVolumes(n, pins)
	}
	volumes := render.Volumes(n.Record.Spec.Pod)
	for _, v := range volumes {
		pin, isPinned := pins[v.Name]
		var claim *corev1.PersistentVolumeClaim
		if c := n.Claims[v.Name]; c != nil && !render.Former(n.Record, v.Name, c.Claim) {
			claim = c.Claim
		}
		switch {
		case claim != nil && !started && k.leavesVolume(n, v, n.Claims[v.Name]):
			switch { // another is made when it is gone
			case isPinned: // a pin without its claim would be a member's lost disk, should the ledger be lost just then
				delete(pins, v.Name)
				changed = true
			case claim.DeletionTimestamp == nil:
				k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(claim), UID: claim.UID,
					ResourceVersion: claim.ResourceVersion, Why: "it has no volume yet, and the spec has changed"})
			}
		case isPinned && claim != nil && claim.UID == pin.UID && claim.DeletionTimestamp == nil:
			k.relabelClaim(n, v, claim)
			k.growClaim(n, v)
		case isPinned && started:
			lost = append(lost, pin.Name)
		case isPinned:
			// Nothing was ever on it that counts: take what is there under the name, or make
			// another.
			delete(pins, v.Name)
			changed = true
		case claim != nil && k.MayUse(claim):
			pins[v.Name] = render.Reference(v.Name, claim)
			changed = true
		case claim == nil && started && !takesPlace(n):
			lost = append(lost, v1alpha1.ClaimName(v.Name, n.Name))
		case claim == nil:
			missing = append(missing, v)
		}
	}
	if len(lost) > 0 {
		k.draft.Block("VolumesAndPods", v1alpha1.BlockedMemberClaimMissing, []string{n.Name},
			"claim %s of node %s is gone: its pod is not created, since it would start with an empty disk. Waits "+
				"until the claim is restored with the same volume", words.List(lost, 3), n.Name)
		return n.Pod != nil
	}
	for _, v := range missing {
		k.draft.Write(plan.Write{Verb: plan.Create, Object: render.Claim(k.Owner(), n.Record, v)})
	}
	if changed {
		k.pin(n, pins, "pinning its claims")
	}
	return len(pins) == len(volumes)
}

// pin writes into the record of a node which claims are its own.
func (k *Keeper) pin(n *facts.Node, pins map[string]v1alpha1.ClaimReference, why string) {
	record := render.ForApply(k.Owner(), n.Record)
	record.Spec.Claims = nil
	for _, v := range render.Volumes(n.Record.Spec.Pod) {
		if pin, ok := pins[v.Name]; ok {
			record.Spec.Claims = append(record.Spec.Claims, pin)
		}
	}
	k.apply(n, record, why)
}

// dropVolumes takes away what a node that never had a ticket has of volumes that the spec no longer
// describes: first the pins, of which it says whether there were any, then the claims. What is
// bound is no concern here: the spec is refused then, or the ring has not begun and the claim stays
// for the user to delete.
func (k *Keeper) dropVolumes(n *facts.Node, pins map[string]v1alpha1.ClaimReference) bool {
	described := map[string]bool{}
	for _, v := range render.Volumes(n.Record.Spec.Pod) {
		described[v.Name] = true
	}
	before := len(pins)
	maps.DeleteFunc(pins, func(volume string, _ v1alpha1.ClaimReference) bool { return !described[volume] })
	if len(pins) != before {
		return true
	}
	k.deleteUnbound(n, described, "the spec no longer describes it")
	return false
}

// leavesVolume says that a claim of a node that never had a ticket goes: it is on its way already,
// or is not what the spec says now. One that is bound stays: only the user deletes a disk, even an
// empty one. Until that is resolved nothing begins.
func (k *Keeper) leavesVolume(n *facts.Node, v render.Volume, c *facts.Claim) bool {
	claim, want := c.Claim, render.Claim(k.Owner(), n.Record, v)
	if claim.DeletionTimestamp != nil {
		return true
	}
	if claim.Labels[v1alpha1.LabelClusterUID] != string(k.Cluster.UID) || assess.SameVolume(claim, want) {
		return false
	}
	if c.Bound() {
		larger := claim.DeepCopy()
		larger.Spec.Resources = want.Spec.Resources
		if assess.SameVolume(larger, want) && k.CannotGrow(c, v) == "" {
			return false // it grows
		}
		k.View = k.Rejecting()
		k.draft.Stall(v1alpha1.ReasonUnsupportedChange,
			"node.storage: volume %s: %s → %s: claim %s is bound to a volume, which does not change; take the change "+
				"back, or delete the claim and its pod so that both are recreated", v.Name, volumeInWords(claim),
			volumeInWords(want), claim.Name)
		return false
	}
	return true
}

func volumeInWords(claim *corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	parts := []string{size.String()}
	if class := claim.Spec.StorageClassName; class != nil && *class != "" {
		parts = append(parts, "of class "+*class)
	}
	for _, mode := range claim.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce {
			parts = append(parts, string(mode))
		}
	}
	if selector := claim.Spec.Selector; selector != nil {
		parts = append(parts, "selected by "+metav1.FormatLabelSelector(selector))
	}
	if source := assess.SourceInWords(claim.Spec.DataSource); source != "" {
		parts = append(parts, "from "+source)
	}
	return strings.Join(parts, " ")
}

// pod makes a node's pod where there is none, takes an orphaned one back, and clears away one that
// has ended or that was made for a spec the node never ran under.
func (k *Keeper) pod(n *facts.Node) {
	starts := k.Ledger.Starts(n.Record.Spec.Datacenter)
	stays := k.Ledger.KeepsDown(n.Record.Spec.Datacenter) && !starts
	if n.Pod == nil {
		if stays || n.Record.Spec.State != v1alpha1.StateRunning && !starts ||
			!k.LedgerLost && k.Abandoning(n.Name) && k.Abandoned(n.Name) {
			return
		}
		pod, err := render.Pod(k.Owner(), n.Record, k.Install)
		if err != nil {
			k.draft.Notice(v1alpha1.NoticePodRenderingFailed, []string{n.Name}, "%s", err)
			return
		}
		k.draft.Write(plan.Write{Verb: plan.Create, Object: pod})
		return
	}
	if n.Pod.DeletionTimestamp != nil || k.LeavesHost(n) {
		return
	}
	if stays && k.Outside(n.Name) && k.Of(n.Name).Process == assess.Absent {
		k.draft.Write(plan.DeletePod(n.Pod, "its datacenter is stopped, and its node has not joined"))
		return
	}
	k.relabelPod(n)
	if r := n.Record.Spec.Resized; r != nil && !r.Of(n.Pod.UID) {
		k.update(n, false, "the pod that was resized is gone",
			func(spec *v1alpha1.CassandraNodeSpec) { spec.Resized = nil })
	}
	if metav1.GetControllerOfNoCopy(n.Pod) == nil {
		pod := plan.Named(n.Pod)
		pod.SetOwnerReferences(render.RecordReference(n.Record))
		k.draft.Write(plan.Write{Verb: plan.SetOwners, Object: pod, UID: n.Pod.UID,
			ResourceVersion: n.Pod.ResourceVersion, Why: "its record was recreated"})
		return
	}
	switch n.Pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded:
		k.failedPod(n)
	default:
		k.forgetFailures(n)
		switch {
		case (k.MadeForAnother(n) || takesPlace(n) && isOlder(n)) && !k.HoldsData(n): // it takes its turn
			k.replacePod(n)
		case hasTakenAddress(n):
			k.takenAddress(n)
		}
	}
}

// mayRecreatePod says that the pod of a node with a ticket, or of a member, can be recreated: its
// agent says that the node is stopped, or not up, or nothing runs in it that could say so.
func (k *Keeper) mayRecreatePod(n *facts.Node) bool {
	if is := k.Of(n.Name); is.Joined() {
		stopped := n.Record.Spec.State == v1alpha1.StateStopped && is.Contact == assess.Answering &&
			is.Process == assess.Absent && n.Record.Status.Phase == v1alpha1.PhaseStopped
		return stopped || is.Failing()
	}
	return n.CurrentAgent() != nil || !assess.AnythingRuns(n.Pod)
}

// deleteAlone deletes a pod of which one goes at a time, looked at live.
func (k *Keeper) deleteAlone(w plan.Write) {
	w.Live = true
	if !slices.ContainsFunc(k.draft.Writes, func(w plan.Write) bool { return w.Verb == plan.Delete && w.Live }) {
		k.draft.Write(w)
	}
}

// replacePod deletes a pod that was made for another spec than its record has, if the node is not
// up. Of nodes that have a ticket one goes at a time: each is looked at live, and after the first
// one nothing is as it was seen.
func (k *Keeper) replacePod(n *facts.Node) {
	w := plan.DeletePod(n.Pod, "the node is not up, and the spec has changed")
	switch {
	case !k.Of(n.Name).Started():
		k.draft.Write(w)
	case k.mayRecreatePod(n):
		k.deleteAlone(w)
	case !k.Of(n.Name).Joined():
		k.draft.Block("VolumesAndPods", v1alpha1.BlockedAgentUnreachable, []string{n.Name},
			"the spec of node %s was corrected, but its agent does not answer: %s. Waits until the agent reports "+
				"that the node is down, then recreates the pod; deleting the pod helps, too", n.Name,
			cmp.Or(n.Unreachable, "no answer yet"))
	}
}
