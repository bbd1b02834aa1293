//go:build cassandra

package agent

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/test/recordserver"
)

// What the environment must name.
const (
	envImage   = "HELENUS_CASSANDRA_IMAGE" // file of a Cassandra image, as `images path cassandra-5.0.6` prints it
	envJolokia = "HELENUS_JOLOKIA_JAR"     // the Java agent of Jolokia
)

const (
	namespace             = "test"
	clusterName           = "orders"
	clusterUID  types.UID = "5f7e0d1c-0000-4000-8000-000000000001"
)

// world is a host with an API server and pods.
type world struct {
	// t is that of the part that runs, top that of the whole test: what lives until its end is
	// cleaned up there.
	t, top    *testing.T
	directory string
	bin       string
	rootfs    string
	imageEnv  []string
	bridge    string
	api       *recordserver.Server
	apiURL    string
	authority *pki.Authority
	bundle    []byte
	version   string
}

// part runs a part of a test. The parts of a test build on each other: when one fails the test
// ends.
func (w *world) part(name string, f func(t *testing.T)) {
	ok := w.top.Run(name, func(t *testing.T) {
		w.t = t
		defer func() { w.t = w.top }()
		f(t)
	})
	if !ok {
		w.top.Fatalf("%s failed", name)
	}
}

func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func newWorld(t *testing.T) *world {
	t.Helper()
	image := os.Getenv(envImage)
	if image == "" || os.Getenv(envJolokia) == "" {
		t.Skipf("%s and %s are not set", envImage, envJolokia)
	}
	w := &world{t: t, top: t, directory: t.TempDir(), api: recordserver.New(),
		bridge: fmt.Sprintf("hxb%d", os.Getpid()%100000)}
	run(t, "chmod", "0755", w.directory, filepath.Dir(w.directory))
	w.unpack(image)
	w.build()
	w.network()
	pair, err := pki.NewAuthority(clusterName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if w.authority, err = pki.ParseAuthority(pair); err != nil {
		t.Fatal(err)
	}
	w.bundle = pair.Certificate
	return w
}

// unpack lays the layers of an image over each other.
func (w *world) unpack(image string) {
	w.t.Helper()
	unpacked := filepath.Join(w.directory, "image")
	w.rootfs = filepath.Join(w.directory, "rootfs")
	for _, d := range []string{unpacked, w.rootfs} {
		if err := os.Mkdir(d, 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	run(w.t, "tar", "-xf", image, "-C", unpacked)
	var manifest []struct {
		Config string
		Layers []string
	}
	read(w.t, filepath.Join(unpacked, "manifest.json"), &manifest)
	for _, layer := range manifest[0].Layers {
		run(w.t, "tar", "-xzf", filepath.Join(unpacked, layer), "-C", w.rootfs)
	}
	var config struct{ Config struct{ Env []string } }
	read(w.t, filepath.Join(unpacked, manifest[0].Config), &config)
	w.imageEnv = config.Config.Env
	for _, v := range w.imageEnv {
		if version, found := strings.CutPrefix(v, "CASSANDRA_VERSION="); found {
			w.version = version
		}
	}
	if w.version == "" {
		w.t.Fatalf("the image does not say CASSANDRA_VERSION: %v", w.imageEnv)
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// build makes what the agent's image has.
func (w *world) build() {
	w.t.Helper()
	w.bin = filepath.Join(w.directory, "bin")
	for _, command := range []string{"helenus-agent", "helenus-init"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(w.bin, command),
			"helenus.io/helenus/cmd/"+command)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			w.t.Fatalf("build %s: %v\n%s", command, err, out)
		}
	}
	run(w.t, "cp", os.Getenv(envJolokia), filepath.Join(w.bin, "jolokia.jar"))
}

// network makes a bridge with the API server on it.
func (w *world) network() {
	w.t.Helper()
	run(w.t, "ip", "link", "add", w.bridge, "type", "bridge")
	w.top.Cleanup(func() { _ = exec.Command("ip", "link", "del", w.bridge).Run() })
	run(w.t, "ip", "addr", "add", "10.199.0.1/24", "dev", w.bridge)
	run(w.t, "ip", "link", "set", w.bridge, "up")
	listener, err := net.Listen("tcp", "10.199.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: w.api, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // it is closed at the end
	w.top.Cleanup(func() { _ = server.Close() })
	w.apiURL = "http://" + listener.Addr().String()
}

func recordPath(name string) string {
	return "/apis/helenus.io/v1alpha1/namespaces/" + namespace + "/cassandranodes/" + name
}

// setSeeds writes the ConfigMap of the seeds.
func (w *world) setSeeds(addresses ...string) {
	w.api.Put("/api/v1/namespaces/"+namespace+"/configmaps/"+v1alpha1.SeedsName(clusterName),
		corev1.ConfigMap{Data: map[string]string{layout.SeedsKey: strings.Join(addresses, ",")}})
}

// record reads the record of a pod.
func (w *world) record(name string) *v1alpha1.CassandraNode {
	w.t.Helper()
	r := &v1alpha1.CassandraNode{}
	if !w.api.Get(recordPath(name), r) {
		w.t.Fatalf("no record %s", name)
	}
	return r
}

// change writes the spec of a record as the operator does.
func (w *world) change(name string, change func(*v1alpha1.CassandraNodeSpec)) {
	w.t.Helper()
	r := w.record(name)
	change(&r.Spec)
	r.Status = v1alpha1.CassandraNodeStatus{}
	var object map[string]any
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	delete(object, "status")
	w.api.Put(recordPath(name), object)
}

// await returns when a record satisfies a condition, checked at each change of it.
func (w *world) await(name, what string, limit time.Duration,
	condition func(*v1alpha1.CassandraNode) bool) *v1alpha1.CassandraNode {
	w.t.Helper()
	timeout := time.After(limit)
	began := time.Now()
	for {
		changed := w.api.Changed()
		r := w.record(name)
		if condition(r) {
			w.t.Logf("%s: %s after %.1f s", name, what, time.Since(began).Seconds())
			return r
		}
		select {
		case <-changed:
		case <-timeout:
			text, _ := json.MarshalIndent(r.Status, "", "  ")
			w.t.Fatalf("%s: %s did not come within %s; its status:\n%s", name, what, limit, text)
		}
	}
}
