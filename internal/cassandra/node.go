package cassandra

import (
	"context"
	"errors"
	"fmt"

	"helenus.io/helenus/internal/jolokia"
)

// Errors that callers distinguish, besides those of package jolokia.
var (
	// ErrStarting means that the JVM answers and Cassandra's beans are not registered yet: the
	// first seconds of a start.
	ErrStarting = errors.New("Cassandra has not registered its beans yet") //nolint:staticcheck // a proper name
	// ErrSchemaChanging means that the schema changed between two parts of one reading, twice in a
	// row.
	ErrSchemaChanging = errors.New("schema changes while it is read")
)

// Node is one running Cassandra node. It is safe for use by several goroutines.
//
// What only reads is bounded by the timeout of the client as well as by the context. An operation
// that changes the node is bounded by its context alone, and continues in the JVM when that ends:
// look at the node before repeating it.
type Node struct {
	jmx *jolokia.Client
}

// NewNode uses a client of the Jolokia agent in the node's JVM.
func NewNode(client *jolokia.Client) *Node { return &Node{jmx: client} }

// call sends one request and decodes its value into result, if result is not nil.
func (n *Node) call(ctx context.Context, request jolokia.Request, result any) error {
	answer, err := n.jmx.Call(ctx, request)
	return finish(answer, err, result)
}

// callBlocking is call for operations that may take hours; only ctx bounds it.
func (n *Node) callBlocking(ctx context.Context, request jolokia.Request, result any) error {
	answer, err := n.jmx.ExecBlocking(ctx, request)
	return finish(answer, err, result)
}

func finish(answer jolokia.Answer, err error, result any) error {
	if err != nil {
		return whileStarting(err)
	}
	if result == nil {
		return nil
	}
	return answer.Decode(result)
}

// whileStarting adds ErrStarting to the error of a bean that is not there: all beans that this
// package uses exist for as long as Cassandra runs, so a missing one is still to come.
func whileStarting(err error) error {
	if errors.Is(err, jolokia.ErrInstanceNotFound) {
		return fmt.Errorf("%w: %w", ErrStarting, err)
	}
	return err
}
