package cassandra

import (
	"encoding/json"
	"slices"
)

// sstables is the version of the SSTables that the JVM writes.
func (p *Process) sstables() string {
	if !p.is50() || p.settings.text("storage_compatibility_mode", "CASSANDRA_4") == "CASSANDRA_4" {
		return "nb"
	}
	return "oa"
}

// upgradeSSTables rewrites those that have another version.
func (p *Process) upgradeSSTables(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	name, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	if failed := p.stores(name); failed != nil {
		return nil, failed
	}
	if p.disk.sstables[name] != p.sstables() {
		if failed := p.rewrite("Upgrade sstables", name); failed != nil {
			return nil, failed
		}
		p.disk.sstables[name] = p.sstables()
	}
	return json.RawMessage("0"), nil
}

// flushOrDie writes the memtables; a disk without room is the end of the JVM (disk_failure_policy
// die).
func (p *Process) flushOrDie() {
	p.diesOfFullDisk()
	p.disk.flush()
	p.writeSSTables()
}

// writeSSTables of each keyspace that has none.
func (p *Process) writeSSTables() {
	for _, name := range slices.Concat(p.schema.names(), localKeyspaces) {
		if p.disk.sstables[name] == "" {
			p.disk.sstables[name] = p.sstables()
		}
	}
}

// SSTables are the versions of the oldest SSTables by keyspace.
func (d *Disk) SSTables() map[string]string { return d.sstables }
