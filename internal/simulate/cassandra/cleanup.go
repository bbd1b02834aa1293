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
	tables, failed := argument[[]string](arguments, 2)
	if failed != nil {
		return nil, failed
	}
	for _, table := range tables {
		if _, found := k.tables[table]; !found && !slices.Contains(systemTables[name], table) {
			return nil, exception(illegalArgument, "Unknown keyspace/cf pair (%s.%s)", name, table)
		}
	}
	if slices.ContainsFunc(p.pending(k.replication),
		func(r pendingRange) bool { return slices.Contains(r.to, p.address) }) {
		return nil, exception(runtimeException, "Node is involved in cluster membership changes. Not safe to run "+
			"cleanup.")
	}
	if !p.joined {
		return json.RawMessage("1"), nil // aborted; the log says that a cleanup cannot run before the node has joined
	}
	p.rewrite("Cleanup", name)
	for _, key := range p.disk.keys(name) {
		if !slices.Contains(p.natural(k.replication, tokenOf(key)), p.address) {
			delete(p.disk.data[name], key)
		}
	}
	return json.RawMessage("0"), nil
}

// rewriting is work on the SSTables of a keyspace.
type rewriting struct{ task, keyspace string }

// rewrite takes the time that it takes to read the SSTables of a keyspace and to write others.
func (p *Process) rewrite(task, keyspace string) {
	own := rewriting{task, keyspace}
	if slices.Contains(p.rewriting, own) {
		p.net.beside(p, task+" of keyspace "+keyspace)
	}
	p.rewriting = append(p.rewriting, own)
	defer func() {
		at := slices.Index(p.rewriting, own)
		p.rewriting = slices.Delete(p.rewriting, at, at+1)
	}()
	p.sleep(p.net.prolonged + p.net.within(50*time.Millisecond,
		300*time.Millisecond) + time.Duration(len(p.disk.data[keyspace]))*p.net.options.StreamPerKey)
}

// appendCompactions is Compactions: of what rewrites SSTables when it is asked to.
func (p *Process) appendCompactions(out []byte) []byte {
	out = append(out, '[')
	for i, r := range p.rewriting {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(append(out, `{"taskType":`...), r.task)
		out = appendText(append(out, `,"keyspace":`...), r.keyspace)
		out = append(out, '}')
	}
	return append(out, ']')
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
