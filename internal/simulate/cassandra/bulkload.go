package cassandra

import (
	"encoding/json"
	"maps"
	"math/bits"
	"net/netip"
	"path"
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ring"
)

// Stage puts a file beside the data that no JVM reads by itself; Staged reads one, StagedIn names
// those in a directory, and Unstage removes them.
func (d *Disk) Stage(name string, content []byte) { d.staged[name] = content }

// Staged is nil if there is no such file.
func (d *Disk) Staged(name string) []byte { return d.staged[name] }

// StagedIn names files in order.
func (d *Disk) StagedIn(dir string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.staged)),
		func(name string) bool { return !strings.HasPrefix(name, dir+"/") })
}

// Unstage removes what is in a directory.
func (d *Disk) Unstage(dir string) {
	for _, name := range d.StagedIn(dir) {
		delete(d.staged, name)
	}
}

// bulkLoad streams the rows in a directory to all that own them. It fails if one of them cannot be
// reached at either end of it, and passes over a keyspace that is not there.
func (p *Process) bulkLoad(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	directory, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	dir := strings.TrimPrefix(directory, layout.DataDir+"/")
	name := path.Base(path.Dir(dir))
	k, found := p.schema[name]
	if !found {
		return jsonNull, nil
	}
	type row struct {
		key    string
		cell   cell
		owners []netip.Addr
	}
	var rows []row
	for _, file := range p.disk.StagedIn(dir) {
		var s saved
		if err := json.Unmarshal(p.disk.Staged(file), &s); err != nil {
			return nil, exception("java.io.IOException", "%s: %s", file, err)
		}
		for _, key := range slices.Sorted(maps.Keys(s.Rows)) {
			rows = append(rows, row{key, cell{value: s.Rows[key].Value, at: s.Rows[key].At},
				p.natural(k.replication, tokenOf(key))})
		}
	}
	to := map[netip.Addr]*Process{}
	for _, r := range rows {
		for _, a := range r.owners {
			to[a] = p.net.byAddress[a]
		}
	}
	unreachable := func() bool {
		for a, other := range to {
			if other == nil || other != p.net.byAddress[a] || !p.reaches(other) {
				return true
			}
		}
		return false
	}
	fails := unreachable()
	p.sleep(p.net.options.StreamTime)
	if fails || unreachable() {
		return nil, exception("java.lang.RuntimeException", "Stream failed")
	}
	for _, r := range rows {
		for _, a := range r.owners {
			to[a].disk.putStreamed(name, r.key, r.cell)
		}
	}
	return jsonNull, nil
}

// putReplication takes in an SSTable of system_schema.keyspaces with one row, as the agent writes
// it: a key that is not deleted, and the replication as a map.
func (d *Disk) putReplication(data []byte) {
	take := func(n int) []byte {
		out := data[:n]
		data = data[n:]
		return out
	}
	number := func(size int) (n int) {
		for _, b := range take(size) {
			n = n<<8 | int(b)
		}
		return n
	}
	skip := func() { take(bits.LeadingZeros8(^take(1)[0])) } // a number of any size
	name := string(take(number(2)))
	take(4 + 8 + 1)
	skip() // the size of the row, then that of what is before it, then its time
	skip()
	take(9 + 1)
	skip()
	options := map[string]string{}
	for range number(4) {
		option := string(take(number(4)))
		options[option] = string(take(number(4)))
	}
	class := options["class"]
	delete(options, "class")
	replication, err := ring.OfOptions(class, options)
	if k, had := d.schema[name]; had && err == nil {
		k.replication = replication
		d.schema[name] = k
	}
}
