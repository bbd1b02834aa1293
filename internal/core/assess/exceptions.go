package assess

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// LongestException is how far ahead an exception may end.
const LongestException = 7 * 24 * time.Hour

// RepairAsked says that a person has asked for the repair that is due for a node.
func (v *View) RepairAsked(node string) bool {
	return len(v.exceptions(v1alpha1.ExceptionRepair, node)) > 0
}

// ReplacementAsked says that a person has asked for the replacement of a node.
func (v *View) ReplacementAsked(node string) bool {
	return len(v.exceptions(v1alpha1.ExceptionReplace, node)) > 0
}

// LossAccepted are the keyspaces of which a person accepts that writes are lost with a node.
func (v *View) LossAccepted(node string) []string {
	return v.keyspacesOf(v1alpha1.ExceptionAcceptLoss, node)
}

// UnavailableAccepted are the keyspaces of which a person accepts that they are unavailable while a
// datacenter is stopped.
func (v *View) UnavailableAccepted() []string {
	return v.keyspacesOf(v1alpha1.ExceptionAcceptUnavailable, "")
}

func (v *View) keyspacesOf(kind v1alpha1.ExceptionType, node string) []string {
	var out []string
	for _, e := range v.exceptions(kind, node) {
		out = append(out, e.Keyspace)
	}
	return out
}

// RolesSaidReady says that a person has confirmed that the roles of the applications exist on a
// node.
func (v *View) RolesSaidReady(node string) bool {
	return len(v.exceptions(v1alpha1.ExceptionRolesReady, node)) > 0
}

// MayTurnOff says that a person allows the ring to stop asking for passwords.
func (v *View) MayTurnOff() bool { return len(v.exceptions(v1alpha1.ExceptionTurnOffPassword, "")) > 0 }

// Overruled are the guards that a person has overridden.
func (v *View) Overruled() []v1alpha1.Reason {
	var out []v1alpha1.Reason
	for _, e := range v.exceptions(v1alpha1.ExceptionOverrideGuard, "") {
		out = append(out, v1alpha1.Reason(e.Guard))
	}
	return out
}

// exceptions of a type for a node that hold now.
func (v *View) exceptions(kind v1alpha1.ExceptionType, node string) []v1alpha1.Exception {
	return exceptions(v.Snapshot, v.Now, kind, node)
}

func exceptions(s *facts.Snapshot, now time.Time, kind v1alpha1.ExceptionType, node string) []v1alpha1.Exception {
	var out []v1alpha1.Exception
	for _, e := range s.Cluster.Spec.Exceptions {
		if e.Type == kind && e.Node == node && now.Before(e.Until.Time) && e.Until.Sub(now) <= LongestException {
			out = append(out, e)
		}
	}
	return out
}
