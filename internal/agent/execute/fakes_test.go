package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/agent/operation"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

const uid types.UID = "cluster-uid"

const (
	self    = "orders-dc1-r1-0"
	address = "10.0.0.1"
	hostID  = "aaaaaaaa-0000-4000-8000-000000000001"
)

// world is everything an agent touches, in memory. One lock is over all of it; events are told
// through changed.
type world struct {
	t  *testing.T
	mu sync.Mutex
	// changed is closed at the next change.
	changed chan struct{}
	// calls in the order in which they came.
	calls []string

	state  initapi.State
	noInit bool
	ring   *facts.Ring
	// transfer is how far the streams are.
	transfer facts.Transfer
	// hints that wait, and what is unfinished.
	hints      map[string]int
	unfinished facts.Unfinished
	memory     node.Memory
	puts       int
	putErr     error
	disk       node.Disk
	// problem is how the disk fails.
	problem node.DiskProblem
	// placed are the files of a backup, and store is where they come from.
	placed []string
	store  func(context.Context, string) (io.ReadCloser, error)
	// logVolume is a directory; installed and command are those of the last start.
	logVolume string
	installed config.Files
	command   []string
	record    *v1alpha1.CassandraNode
	known     bool
	writes    []v1alpha1.CassandraNodeStatus
	failOn    map[string]error
	// taken is what others have written to the data volume.
	taken int64
	block map[string]chan struct{}
	peers []facts.Peer
	log   []string
}

func newWorld(t *testing.T) *world {
	heap := quantity("512Mi")
	return &world{
		t: t, changed: make(chan struct{}), failOn: map[string]error{}, block: map[string]chan struct{}{}, known: true,
		state: initapi.State{Incarnation: "i1", Seq: 1,
			Image: initapi.Image{Base: "/helenus/base/i1", CassandraHome: "/opt/cassandra"}},
		disk: node.Disk{Volumes: []node.Volume{{Name: v1alpha1.VolumeData}}},
		record: &v1alpha1.CassandraNode{
			ObjectMeta: metav1.ObjectMeta{Name: self, UID: "record-1", Generation: 1},
			Spec: v1alpha1.CassandraNodeSpec{
				Cluster: v1alpha1.ClusterReference{Name: "orders", UID: uid}, State: v1alpha1.StateRunning,
				ClientTraffic: v1alpha1.TrafficClosed,
				Disruption:    v1alpha1.NodeDisruption{Consistency: v1alpha1.ConsistencyLocalQuorum},
				Configuration: v1alpha1.NodeConfiguration{
					Revision: 1, Version: "5.0.6", ClusterName: "shop.orders", DatacenterName: "dc1", RackName: "r1",
					NumTokens: 2, JVM: &v1alpha1.JVM{Heap: &heap},
				},
			},
		},
	}
}

// call notes a call, waits if the test holds it up, and fails if the test says so.
func (w *world) call(ctx context.Context, name string) error {
	w.mu.Lock()
	w.calls = append(w.calls, name)
	hold, err := w.block[name], w.failOn[name]
	w.announce()
	w.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// announce tells of a change. The lock is held.
func (w *world) announce() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// change changes the world and tells of it.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.announce()
}

// changeInit changes init's state.
func (w *world) changeInit(f func(*initapi.State)) {
	w.change(func() {
		w.state.Exits = slices.Clone(w.state.Exits)
		f(&w.state)
		w.state.Seq++
	})
}

// await returns when a condition holds; it is asked after each change of the world, and again and
// again for what changes inside the agent alone, which tells nobody.
func (w *world) await(what string, condition func() bool) {
	w.t.Helper()
	timeout := time.After(2 * time.Minute)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		w.mu.Lock()
		ok, changed := condition(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-again.C:
		case <-timeout:
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("%s did not come; calls %v; log %v", what, w.calls, w.log)
		}
	}
}

func (w *world) called(name string) int {
	n := 0
	for _, c := range w.calls {
		if c == name {
			n++
		}
	}
	return n
}

func (w *world) lastStatus() v1alpha1.CassandraNodeStatus {
	if len(w.writes) == 0 {
		return v1alpha1.CassandraNodeStatus{}
	}
	return w.writes[len(w.writes)-1]
}

// lastOperation is the one that the status says most recently; nil if it says none. The lock is
// held.
func (w *world) lastOperation() *v1alpha1.OperationStatus {
	operations := w.lastStatus().Operations
	if len(operations) == 0 {
		return nil
	}
	return &operations[len(operations)-1]
}

// The interfaces of Host.

type fakeInit struct{ *world }

func (f fakeInit) State(context.Context) (initapi.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noInit {
		return initapi.State{}, initclient.ErrUnreachable
	}
	return f.state, nil
}

func (f fakeInit) WaitChange(ctx context.Context, seen initapi.State, limit time.Duration) (initapi.State, error) {
	timeout := time.After(limit)
	for {
		f.mu.Lock()
		state, changed, gone := f.state, f.changed, f.noInit
		f.mu.Unlock()
		if gone {
			return initapi.State{}, initclient.ErrUnreachable
		}
		if state.Seq > seen.Seq || state.Incarnation != seen.Incarnation {
			return state, nil
		}
		select {
		case <-changed:
		case <-timeout:
			return state, nil
		case <-ctx.Done():
			return initapi.State{}, ctx.Err()
		}
	}
}

func (f fakeInit) Start(ctx context.Context, _ initapi.State, id uint64, command initclient.Command) (initapi.State,
	error) {
	if err := f.call(ctx, "start"); err != nil {
		return initapi.State{}, err
	}
	f.changeInit(func(s *initapi.State) {
		if s.Process != nil || id <= s.LastStartID {
			f.t.Errorf("start %d after %d, process %v", id, s.LastStartID, s.Process)
		}
		if f.memory.Start == nil || f.memory.Start.StartID != id {
			f.t.Errorf("start %d is not in the journal: %+v", id, f.memory.Start)
		}
		if command.Argv[0] != "/opt/cassandra/bin/cassandra" ||
			!slices.Contains(command.Argv, "cassandra.start_native_transport=false") {
			f.t.Errorf("command %v", command.Argv)
		}
		f.command = command.Argv
		s.LastStartID, s.Process = id, &initapi.Process{StartID: id, PID: int(id) + 100, StartedAt: time.Now()}
	})
	return f.State(ctx)
}

func (f fakeInit) Signal(ctx context.Context, seen initapi.State, p initapi.Process,
	s initclient.Signal) (initapi.State, error) {
	if err := f.call(ctx, "signal "+string(s)); err != nil {
		return initapi.State{}, err
	}
	if s != initclient.SignalThreadDump {
		code := map[initclient.Signal]int{initclient.SignalTerminate: 143, initclient.SignalKill: 137}[s]
		f.changeInit(func(state *initapi.State) {
			if state.Process != nil && state.Process.StartID == p.StartID {
				state.Exits = append(state.Exits, initapi.Exit{Process: p, EndedAt: time.Now(), Code: code})
				state.Process = nil
			}
		})
	}
	return f.State(ctx)
}

func (f fakeInit) TakeStop(ctx context.Context, _ initapi.State, lease time.Duration) (initapi.State, error) {
	if err := f.call(ctx, "take-stop"); err != nil {
		return initapi.State{}, err
	}
	f.changeInit(func(s *initapi.State) {
		s.Stopping = &initapi.Stopping{Since: s.Stopping.Since, Deadline: time.Now().Add(lease), Taken: true}
	})
	return f.State(ctx)
}

type fakeJournal struct{ *world }

func (f fakeJournal) Load() (node.Memory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.memory, f.failOn["load"]
}

func (f fakeJournal) Put(m node.Memory) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.putErr != nil {
		return f.putErr
	}
	f.memory, f.puts = m, f.puts+1
	return nil
}

type fakeDisk struct{ *world }

func (f fakeDisk) Inspect(context.Context) node.Disk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk
}

func (f fakeDisk) Mark(names []string, cluster types.UID, name string, _ types.UID) error {
	f.change(func() {
		f.disk.Volumes = nil
		for _, v := range names {
			f.disk.Volumes = append(f.disk.Volumes, node.Volume{Name: v,
				Marker: &node.Marker{ClusterUID: cluster, Node: name, Volume: v}})
		}
	})
	return f.call(context.Background(), "mark")
}

func (f fakeDisk) WipeRows() error { return f.call(context.Background(), "wipe") }

func (f fakeDisk) SSTables(string) (map[string][]int64, error) { return nil, nil }

func (f fakeDisk) Snapshots(string) ([]disk.Snapshot, error) { return nil, nil }

func (f fakeDisk) PlaceSSTable(string, string, string, map[string][]byte) error { return nil }

func (f fakeDisk) Hints() (map[string]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.hints), f.failOn["hints"]
}

func (f fakeDisk) Probe(begins func(string)) node.DiskProblem {
	begins(v1alpha1.VolumeData)
	_ = f.call(context.Background(), "probe")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

func (f fakeDisk) Space() (free, capacity int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 3<<30 - f.taken, 4 << 30, f.failOn["space"]
}

type fakeFiles struct{ *world }

func (f fakeFiles) Base(string) (config.Files, error) {
	return config.Files{
		config.CassandraYAML: []byte("num_tokens: 16\n"), config.RackProperties: []byte("dc=x\n"),
		config.ServerOptions: []byte("-ea\n"),
		config.Logback: []byte(`<configuration><appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender"/>` +
			`<root level="INFO"><appender-ref ref="STDOUT"/></root></configuration>`),
	}, f.failOn["base"]
}
func (f fakeFiles) Install(_ string, files config.Files) error {
	f.change(func() { f.installed = files })
	return f.call(context.Background(), "install")
}
func (f fakeFiles) Read(string) ([]byte, error) { return []byte("num_tokens: 16\n"), nil }
func (f fakeFiles) Replace(name string, _ []byte) error {
	return f.call(context.Background(), "replace "+name)
}
func (f fakeFiles) Complete(n *config.Node) error {
	n.Directories = config.Directories{Configuration: "/helenus/conf",
		Logs: "/var/log/cassandra"}.OnVolumes("/var/lib/cassandra", "")
	n.Jolokia = config.Jolokia{Jar: "/helenus/lib/jolokia.jar", Port: 7777, User: "u", Password: "p"}
	return nil
}
func (f fakeFiles) FatalLine(time.Time) string { return "it broke" }

// fakeJVM has what these tests have operations ask for; the rest of operation.JVM must not be
// asked.
type fakeJVM struct {
	*world
	operation.JVM
}

func (f fakeJVM) Look(context.Context) (*facts.Ring, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failOn["look"]; err != nil {
		return nil, err
	}
	if f.ring == nil {
		return nil, nil
	}
	copied := *f.ring
	copied.Endpoints = slices.Clone(f.ring.Endpoints)
	return &copied, nil
}

func (f fakeJVM) Streams(context.Context) (facts.Transfer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.transfer, f.failOn["streams"]
}

func (f fakeJVM) Unfinished(context.Context) (facts.Unfinished, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unfinished, f.failOn["unfinished"]
}

func (f fakeJVM) PlainClients(context.Context) ([]string, error) { return []string{}, nil }

func (f fakeJVM) OpenNative(ctx context.Context) error {
	if err := f.call(ctx, "open"); err != nil {
		return err
	}
	f.change(func() {
		if f.memory.TrafficOpenedAt == nil {
			f.t.Error("CQL opens without a word in the journal")
		}
		f.ring.NativeRunning = true
	})
	return nil
}

func (f fakeJVM) CloseNative(ctx context.Context) error {
	err := f.call(ctx, "close")
	f.change(func() { f.ring.NativeRunning = false })
	return err
}

func (f fakeJVM) Drain(ctx context.Context) error {
	if err := f.call(ctx, "drain"); err != nil {
		return err
	}
	f.change(func() { f.ring.Mode = facts.ModeDrained })
	return nil
}
func (f fakeJVM) ReloadSeeds(ctx context.Context) error { return f.call(ctx, "reload seeds") }
func (f fakeJVM) ReloadCertificates(ctx context.Context) error {
	return f.call(ctx, "reload certificates")
}
func (f fakeJVM) Apply(ctx context.Context, writes []config.Write) error {
	return f.call(ctx, fmt.Sprintf("apply %v", writes[0].Settings))
}

func (f fakeJVM) Tables(ctx context.Context) ([]facts.Table, time.Duration, error) {
	return []facts.Table{{Keyspace: "shop", Name: "rows"}}, 240 * time.Hour, f.call(ctx, "gc grace")
}

func (f fakeJVM) AlterSystemKeyspaces(ctx context.Context, _ map[string]int32) (string, error) {
	return "altered system_auth", f.call(ctx, "alter")
}

func (f fakeJVM) AlterKeyspaces(ctx context.Context, least map[string]map[string]int32) (string, error) {
	return "altered", f.call(ctx, fmt.Sprintf("alter %v", least))
}

func (f fakeJVM) SetSystemKeyspaces(ctx context.Context, _ map[string]int32) (string, error) {
	return "altered system_auth", f.call(ctx, "set")
}

func (f fakeJVM) SetKeyspaces(ctx context.Context, _ map[string]map[string]int32) (string, error) {
	return "altered", f.call(ctx, "set")
}

func (f fakeJVM) Decommission(ctx context.Context, _ bool) error { return f.call(ctx, "decommission") }

func (f fakeJVM) Cleanup(ctx context.Context, jobs int, keyspace string, _ ...string) error {
	return f.call(ctx, fmt.Sprintf("cleanup %s %d", keyspace, jobs))
}

// StopCompactions lets a cleanup end that the test holds up.
func (f fakeJVM) StopCompactions(ctx context.Context, keyspace string, _ ...cassandra.Compaction) error {
	f.mu.Lock()
	name := "cleanup " + keyspace + " 2"
	if hold := f.block[name]; hold != nil {
		delete(f.block, name)
		close(hold)
	}
	f.mu.Unlock()
	return f.call(ctx, "stop "+keyspace)
}

func (f fakeJVM) Rebuild(ctx context.Context, source, keyspace string) error {
	return f.call(ctx, fmt.Sprintf("rebuild %s from %s", keyspace, source))
}

func (f fakeJVM) RemoveNode(ctx context.Context, hostID string) error {
	return f.call(ctx, "remove "+hostID)
}

func (f fakeJVM) Assassinate(ctx context.Context, endpoint string) error {
	return f.call(ctx, "assassinate "+endpoint)
}

type fakeRecord struct{ *world }

func (f fakeRecord) Record() (*v1alpha1.CassandraNode, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record, f.known
}
func (f fakeRecord) Seeds() []string    { return []string{address} }
func (f fakeRecord) Replaced() []string { return nil }
func (f fakeRecord) HeardAt() time.Time { return time.Now() }

func (f fakeRecord) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	return nil, f.call(ctx, "secret "+name)
}
func (f fakeRecord) WriteStatus(_ context.Context, recordUID types.UID, status *v1alpha1.CassandraNodeStatus) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failOn["write"]; err != nil {
		return err
	}
	if recordUID != f.record.UID {
		return errors.New("another uid")
	}
	f.writes = append(f.writes, *status.DeepCopy())
	next := f.record.DeepCopy()
	next.Status = *status.DeepCopy()
	f.record = next
	f.announce()
	return nil
}

type fakePeers struct{ *world }

func (f fakePeers) Ask(context.Context, []string, string, string) ([]facts.Peer, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peers, nil
}

func (f fakeDisk) HasFile(string, string, string, int64, string) bool { return false }

func (f fakeDisk) PlaceFile(keyspace, table, name string, _ int64, _ string, content io.Reader) error {
	_, err := io.ReadAll(content)
	f.change(func() { f.disk.HasData = true; f.placed = append(f.placed, keyspace+"/"+table+"/"+name) })
	return err
}
