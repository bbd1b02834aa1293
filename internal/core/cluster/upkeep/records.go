package upkeep

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// NodeRecords keeps one record for each node. Until the first ticket is out the records follow the
// spec in everything. After that a record is made again where one that belongs to the ring has
// gone, with the identity the ledger remembers, and nodes that are not in the ring follow
// corrections.
func (k *Keeper) NodeRecords() plan.Result {
	before := len(k.draft.Writes)
	k.correct()
	defer k.repairMetadata()
	if k.SpecRejected {
		// A record that is being deleted stays for as long: what it pins cannot be taken from a
		// spec that is refused.
		return k.reportMissingRecords()
	}
	for _, n := range k.Records() {
		if n.Record.DeletionTimestamp != nil {
			k.releaseRecord(n)
		}
	}
	k.followPolicies()
	k.nameOldRules()
	k.pinImages()
	k.growVolumes()
	k.removeLeft()
	if k.Begun() {
		k.restoreRecords()
		for _, name := range k.leavers {
			k.removeNode(k.Nodes[name], "the spec no longer has this node, which has not joined")
		}
	} else {
		if r := k.adoptableClaims(); r.Outcome != plan.Done {
			return r
		}
		k.followSpec()
	}
	if n := len(k.draft.Writes) - before; n > 0 {
		return plan.Acting("updated CassandraNodes: %s", words.Plural(n, "write"))
	}
	return plan.Nothing()
}

// correct writes the corrections that were found when the spec was checked.
func (k *Keeper) correct() {
	for i, c := range k.corrections {
		why := "the spec has changed, and the node is not up: " + words.List(render.Differences(c.node.Record,
			c.wanted), 3)
		k.takeOver(c.node, c.wanted, i == 0, why)
	}
}

// followPolicies has every agent hold to the disruption policy of the spec, to its choice of
// metrics, and to where commit logs are kept, from now on. That disturbs no node.
func (k *Keeper) followPolicies() {
	policy, metrics := render.DisruptionOf(k.Cluster), render.MetricsOf(k.Cluster)
	for _, n := range k.Records() {
		if n.Record.DeletionTimestamp != nil {
			continue
		}
		if n.Record.Spec.Disruption != policy {
			k.update(n, false, "the disruption policy has changed", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.Disruption = policy
			})
		}
		if spec := &n.Record.Spec; spec.TableMetrics != metrics.Tables &&
			!equality.Semantic.DeepEqual(spec.TableMetrics, metrics.Tables) ||
			!slices.Equal(spec.ExtraMetrics, metrics.Extra) {
			k.update(n, false, "the choice of metrics has changed", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.TableMetrics, spec.ExtraMetrics = metrics.Tables.DeepCopy(), slices.Clone(metrics.Extra)
			})
		}
		if logs := n.Record.Spec.CommitLog; logs != k.CommitLog && !equality.Semantic.DeepEqual(logs, k.CommitLog) {
			k.update(n, false, "where commit logs are kept has changed", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.CommitLog = k.CommitLog.DeepCopy()
			})
		}
	}
}

// pinImages has the pod of a node that has proven its image come back with that very one. That
// disturbs no node. A member that has lost its disk proves nothing, nor does one without a pod
// whose record was recreated: they get that of the others.
func (k *Keeper) pinImages() {
	for _, n := range k.Records() {
		if n.Record.DeletionTimestamp != nil || n.Record.Spec.Pod.ImageDigest != "" {
			continue
		}
		digest := k.ImageDigest(n)
		if n.Record.Status.Phase == v1alpha1.PhaseDataLost || n.Pod == nil {
			digest = k.TakenDigest(n.Record.Spec.Pod.Image)
		}
		if digest != "" {
			k.update(n, false, "its image is known", func(spec *v1alpha1.CassandraNodeSpec) {
				spec.Pod.ImageDigest = digest
			})
		}
	}
}

// takeOver makes the record of a node what the spec wants of it.
func (k *Keeper) takeOver(n *facts.Node, w render.Wanted, live bool, why string) {
	k.update(n, live, why, func(spec *v1alpha1.CassandraNodeSpec) {
		spec.Configuration, spec.Pod = w.Configuration, w.Pod
	})
}

// releaseRecord lets a record go that somebody deleted. Its pod is taken from it first, so that the
// garbage collector leaves it running; the record is then recreated, or the pod is deleted in
// order, as the spec says.
func (k *Keeper) releaseRecord(n *facts.Node) {
	if n.Pod != nil && facts.Owned(n.Pod, string(n.Record.UID)) {
		pod := plan.Named(n.Pod)
		k.draft.Write(plan.Write{Verb: plan.SetOwners, Object: pod, UID: n.Pod.UID,
			ResourceVersion: n.Pod.ResourceVersion, Why: "its record is being deleted"})
	}
	if slices.Contains(n.Record.Finalizers, v1alpha1.FinalizerNode) {
		k.draft.Write(plan.Write{Verb: plan.Release, Object: plan.Named(n.Record), UID: n.Record.UID,
			Finalizer: v1alpha1.FinalizerNode})
	}
}

// followSpec makes the records what the spec describes.
func (k *Keeper) followSpec() {
	for _, w := range k.Wanted {
		switch k.Of(w.Name).Record {
		case assess.Missing:
			k.draft.Write(plan.Write{Verb: plan.Create, Object: render.Record(k.Owner(), w, k.ClaimsOf(w), k.Adopts())})
		case assess.Live:
			n := k.Nodes[w.Name]
			if drift, w := k.Drift(n, w); drift == assess.Takes {
				k.takeOver(n, w, false, "the spec has changed")
			}
		case assess.Deleting:
		}
	}
	for _, n := range k.Records() {
		if k.Describes(n.Name) == nil {
			k.removeNode(n, "the spec no longer has this node, which never joined")
		}
	}
}

// removeNode removes a node that has no part in the ring: its pod, claims without a volume, and
// then its record. Nothing is made for it any more.
func (k *Keeper) removeNode(n *facts.Node, why string) {
	if k.unwanted == nil {
		k.unwanted = map[string]bool{}
	}
	k.unwanted[n.Name] = true
	if n.Pod != nil && n.Pod.DeletionTimestamp == nil {
		k.draft.Write(plan.DeletePod(n.Pod, why))
	}
	bound := map[string]v1alpha1.ClaimReference{}
	for _, c := range n.Record.Spec.Claims {
		if !n.Claims[c.Volume].Unbound() {
			bound[c.Volume] = c
		}
	}
	switch {
	case n.Pod != nil:
	case n.Record.DeletionTimestamp == nil && len(bound) < len(n.Record.Spec.Claims):
		k.pin(n, bound, "its claims without a volume are to go") // first, as with one that is recreated
	default:
		k.deleteUnbound(n, nil, "the spec no longer has its node")
		if n.Record.DeletionTimestamp == nil { // otherwise it is let go already
			k.removeRecord(n, why)
		}
	}
}

// deleteUnbound deletes the claims of a node, except for some volumes, that never got a volume:
// nobody would know of them afterwards. One that is bound stays: only the user deletes a disk, even
// an empty one.
func (k *Keeper) deleteUnbound(n *facts.Node, except map[string]bool, why string) {
	for _, volume := range slices.Sorted(maps.Keys(n.Claims)) {
		c := n.Claims[volume]
		claim := c.Claim
		if except[volume] || !c.Unbound() || claim.DeletionTimestamp != nil ||
			claim.Labels[v1alpha1.LabelClusterUID] != string(k.Cluster.UID) {
			continue
		}
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(claim), UID: claim.UID,
			ResourceVersion: claim.ResourceVersion, Why: "it has no volume yet, and " + why})
	}
}

// restoreRecords recreates records that belong to the ring and are gone, and those of nodes that
// are to join it.
func (k *Keeper) restoreRecords() {
	for i := range k.Wanted {
		name := k.Wanted[i].Name
		n := k.Nodes[name]
		hostID, member := k.Ledger.Members[name]
		inWave, newcomer := k.Ledger.Step.Has(name), k.Settled()
		if record := recordOf(n); record != nil {
			if member && !inWave && record.Spec.Member == nil && record.DeletionTimestamp == nil {
				// It was made so that its disk could say what it holds, when the ledger was lost
				// with it.
				k.update(n, false, "it is a member", func(spec *v1alpha1.CassandraNodeSpec) {
					k.makeMember(spec, hostID)
				})
			}
			continue
		}
		if !member && !inWave && !newcomer && !slices.Contains(k.Ledger.Excluded, name) {
			continue
		}
		w := k.Wanted[i]
		if (member || inWave) && n != nil {
			w = render.AsMade(w, n)
		}
		record := render.Record(k.Owner(), w, k.ClaimsOf(w), k.Adopts())
		if n != nil && n.Pod != nil && render.WasResized(n.Pod, w.Pod) {
			record.Spec.Resized = render.ResizedTo(n.Pod, w.Pod)
			record.Spec.Resized.Restart = "unknown" // whether its JVM was restarted went with the record
		}
		if s := k.Ledger.Step; !member && inWave && !slices.Contains(s.Withdrawn, w.Name) &&
			s.Kind != ledger.AdoptRing && s.Stage == ledger.StageTickets {
			// The agent may have begun by this ticket. A new record must have it from the first
			// moment: once the status shows an id as used, nobody can write it any more.
			record.Spec.Join = ticket.For(s, w.Name)
		}
		if member {
			k.makeMember(&record.Spec, hostID)
		}
		why := "its record was deleted"
		if newcomer && !member && !inWave {
			why = "the spec has this node"
		}
		k.draft.Write(plan.Write{Verb: plan.Create, Object: record, Why: why})
	}
}

// makeMember has a record say what the ledger remembers of a member.
func (k *Keeper) makeMember(spec *v1alpha1.CassandraNodeSpec, hostID string) {
	spec.Member = &v1alpha1.Member{HostID: hostID}
	if k.IsOpen(spec.Datacenter) {
		spec.ClientTraffic = v1alpha1.TrafficOpen
	}
	if k.Ledger.KeepsDown(spec.Datacenter) {
		spec.State = v1alpha1.StateStopped
	}
}

// reportMissingRecords names members whose records are gone while the spec, from which they could
// be made again, is refused.
func (k *Keeper) reportMissingRecords() plan.Result {
	var missing []string
	for _, name := range k.Members() {
		if recordOf(k.Nodes[name]) == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return plan.Waiting("the spec is refused")
	}
	k.draft.Block("NodeRecords", v1alpha1.BlockedRecordMissing, missing,
		"the record of %s was deleted: waits until the spec is accepted, then recreates it", words.List(missing, 3))
	return plan.Waiting("%s without a record", words.Plural(len(missing), "member"))
}

// nameOldRules says which nodes are made and configured by the rules of an earlier release: what
// next restarts them brings the newer ones.
func (k *Keeper) nameOldRules() {
	var old []*facts.Node
	for _, n := range k.Records() {
		if n.Record.Spec.Pod.Revision < render.NewestPodRevision() ||
			n.Record.Spec.Configuration.Revision < config.NewestRevision() {
			old = append(old, n)
		}
	}
	if len(old) > 0 {
		k.draft.Notice(v1alpha1.NoticeUpdateAvailable, names(old), "pods or files of %s are made by the rules of an "+
			"earlier release of Helenus. They work. The next change that restarts a JVM brings the newer rules for "+
			"its files, and one that makes a new pod all of them", words.List(names(old), 3))
	}
}
