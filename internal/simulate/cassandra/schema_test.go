package cassandra

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/ring"
)

// cql does statements through one node in a task.
func (l *lab) cql(p *Process, f func(ctx context.Context, s *Session) error) error {
	var err error
	l.do("statements", func() {
		var s *Session
		if s, err = p.CQL(context.Background()); err == nil {
			err = f(context.Background(), s)
		}
	})
	return err
}

func TestSystemKeyspacesAreAlteredOnceAndEverywhere(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	wanted := map[string]map[string]int{}
	for _, name := range ring.SystemKeyspaces() {
		wanted[name] = map[string]int{"dc1": 3}
	}
	for i, want := range []int{3, 0} {
		if err := l.cql(p[i], func(ctx context.Context, s *Session) error {
			altered, err := s.RaiseReplication(ctx, wanted)
			if len(altered) != want {
				t.Errorf("time %d: altered %v", i+1, altered)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	for _, x := range p {
		schema, err := nodeview.New(l.client(x)).Schema(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range schema.Keyspaces {
			if !k.Replication.Equal(cassandra.PerDatacenter(map[string]int{"dc1": 3})) {
				t.Errorf("%s: keyspace %s is %s", x.Address(), k.Name, k.Replication)
			}
		}
	}
}

func TestCQLIsRefusedWhileItIsClosed(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(1)
	if err := nodeview.New(l.client(p[0])).StopNativeTransport(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := l.cql(p[0], func(context.Context, *Session) error { return nil }); !errors.Is(err, ErrNoCQL) {
		t.Errorf("error %v", err)
	}
	if err := p[0].Write("system_auth", "a", "b", "One"); !errors.Is(err, ErrNoCQL) {
		t.Errorf("error %v", err)
	}
}

func TestTheSmallestGCGraceIsThatOfAReplicatedTableOfUsers(t *testing.T) {
	l := newLab(t, 1)
	_, p := l.form(3)
	if err := l.cql(p[0], func(ctx context.Context, s *Session) error {
		if tables, grace, err := s.Tables(ctx); err != nil || grace != 0 || len(tables) > 0 {
			t.Errorf("without tables: %v, grace %s, error %v", tables, grace, err)
		}
		return errors.Join(s.CreateKeyspace(ctx, "shop", map[string]int{"dc1": 3}),
			s.CreateKeyspace(ctx, "scratch", map[string]int{"dc1": 1}),
			s.CreateTable(ctx, "shop", "orders", 240*time.Hour), s.CreateTable(ctx, "shop", "carts", time.Hour),
			s.CreateTable(ctx, "scratch", "t", time.Minute),
			s.AwaitAgreement(ctx))
	}); err != nil {
		t.Fatal(err)
	}
	if err := l.cql(p[2], func(ctx context.Context, s *Session) error {
		tables, grace, err := s.Tables(ctx)
		var names []string
		for _, t := range tables {
			names = append(names, t.Keyspace+"."+t.Name)
		}
		if grace != time.Hour || !slices.Equal(names, []string{"scratch.t", "shop.carts", "shop.orders"}) ||
			len(tables[0].ID) != 36 {
			t.Errorf("grace %s, tables %+v", grace, tables)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestANodeThatWasAwayFetchesTheSchema at its start, and one that was cut off within about a
// minute.
func TestANodeThatWasAwayFetchesTheSchema(t *testing.T) {
	l := newLab(t, 1)
	nodes, p := l.form(3)
	p[2].Kill()
	l.line.RunFor(30 * time.Second)
	l.keyspace(p[0], "one", map[string]int{"dc1": 3})
	p[2] = l.start(nodes[2])
	l.awaitFormed(p...)
	if _, found := p[2].schema["one"]; !found {
		t.Error("it has not fetched it")
	}
	l.line.RunFor(2 * time.Minute)
	l.net.Isolate(address(3))
	l.line.RunFor(30 * time.Second)
	l.keyspace(p[0], "two", map[string]int{"dc1": 3})
	if versions, err := nodeview.New(l.client(p[0])).SchemaVersions(context.Background()); err != nil ||
		!versions.Agree() || len(versions.Unreachable) != 1 {
		t.Errorf("versions %s, error %v", versions, err)
	}
	l.net.Heal(address(3))
	l.line.RunFor(10 * time.Second)
	if versions, err := nodeview.New(l.client(p[0])).SchemaVersions(context.Background()); err != nil ||
		versions.Agree() {
		t.Errorf("soon after: versions %s, error %v", versions, err)
	}
	l.await("one schema", 2*time.Minute, func() bool {
		return p[2].schemaVersion() == p[0].schemaVersion() && p[1].schemaVersion() == p[0].schemaVersion()
	})
}

func TestReleasesOfTwoLinesHaveTwoSchemaVersions(t *testing.T) {
	l := newLab(t, 1)
	l.setRelease("4.1.10")
	nodes, p := l.form(3)
	before := p[0].schemaVersion()
	p[2].Terminate()
	l.await("its end", time.Minute, p[2].Ended)
	l.setRelease("5.0.6")
	p[2] = l.start(nodes[2])
	l.await("its service", time.Minute, p[2].NativeOpen)
	l.line.RunFor(2 * time.Minute)
	if p[0].schemaVersion() != before || p[2].schemaVersion() == before {
		t.Errorf("versions %s, %s; before %s", p[0].schemaVersion(), p[2].schemaVersion(), before)
	}
}
