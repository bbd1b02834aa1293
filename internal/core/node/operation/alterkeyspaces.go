package operation

import (
	"fmt"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

var (
	alterSystemKeyspaces = Kind{
		Type: v1alpha1.OperationAlterSystemKeyspaces,
		ConflictsWith: []v1alpha1.OperationType{
			v1alpha1.OperationAlterSystemKeyspaces, v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAssassinate,
		},
		Check: keyspacesAlterable,
	}
	alterKeyspaces = Kind{
		Type:          v1alpha1.OperationAlterKeyspaces,
		ConflictsWith: []v1alpha1.OperationType{v1alpha1.OperationAlterKeyspaces, v1alpha1.OperationAssassinate},
		Check:         keyspacesAlterable,
	}
)

func keyspacesAlterable(r Request) *Refusal {
	if !r.View.NativeRunning {
		return refuse(v1alpha1.BlockedNativeTransportClosed, "keyspaces are altered by CQL, which is closed")
	}
	if others := notNormal(r.View); len(others) > 0 {
		return refuse(v1alpha1.BlockedMemberNotNormal,
			"Cassandra alters no keyspace as long as a node is in another state than NORMAL: %s",
			strings.Join(others, ", "))
	}
	return nil
}

// notNormal are the other nodes for whose state Cassandra refuses to alter a keyspace
// (AlterKeyspaceStatement#validateNoRangeMovements, 4.1 and 5.0): also one that was stopped in
// order. One of which only the name is known is left to Cassandra's own judgement.
func notNormal(view *facts.Ring) []string {
	var out []string
	for _, e := range view.Endpoints {
		switch e.Status {
		case facts.StatusNormal, facts.StatusUnknown, facts.StatusLeft, facts.StatusRemoved, facts.StatusHibernate:
		default:
			if e.HostID != view.HostID {
				out = append(out, fmt.Sprintf("%s is %s", e.Address, e.Status))
			}
		}
	}
	return out
}
