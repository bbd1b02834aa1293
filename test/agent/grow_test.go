//go:build cassandra

package agent

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// shop is a client that writes to the first node all the while, at a keyspace with one replica:
// what a join loses is lost.
type shop struct {
	t       *testing.T
	session *gocql.Session
	end     context.CancelFunc
	over    chan struct{}

	mu       sync.Mutex
	written  []int
	refused  int
	lastFail error
}

func openShop(t *testing.T, address string) *shop {
	t.Helper()
	c := gocql.NewCluster(address)
	c.Consistency, c.Timeout, c.ConnectTimeout = gocql.One, 2*time.Second, 5*time.Second
	c.DisableInitialHostLookup, c.NumConns = true, 2
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, session: session, over: make(chan struct{})}
	for _, statement := range []string{
		`CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
		`CREATE TABLE shop.rows (k int PRIMARY KEY, v text)`,
	} {
		if err := session.Query(statement).Exec(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	go s.write(ctx)
	return s
}

// write writes fifty rows a second, in an open loop; what is not acknowledged is on no account.
func (s *shop) write(ctx context.Context) {
	defer close(s.over)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for k := 0; ; k++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.session.Query(`INSERT INTO shop.rows (k, v) VALUES (?, ?)`, k, fmt.Sprint(k)).ExecContext(ctx)
		s.mu.Lock()
		if err == nil {
			s.written = append(s.written, k)
		} else {
			s.refused, s.lastFail = s.refused+1, err
		}
		s.mu.Unlock()
	}
}

// close ends the writing and reads everything that was acknowledged.
func (s *shop) close(what string) {
	s.t.Helper()
	s.end()
	<-s.over
	lost := 0
	for _, k := range s.written {
		var v string
		if err := s.session.Query(`SELECT v FROM shop.rows WHERE k = ?`, k).Scan(&v); err != nil || v != fmt.Sprint(k) {
			if lost++; lost < 4 {
				s.t.Errorf("%s: row %d is %q, error %v", what, k, v, err)
			}
		}
	}
	s.t.Logf("%s: %d rows were acknowledged, %d lost, %d refused (last: %v)", what, len(s.written), lost, s.refused,
		s.lastFail)
}

func (w *world) operate(t *testing.T, p *pod, id string, o v1alpha1.OperationType,
	arguments *v1alpha1.OperationArguments) *v1alpha1.OperationStatus {
	t.Helper()
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}, Type: o, Arguments: arguments}}
	})
	r := w.await(p.name, "operation "+id, 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
		s := r.Status.Operation(id)
		return s != nil && s.Phase.Final()
	})
	s := r.Status.Operation(id)
	t.Logf("%s %s: %s", o, s.Phase, s.Message)
	return s
}

// TestGrow has a ring of one node, which serves a client all the while, grow to three; one join is
// cut off in the middle.
func TestGrow(t *testing.T) {
	w := newWorld(t)
	var pods []*pod
	for i := range 3 {
		pods = append(pods, w.newPod(i))
	}
	w.setSeeds(pods[0].address)
	for _, p := range pods {
		p.start()
	}
	w.awaitEmpty(pods...)
	invite := func(i int) {
		w.change(pods[i].name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: fmt.Sprintf("grow/%d", i)},
				Mode: v1alpha1.JoinBootstrap, Tokens: tokens(i)}
		})
	}
	w.part("form", func(*testing.T) { w.form(pods[0]) })
	client := openShop(t, netip.AddrPortFrom(netip.MustParseAddr(pods[0].address), 9042).String())
	w.part("join", func(t *testing.T) {
		began := time.Now()
		invite(1)
		for pending := 0; pending == 0; {
			if time.Since(began) > 3*time.Minute {
				t.Fatal("the first node never saw a range on its way")
			}
			pending = pods[0].ask(t).Ring.Pending
		}
		o := v1alpha1.OperationIntent{Intent: v1alpha1.Intent{ID: "early"}, Type: v1alpha1.OperationCleanup}
		w.change(pods[0].name, func(s *v1alpha1.CassandraNodeSpec) { s.Operations = []v1alpha1.OperationIntent{o} })
		w.await(pods[0].name, "no cleanup while ranges move", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Blocked != nil && r.Status.Blocked.Reason == "PendingRanges"
		})
		w.member(pods[1], 4*time.Minute)
		t.Logf("the join took %.1f s", time.Since(began).Seconds())
		w.await(pods[0].name, "cleaned up in the end", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			s := r.Status.Operation("early")
			return s != nil && s.Phase == v1alpha1.OperationSucceeded
		})
	})
	w.part("a join that is cut off", func(t *testing.T) {
		began := time.Now()
		invite(2)
		w.await(pods[2].name, "JOINING", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return strings.Contains(r.Status.Message, string(facts.ModeJoining))
		})
		// Its first word was heard, and writes of its ranges are sent to it.
		for a := pods[0].ask(t); a.Ring.Pending == 0; a = pods[0].ask(t) {
			if time.Since(began) > 3*time.Minute {
				t.Fatal("the first node never saw a range on its way")
			}
		}
		pods[2].kill(pods[2].jvm(), syscall.SIGKILL)
		r := w.await(pods[2].name, "held back", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return strings.Contains(r.Status.Message, "goes on by the same ticket")
		})
		t.Logf("says: %s", r.Status.Message)
		hostID := r.Status.HostID
		w.member(pods[2], 6*time.Minute)
		t.Logf("the join took %.1f s", time.Since(began).Seconds())
		if r := w.record(pods[2].name); hostID == "" || r.Status.HostID != hostID || r.Status.Restarts == nil ||
			r.Status.Restarts.Count != 1 {
			t.Errorf("host id %s, then %s; restarts %+v", hostID, r.Status.HostID, r.Status.Restarts)
		}
	})
	w.part("every node sees three members and nothing on its way", func(t *testing.T) {
		for i, p := range pods {
			a := p.ask(t)
			if len(a.Ring.Endpoints) != 3 || a.Ring.Pending != 0 || a.Ring.Streaming || a.Space == nil ||
				a.Space.Free <= 0 || a.Space.Free > a.Space.Capacity {
				t.Errorf("%s answers %+v, space %+v", p.name, a.Ring, a.Space)
			}
			if got := w.record(p.name).Status.Tokens; strings.Join(got, ",") != strings.Join(tokens(i), ",") {
				t.Errorf("%s has the tokens %v", p.name, got)
			}
		}
	})
	w.part("operations", func(t *testing.T) {
		want := func(o *v1alpha1.OperationStatus, phase v1alpha1.OperationPhase, words string) {
			t.Helper()
			if o.Phase != phase || !strings.Contains(o.Message, words) {
				t.Errorf("operation %+v, want %s with %q", o, phase, words)
			}
		}
		one, three := map[string]int32{"dc1": 1}, map[string]int32{"dc1": 3}
		want(w.operate(t, pods[0], "auth", v1alpha1.OperationAlterSystemKeyspaces,
			&v1alpha1.OperationArguments{Replication: three}), v1alpha1.OperationSucceeded, "altered system_auth")
		want(w.operate(t, pods[1], "lower", v1alpha1.OperationAlterSystemKeyspaces,
			&v1alpha1.OperationArguments{Replication: one}), v1alpha1.OperationSucceeded, "nothing had to be altered")
		want(w.operate(t, pods[0], "repair", v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Keyspaces: []string{"system_auth"}, Full: true}), v1alpha1.OperationSucceeded,
			"repaired system_auth")
		want(w.operate(t, pods[0], "nothing", v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Keyspaces: []string{"shop"}, Full: true}), v1alpha1.OperationFailed,
			"one replica")
		for _, p := range pods {
			want(w.operate(t, p, "cleanup", v1alpha1.OperationCleanup, nil), v1alpha1.OperationSucceeded, "shop")
		}
		more := []v1alpha1.KeyspaceReplication{{Keyspace: "shop", Replication: map[string]int32{"dc1": 2}}}
		want(w.operate(t, pods[2], "more", v1alpha1.OperationAlterKeyspaces,
			&v1alpha1.OperationArguments{KeyspaceReplication: more}), v1alpha1.OperationSucceeded, "altered shop")
		for i, p := range pods {
			want(w.operate(t, p, fmt.Sprintf("repair-%d", i), v1alpha1.OperationRepair,
				&v1alpha1.OperationArguments{Keyspaces: []string{"shop"}, Full: true}), v1alpha1.OperationSucceeded,
				"repaired shop")
		}
		want(w.operate(t, pods[1], "rebuild", v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc1", Keyspaces: []string{"shop"}}),
			v1alpha1.OperationSucceeded, "rebuilt shop")
		want(w.operate(t, pods[1], "nowhere", v1alpha1.OperationRebuild,
			&v1alpha1.OperationArguments{SourceDatacenter: "dc9"}), v1alpha1.OperationFailed, "dc9")
		strange := []v1alpha1.KeyspaceReplication{{Keyspace: "shop", Replication: map[string]int32{"dc9": 1}}}
		want(w.operate(t, pods[1], "strange", v1alpha1.OperationAlterKeyspaces,
			&v1alpha1.OperationArguments{KeyspaceReplication: strange}), v1alpha1.OperationFailed, "dc9")
	})
	client.close("after it all")
}
