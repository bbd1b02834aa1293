//go:build cassandra

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
)

// pod is one Cassandra pod: a network, a file system, an agent and an init.
type pod struct {
	w       *world
	name    string
	uid     types.UID
	address string
	netns   string
	device  string // in netns
	root    string
	agent   *exec.Cmd
	init    *exec.Cmd
	ended   chan struct{} // closed at the end of init
}

// newPod makes a pod and its record; nothing runs yet.
func (w *world) newPod(ordinal int) *pod {
	w.t.Helper()
	p := &pod{
		w: w, name: v1alpha1.NodeName(clusterName, "dc1", fmt.Sprintf("r%d", ordinal+1), 0),
		uid:     types.UID(fmt.Sprintf("pod-%d", ordinal)),
		address: fmt.Sprintf("10.199.0.%d", 10+ordinal), netns: fmt.Sprintf("%s-%d", w.bridge, ordinal),
		root: filepath.Join(w.directory, fmt.Sprintf("pod-%d", ordinal)),
	}
	p.connect(ordinal)
	p.fileSystem()
	heap := resource.MustParse("384Mi")
	w.api.Put(recordPath(p.name), map[string]any{
		"apiVersion": "helenus.io/v1alpha1", "kind": "CassandraNode",
		"metadata": map[string]any{"uid": "record-" + p.name, "namespace": namespace, "name": p.name},
		"spec": v1alpha1.CassandraNodeSpec{
			Cluster:    v1alpha1.ClusterReference{Name: clusterName, UID: clusterUID},
			Datacenter: "dc1", Rack: fmt.Sprintf("r%d", ordinal+1), State: v1alpha1.StateRunning,
			ClientTraffic: v1alpha1.TrafficClosed,
			Disruption:    v1alpha1.NodeDisruption{Consistency: v1alpha1.ConsistencyLocalQuorum},
			Configuration: v1alpha1.NodeConfiguration{
				Revision: 1, Version: w.version, ClusterName: "test.orders", DatacenterName: "dc1",
				RackName: fmt.Sprintf("r%d", ordinal+1), NumTokens: 4,
				JVM: &v1alpha1.JVM{Heap: &heap, Options: []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
					"-XX:-AlwaysPreTouch"}},
			},
		},
	})
	return p
}

func (p *pod) connect(ordinal int) {
	t := p.w.t
	t.Helper()
	outside, inside := fmt.Sprintf("hxv%d-%d", os.Getpid()%10000, ordinal),
		fmt.Sprintf("hxi%d-%d", os.Getpid()%10000, ordinal)
	p.device = inside
	run(t, "ip", "netns", "add", p.netns)
	p.w.top.Cleanup(func() { _ = exec.Command("ip", "netns", "del", p.netns).Run() })
	run(t, "ip", "link", "add", outside, "type", "veth", "peer", "name", inside)
	run(t, "ip", "link", "set", outside, "master", p.w.bridge, "up")
	run(t, "ip", "link", "set", inside, "netns", p.netns)
	in := func(arguments ...string) { run(t, "ip", append([]string{"-n", p.netns}, arguments...)...) }
	in("addr", "add", p.address+"/24", "dev", inside)
	in("link", "set", inside, "up")
	in("link", "set", "lo", "up")
}

func (p *pod) fileSystem() {
	t := p.w.t
	t.Helper()
	upper, work := p.root+".upper", p.root+".work"
	for _, d := range []string{p.root, upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "mount", "-t", "overlay", "overlay", "-o", "lowerdir="+p.w.rootfs+",upperdir="+upper+",workdir="+work,
		p.root)
	p.w.top.Cleanup(func() { _ = exec.Command("umount", "-l", p.root).Run() })
	for _, d := range []string{layout.SharedDir, layout.DataDir, layout.LogDir, layout.PrivateDir,
		layout.CertificateDir, layout.TokenDir, "/tmp", "/proc", "/dev"} {
		if err := os.MkdirAll(filepath.Join(p.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := p.w.authority.Issue(pki.NodeOf(clusterUID, p.name), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		filepath.Join(layout.CertificateDir, pki.KeyCertificate): leaf.Certificate,
		filepath.Join(layout.CertificateDir, pki.KeyPrivateKey):  leaf.Key,
		filepath.Join(layout.CertificateDir, pki.KeyBundle):      p.w.bundle,
		filepath.Join(layout.TokenDir, "token"):                  []byte("t"),
	} {
		if err := os.WriteFile(filepath.Join(p.root, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{layout.SharedDir, layout.DataDir, layout.LogDir, layout.PrivateDir, "/tmp"} {
		run(t, "chown", "-R", "999:999", filepath.Join(p.root, d))
	}
}

// inside is a command in the pod's network as the pod's user.
func (p *pod) inside(arguments ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", p.netns, "setpriv", "--reuid=999", "--regid=999",
		"--clear-groups"}, arguments...)...)
}

// startAgent starts the agent's container.
func (p *pod) startAgent() {
	t := p.w.t
	t.Helper()
	p.agent = p.inside(filepath.Join(p.w.bin, "helenus-agent"), "--root", p.root, "--install-dir", p.w.bin,
		"--api-server", p.w.apiURL)
	p.agent.Env = []string{
		"PATH=/usr/bin:/bin", layout.EnvPodName + "=" + p.name, layout.EnvPodNamespace + "=" + namespace,
		layout.EnvPodUID + "=" + string(p.uid), layout.EnvPodTemplate + "=template",
		layout.EnvPodIP + "=" + p.address, layout.EnvClusterName + "=" + clusterName,
		layout.EnvClusterUID + "=" + string(clusterUID),
		layout.EnvVolumes + "=" + v1alpha1.VolumeData + "=" + layout.DataDir,
		layout.EnvMemoryLimit + "=1073741824", layout.EnvGracePeriod + "=60", "GOTRACEBACK=all",
	}
	p.agent.Stdout, p.agent.Stderr = p.log("agent"), p.log("agent")
	if err := p.agent.Start(); err != nil {
		t.Fatal(err)
	}
	agent := p.agent
	p.w.top.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
}

// startInit starts the Cassandra container, in a process namespace of its own, as soon as the agent
// has put helenus-init in its place.
func (p *pod) startInit() {
	t := p.w.t
	t.Helper()
	p.probe(layout.StartupPath, true, 30*time.Second)
	script := `mount -t proc proc "$ROOT/proc" && mount --bind /dev "$ROOT/dev" && exec chroot --userspec=999:999 "$ROOT" ` + layout.InitBinary
	p.init = exec.Command("ip", "netns", "exec", p.netns, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh",
		"-c", script)
	p.init.Env = append([]string{"ROOT=" + p.root, "HOME=/tmp"}, p.w.imageEnv...)
	p.init.Stdout, p.init.Stderr = p.log("cassandra"), p.log("cassandra")
	if err := p.init.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan struct{})
	init, ended := p.init, p.ended
	go func() { _ = init.Wait(); close(ended) }()
	p.w.top.Cleanup(func() {
		if pid := descendant(init.Process.Pid, "helenus-init"); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // another user's: --kill-child does not reach it
		}
		_ = init.Process.Kill()
		<-ended
	})
}

// start starts both.
func (p *pod) start() {
	p.startAgent()
	p.startInit()
}

// end ends both, as the loss of the pod's sandbox does.
func (p *pod) end() {
	p.w.t.Helper()
	p.kill(p.agent.Process.Pid, syscall.SIGKILL)
	_ = p.agent.Wait()
	p.kill(p.helenusInit(), syscall.SIGKILL) // and with it all of its process namespace
	<-p.ended
}

// move gives the pod another address.
func (p *pod) move(address string) {
	t := p.w.t
	t.Helper()
	run(t, "ip", "-n", p.netns, "addr", "del", p.address+"/24", "dev", p.device)
	run(t, "ip", "-n", p.netns, "addr", "add", address+"/24", "dev", p.device)
	p.address = address
}

func (p *pod) log(name string) *os.File {
	p.w.t.Helper()
	directory := os.Getenv("HELENUS_TEST_LOGS")
	if directory == "" {
		directory = p.w.directory
	}
	f, err := os.OpenFile(filepath.Join(directory, p.name+"."+name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.w.top.Cleanup(func() { _ = f.Close() })
	return f
}

// probe asks the health server until it answers as wanted.
func (p *pod) probe(path string, want bool, limit time.Duration) {
	p.w.t.Helper()
	deadline := time.Now().Add(limit)
	url := fmt.Sprintf("http://%s:%d%s", p.address, layout.HealthPort, path)
	for {
		// curl follows connection refusals by itself; the pause between two questions is its.
		out, err := exec.Command("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--retry", "20",
			"--retry-connrefused", "--retry-delay", "1", "--max-time", "30", url).Output()
		if got := err == nil && string(out) == "200"; got == want {
			return
		}
		if time.Now().After(deadline) {
			p.w.t.Fatalf("%s of %s: %s (%v), want ok=%v", path, p.name, out, err, want)
		}
	}
}

// jolokia is what it answers to a request with its credential.
func (p *pod) jolokia(request string) string {
	p.w.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, layout.RenderedDir, config.JolokiaProperties))
	if err != nil {
		p.w.t.Fatal(err)
	}
	credential := regexp.MustCompile(`(?m)^(?:user|password)=(.*)$`).FindAllStringSubmatch(string(text), 2)
	out, err := p.inside("curl", "-s", "--max-time", "30", "-u", credential[0][1]+":"+credential[1][1], "-d", request,
		fmt.Sprintf("http://127.0.0.1:%d/jolokia/", layout.JolokiaPort)).Output()
	if err != nil {
		p.w.t.Fatal(err)
	}
	return string(out)
}

// jvm is the pid of the JVM as this machine sees it; 0 if none runs.
func (p *pod) jvm() int {
	p.w.t.Helper()
	return descendant(p.init.Process.Pid, "java")
}

// helenusInit is the pid of PID 1 of the Cassandra container.
func (p *pod) helenusInit() int { return descendant(p.init.Process.Pid, "helenus-init") }

// descendant is the first process of a name below one, or that itself; 0 if there is none.
func descendant(pid int, name string) int {
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if strings.TrimSpace(string(comm)) == name {
		return pid
	}
	// Any thread of a process may have forked.
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		children, _ := os.ReadFile(thread)
		for _, text := range strings.Fields(string(children)) {
			child, _ := strconv.Atoi(text)
			if found := descendant(child, name); found != 0 {
				return found
			}
		}
	}
	return 0
}

// kill sends a signal to a process of the pod.
func (p *pod) kill(pid int, s syscall.Signal) {
	p.w.t.Helper()
	if pid == 0 {
		p.w.t.Fatalf("%s: no such process", p.name)
	}
	if err := syscall.Kill(pid, s); err != nil {
		p.w.t.Fatal(err)
	}
}

// residentKiB is the resident memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
