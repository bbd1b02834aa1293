package cassandra

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/jolokia"
	"helenus.io/helenus/internal/simulate/timeline"
	"helenus.io/helenus/test/stock"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// lab is a network with what tests need to start nodes on it.
type lab struct {
	t     testing.TB
	line  *timeline.Timeline
	net   *Network
	base  config.Files
	seeds []netip.Addr
	// release, ring name and number of tokens of the nodes.
	release string
	name    string
	tokens  int
	exits   map[netip.Addr]Exit
	// moved starts nodes in a pod whose address is not that of their files.
	moved bool
}

func newLab(t testing.TB, seed uint64) *lab {
	t.Helper()
	base, err := stock.Files("5.0")
	if err != nil {
		t.Fatal(err)
	}
	line := timeline.New(begin, seed)
	return &lab{
		t: t, line: line, net: New(line, Options{}), base: base, release: "5.0.6", name: "orders", tokens: 4,
		seeds: []netip.Addr{address(1)}, exits: map[netip.Addr]Exit{},
	}
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }

// node is how one node is started: its address, rack and disk, and Java properties.
type node struct {
	address    netip.Addr
	dc, rack   string
	disk       *Disk
	properties []string
	settings   string
	offset     time.Duration
	fault      *Exit
}

// member is node i of a ring of three racks.
func member(i int) *node {
	return &node{address: address(i), dc: "dc1", rack: fmt.Sprintf("r%d", (i-1)%3+1), disk: NewDisk()}
}

const jolokiaPassword = "secret"

func (l *lab) files(n *node) config.Files {
	l.t.Helper()
	configuration := v1alpha1.NodeConfiguration{
		Revision: 1, Version: l.release, ClusterName: l.name, DatacenterName: n.dc, RackName: n.rack,
		NumTokens: int32(l.tokens),
		JVM:       &v1alpha1.JVM{},
	}
	rendered, err := config.Render(l.base, config.Node{
		Configuration: configuration, Address: n.address, Seeds: l.seeds, MemoryLimit: 4 << 30,
		Directories: config.Directories{Configuration: "/conf", Logs: "/logs"}.OnVolumes("/data", ""),
		Jolokia: config.Jolokia{Jar: "/jolokia.jar", Port: layout.JolokiaPort, User: "helenus",
			Password: jolokiaPassword},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	files := config.Files{}
	for name, text := range l.base {
		files[name] = text
	}
	for name, text := range rendered {
		files[name] = text
	}
	files[config.CassandraYAML] = append(files[config.CassandraYAML], n.settings...)
	return files
}

// start starts a node and does not wait.
func (l *lab) start(n *node, properties ...string) *Process {
	l.t.Helper()
	argv := []string{"/opt/cassandra/bin/cassandra", "-f"}
	for _, p := range append(n.properties, properties...) {
		argv = append(argv, "-D", p)
	}
	at := n.address
	if l.moved {
		at = address(99)
	}
	return l.net.Start(StartOptions{
		Address: at, Release: l.release, Disk: n.disk, Files: l.files(n), Command: initclient.Command{Argv: argv},
		ClockOffset: n.offset, Fault: n.fault,
		Exited: func(e Exit) { l.exits[n.address] = e },
	})
}

// fresh are the properties of a new ring's node, with tokens spread evenly.
func (l *lab) fresh(i, of int) []string {
	texts := make([]string, l.tokens)
	for j := range texts {
		step := ^uint64(0)/uint64(of*l.tokens) + 0
		texts[j] = ring.Token(uint64(j*of+i-1)*step + 1<<63 + uint64(i)).String() //nolint:gosec // wraps as it should
	}
	return []string{"cassandra.reset_bootstrap_progress=true", "cassandra.auto_bootstrap=false", "cassandra.initial_token=" + strings.Join(texts, ","),
		fmt.Sprintf("cassandra.system_auth.default_rf=%d", min(3, of))}
}

// form forms a ring of so many nodes, all at once, with CQL open.
func (l *lab) form(count int) ([]*node, []*Process) {
	l.t.Helper()
	nodes := make([]*node, count)
	processes := make([]*Process, count)
	if count > 2 {
		l.seeds = []netip.Addr{address(1), address(2)}
	}
	for i := range nodes {
		nodes[i] = member(i + 1)
		processes[i] = l.start(nodes[i], l.fresh(i+1, count)...)
	}
	l.awaitFormed(processes...)
	return nodes, processes
}

// awaitFormed runs until every node is NORMAL, serves clients, and sees all of them alive with one
// schema.
func (l *lab) awaitFormed(processes ...*Process) {
	l.t.Helper()
	l.await("a formed ring", 3*time.Minute, func() bool {
		for _, p := range processes {
			if p.Mode() != modeNormal || !p.NativeOpen() {
				return false
			}
			for _, q := range processes {
				if !p.isAlive(q.address) || p.metadata.owned[q.address] != l.tokens ||
					p.schemaVersion() != q.schemaVersion() {
					return false
				}
			}
		}
		return true
	})
}

func (l *lab) await(what string, limit time.Duration, condition func() bool) {
	l.t.Helper()
	if !l.line.RunUntil(l.line.Now().Add(limit), condition) {
		for _, p := range l.net.running {
			l.t.Logf("%s is %s, native %v, gossips %v", p.address, p.mode, p.native, p.gossip.active)
		}
		l.t.Fatalf("%s did not come within %s; exits %+v", what, limit, l.exits)
	}
}

func (l *lab) awaitExit(p *Process, limit time.Duration) Exit {
	l.t.Helper()
	l.await("the end of "+p.address.String(), limit, p.Ended)
	return p.Exit()
}

func (l *lab) awaitMode(p *Process, mode string) {
	l.t.Helper()
	l.await(p.address.String()+" in mode "+mode, 5*time.Minute, func() bool { return p.Mode() == mode })
}

// driven carries requests of a test, which is no task: it lets the world continue until each is
// answered.
type driven struct {
	l *lab
	p *Process
}

// RoundTrip does one exchange in a task.
func (d driven) RoundTrip(r *http.Request) (*http.Response, error) {
	var response *http.Response
	var err error
	//nolint:bodyclose // the client closes it
	task := d.l.line.Go("request", func() { response, err = d.p.RoundTrip(r) },
		nil)
	d.l.line.RunUntil(d.l.line.Now().Add(time.Hour), task.Done)
	return response, err
}

func (l *lab) client(p *Process) *jolokia.Client {
	l.t.Helper()
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
		Password: jolokiaPassword, Transport: driven{l, p}})
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

func (l *lab) view(p *Process) nodeview.View {
	l.t.Helper()
	view, err := nodeview.New(l.client(p)).View(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return view
}

// do runs something as a task to its end.
func (l *lab) do(what string, f func()) {
	l.t.Helper()
	task := l.line.Go(what, f, nil)
	l.await(what, time.Hour, task.Done)
}

// exec calls an operation of StorageService, in the background.
func (l *lab) exec(p *Process, operation string, arguments ...any) (result *error) {
	l.t.Helper()
	result = new(error)
	*result = io.EOF // not yet
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:7777/jolokia/", User: "helenus",
		Password: jolokiaPassword, Transport: p})
	if err != nil {
		l.t.Fatal(err)
	}
	l.line.Go(operation, func() {
		bean := beanStorageService
		if strings.HasPrefix(operation, "assassinate") {
			bean = beanGossiper
		}
		_, *result = client.ExecBlocking(context.Background(), jolokia.Exec(bean, operation, arguments...))
	}, nil)
	return result
}

// setRelease has the nodes be of another release.
func (l *lab) setRelease(release string) {
	l.t.Helper()
	base, err := stock.Files(majorOf(release))
	if err != nil {
		l.t.Fatal(err)
	}
	l.release, l.base = release, base
}

func viewText(v nodeview.View) string {
	text, err := json.Marshal(struct {
		nodeview.State
		Hosts                                       string
		Live, Unreachable, Joining, Leaving, Moving []netip.AddrPort
		Tokens                                      []nodeview.TokenOwner
		Gossip                                      []nodeview.GossipState
		Seeds                                       []netip.AddrPort
	}{v.State, fmt.Sprint(v.HostIDs), v.Live, v.Unreachable, v.Joining, v.Leaving, v.Moving, v.Tokens, v.Gossip,
		v.Seeds})
	if err != nil {
		panic(err)
	}
	return string(text)
}
