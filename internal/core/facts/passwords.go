package facts

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// Passwords are the Secrets with the passwords of a ring's roles, without their content.
type Passwords struct {
	// Roles is the Secret of the roles that are ours; nil if there is none.
	Roles *corev1.Secret
	// Superuser is the Secret of the superuser, ours or the one that the spec names; nil if there
	// is none. It is looked at each minute.
	Superuser *corev1.Secret
	// Applied is the Secret of ours with the superuser as it was applied, or is to be: whatever
	// becomes of the Superuser's meanwhile; nil if there is none.
	Applied *corev1.Secret
	// Changed says that Applied has another content than Superuser, Renamed its user name if that
	// is another one, and Old that it has the password before, too.
	Changed bool
	Renamed string
	Old     bool
	// Problem is what is wrong with the content of Superuser; empty if nothing is.
	Problem string
}

// Authentication that the ring is made with, or is to be; empty in a ring that was made by an
// earlier release of Helenus.
func (s *Snapshot) Authentication() v1alpha1.AuthenticationMode {
	switch l := s.Ledger; {
	case l != nil && l.MadeWith != nil:
		return l.MadeWith.Authentication
	case s.begun():
		return ""
	case l == nil && s.hasNodes():
		return s.recorded()
	case s.Cluster.Spec.AdoptedUID() != "":
		return s.ofDisks()
	}
	return cmp.Or(s.Cluster.Spec.AuthenticationMode(), v1alpha1.AuthenticationPassword)
}

// SuperuserSecret is the name of the Secret of the superuser that the ring is made with, or is to
// be.
func (s *Snapshot) SuperuserSecret() string {
	made := ""
	if s.Ledger != nil && s.Ledger.MadeWith != nil {
		made = s.Ledger.MadeWith.SuperuserSecret
	}
	return cmp.Or(made, s.Cluster.Spec.NamedSuperuser(), v1alpha1.SuperuserName(s.Cluster.Name))
}

// AsksForPasswords says that the ring asks for passwords, or may be to: their Secrets matter.
func (s *Snapshot) AsksForPasswords() bool {
	l := s.Ledger
	switch {
	case l != nil && l.MadeWith != nil:
		return l.MadeWith.Authentication == v1alpha1.AuthenticationPassword
	case s.begun():
		return false
	}
	return s.Cluster.Spec.AdoptedUID() != "" || s.Cluster.Spec.AuthenticationMode() != v1alpha1.AuthenticationNone
}

func (s *Snapshot) begun() bool {
	return s.Ledger != nil && (s.Ledger.Step != nil || s.Ledger.HasRing())
}

// hasNodes says that anything exists that only a cluster with nodes can have.
func (s *Snapshot) hasNodes() bool {
	for _, n := range s.Nodes {
		if n.Record != nil || n.Pod != nil {
			return true
		}
		for _, c := range n.Claims {
			if c.Claim != nil && c.Claim.Labels[v1alpha1.LabelClusterUID] == string(s.Cluster.UID) {
				return true
			}
		}
	}
	return false
}

// recorded is what records say, of which any will do, or, if there are none, what the Secret of the
// roles does, or the spec by name: the ledger is lost.
func (s *Snapshot) recorded() v1alpha1.AuthenticationMode {
	records := s.Records()
	said := slices.IndexFunc(records, func(n *Node) bool { return n.Record.Spec.Configuration.Authentication != "" })
	switch {
	case said >= 0:
		return records[said].Record.Spec.Configuration.Authentication
	case len(records) == 0 && s.Passwords.Roles != nil:
		return v1alpha1.AuthenticationPassword
	case len(records) == 0 && s.Cluster.Spec.AuthenticationMode() == v1alpha1.AuthenticationNone:
		return v1alpha1.AuthenticationNone
	}
	return ""
}

// ofDisks is what the disks to adopt need: their roles are of no use without the passwords.
func (s *Snapshot) ofDisks() v1alpha1.AuthenticationMode {
	if s.Passwords.Roles != nil {
		return v1alpha1.AuthenticationPassword
	}
	return v1alpha1.AuthenticationNone
}
