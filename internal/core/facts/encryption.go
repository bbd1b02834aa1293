package facts

import (
	"cmp"

	"helenus.io/helenus/api/v1alpha1"
)

// Encryption that the ring is made with, or is to be; nil in a ring that was made by an earlier
// release of Helenus. Where the ledger is lost the records know it, or, if there are none, the
// authorities that are there do.
func (s *Snapshot) Encryption() *v1alpha1.NodeEncryption {
	asked := s.Cluster.Spec.Encryption()
	out := &v1alpha1.NodeEncryption{
		Internode:          cmp.Or(asked.Internode, v1alpha1.EncryptionRequired),
		Clients:            cmp.Or(asked.Clients, v1alpha1.EncryptionOptional),
		ClientCertificates: cmp.Or(asked.ClientCertificates, v1alpha1.ClientCertificatesNone),
	}
	switch l := s.Ledger; {
	case l != nil && l.MadeWith != nil:
		return l.MadeWith.Encryption
	case s.begun():
		return nil
	case l == nil && s.hasNodes():
		for _, n := range s.Records() {
			return n.Record.Spec.Configuration.Encryption
		}
		has := func(use v1alpha1.CertificateUse) bool {
			return s.Shared.Secrets[v1alpha1.AuthorityName(s.Cluster.Name, use)] != nil
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

// MayEncrypt says that the ring has certificates for a use, or may be to: their Secrets matter.
func (s *Snapshot) MayEncrypt(use v1alpha1.CertificateUse) bool {
	if l := s.Ledger; l != nil && l.MadeWith != nil {
		return l.MadeWith.Encryption.Has(use)
	}
	return !s.begun()
}
