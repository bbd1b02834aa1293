package cassandra

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// truncateTimeout is truncate_request_timeout: for how long a request is delivered, and awaited.
const truncateTimeout = time.Minute

// truncate removes all rows of the one table that a keyspace has here, from all members: each does
// so when the request comes to it, whatever has become of who sent it
// (StorageProxy#truncateBlocking, 4.1 and 5.0).
func (p *Process) truncate(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	name, _, failed := p.keyspaceOf(arguments, 0)
	if failed != nil {
		return nil, failed
	}
	members := slices.SortedFunc(maps.Keys(p.metadata.hosts), netip.Addr.Compare)
	if slices.ContainsFunc(members, func(a netip.Addr) bool { return !p.isAlive(a) }) {
		return nil, exception("org.apache.cassandra.exceptions.UnavailableException",
			"Cannot achieve consistency level ALL")
	}
	asked, answered := p.line.Now(), 0
	for _, a := range members {
		other := p.net.byAddress[a]
		if other == nil || !p.net.linked(p.address, a) {
			continue
		}
		var deliver func()
		deliver = func() {
			switch {
			case other.ended || p.line.Now().Sub(asked) > truncateTimeout:
			case other.frozen:
				p.line.After(time.Second, "truncation", deliver)
			default:
				p.net.truncateAt(other, name)
				answered++
				p.notify()
			}
		}
		p.line.After(p.net.within(time.Millisecond, 500*time.Millisecond), "truncation", deliver)
	}
	if !p.await(neverEnds, func() bool { return answered == len(members) }, truncateTimeout) {
		return nil, exception("org.apache.cassandra.exceptions.TruncateException",
			"Truncate timed out - received only %d responses", answered)
	}
	return jsonNull, nil
}

// truncateAt removes all rows of a keyspace from a member, with the hints for it. What was written
// before, and is in no backup, is not missed.
func (n *Network) truncateAt(p *Process, keyspace string) {
	delete(p.disk.data, keyspace)
	p.disk.recent = slices.DeleteFunc(p.disk.recent, func(w recentWrite) bool { return w.keyspace == keyspace })
	host := p.disk.HostID()
	for _, d := range n.disks {
		d.hints[host] = slices.DeleteFunc(d.hints[host], func(h hint) bool { return h.keyspace == keyspace })
		if len(d.hints[host]) == 0 {
			delete(d.hints, host)
		}
	}
	n.writes = slices.DeleteFunc(n.writes, func(w *Written) bool {
		return w.Cluster == p.settings.clusterName && w.Keyspace == keyspace && w.at > n.backedUp
	})
	p.loadChanges()
}

// BackedUp says that what was written up to now comes back after a truncation.
func (n *Network) BackedUp() {
	n.written = max(n.written+1, n.line.Now().UnixMicro()) // what is written next is later
	n.backedUp = n.written
}

// Truncate does what a user does who truncates a table by mistake.
func (n *Network) Truncate(keyspace string) {
	for _, p := range n.running {
		n.truncateAt(p, keyspace)
	}
}

// Outdated says that what was written up to now, and is in no backup, is to go.
func (n *Network) Outdated() { n.outdated = n.written }

// OutdatedIn names the rows on the disk of a JVM that are to go.
func (p *Process) OutdatedIn(keyspace string) []string {
	return slices.DeleteFunc(p.disk.keys(keyspace), func(key string) bool {
		at := p.disk.data[keyspace][key].at
		return at <= p.net.backedUp || at > p.net.outdated
	})
}

// Describe is execute.JVM.Describe.
func (p *Process) Describe(keyspace string) (string, error) {
	if !p.NativeOpen() {
		return "", ErrNoCQL
	}
	var out strings.Builder
	for _, table := range slices.Sorted(maps.Keys(p.schema[keyspace].tables)) {
		out.WriteString(CreateTable(keyspace, table))
	}
	return out.String(), nil
}

// CreateTable is the statement that creates a table.
func CreateTable(keyspace, table string) string {
	return fmt.Sprintf("CREATE TABLE %s.%s (\n    key text PRIMARY KEY,\n    value text\n);\n", keyspace, table)
}
