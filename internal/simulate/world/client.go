package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/cassandra"
)

// Keyspace of the client, with a copy of every row in each rack as far as there are three.
const Keyspace = "orders"

// agreement is longer than a ring takes to agree on its schema.
const agreement = 5 * time.Second

// ErrUnserved says that no write of a client was taken.
var ErrUnserved = errors.New("no write of the client was taken")

// serving are the JVMs that opened client traffic.
func (w *World) serving() []*cassandra.Process {
	var out []*cassandra.Process
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) && j.NativeOpen() {
			out = append(out, j)
		}
	}
	return out
}

// WriteRows has a client write rows at QUORUM, through one node after the other. The first time it
// makes its Keyspace.
func (w *World) WriteRows(rows int, replicas map[string]int) error {
	nodes := w.serving()
	if len(nodes) == 0 {
		return fmt.Errorf("%w: no node serves clients", ErrUnserved)
	}
	if !w.tabled {
		session, err := nodes[0].CQL(context.Background())
		if err != nil {
			return err
		}
		if err := session.CreateKeyspace(context.Background(), Keyspace, replicas); err != nil {
			return err
		}
		if err := session.CreateTable(context.Background(), Keyspace, "rows", 0); err != nil {
			return err
		}
		w.tabled = true
		w.Line.RunFor(agreement)
	}
	if w.write("row", rows) == 0 {
		return fmt.Errorf("%w: none was acknowledged", ErrUnserved)
	}
	return nil
}

// write returns how many rows were acknowledged. A write that is refused or not acknowledged is the
// client's to repeat: it is not on the account.
func (w *World) write(name string, rows int) int {
	acknowledged := 0
	for i := range rows {
		now := w.serving()
		if len(now) == 0 {
			break
		}
		if now[i%len(now)].Write(Keyspace, fmt.Sprintf("%s-%d", name, i), w.Line.Now().String(), ring.Quorum) == nil {
			acknowledged++
		}
	}
	return acknowledged
}

// WriteWithin has a client write rows at LOCAL_QUORUM through the nodes of a datacenter, by its
// name in Cassandra, and returns how many were acknowledged.
func (w *World) WriteWithin(datacenter, name string, rows int) int {
	nodes := slices.DeleteFunc(w.serving(), func(j *cassandra.Process) bool { return j.Datacenter() != datacenter })
	acknowledged := 0
	for i := range rows {
		if len(nodes) > 0 && nodes[i%len(nodes)].Write(Keyspace, fmt.Sprintf("%s-%d", name, i), w.Line.Now().String(),
			ring.LocalQuorum) == nil {
			acknowledged++
		}
	}
	return acknowledged
}

// Probe has a client write rows through every node that lets it in, at LOCAL_QUORUM, and says how
// many writes of how many were acknowledged. Where the ring has no keyspace of the client there are
// none.
func (w *World) Probe() (acknowledged, asked int) {
	const rows, level = 32, ring.LocalQuorum // a part of each node's tokens
	for i := range rows {
		for _, coordinator := range w.serving() {
			name := fmt.Sprintf("probe-%d", i)
			if !coordinator.HasLocal(Keyspace) {
				continue
			}
			asked++
			if coordinator.Write(Keyspace, name, w.Line.Now().String(), level) == nil {
				acknowledged++
			}
		}
	}
	return acknowledged, asked
}

// RefusedAt names a row that a node refuses to a client at LOCAL_QUORUM although others of its
// datacenter serve it; empty if there is none.
func (w *World) RefusedAt(coordinator *cassandra.Process) string {
	// asked is how long before it opens a node may have asked whom others see up: an agent that
	// does not answer takes 2 s, and gossip settles in another.
	const rows, level, asked = 32, ring.LocalQuorum, 4 * time.Second
	for i := range rows {
		name := fmt.Sprintf("probe-%d", i)
		if coordinator.Unavailable(Keyspace, name, level) && slices.ContainsFunc(w.serving(),
			func(other *cassandra.Process) bool {
				return other != coordinator && other.Datacenter() == coordinator.Datacenter() &&
					other.Serves(Keyspace, name, level, asked)
			}) {
			return name
		}
	}
	return ""
}

// meanwhile begins the names of the rows of WriteOn.
const meanwhile = "meanwhile"

// WriteOn has the client write two rows every five seconds, so many times, where it is served and
// as long as nobody deletes a cluster. It does nothing before WriteRows.
func (w *World) WriteOn(rounds int) {
	const rows, pause = 2, 5 * time.Second
	if rounds == 0 || !w.tabled {
		return
	}
	w.Line.After(pause, "a client writes", func() {
		for _, c := range w.Server.Objects("CassandraCluster") {
			if c.GetDeletionTimestamp() == nil {
				w.write(meanwhile, rows)
				w.WriteOn(rounds - 1)
			}
		}
	})
}

// Audit names every write of the client that was acknowledged and that a reader may miss. What
// WriteOn wrote does not count where a host was lost: a node syncs its commit log every ten
// seconds, and a write that was taken while one replica was down is on no more than two.
func (w *World) Audit() []string { return w.missed(w.Network.Audit()) }

// AuditWithin is Audit for a reader in one datacenter of a cluster, at LOCAL_QUORUM.
func (w *World) AuditWithin(cluster, datacenter string) []string {
	return w.missed(w.Network.AuditWithin(cluster, datacenter))
}

func (w *World) missed(all []cassandra.Lost) []string {
	crashed := slices.ContainsFunc(w.Kube.Hosts(), w.Kube.WasLost)
	var out []string
	for _, lost := range all {
		if !crashed || !strings.HasPrefix(lost.Key, meanwhile) {
			out = append(out, lost.String())
		}
	}
	return out
}
