package operation

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
)

// Kind is what is known of one type of operation.
type Kind struct {
	Type v1alpha1.OperationType
	// ConflictsWith are the types that do not run beside it on a node. What one type says holds for
	// both.
	ConflictsWith []v1alpha1.OperationType
	// Modes are those, beside NORMAL, in which it may begin.
	Modes []facts.Mode
	// FreshView says that Check needs a view that is seconds old at most.
	FreshView bool
	// Check says why it must not begin now; nil if it may. A nil Check allows it always. It is
	// asked on a node that is NORMAL in its own view, or in one of Modes.
	Check func(Request) *Refusal
	// Unfit says why it has nothing to do with a keyspace of a replication; empty if it has. A nil
	// Unfit takes all keyspaces that the ring replicates. AnyStrategy takes those, too, of which
	// nobody knows where their replicas are.
	Unfit       func(Request, ring.Replication) string
	AnyStrategy bool
	// Local takes those that are local to the node, too.
	Local bool
	// RepairDue is why the node must be repaired when it has begun; empty if it need not.
	RepairDue v1alpha1.RepairReason
}

// Request is an operation as a node is asked for it.
type Request struct {
	// View is how the node sees the ring.
	View      *facts.Ring
	Arguments v1alpha1.OperationArguments
}

// RequestOf is the request of an intent.
func RequestOf(o *v1alpha1.OperationIntent, view *facts.Ring) Request {
	r := Request{View: view}
	if o.Arguments != nil {
		r.Arguments = *o.Arguments
	}
	return r
}

// self is the node in its own view.
func (r Request) self() facts.Endpoint {
	self, _ := r.View.ByHostID(r.View.HostID)
	return self
}

// Handle is how an agent finds again what an operation has started in the JVM: it continues there
// when the agent ends.
type Handle struct {
	// Keyspace in work; those before it, by name, are done.
	Keyspace string `json:"keyspace,omitempty"`
	// Command is the number of its repair. Asked says that another one was asked for, whose number
	// is not known yet.
	Command int  `json:"command,omitempty"`
	Asked   bool `json:"asked,omitempty"`
	// Uploaded is what an Upload has put into its store, once it is done.
	Uploaded *v1alpha1.Uploaded `json:"uploaded,omitempty"`
}

// Refusal is why an operation does not begin.
type Refusal struct {
	Reason  v1alpha1.Reason
	Message string
}

func refuse(reason v1alpha1.Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Kinds are all operations.
var Kinds = append([]Kind{
	alterSystemKeyspaces, alterKeyspaces, assassinate, cleanup, decommission, importSuperuser, proveLogin, rebuild,
	removeNode, repair, keepRoles, setPassword, setRoles, checkRows,
}, plain...)

// Of is what is known of a type; false if nothing is.
func Of(t v1alpha1.OperationType) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Type == t })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Conflict says that operations of two types do not run side by side on a node.
func Conflict(a, b v1alpha1.OperationType) bool {
	x, _ := Of(a)
	y, _ := Of(b)
	return slices.Contains(x.ConflictsWith, b) || slices.Contains(y.ConflictsWith, a)
}
