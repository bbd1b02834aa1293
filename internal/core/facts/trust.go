package facts

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"helenus.io/helenus/api/v1alpha1"
)

// LongestNear is how long before its end a certificate should have been renewed, at the latest.
const LongestNear = 14 * 24 * time.Hour

// Trust is what the certificates in a Secret say: in that of an authority, who signs and who is
// trusted; in that of a node, who has signed and who is trusted by it.
type Trust struct {
	// Signer is the fingerprint of the authority that signs, or has signed.
	Signer string
	// Next is that of one that is to sign, whose key is there already; empty if there is none.
	Next string
	// Trusted are the authorities of the bundle, in its order: the signer is the first.
	Trusted []Authority
	// MadeAt is when the certificate was signed.
	MadeAt time.Time
	// Bundle is the text of Trusted.
	Bundle string
	// Given says that the signer of an authority is an issuer's, and NextGiven that the next one
	// is: there is no key of it.
	Given, NextGiven bool
}

// Given is a certificate that Helenus has not signed, in a Secret.
type Given struct {
	Secret string
	// Missing says that there is no such Secret; Problem why what it has cannot be used, empty if
	// it can.
	Missing bool
	Problem string
	// Content is the hash of it.
	Content string
	// Trust is what it says, as long as it can be used.
	Trust Trust
	// Certificate by which cert-manager signs it; nil if there is none.
	Certificate *unstructured.Unstructured
}

// SourceOf is the Secret of which the certificate of a node is a copy; empty if Helenus has signed
// it.
func SourceOf(leaf *corev1.Secret) string {
	if leaf == nil {
		return ""
	}
	name, _, _ := strings.Cut(leaf.Annotations[v1alpha1.AnnotationSource], " ")
	return name
}

// GivenTo a node for a use.
func (s *Snapshot) GivenTo(use v1alpha1.CertificateUse, node string) Given {
	if one, found := s.Given[""]; found && use == v1alpha1.UseClients {
		return one
	}
	return s.Given[v1alpha1.IssuedName(node, use)]
}

// Usable says that it can be copied.
func (g Given) Usable() bool { return g.Secret != "" && !g.Missing && g.Problem == "" }

// Source is what a copy of it says of where it comes from.
func (g Given) Source() string { return g.Secret + " " + g.Content }

// Authority is the certificate of one.
type Authority struct {
	Fingerprint             string
	MadeAt, RenewAt, EndsAt time.Time
}

// Fingerprints of those that are trusted.
func (t Trust) Fingerprints() (out []string) {
	for _, a := range t.Trusted {
		out = append(out, a.Fingerprint)
	}
	return out
}

// Trusts says that an authority is among those that are trusted.
func (t Trust) Trusts(fingerprint string) bool {
	return slices.ContainsFunc(t.Trusted, func(a Authority) bool { return a.Fingerprint == fingerprint })
}

// Same says that a certificate was signed, and trusts, as an authority has it now.
func (t Trust) Same(other Trust) bool {
	return t.Signer == other.Signer && slices.EqualFunc(t.Trusted, other.Trusted,
		func(a, b Authority) bool { return a.Fingerprint == b.Fingerprint })
}

// Stage of one of those that are trusted.
func (t Trust) Stage(fingerprint string) v1alpha1.AuthorityStage {
	switch fingerprint {
	case t.Signer:
		return v1alpha1.AuthoritySigning
	case t.Next:
		return v1alpha1.AuthorityIntroduced
	default:
		return v1alpha1.AuthorityRetired
	}
}

// Proves says that the agent of the present pod of a node has said that it trusts whom an authority
// says and, unless another one is being introduced, that it shows a certificate of the one that
// signs now.
func (n *Node) Proves(use v1alpha1.CertificateUse, t Trust) bool {
	agent := n.CurrentAgent()
	return agent != nil && agent.Ring != nil && agent.Ring.Mode == ModeNormal && n.StatusIsCurrent() &&
		slices.ContainsFunc(n.Record.Status.Certificates, func(c v1alpha1.CertificateStatus) bool {
			return c.Use == use && (c.Authority == t.Signer || t.Next != "") &&
				slices.Equal(c.Trusted, t.Fingerprints())
		})
}
