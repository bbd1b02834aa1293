package cassandra

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"helenus.io/helenus/internal/core/ring"
)

// Lost is an acknowledged write that a client may miss now.
type Lost struct {
	Written
	// Coordinator whose readers may miss it; the zero value if no member gossips, and no disk has
	// it.
	Coordinator netip.Addr
	// With and Without are the replicas, by that coordinator's view, that hold it and that do not.
	// A deletion is held by those that still know of it.
	With, Without []netip.Addr
}

// String says what is lost for whom.
func (l Lost) String() string {
	if !l.Coordinator.IsValid() {
		return fmt.Sprintf("%s.%s=%s, written at %s: no disk has it", l.Keyspace, l.Key, l.Value, l.Level.CQL())
	}
	list := func(addresses []netip.Addr) string {
		texts := make([]string, len(addresses))
		for i, a := range addresses {
			texts[i] = a.String()
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	if l.Deleted {
		return fmt.Sprintf("%s.%s, deleted at %s: by the view of %s the replicas %s know of the deletion, %s do not, "+
			"and the row is back",
			l.Keyspace, l.Key, l.Level.CQL(), l.Coordinator, list(l.With), list(l.Without))
	}
	return fmt.Sprintf("%s.%s=%s, written at %s: by the view of %s the replicas %s have it and %s do not",
		l.Keyspace, l.Key, l.Value, l.Level.CQL(), l.Coordinator, list(l.With), list(l.Without))
}

// Forget ends the account of a cluster's writes: it was deleted, or starts over.
func (n *Network) Forget(cluster string) {
	n.writes = slices.DeleteFunc(n.writes, func(w *Written) bool { return w.Cluster == cluster })
}

// Audit returns every acknowledged write that a read may miss which, together with the level of the
// write, asks more replicas than there are: for a write at QUORUM a read at QUORUM, for one at ONE
// a read at ALL, for one at ALL a read at ONE. It asks by the view of every member that gossips; a
// replica that is down counts by its disk. A later write to the same key stands in for an earlier
// one. A deletion is missed where a read may ask replicas of which none knows of it and one has the
// row; what is on the disk of a node that is down is in no answer.
func (n *Network) Audit() []Lost {
	var lost []Lost
	for _, w := range n.latest() {
		if w.Deleted {
			lost = append(lost, n.auditDeletion(w)...)
			continue
		}
		for _, inherited := range n.inherited(w) {
			lost = append(lost, n.auditWrite(inherited)...)
		}
	}
	return lost
}

// inherited is a write as it has to be readable: one within a datacenter in which its keyspace has
// no replicas any more, at LOCAL_QUORUM in every other one that has some.
func (n *Network) inherited(w *Written) []*Written {
	var out []*Written
	heirs := map[string]bool{}
	for _, p := range n.running {
		k, found := p.schema[w.Keyspace]
		if !found || p.settings.clusterName != w.Cluster || !p.joined || !p.gossips() {
			continue
		}
		if !w.local() || factorIn(k.replication, w.Datacenter) > 0 {
			return []*Written{w}
		}
		if dc := p.settings.datacenter; factorIn(k.replication, dc) > 0 && !heirs[dc] {
			within := *w
			within.Level, within.Datacenter, heirs[dc] = ring.LocalQuorum, dc, true
			out = append(out, &within)
		}
	}
	if len(out) == 0 {
		return []*Written{w}
	}
	return out
}

// AuditWithin returns every acknowledged write of a cluster that a read at LOCAL_QUORUM may miss in
// one of its datacenters, by the view of every member there that gossips. A replica that is down
// counts by its disk. Deletions are not asked for.
func (n *Network) AuditWithin(cluster, datacenter string) []Lost {
	var lost []Lost
	for _, w := range n.latest() {
		if w.Cluster != cluster || w.Deleted {
			continue
		}
		within := *w
		within.Level, within.Datacenter = ring.LocalQuorum, datacenter
		for _, l := range n.auditWrite(&within) {
			l.Level, l.Datacenter = w.Level, w.Datacenter
			lost = append(lost, l)
		}
	}
	return lost
}

// latest are the acknowledged writes without those that a later one to the same key stands in for,
// in the order of the first to each key.
func (n *Network) latest() []*Written {
	type row struct{ cluster, keyspace, key string }
	at := map[row]int{}
	var out []*Written
	for _, w := range n.writes {
		r := row{w.Cluster, w.Keyspace, w.Key}
		if i, known := at[r]; known {
			out[i] = w
			continue
		}
		at[r] = len(out)
		out = append(out, w)
	}
	return out
}

func (n *Network) auditWrite(w *Written) []Lost {
	var lost []Lost
	asked := false
	for _, p := range n.readersOf(w) {
		asked = true
		k, found := p.schema[w.Keyspace]
		if !found {
			lost = append(lost, Lost{Written: *w, Coordinator: p.address})
			continue
		}
		l := Lost{Written: *w, Coordinator: p.address}
		counted := p.counted(w.Level)
		for _, a := range p.natural(k.replication, tokenOf(w.Key)) {
			if !counted(a) {
				continue
			}
			if d := n.diskOf(p, a); d != nil && d.data[w.Keyspace][w.Key].at >= w.at {
				l.With = append(l.With, a)
			} else {
				l.Without = append(l.Without, a)
			}
		}
		if len(l.Without) >= w.read(k) || len(l.With) == 0 {
			lost = append(lost, l)
		}
	}
	if !asked && !slices.ContainsFunc(n.disks, func(d *Disk) bool { return d.data[w.Keyspace][w.Key].at >= w.at }) {
		lost = append(lost, Lost{Written: *w})
	}
	return lost
}

// auditDeletion is auditWrite for a deletion.
func (n *Network) auditDeletion(w *Written) []Lost {
	var lost []Lost
	for _, p := range n.readersOf(w) {
		k, found := p.schema[w.Keyspace]
		if !found {
			continue
		}
		l, back := Lost{Written: *w, Coordinator: p.address}, false
		counted := p.counted(w.Level)
		for _, a := range p.natural(k.replication, tokenOf(w.Key)) {
			other := n.byAddress[a]
			if !counted(a) || other == nil {
				continue
			}
			c := other.disk.data[w.Keyspace][w.Key]
			if c.at >= w.at {
				l.With = append(l.With, a)
				continue
			}
			l.Without, back = append(l.Without, a), back || c.row()
		}
		if back && len(l.Without) >= w.read(k) {
			lost = append(lost, l)
		}
	}
	return lost
}

// readersOf a write are the members through which it has to be readable.
func (n *Network) readersOf(w *Written) []*Process {
	return slices.DeleteFunc(slices.Clone(n.running), func(p *Process) bool {
		return p.settings.clusterName != w.Cluster || !p.joined || !p.gossips() ||
			w.local() && p.settings.datacenter != w.Datacenter
	})
}

func (w *Written) local() bool { return w.Level == ring.LocalOne || w.Level == ring.LocalQuorum }

// read is how many replicas a read has to ask that must not miss it.
func (w *Written) read(k keyspace) int {
	factor := k.replication.TotalFactor()
	if w.local() {
		factor = factorIn(k.replication, w.Datacenter)
	}
	return max(factor-blockFor(k.replication, w.Level, w.Datacenter)+1, 1)
}

// diskOf is the disk behind an endpoint: that of the process which answers there, else that of the
// host id which the coordinator knows.
func (n *Network) diskOf(p *Process, a netip.Addr) *Disk {
	if other := n.byAddress[a]; other != nil {
		return other.disk
	}
	host := p.metadata.hosts[a]
	for _, d := range n.disks {
		if host != "" && d.HostID() == host {
			return d
		}
	}
	return nil
}
