package cassandra

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	if options["ttl"] == "" {
		p.disk.lasting = append(slices.Clone(p.disk.lasting), tag)
	}
	for _, name := range names {
		taken := p.line.Now()
		p.disk.snapshots[tag] = append(p.disk.snapshots[tag], name)
		p.sleep(p.net.within(20*time.Millisecond, 200*time.Millisecond))
		p.flushOrDie()
		p.disk.keep(tag, name, taken)
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
	kept := maps.Clone(p.disk.kept[tag])
	maps.DeleteFunc(kept, func(name string, _ Kept) bool { return slices.Contains(names, name) })
	p.disk.kept[tag] = kept
	return jsonNull, nil
}

// Kept is what a snapshot has of a keyspace: the timestamps of its rows.
type Kept struct {
	TakenAt time.Time
	Rows    map[string]int64
}

func (d *Disk) keep(tag, keyspace string, taken time.Time) {
	k := Kept{TakenAt: taken, Rows: map[string]int64{}}
	for key, c := range d.data[keyspace] {
		k.Rows[key] = c.at
	}
	kept := maps.Clone(d.kept[tag])
	if kept == nil {
		kept = map[string]Kept{}
	}
	kept[keyspace] = k
	d.kept[tag] = kept
}

// Kept is what the disk has under a tag, by keyspace. The error says that a snapshot is not whole.
func (d *Disk) Kept(tag string) (map[string]Kept, error) {
	for _, name := range d.snapshots[tag] {
		if _, whole := d.kept[tag][name]; !whole {
			return nil, fmt.Errorf("snapshot %s of keyspace %s has no manifest.json", tag, name)
		}
	}
	return d.kept[tag], nil
}

// MissingIn names every write of a cluster that was acknowledged by a time, and that fewer nodes of
// a backup have than acknowledged it, but for those that it was taken without: rows are their
// timestamps by keyspace, of each node.
func (n *Network) MissingIn(cluster string, until time.Time, nodes []map[string]map[string]int64,
	without int) []string {
	var out []string
	for _, w := range n.latest() {
		if w.Cluster != cluster || w.Deleted || w.at > until.UnixMicro() {
			continue
		}
		have := 0
		for _, rows := range nodes {
			if rows[w.Keyspace][w.Key] >= w.at {
				have++
			}
		}
		for _, p := range n.readersOf(w) {
			k, found := p.schema[w.Keyspace]
			if found && have < max(1, blockFor(k.replication, w.Level, w.Datacenter)-without) {
				out = append(out, fmt.Sprintf("%s.%s=%s, written at %s: %d nodes have it", w.Keyspace, w.Key, w.Value,
					w.Level.CQL(), have))
				break
			}
		}
	}
	return out
}

// Snapshots are the keyspaces by the tags of their snapshots.
func (d *Disk) Snapshots() map[string][]string { return d.snapshots }

// Lasts says that Cassandra does not delete a snapshot by itself.
func (d *Disk) Lasts(tag string) bool { return slices.Contains(d.lasting, tag) }
