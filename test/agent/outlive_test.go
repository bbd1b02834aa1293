//go:build cassandra

package agent

import (
	"crypto/rand"
	"fmt"
	"math"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// mebibytes that are written to a keyspace, in rows of 16 KiB that cannot be compressed. At the
// speed that the nodes are given an operation on them takes some ten seconds.
const mebibytes = 24

// throttled has a node stream and compact 2 MiB a second.
func throttled(s *v1alpha1.CassandraNodeSpec) {
	s.Configuration.CassandraYaml = v1alpha1.Settings{}
	for _, name := range []string{"compaction_throughput", "stream_throughput_outbound",
		"entire_sstable_stream_throughput_outbound"} {
		s.Configuration.CassandraYaml[name] = v1alpha1.Value{Raw: []byte(`"2MiB/s"`)}
	}
}

// TestAnOperationOutlivesItsAgent: the agent is killed in the middle of a cleanup, of a rebuild and
// of a repair. The next one follows what runs, in the same JVM; of a rebuild, which says nothing of
// its end, it runs another one then. A rebuild whose JVM is killed fails, and the next one streams
// from zero, as does any that is asked for again.
func TestAnOperationOutlivesItsAgent(t *testing.T) {
	w := newWorld(t)
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address)
	for _, p := range pods {
		w.change(p.name, throttled)
		p.start()
	}
	w.awaitEmpty(pods...)
	w.part("form", func(*testing.T) { w.form(pods[0]) })
	session := fill(t, pods[0])
	w.part("join", func(*testing.T) {
		w.change(pods[1].name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "grow"}, Mode: v1alpha1.JoinBootstrap, Tokens: tokens(1)}
		})
		w.member(pods[1], 5*time.Minute)
	})
	rebuild := &v1alpha1.OperationArguments{SourceDatacenter: "dc1", Keyspaces: []string{"shop"}}
	w.part("cleanup", func(t *testing.T) {
		w.outlives(t, pods[0], "cleanup", v1alpha1.OperationCleanup, &v1alpha1.OperationArguments{Jobs: 2})
		if err := session.Query(`ALTER KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 2}`).
			Exec(); err != nil {
			t.Fatal(err)
		}
	})
	w.part("rebuild", func(t *testing.T) {
		before := pods[1].received(t)
		w.outlives(t, pods[1], "rebuild", v1alpha1.OperationRebuild, rebuild)
		first := pods[1].received(t) - before
		o := w.operate(t, pods[1], "rebuild-again", v1alpha1.OperationRebuild, rebuild)
		again := pods[1].received(t) - before - first
		t.Logf("%d MiB were received, and %d MiB again", first>>20, again>>20)
		if o.Phase != v1alpha1.OperationSucceeded || again < mebibytes/3<<20 {
			t.Errorf("%+v; %d bytes were received, then %d", o, first, again)
		}
	})
	w.part("rebuild, in a JVM that is killed", func(t *testing.T) {
		w.begin(pods[1], "rebuild-killed", v1alpha1.OperationRebuild, rebuild)
		pods[1].kill(pods[1].jvm(), syscall.SIGKILL)
		r := w.await(pods[1].name, "failed", time.Minute, ended("rebuild-killed"))
		if o := r.Status.Operation("rebuild-killed"); o.Phase == v1alpha1.OperationSucceeded {
			t.Errorf("%+v", o)
		}
		w.await(pods[1].name, "ready", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
		before := pods[1].received(t)
		o := w.operate(t, pods[1], "rebuild-after", v1alpha1.OperationRebuild, rebuild)
		if got := pods[1].received(t) - before; o.Phase != v1alpha1.OperationSucceeded || got < mebibytes/3<<20 {
			t.Errorf("%+v; %d bytes were received", o, got)
		}
	})
	w.part("repair of ranges", func(t *testing.T) { w.repairsRanges(t, pods, session) })
	w.part("repair", func(t *testing.T) {
		w.outlives(t, pods[0], "repair", v1alpha1.OperationRepair,
			&v1alpha1.OperationArguments{Keyspaces: []string{"shop"}, Full: true})
	})
	w.part("incremental repair", func(t *testing.T) { w.repairsIncrementally(t, pods) })
}

// repairsIncrementally: it marks the SSTables of all replicas as repaired, which no full repair has
// done.
func (w *world) repairsIncrementally(t *testing.T, pods []*pod) {
	t.Helper()
	for _, p := range pods {
		if marked, all := p.repaired(t); all == 0 || marked != 0 {
			t.Fatalf("%s: %d of %d SSTables are marked before", p.name, marked, all)
		}
	}
	o := w.operate(t, pods[0], "incremental", v1alpha1.OperationRepair,
		&v1alpha1.OperationArguments{Keyspaces: []string{"shop"}})
	if o.Phase != v1alpha1.OperationSucceeded {
		t.Fatalf("%+v", o)
	}
	for _, p := range pods { // Cassandra moves them to those that are repaired in the background
		marked, all := p.repaired(t)
		for limit := time.Now().Add(time.Minute); (all == 0 || marked != all) && time.Now().Before(limit); {
			<-time.After(time.Second)
			marked, all = p.repaired(t)
		}
		t.Logf("%s: %d of %d SSTables are marked", p.name, marked, all)
		if all == 0 || marked != all {
			t.Errorf("%s: %d of %d SSTables are marked", p.name, marked, all)
		}
	}
}

var repairedAt = regexp.MustCompile(`(?m)^Repaired at: (\d+)`)

// repaired are how many SSTables of the table a pod has that are marked as repaired, by Cassandra's
// own tool, and how many in all.
func (p *pod) repaired(t *testing.T) (marked, all int) {
	t.Helper()
	c := exec.Command("nsenter", "--target", strconv.Itoa(p.jvm()), "--mount", "--pid", "--root",
		"--setgid", "999", "--setuid", "999", "sh", "-c",
		"cd / && /opt/cassandra/tools/bin/sstablemetadata "+layout.DataDir+"/data/shop/rows-*/*-Data.db")
	c.Env = append([]string{"HOME=/tmp"}, p.w.imageEnv...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Logf("read SSTables: %v: %s", err, out) // one was compacted meanwhile
		return 0, 0
	}
	for _, m := range repairedAt.FindAllSubmatch(out, -1) {
		all++
		if string(m[1]) != "0" {
			marked++
		}
	}
	return marked, all
}

// repairsRanges: what a node has lost of some ranges comes back by a repair of these, and of no
// others. A range that no range of the node has is refused.
func (w *world) repairsRanges(t *testing.T, pods []*pod, session *gocql.Session) {
	t.Helper()
	arguments := func(ranges ...string) *v1alpha1.OperationArguments {
		return &v1alpha1.OperationArguments{Keyspaces: []string{"shop"}, Tables: []string{"rows"}, Full: true, Ranges: ranges}
	}
	ring := pods[0].ask(t).Ring
	var own []int64
	for _, e := range ring.Endpoints {
		own = append(own, e.Tokens...)
	}
	slices.Sort(own)
	before := pods[1].received(t)
	o := w.operate(t, pods[0], "ranges", v1alpha1.OperationRepair, arguments(
		fmt.Sprintf("%d:%d", own[0], own[0]+(own[1]-own[0])/2), fmt.Sprintf("%d:%d", own[1], own[2])))
	t.Logf("%d KiB were received", (pods[1].received(t)-before)>>10)
	if o.Phase != v1alpha1.OperationSucceeded {
		t.Errorf("%+v", o)
	}
	// across a token of the ring it lies in no range that a node holds
	o = w.operate(t, pods[0], "across", v1alpha1.OperationRepair, arguments(fmt.Sprintf("%d:%d", own[0]-1, own[1])))
	if o.Phase != v1alpha1.OperationFailed {
		t.Errorf("%+v", o)
	}
	// up to the end of the ring, and from there on
	o = w.operate(t, pods[0], "end", v1alpha1.OperationRepair, arguments(
		fmt.Sprintf("%d:%d", own[len(own)-1], int64(math.MaxInt64)),
		fmt.Sprintf("%d:%d", int64(math.MinInt64), own[0])))
	if o.Phase != v1alpha1.OperationSucceeded {
		t.Errorf("%+v", o)
	}
	w.outlives(t, pods[0], "long", v1alpha1.OperationRepair, arguments(fmt.Sprintf("%d:%d", own[0], own[1])))
}

func ended(id string) func(*v1alpha1.CassandraNode) bool {
	return func(r *v1alpha1.CassandraNode) bool {
		s := r.Status.Operation(id)
		return s != nil && s.Phase.Final()
	}
}

// begin asks for an operation and waits until it runs.
func (w *world) begin(p *pod, id string, o v1alpha1.OperationType, arguments *v1alpha1.OperationArguments) {
	w.t.Helper()
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: id}, Type: o, Arguments: arguments}}
	})
	w.await(p.name, id+" runs", time.Minute, func(r *v1alpha1.CassandraNode) bool {
		s := r.Status.Operation(id)
		return s != nil && s.Phase == v1alpha1.OperationRunning
	})
}

// outlives wants an operation to go on to its end while its agent is killed and started again.
func (w *world) outlives(t *testing.T, p *pod, id string, o v1alpha1.OperationType,
	arguments *v1alpha1.OperationArguments) {
	t.Helper()
	w.begin(p, id, o, arguments)
	jvm, began := p.jvm(), time.Now()
	p.kill(p.agent.Process.Pid, syscall.SIGKILL)
	_ = p.agent.Wait()
	s := w.record(p.name).Status.Operation(id)
	if s == nil || s.Phase.Final() {
		t.Fatalf("it was over before the agent was killed: %+v", s)
	}
	p.startAgent()
	done := w.await(p.name, id+" is over", 3*time.Minute, ended(id)).Status.Operation(id)
	t.Logf("%s after %.1f s: %s", done.Phase, time.Since(began).Seconds(), done.Message)
	if done.Phase != v1alpha1.OperationSucceeded || p.jvm() != jvm || !done.StartedAt.Equal(s.StartedAt) {
		t.Errorf("%+v, of what began at %s; JVM %d, then %d", done, s.StartedAt, jvm, p.jvm())
	}
}

// fill writes rows through a node to a keyspace with one replica.
func fill(t *testing.T, p *pod) *gocql.Session {
	t.Helper()
	c := gocql.NewCluster(netip.AddrPortFrom(netip.MustParseAddr(p.address), 9042).String())
	c.Consistency, c.Timeout, c.ConnectTimeout = gocql.One, 10*time.Second, 5*time.Second
	c.DisableInitialHostLookup = true
	session, err := c.CreateSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	for _, statement := range []string{
		`CREATE KEYSPACE shop WITH replication = {'class': 'NetworkTopologyStrategy', 'dc1': 1}`,
		`CREATE TABLE shop.rows (k int PRIMARY KEY, v blob)`,
	} {
		if err := session.Query(statement).Exec(); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for writer := range 8 {
		group.Go(func() {
			for k := writer; k < mebibytes<<6; k += 8 {
				v := make([]byte, 16<<10)
				_, _ = rand.Read(v) // it never fails
				if err := session.Query(`INSERT INTO shop.rows (k, v) VALUES (?, ?)`, k, v).Exec(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return session
}

var receivedBytes = regexp.MustCompile(`RX:[^\n]*\n\s*(\d+)`)

// received is how many bytes have come in over the network of a pod.
func (p *pod) received(t *testing.T) int64 {
	t.Helper()
	out, err := exec.Command("ip", "-n", p.netns, "-s", "link", "show", p.device).CombinedOutput()
	m := receivedBytes.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v: %s", err, out)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("read what came in: %w", err))
	}
	return n
}
