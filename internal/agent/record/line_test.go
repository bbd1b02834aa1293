package record_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/record"
	"helenus.io/helenus/test/recordserver"
)

const (
	recordPath = "/apis/helenus.io/v1alpha1/namespaces/shop/cassandranodes/orders-dc1-r1-0"
	seedsPath  = "/api/v1/namespaces/shop/configmaps/orders-seeds"
	patience   = 30 * time.Second
)

// rig is a line connected to a server in memory.
type rig struct {
	t         *testing.T
	server    *recordserver.Server
	directory string
	line      *record.Line
	changed   chan struct{}

	mu    sync.Mutex
	log   []string
	lists []string // of seeds, each as the line held it when it told of a change
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, server: recordserver.New(), directory: t.TempDir(), changed: make(chan struct{}, 64)}
	r.writeToken("first")
	r.server.Token = "first"
	http := httptest.NewServer(r.server)
	t.Cleanup(http.Close)
	api, err := record.New(record.Config{URL: http.URL, Directory: r.directory})
	if err != nil {
		t.Fatal(err)
	}
	r.line = record.NewLine(api, record.Options{
		Namespace: "shop", Node: "orders-dc1-r1-0", Cluster: "orders", Now: time.Now,
		Random: func() float64 { return 0 },
		Changed: func() {
			r.mu.Lock()
			r.lists = append(r.lists, strings.Join(r.line.Seeds(), ","))
			r.mu.Unlock()
			r.changed <- struct{}{}
		},
		Logf: func(format string, arguments ...any) {
			r.mu.Lock()
			r.log = append(r.log, format)
			r.mu.Unlock()
			r.changed <- struct{}{}
		},
	})
	return r
}

func (r *rig) writeToken(token string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.directory, "token"), []byte(token+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.line.Run(ctx); close(ended) }()
	r.t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-r.changed:
			case <-ended:
				return
			}
		}
	})
}

// await returns when the condition holds; it is asked after each change that the line tells of.
func (r *rig) await(what string, condition func() bool) {
	r.t.Helper()
	timeout := time.After(patience)
	for !condition() {
		select {
		case <-r.changed:
		case <-timeout:
			r.t.Fatalf("%s did not come; log: %v", what, r.log)
		}
	}
}

// said counts what the line has logged.
func (r *rig) said() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.log)
}

func (r *rig) put(uid, state string) {
	r.server.Put(recordPath, map[string]any{
		"apiVersion": "helenus.io/v1alpha1", "kind": "CassandraNode", "metadata": map[string]any{"uid": uid},
		"spec": map[string]any{"state": state},
	})
}

func (r *rig) putSeeds(text string) {
	r.server.Put(seedsPath, map[string]any{"data": map[string]any{"seeds": text}})
}

func (r *rig) sees(state string) func() bool {
	return func() bool {
		object, known := r.line.Record()
		return known && object != nil && string(object.Spec.State) == state
	}
}

func TestLineFollowsTheRecord(t *testing.T) {
	r := newRig(t)
	if _, known := r.line.Record(); known {
		t.Error("known before the server was asked")
	}
	r.run()
	r.await("word that there is none", func() bool { object, known := r.line.Record(); return known && object == nil })
	r.put("u1", "Running")
	r.await("the new record", r.sees("Running"))
	r.put("u1", "Stopped")
	r.await("the changed record", r.sees("Stopped"))
	r.server.Delete(recordPath)
	r.await("its end", func() bool { object, _ := r.line.Record(); return object == nil })
	if r.line.HeardAt().IsZero() {
		t.Error("the server was not heard")
	}
}

func TestLineKeepsTheLastSeeds(t *testing.T) {
	r := newRig(t)
	r.run()
	has := func(want string) func() bool { return func() bool { return strings.Join(r.line.Seeds(), ",") == want } }
	r.putSeeds("10.0.0.2, 10.0.0.1,10.0.0.2")
	r.await("seeds", has("10.0.0.1,10.0.0.2"))
	r.putSeeds("cassandra.example") // refused: the former ones stay
	r.putSeeds("")                  // never empty
	r.server.Delete(seedsPath)
	r.putSeeds("fd00::1")
	r.await("other seeds", has("fd00::1"))
	r.mu.Lock()
	defer r.mu.Unlock()
	held := slices.Compact(r.lists)
	if held[0] == "" { // before the first ones
		held = held[1:]
	}
	if want := []string{"10.0.0.1,10.0.0.2", "fd00::1"}; !slices.Equal(held, want) {
		t.Errorf("the line held %q one after the other, want %q", held, want)
	}
}

func TestLineSurvivesTheServer(t *testing.T) {
	r := newRig(t)
	r.put("u1", "Running")
	r.run()
	r.await("record", r.sees("Running"))

	r.server.CutWatches()
	r.put("u1", "Stopped")
	r.await("a change after a cut watch", r.sees("Stopped"))

	r.server.CutWatches()
	r.put("u1", "Running")
	r.server.Compact()
	r.await("a change after the versions were forgotten", r.sees("Running"))

	before := r.said()
	r.server.SetDown(true)
	r.await("word that the server is down", func() bool { return r.said() > before })
	r.put("u1", "Stopped")
	r.server.SetDown(false)
	r.await("a change while it was down", r.sees("Stopped"))
}

func TestLineUsesTheTokenOfToday(t *testing.T) {
	r := newRig(t)
	r.put("u1", "Running")
	r.run()
	r.await("record", r.sees("Running"))
	r.writeToken("second")
	r.server.SetToken("second")
	r.server.CutWatches()
	r.put("u1", "Stopped")
	r.await("a change with the new token", r.sees("Stopped"))
}

func TestWriteStatus(t *testing.T) {
	r := newRig(t)
	r.put("u1", "Running")
	r.run()
	r.await("record", r.sees("Running"))
	status := &v1alpha1.CassandraNodeStatus{Phase: v1alpha1.PhaseWaiting, PodUID: "p1"}
	if err := r.line.WriteStatus(t.Context(), "u1", status); err != nil {
		t.Fatal(err)
	}
	object, _ := r.line.Record()
	if object.Status.Phase != v1alpha1.PhaseWaiting || object.Spec.State != v1alpha1.StateRunning {
		t.Errorf("after the write the line sees %+v", object)
	}
	err := r.line.WriteStatus(t.Context(), "u2", status)
	if !record.Refused(err, http.StatusUnprocessableEntity) {
		t.Errorf("write to a record of another uid: %v, want it refused", err)
	}
	var refusal *record.StatusError
	if !errors.As(err, &refusal) || refusal.Reason != metav1.StatusReasonInvalid {
		t.Errorf("refusal %+v", refusal)
	}
	r.server.Delete(recordPath)
	if err := r.line.WriteStatus(t.Context(), "u1", status); !record.Refused(err, http.StatusNotFound) {
		t.Errorf("write to no record: %v, want not found: an agent never makes one", err)
	}
}

func TestSecretIsReadByName(t *testing.T) {
	r := newRig(t)
	r.server.Put("/api/v1/namespaces/shop/secrets/orders-roles",
		corev1.Secret{Data: map[string][]byte{"a": []byte("b")}})
	if data, err := r.line.Secret(t.Context(), "orders-roles"); err != nil || string(data["a"]) != "b" {
		t.Errorf("read %v, error %v", data, err)
	}
	if _, err := r.line.Secret(t.Context(), "other"); !record.Refused(err, http.StatusNotFound) {
		t.Errorf("no such Secret: %v", err)
	}
}

func TestRefusalsAreExplained(t *testing.T) {
	r := newRig(t)
	r.put("u1", "Running")
	r.writeToken("wrong")
	err := r.line.WriteStatus(t.Context(), "u1", &v1alpha1.CassandraNodeStatus{})
	if !record.Refused(err, http.StatusUnauthorized) || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("with a wrong token: %v", err)
	}
	if err := os.Remove(filepath.Join(r.directory, "token")); err != nil {
		t.Fatal(err)
	}
	if err := r.line.WriteStatus(t.Context(), "u1", &v1alpha1.CassandraNodeStatus{}); err == nil ||
		!strings.Contains(err.Error(), "token") {
		t.Errorf("without a token: %v", err)
	}
}

func TestServerIsCheckedAgainstTheAuthorityOfToday(t *testing.T) {
	server := recordserver.New()
	secure := httptest.NewTLSServer(server)
	t.Cleanup(secure.Close)
	directory := t.TempDir()
	for name, text := range map[string]string{"token": "t", "ca.crt": "no certificate"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api, err := record.New(record.Config{URL: secure.URL, Directory: directory})
	if err != nil {
		t.Fatal(err)
	}
	line := record.NewLine(api, record.Options{Namespace: "shop", Node: "orders-dc1-r1-0", Cluster: "orders",
		Now: time.Now, Changed: func() {}})
	server.Put(recordPath, map[string]any{"metadata": map[string]any{"uid": "u1"}})
	write := func() error { return line.WriteStatus(t.Context(), "u1", &v1alpha1.CassandraNodeStatus{}) }
	if err := write(); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("without an authority: %v", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "ca.crt"), pemOf(secure.Certificate().Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Errorf("with the right authority: %v", err)
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]string{"": "", ",,": "", "10.0.0.1": "10.0.0.1", "b": "error",
		"10.0.0.2,10.0.0.1": "10.0.0.1,10.0.0.2", "::ffff:10.0.0.1": "10.0.0.1"} {
		got, err := record.ParseSeeds(text)
		if (err != nil) != (want == "error") || err == nil && strings.Join(got, ",") != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

func FuzzParseSeeds(f *testing.F) {
	f.Add("10.0.0.1, fd00::2")
	f.Fuzz(func(t *testing.T, text string) {
		seeds, err := record.ParseSeeds(text)
		if err != nil {
			return
		}
		again, err := record.ParseSeeds(strings.Join(seeds, ","))
		if err != nil || strings.Join(again, ",") != strings.Join(seeds, ",") {
			t.Errorf("%q gives %v, and that gives %v, %v", text, seeds, again, err)
		}
	})
}
