package cassandra

import (
	"encoding/json"
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
	p.sleep(p.net.within(50*time.Millisecond,
		300*time.Millisecond) + time.Duration(len(p.disk.data[name]))*p.net.options.StreamPerKey)
	for _, key := range p.disk.keys(name) {
		if !slices.Contains(p.natural(k.replication, tokenOf(key)), p.address) {
			delete(p.disk.data[name], key)
		}
	}
	return json.RawMessage("0"), nil
}

// systemTables are tables of the keyspaces that every node has.
var systemTables = map[string][]string{
	"system_traces": {"events", "sessions"}, "system_auth": {"roles", "role_members", "role_permissions"},
	"system_distributed": {"parent_repair_history", "repair_history", "view_build_status"},
}
