package console

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// hundred nodes of a ring, whose records say as much as those of a ring that was formed.
func hundred() *facts.Snapshot {
	s := ring("large", 3, 100, 16)
	for name, n := range s.Nodes {
		id := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:36]
		n.Record.Status = v1alpha1.CassandraNodeStatus{ObservedGeneration: 8, PodUID: types.UID(id), HostID: id,
			Phase: v1alpha1.PhaseNormal, Ready: true, ClientTraffic: v1alpha1.TrafficOpen, Disk: v1alpha1.DiskMember,
			Address: n.Agent.Address, Version: "5.0.9", AgentVersion: "v1"}
		for _, step := range []string{"login", "repair", "cleanup"} {
			n.Record.Status.Operations = append(n.Record.Status.Operations, v1alpha1.OperationStatus{
				ID: id[:8] + "/" + step + "/" + name, Phase: v1alpha1.OperationSucceeded, Message: "done"})
		}
	}
	return s
}

// painted is when a text was painted on the page, in milliseconds since 1970.
const painted = `new Promise((done) => {
  const look = () => requestAnimationFrame(!document.body.textContent.includes(%q) ? look :
    () => setTimeout(() => done(performance.timeOrigin + performance.now())));
  look();
})`

func (b *tab) painted(text string) time.Time {
	b.Helper()
	var at float64
	b.run(chromedp.Evaluate(fmt.Sprintf(painted, text), &at, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return time.UnixMicro(int64(at * 1000))
}

// BenchmarkPage is the page of a ring of a hundred nodes in a browser without a cache: how long
// after it was asked for it paints anything, and the last of the nodes; and how long after a change
// it paints that, when the one before was a second ago, and when it has just been painted.
func BenchmarkPage(b *testing.B) {
	v := shown(hundred())
	d := serve(b, v)
	page := open(b, d)
	page.at("shop/large/ring")
	page.run(network.SetCacheDisabled(true))
	changes := 0
	change := func() time.Duration {
		changes++
		v.Nodes[0].Agent, v.Nodes[0].Unreachable = nil, fmt.Sprintf("no route to host, for the %d. time", changes)
		begun := time.Now()
		d.put(b, v)
		return page.painted(v.Nodes[0].Unreachable).Sub(begun)
	}
	times := map[string][]time.Duration{}
	note := func(what string, took time.Duration) { times[what] = append(times[what], took) }
	for b.Loop() {
		begun := time.Now()
		page.run(chromedp.Reload())
		note("nodes", page.painted(v.Nodes[len(v.Nodes)-1].Name).Sub(begun))
		first := value[float64](page, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
		note("first", time.Duration(first*float64(time.Millisecond)))
		rested := time.After(1100 * time.Millisecond) // until the stream may send at once
		<-rested
		note("change", change())
		note("next-change", change())
	}
	b.ReportMetric(0, "ns/op")
	for what, all := range times {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Milliseconds()), what+"-ms")
		b.ReportMetric(float64(all[len(all)-1].Milliseconds()), what+"-most-ms")
	}
}

const (
	streams = 64
	// streamsOf names the variable by which a process is told to read streams.
	streamsOf = "HELENUS_STREAMS"
)

// TestMain reads streams until its input ends, if it is told to: what it costs to read them is then
// not counted as the operator's.
func TestMain(m *testing.M) {
	address := os.Getenv(streamsOf)
	if address == "" {
		os.Exit(m.Run())
	}
	if err := read(address); err != nil {
		fmt.Fprintln(os.Stderr, "read streams:", err)
		os.Exit(1)
	}
}

func read(address string) error {
	ended := make(chan error, streams)
	for range streams {
		r, err := http.NewRequest(http.MethodGet, address, http.NoBody)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer token")
		// As the plugin does; each stream has a connection of its own.
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		answer, err := transport.RoundTrip(r) //nolint:bodyclose // by the one who reads it
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return errors.Join(errors.New(answer.Status), answer.Body.Close())
		}
		go func() {
			_, err := io.Copy(io.Discard, answer.Body)
			ended <- errors.Join(err, answer.Body.Close(), io.ErrUnexpectedEOF)
		}()
	}
	fmt.Println("open")
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	return <-ended
}

// BenchmarkStreams is what 64 streams of a ring of a hundred nodes cost the process that serves
// them, the view itself included: the memory that it has resident at most beyond what it had
// before, and the share of a core. An iteration takes a second; each changes the ring, or none
// does.
func BenchmarkStreams(b *testing.B) {
	b.Run("idle", func(b *testing.B) { serveStreams(b, false) })
	b.Run("changing", func(b *testing.B) { serveStreams(b, true) })
}

func serveStreams(b *testing.B, changes bool) {
	s := hundred()
	d := serve(b, shown(s))
	var looked atomic.Int64 // the limit of requests is not what is measured
	d.operator.Now = func() time.Time { return now.Add(time.Duration(looked.Add(1)) * time.Second) }
	server := httptest.NewTLSServer(d.operator.Handler())
	b.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	change := func() { // as a pass shows what it has found
		for _, n := range s.Nodes {
			n.Agent.Space.Data++
		}
		d.put(b, shown(s))
	}
	change()
	debug.FreeOSMemory()
	before := memory(b, "VmRSS")
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the most is counted from now
		b.Fatal(err)
	}
	readers := exec.CommandContext(b.Context(), os.Args[0])
	readers.Env = append(os.Environ(), streamsOf+"="+server.URL+"/v1/namespaces/shop/clusters/large/watch")
	readers.Stderr = os.Stderr
	in, err := readers.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := readers.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := readers.Start(); err != nil {
		b.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.Fatalf("%q, %v", line, err)
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	begun, used := time.Now(), processor(b)
	for b.Loop() {
		<-second.C
		if changes {
			change()
		}
	}
	b.ReportMetric(100*(processor(b)-used).Seconds()/time.Since(begun).Seconds(), "%core")
	b.ReportMetric(float64(memory(b, "VmHWM")-before)/1024, "MiB")
	b.ReportMetric(0, "ns/op")
	if err := errors.Join(in.Close(), readers.Wait()); err != nil {
		b.Fatal(err)
	}
}

// memory of this process by its name in the status, in KiB.
func memory(b *testing.B, name string) (kib int) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, value, _ := strings.Cut(string(text), name+":")
	if _, err := fmt.Sscan(value, &kib); err != nil {
		b.Fatalf("read %s: %v", name, err)
	}
	return kib
}

// processor is the time that this process has had of processors.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
