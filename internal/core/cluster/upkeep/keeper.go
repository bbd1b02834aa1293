package upkeep

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Keeper does the upkeep of one cluster in one pass.
type Keeper struct {
	*assess.View
	draft *plan.Draft
	// corrections are nodes that take over the spec although the ring has begun.
	corrections []correction
	// growing are nodes whose volumes become larger.
	growing []correction
	// leavers are nodes without any part in the ring that the spec no longer has.
	leavers []string
	// unwanted are those of which nothing is made any more.
	unwanted map[string]bool
	// used are the uses of certificates, and leaves are those of nodes.
	used   []v1alpha1.CertificateUse
	leaves map[v1alpha1.CertificateUse]*leaves
	// unsigned are the uses for which there is no authority that could sign certificates.
	unsigned map[v1alpha1.CertificateUse]bool
}

// correction is a node that is to be what the spec describes now.
type correction struct {
	node   *facts.Node
	wanted render.Wanted
}

// New Keeper for one pass.
func New(v *assess.View, d *plan.Draft) *Keeper {
	return &Keeper{View: v, draft: d, leaves: map[v1alpha1.CertificateUse]*leaves{}}
}

// Corrected is how many nodes take over the corrected spec.
func (k *Keeper) Corrected() int { return len(k.corrections) }

func (k *Keeper) putLedger(live bool, why string, change func(*ledger.Ledger)) {
	l := k.Ledger.Copy()
	change(l)
	k.View = k.WithLedger(l)
	k.draft.PutLedger(l, live, why)
}

// update changes the record of a node, which has one.
func (k *Keeper) update(n *facts.Node, live bool, why string, change func(*v1alpha1.CassandraNodeSpec)) {
	procedure.UpdateRecord(k.View, k.draft, n, live, why, change)
}

// apply makes the record of a node another one.
func (k *Keeper) apply(n *facts.Node, record *v1alpha1.CassandraNode, why string) {
	k.draft.Write(plan.Write{Verb: plan.Apply, Object: record, UID: n.Record.UID,
		ResourceVersion: n.Record.ResourceVersion, Why: why})
}

// PublishSeedsOf publishes the addresses of nodes that are about to be given tickets.
func (k *Keeper) PublishSeedsOf(nodes []string) {
	k.draft.Seeds = nil
	for _, name := range nodes {
		k.draft.Seeds = append(k.draft.Seeds, assess.Address(k.Nodes[name]))
	}
	k.publishSeeds(k.draft.Seeds)
}

func recordOf(n *facts.Node) *v1alpha1.CassandraNode {
	if n == nil {
		return nil
	}
	return n.Record
}
