package cassandra

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// cleanup removes the rows that the node does not own by its own view. It refuses while ranges move
// to it.
func (p *Process) cleanup(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	if name, failed := argument[string](arguments, 1); failed == nil && (name == "system" || name == "system_schema") {
		return nil, exception(runtimeException, "Cleanup of the system keyspace is neither necessary nor wise")
	}
	name, k, failed := p.keyspaceOf(arguments, 1)
	if failed != nil {
		return nil, failed
	}
	if failed := p.haveTables(name, arguments, 2); failed != nil {
		return nil, failed
	}
	if slices.ContainsFunc(p.pending(k.replication),
		func(r pendingRange) bool { return slices.Contains(r.to, p.address) }) {
		return nil, exception(runtimeException, "Node is involved in cluster membership changes. Not safe to run "+
			"cleanup.")
	}
	if !p.joined {
		return json.RawMessage("1"), nil // aborted; the log says that a cleanup cannot run before the node has joined
	}
	if failed := p.rewrite("Cleanup", name); failed != nil {
		return nil, failed
	}
	for _, key := range p.disk.keys(name) {
		if !slices.Contains(p.natural(k.replication, tokenOf(key)), p.address) {
			delete(p.disk.data[name], key)
		}
	}
	return json.RawMessage("0"), nil
}

// Prolong has cleanups and repairs of a keyspace take longer than usual.
func (n *Network) Prolong(by time.Duration) { n.prolonged = by }

// beside notes that an operation begins on a node while the same still runs there.
func (n *Network) beside(p *Process, what string) {
	n.doubled = append(n.doubled, fmt.Sprintf("a second %s begins on %s while the first one runs", what, p.address))
}

// Doubled are the operations that began beside themselves so far.
func (n *Network) Doubled() []string { return n.doubled }

// systemTables are tables of the keyspaces that every node has.
var systemTables = map[string][]string{
	"system_traces": {"events", "sessions"}, "system_auth": {"roles", "role_members", "role_permissions"},
	"system_distributed": {"parent_repair_history", "repair_history", "view_build_status"},
}
