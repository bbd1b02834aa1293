package facts

import (
	"cmp"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
)

// internodeStages and clientStages are the ways from no encryption to the most of it. Nodes at two
// stages that follow each other understand each other; a node that connects without encryption and
// one that requires it do not (EncryptionOptions, InboundConnectionInitiator; 4.1 and 5.0).
var (
	internodeStages = []internodeStage{
		{v1alpha1.EncryptionDisabled, false}, {v1alpha1.EncryptionOptional, true}, {v1alpha1.EncryptionOptional, false},
		{v1alpha1.EncryptionRequired, false},
	}
	clientStages = []clientStage{
		{v1alpha1.EncryptionDisabled, v1alpha1.ClientCertificatesNone},
		{v1alpha1.EncryptionOptional, v1alpha1.ClientCertificatesNone},
		{v1alpha1.EncryptionRequired, v1alpha1.ClientCertificatesNone},
		{v1alpha1.EncryptionRequired, v1alpha1.ClientCertificatesRequired},
	}
)

type internodeStage struct {
	mode          v1alpha1.EncryptionMode
	connectsPlain bool
}

type clientStage struct {
	mode         v1alpha1.EncryptionMode
	certificates v1alpha1.ClientCertificates
}

// stagesOf an encryption, as places in internodeStages and clientStages.
func stagesOf(e v1alpha1.NodeEncryption) (internode, clients int) {
	return max(slices.Index(internodeStages, internodeStage{e.Internode, e.ConnectsPlain}), 0),
		max(slices.Index(clientStages, clientStage{e.Clients, e.ClientCertificates}), 0)
}

func encryptionAt(internode, clients int) v1alpha1.NodeEncryption {
	i, c := internodeStages[internode], clientStages[clients]
	return v1alpha1.NodeEncryption{Internode: i.mode, ConnectsPlain: i.connectsPlain, Clients: c.mode,
		ClientCertificates: c.certificates}
}

// LeastEncryption is what refuses nobody whom one of two refuses not.
func LeastEncryption(a, b v1alpha1.NodeEncryption) v1alpha1.NodeEncryption {
	i, c := stagesOf(a)
	j, d := stagesOf(b)
	return encryptionAt(min(i, j), min(c, d))
}

// EncryptionAfter is the stage that follows one on the way to another.
func EncryptionAfter(stage, to v1alpha1.NodeEncryption) v1alpha1.NodeEncryption {
	i, c := stagesOf(stage)
	j, d := stagesOf(to)
	return encryptionAt(i+cmp.Compare(j, i), c+cmp.Compare(d, c))
}

// Encryption that nodes of the ring are to have now, or are to be made with; nil in a ring that was
// made by an earlier release of Helenus, and was not asked to encrypt since. Where the ledger is
// lost the records know it. If there are none, the authorities that are there do.
func (s *Snapshot) Encryption() *v1alpha1.NodeEncryption {
	asked := s.Cluster.Spec.Encryption()
	out := &v1alpha1.NodeEncryption{
		Internode:          cmp.Or(asked.Internode, v1alpha1.EncryptionRequired),
		Clients:            cmp.Or(asked.Clients, v1alpha1.EncryptionOptional),
		ClientCertificates: cmp.Or(asked.ClientCertificates, v1alpha1.ClientCertificatesNone),
	}
	switch l := s.Ledger; {
	case l != nil && l.Encryption != nil:
		return &l.Encryption.Stage
	case l != nil && l.MadeWith != nil:
		return l.MadeWith.Encryption
	case s.begun():
		return nil
	case l == nil && s.hasNodes():
		if records := s.Records(); len(records) > 0 {
			return encryptionOf(records, asked)
		}
		has := func(use v1alpha1.CertificateUse) bool {
			return s.Cluster.Spec.HasOwn(use) || s.Shared.Secrets[v1alpha1.AuthorityName(s.Cluster.Name, use)] != nil
		}
		if !has(v1alpha1.UseInternode) {
			out.Internode = v1alpha1.EncryptionDisabled
		}
		if !has(v1alpha1.UseClients) {
			out.Clients = v1alpha1.EncryptionDisabled
		}
	}
	return out
}

// encryptionOf records, which are at two stages at most: of these the one that is nearer to what
// the spec asks for. Nodes of both understand it.
func encryptionOf(records []*Node, asked v1alpha1.NodeEncryption) *v1alpha1.NodeEncryption {
	known := false
	i, c := stagesOf(records[0].Record.Spec.Configuration.Encryption.OrNotEncrypted())
	j, d := i, c
	for _, n := range records {
		e := n.Record.Spec.Configuration.Encryption
		known = known || e != nil
		x, y := stagesOf(e.OrNotEncrypted())
		i, j, c, d = min(i, x), max(j, x), min(c, y), max(d, y)
	}
	if !known {
		return nil
	}
	asked.ClientCertificates = cmp.Or(asked.ClientCertificates, v1alpha1.ClientCertificatesNone)
	x, y := stagesOf(asked)
	return new(encryptionAt(min(max(x, i), j), min(max(y, c), d)))
}

// NextEncryption is the stage that is next on the way to what the spec asks for; nil in a ring that
// is there, or that has not formed. What the spec does not name is as the ring was made.
func (s *Snapshot) NextEncryption() *v1alpha1.NodeEncryption {
	if !s.Ledger.HasRing() {
		return nil
	}
	made := v1alpha1.NotEncrypted()
	if m := s.Ledger.MadeWith; m != nil {
		made = m.Encryption.OrNotEncrypted()
	}
	stage, asked := s.Encryption().OrNotEncrypted(), s.Cluster.Spec.Encryption()
	to := v1alpha1.NodeEncryption{Internode: cmp.Or(asked.Internode, made.Internode),
		Clients:            cmp.Or(asked.Clients, made.Clients),
		ClientCertificates: cmp.Or(asked.ClientCertificates, made.ClientCertificates)}
	if to.Clients != v1alpha1.EncryptionRequired {
		to.ClientCertificates = v1alpha1.ClientCertificatesNone
	}
	if next := EncryptionAfter(stage, to); next != stage {
		return &next
	}
	return nil
}

// Encrypts says that a node is known to run a stage: by its own word, not by what it is asked for.
func (n *Node) Encrypts(stage v1alpha1.NodeEncryption) bool {
	agent := n.CurrentAgent()
	if agent == nil || agent.Ring == nil || agent.Ring.Mode != ModeNormal || !n.StatusIsCurrent() {
		return false
	}
	c := n.Record.Status.Configuration
	return c != nil && c.Hash != "" && c.Encryption.OrNotEncrypted() == stage &&
		n.Record.Spec.Configuration.Encryption.OrNotEncrypted() == stage
}

// CertificateUses are those for which nodes at one stage have certificates, or are about to.
func (s *Snapshot) CertificateUses(now *v1alpha1.NodeEncryption) []v1alpha1.CertificateUse {
	next := s.NextEncryption()
	return slices.DeleteFunc([]v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients},
		func(use v1alpha1.CertificateUse) bool { return !now.Has(use) && !next.Has(use) })
}

// AsksForCertificates says that clients show certificates, or are to.
func (s *Snapshot) AsksForCertificates() bool {
	now, next := s.Encryption(), s.NextEncryption()
	return now != nil && now.ClientCertificates == v1alpha1.ClientCertificatesRequired ||
		next != nil && next.ClientCertificates == v1alpha1.ClientCertificatesRequired
}

// Calls says that nodes show what they have for a use as clients, too.
func (s *Snapshot) Calls(use v1alpha1.CertificateUse) bool {
	return use == v1alpha1.UseInternode || s.AsksForCertificates()
}

// MayEncrypt says that the ring has certificates for a use, or may be to: their Secrets matter.
func (s *Snapshot) MayEncrypt(use v1alpha1.CertificateUse) bool {
	if !s.begun() && (s.Ledger == nil || s.Ledger.MadeWith == nil) {
		return true
	}
	return slices.Contains(s.CertificateUses(s.Encryption()), use)
}
