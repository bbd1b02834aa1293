package rollout

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

// encryptionAgain is when to look again for clients, of which nothing tells when they come or go.
const encryptionAgain = 30 * time.Second

// Encrypt brings the ring to the next stage of encryption, if there is one and every node has the
// present one: the ledger has it before any record, and a roll-out brings it to the nodes. When all
// have the last one, it is written down that none has the one before.
func Encrypt(rules guard.Rules, v *assess.View, d *plan.Draft) plan.Result {
	stage, next := v.Encryption().OrNotEncrypted(), v.NextEncryption()
	about := guard.Encrypting{Nodes: guard.Nodes{Snapshot: v.Snapshot}, Stage: stage, Next: stage}
	for _, n := range v.Records() {
		if n.Record.Spec.State != v1alpha1.StateDecommissioned {
			about.Names = append(about.Names, n.Name)
		}
	}
	var before *v1alpha1.NodeEncryption
	if e := v.Ledger.Encryption; e != nil {
		before = e.Before
	}
	what := "every node has that"
	switch {
	case next != nil:
		about.Next, about.Back, what = *next, before != nil && *before == *next, inWords(stage, *next)
	case before == nil:
		recommend(v, d, stage)
		return plan.Nothing()
	}
	refusals := guard.Check(about, rules.Encryption...)
	if next != nil && len(refusals) > 0 { // clients do not hold up what is between nodes
		nodes := *next
		nodes.Clients, nodes.ClientCertificates = stage.Clients, stage.ClientCertificates
		alone := about
		alone.Next, alone.Back = nodes, before != nil && *before == nodes
		if nodes != stage && len(guard.Check(alone, rules.Encryption...)) == 0 {
			about, refusals, what = alone, nil, inWords(stage, nodes)
		}
	}
	if next != nil { // the nodes of the last wave may still lack what others keep for them
		members := guard.Nodes{Snapshot: v.Snapshot, Names: v.Members()}
		kept := guard.Kept{Nodes: members, For: members.Names}
		refusals = append(refusals, guard.Check(kept, rules.Undelivered...)...)
	}
	if len(refusals) > 0 {
		if pending, begun := newPass(v).pending(); next == nil || len(pending)+len(begun) > 0 {
			return plan.Nothing() // the roll-out of this stage says what it waits for
		}
		for _, r := range refusals {
			d.Block("Encryption", r.Reason, r.Nodes, "%s: %s. Waits until %s", what, r.Message, r.Until)
		}
		d.WakeIn(encryptionAgain)
		return plan.Waiting("%s: waits until %s", what, refusals[0].Until)
	}
	l := v.Ledger.Copy()
	l.Encryption = &ledger.EncryptionStage{Stage: about.Next}
	if next != nil {
		l.Encryption.Before = &stage
	}
	d.PutLedger(l, false, what)
	d.Event(corev1.EventTypeNormal, "Encryption", "%s", what)
	return plan.Acting("%s", what)
}

// recommend encryption between nodes where nobody has decided on it.
func recommend(v *assess.View, d *plan.Draft, stage v1alpha1.NodeEncryption) {
	if stage.Internode == v1alpha1.EncryptionDisabled && v.Cluster.Spec.Encryption().Internode == "" {
		d.Recommend("EnableInternodeEncryption", v.Members(), "nodes of this ring speak to each other without "+
			"encryption, and whoever reaches them can pose as one. To change that in passes over all nodes, add to "+
			"the spec: security: {encryption: {internode: {mode: Required}}}")
	}
}

// passesAfter are the stages that follow one until the ring is as the spec asks.
func passesAfter(v *assess.View, stage v1alpha1.NodeEncryption) (out []string) {
	for {
		s := *v.Snapshot
		s.Ledger = v.Ledger.Copy()
		s.Ledger.Encryption = &ledger.EncryptionStage{Stage: stage}
		next := s.NextEncryption()
		if next == nil {
			return out
		}
		out = append(out, inWords(stage, *next))
		stage = *next
	}
}

// atNextStage is the view of a ring that has gone on to the next stage.
func atNextStage(v *assess.View, next v1alpha1.NodeEncryption) *assess.View {
	s := *v.Snapshot
	s.Ledger = v.Ledger.Copy()
	s.Ledger.Encryption = &ledger.EncryptionStage{Stage: next}
	return assess.NewView(&s, v.Now)
}

// inWords is what changes from one stage to another: "encryption Optional → Required between
// nodes".
func inWords(from, to v1alpha1.NodeEncryption) string {
	var out []string
	internode := func(e v1alpha1.NodeEncryption) string {
		if e.ConnectsPlain {
			return string(e.Internode) + " (connecting without)"
		}
		return string(e.Internode)
	}
	clients := func(e v1alpha1.NodeEncryption) string {
		if e.ClientCertificates == v1alpha1.ClientCertificatesRequired {
			return string(e.Clients) + " (with certificates)"
		}
		return string(e.Clients)
	}
	if a, b := internode(from), internode(to); a != b {
		out = append(out, fmt.Sprintf("%s → %s between nodes", a, b))
	}
	if a, b := clients(from), clients(to); a != b {
		out = append(out, fmt.Sprintf("%s → %s for clients", a, b))
	}
	return "encryption " + words.List(out, 2)
}
