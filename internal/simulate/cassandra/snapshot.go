package cassandra

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// localKeyspaces are those of every node that only it has.
var localKeyspaces = []string{"system", "system_schema"}

// stores refuses a keyspace that has no SSTables.
func (p *Process) stores(keyspace string) *javaError {
	if _, found := p.schema[keyspace]; !found && !slices.Contains(localKeyspaces, keyspace) {
		return exception(illegalArgument, "Keyspace [%s] does not exist.", keyspace)
	}
	return nil
}

// storedIn are the keyspaces of an argument, or those of its tables.
func (p *Process) storedIn(arguments []json.RawMessage, i int) ([]string, *javaError) {
	names, failed := argument[[]string](arguments, i)
	for i, name := range names {
		names[i], _, _ = strings.Cut(name, ".")
		failed = cmp.Or(failed, p.stores(names[i]))
	}
	return slices.Compact(names), failed
}

// leastTTL is CassandraRelevantProperties#SNAPSHOT_MIN_ALLOWED_TTL_SECONDS, 4.1 and 5.0.
const leastTTL = time.Minute

// takeSnapshot does one keyspace after the other. It refuses one that has the tag.
func (p *Process) takeSnapshot(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	tag, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	options, failed := argument[map[string]string](arguments, 1)
	if failed != nil {
		return nil, failed
	}
	if ttl, err := time.ParseDuration(cmp.Or(options["ttl"], leastTTL.String())); err != nil || ttl < leastTTL {
		return nil, exception(illegalArgument, "ttl for snapshot must be at least 60 seconds")
	}
	names, failed := p.storedIn(arguments, 2)
	if failed != nil {
		return nil, failed
	}
	for _, name := range names {
		if slices.Contains(p.disk.snapshots[tag], name) {
			return nil, exception("java.io.IOException", "Snapshot %s already exists.", tag)
		}
	}
	for _, name := range names {
		p.disk.snapshots[tag] = append(p.disk.snapshots[tag], name)
		p.sleep(p.net.within(20*time.Millisecond, 200*time.Millisecond))
		p.flushOrDie()
	}
	return jsonNull, nil
}

func (p *Process) clearSnapshot(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	tag, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	names, failed := p.storedIn(arguments, 1)
	if failed != nil {
		return nil, failed
	}
	p.disk.snapshots[tag] = slices.DeleteFunc(p.disk.snapshots[tag],
		func(name string) bool { return slices.Contains(names, name) })
	return jsonNull, nil
}

// Snapshots are the keyspaces by the tags of their snapshots.
func (d *Disk) Snapshots() map[string][]string { return d.snapshots }
