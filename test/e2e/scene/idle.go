package scene

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/localkube/audit"
)

// serviceAccounts begin like this, as users.
const serviceAccounts = "system:serviceaccount:"

// Writes counts what the operator and the agents of the whole Kubernetes cluster have written
// since, by the audit log of its API server: leases are left out, and everything else that is no
// get, list or watch is in. Only the local cluster has such a log at hand.
func (s *Scene) Writes(since time.Time) ([]audit.Count, error) {
	local, err := s.Local()
	if err != nil {
		return nil, err
	}
	counts, err := local.Audit(audit.Filter{Since: since, WritesOnly: true, WithoutLeases: true,
		User: serviceAccounts + "*"})
	if err != nil {
		return nil, fmt.Errorf("count writes: %w", err)
	}
	return slices.DeleteFunc(counts, func(c audit.Count) bool { return !ours(c.User) }), nil
}

// ours says that a user is the operator or an agent.
func ours(user string) bool {
	return user == serviceAccounts+install.Namespace+":helenus" ||
		strings.HasPrefix(user, serviceAccounts) && strings.HasSuffix(user, v1alpha1.AgentSuffix)
}

// Total is the sum of counts.
func Total(counts []audit.Count) int {
	n := 0
	for _, c := range counts {
		n += c.Requests
	}
	return n
}

// Listed prints counts, a line for each.
func Listed(counts []audit.Count) string {
	var b strings.Builder
	for _, c := range counts {
		fmt.Fprintf(&b, "%5d  %s %s by %s\n", c.Requests, c.Verb, c.Resource, c.User)
	}
	return b.String()
}
