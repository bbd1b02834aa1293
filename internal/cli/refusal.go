package cli

import (
	"fmt"
	"net/http"

	"helenus.io/helenus/internal/inspectapi"
)

// refusedError is an operator that answered, but not what was asked.
type refusedError struct {
	inspectapi.Refusal
	status int
	pod    string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("operator %s refuses (%d): %s", e.pod, e.status, oneLine(e.Refusal.Error))
}

// again says that the same question may be answered in a moment.
func (e *refusedError) again() bool {
	return e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests
}

// explain says what to do.
func (e *refusedError) explain(s *settings, c *connection, cluster string) error {
	switch e.status {
	case http.StatusUnauthorized:
		return fmt.Errorf("the operator does not accept how you log in: it knows client certificates of the API "+
			"server's authority and bearer tokens (%w)", e)
	case http.StatusForbidden:
		return fmt.Errorf("you may not see the plan of CassandraCluster %q: it takes the right to get "+
			"cassandraclusters in namespace %q, which the roles view, edit and admin have (%w)",
			cluster, c.namespace, e)
	case http.StatusNotFound:
		return fmt.Errorf("the operator has not looked at CassandraCluster %q yet, or does not watch namespace %q: "+
			"see the argument --namespaces of kubectl get deployment helenus --namespace %s --output yaml (%w)",
			cluster, c.namespace, s.operatorNamespace, e)
	default:
		return e
	}
}
