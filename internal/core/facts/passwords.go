package facts

import (
	"cmp"

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
	// Applications are the Secrets of the roles of applications, by the names of the roles.
	Applications map[string]ApplicationSecret
}

// ApplicationSecret is the Secret of the role of an application: its resourceVersion, and what is
// wrong with it, empty if nothing is.
type ApplicationSecret struct{ Version, Problem string }

// Authentication that all nodes have, or that the ring is to be made with; empty in a ring that was
// made by an earlier release of Helenus.
func (s *Snapshot) Authentication() v1alpha1.AuthenticationMode {
	switch l := s.Ledger; {
	case l != nil && l.Authentication != nil:
		return l.Authentication.Mode
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

// NextAuthentication is the mode that the members are to have: another one while the ring goes from
// one to the other, until the spec takes that back.
func (s *Snapshot) NextAuthentication() v1alpha1.AuthenticationMode {
	if l := s.Ledger; l != nil && l.Authentication != nil && l.Authentication.Towards != "" &&
		l.Authentication.Towards == s.Cluster.Spec.AuthenticationMode() {
		return l.Authentication.Towards
	}
	return s.Authentication()
}

// RolesReady says that nodes which ask for passwords may be open to clients.
func (s *Snapshot) RolesReady() bool {
	return s.Authentication() == v1alpha1.AuthenticationPassword ||
		s.Ledger != nil && s.Ledger.Authentication != nil && s.Ledger.Authentication.Ready
}

// Traffic is how far a member with this record serves clients: for administration alone if it asks
// for passwords that the clients do not have.
func (s *Snapshot) Traffic(spec *v1alpha1.CassandraNodeSpec) v1alpha1.ClientTraffic {
	traffic := s.Ledger.Traffic(spec.Datacenter)
	if traffic == v1alpha1.TrafficOpen && s.Ledger != nil && s.Ledger.Authentication != nil && !s.RolesReady() &&
		spec.Configuration.Authentication == v1alpha1.AuthenticationPassword {
		return v1alpha1.TrafficAdministrative
	}
	return traffic
}

// SuperuserSecret is the name of the Secret of the superuser that the ring is made with, or is to
// be.
func (s *Snapshot) SuperuserSecret() string {
	made := ""
	switch l := s.Ledger; {
	case l != nil && l.Authentication != nil:
		made = l.Authentication.SuperuserSecret
	case l != nil && l.MadeWith != nil:
		made = l.MadeWith.SuperuserSecret
	}
	return cmp.Or(made, s.Cluster.Spec.NamedSuperuser(), v1alpha1.SuperuserName(s.Cluster.Name))
}

// AsksForPasswords says that the ring asks for passwords, or may be to: their Secrets matter.
func (s *Snapshot) AsksForPasswords() bool {
	asked := s.Cluster.Spec.AuthenticationMode()
	if s.begun() || s.Ledger != nil && s.Ledger.MadeWith != nil {
		return s.Authentication() == v1alpha1.AuthenticationPassword || asked == v1alpha1.AuthenticationPassword ||
			s.AnyAsks()
	}
	return s.Cluster.Spec.AdoptedUID() != "" || asked != v1alpha1.AuthenticationNone
}

// AnyAsks says that a node asks for passwords, or is to.
func (s *Snapshot) AnyAsks() bool {
	return s.anyRecorded(func(mode v1alpha1.AuthenticationMode) bool { return mode == v1alpha1.AuthenticationPassword })
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

// recorded is what records say, or, if there are none, what the Secret of the roles does, or the
// spec by name: the ledger is lost. Where they differ the ring goes from one to the other: the spec
// says to which, and if it says nothing, it has passwords.
func (s *Snapshot) recorded() v1alpha1.AuthenticationMode {
	asked := s.Cluster.Spec.AuthenticationMode()
	others := s.anyRecorded(func(mode v1alpha1.AuthenticationMode) bool {
		return mode != v1alpha1.AuthenticationPassword
	})
	switch {
	case s.AnyAsks() && (!others || asked == ""):
		return v1alpha1.AuthenticationPassword
	case s.anyRecorded(func(mode v1alpha1.AuthenticationMode) bool { return mode == v1alpha1.AuthenticationNone }):
		return v1alpha1.AuthenticationNone
	case others || s.AnyAsks():
		return ""
	case s.Passwords.Roles != nil:
		return v1alpha1.AuthenticationPassword
	case asked == v1alpha1.AuthenticationNone:
		return v1alpha1.AuthenticationNone
	}
	return ""
}

// anyRecorded says that something holds of what a record says.
func (s *Snapshot) anyRecorded(holds func(v1alpha1.AuthenticationMode) bool) bool {
	for _, n := range s.Nodes {
		if n.Record != nil && holds(n.Record.Spec.Configuration.Authentication) {
			return true
		}
	}
	return false
}

// ofDisks is what the disks to adopt need: their roles are of no use without the passwords.
func (s *Snapshot) ofDisks() v1alpha1.AuthenticationMode {
	if s.Passwords.Roles != nil {
		return v1alpha1.AuthenticationPassword
	}
	return v1alpha1.AuthenticationNone
}
