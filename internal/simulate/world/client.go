package world

import (
	"context"
	"errors"
	"fmt"
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

// serving are the JVMs that let clients in.
func (w *World) serving() []*cassandra.Process {
	var out []*cassandra.Process
	for _, s := range w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) && j.NativeOpen() {
			out = append(out, j)
		}
	}
	return out
}

// WriteRows has a client write rows at QUORUM, through one node after the other. The first time it makes its Keyspace.
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
	written := 0
	for i := range rows {
		now := w.serving()
		if len(now) == 0 {
			break
		}
		// A write that is refused or not acknowledged is the client's to repeat: it is not on the account.
		if now[i%len(now)].Write(Keyspace, fmt.Sprintf("row-%d", i), w.Line.Now().String(), ring.Quorum) == nil {
			written++
		}
	}
	if written == 0 {
		return fmt.Errorf("%w: none was acknowledged", ErrUnserved)
	}
	return nil
}

// Audit names every write of the client that was acknowledged and that a reader may miss.
func (w *World) Audit() []string {
	var out []string
	for _, lost := range w.Network.Audit() {
		out = append(out, lost.String())
	}
	return out
}
