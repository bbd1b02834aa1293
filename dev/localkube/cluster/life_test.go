//go:build cluster

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/dev/localkube/apiclient"
	"helenus.io/helenus/dev/localkube/audit"
	"helenus.io/helenus/dev/localkube/process"
)

// patience bounds every wait of these tests. A node counts as lost after 50 s;
// the rest is room for a busy machine.
const patience = 4 * time.Minute

// podManifest is a pod on one node that answers on port 8080 with an id that it
// keeps on its volume. It starts only when it can resolve the API server's name.
const podManifest = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: t}}
spec:
  hostname: %[1]s
  subdomain: t
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: dns
    image: localkube.internal/busybox:1
    command: [sh, -c, "until nslookup kubernetes.default.svc.cluster.local; do sleep 1; done"]
  containers:
  - name: serve
    image: localkube.internal/busybox:1
    command: [sh, -c, "[ -f /data/id ] || cat /proc/sys/kernel/random/uuid > /data/id; while true; do nc -l -p 8080 -e cat /data/id; done"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: %[1]s}}]
`

const claimManifest = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// callerManifest is a pod that ends well once it has got an answer from another
// pod, by its name.
const callerManifest = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: call
    image: localkube.internal/busybox:1
    command: [sh, -c, "until nc -w 5 %[3]s.t.default.svc.cluster.local 8080 </dev/null | grep -q -; do sleep 1; done"]
`

const serviceManifest = `apiVersion: v1
kind: Service
metadata: {name: t}
spec: {clusterIP: None, selector: {app: t}, publishNotReadyAddresses: true}
`

// life drives one cluster.
type life struct {
	*testing.T
	ctx    context.Context
	c      *Cluster
	client *apiclient.Client
}

// eventually waits until the check gives no error.
func (l life) eventually(what string, check func(context.Context) error) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	if err := process.WaitFor(ctx, 100*time.Millisecond, check); err != nil {
		l.Fatalf("%s: %v", what, err)
	}
}

func (l life) apply(path, manifest string) {
	l.Helper()
	// At first the default service account is missing, without which no pod is
	// accepted.
	l.eventually("apply "+path, func(ctx context.Context) error { return l.client.Apply(ctx, path, manifest) })
}

type pod struct {
	Status struct{ Phase, PodIP string }
}

func (l life) pod(ctx context.Context, name string) (pod, error) {
	var p pod
	return p, l.client.Get(ctx, "/api/v1/namespaces/default/pods/"+name, &p)
}

// id asks the pod for the id on its volume, from the host.
func (l life) id(ctx context.Context, name string) (string, error) {
	p, err := l.pod(ctx, name)
	if err != nil {
		return "", err
	}
	if p.Status.PodIP == "" {
		return "", fmt.Errorf("pod %s has no address yet, phase %s", name, p.Status.Phase)
	}
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(p.Status.PodIP, "8080"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && len(strings.TrimSpace(string(answer))) != 36 {
		err = fmt.Errorf("pod %s answers %q, which is no id", name, answer)
	}
	return strings.TrimSpace(string(answer)), err
}

func (l life) awaitID(name string) string {
	l.Helper()
	var id string
	l.eventually("answer of pod "+name, func(ctx context.Context) (err error) {
		id, err = l.id(ctx, name)
		return err
	})
	return id
}

func (l life) nodeReady(ctx context.Context, name string) (bool, error) {
	var list nodeList
	if err := l.client.Get(ctx, "/api/v1/nodes", &list); err != nil {
		return false, err
	}
	return waitingFor([]string{name}, list, map[string]bool{name: true}) == nil, nil
}

func (l life) awaitReady(name string, want bool) {
	l.Helper()
	l.eventually(fmt.Sprintf("node %s ready: %v", name, want), func(ctx context.Context) error {
		ready, err := l.nodeReady(ctx, name)
		if err == nil && ready != want {
			err = fmt.Errorf("ready is %v", ready)
		}
		return err
	})
}

// call lets a pod on one node ask the pod of another.
func (l life) call(name, node, target string) {
	l.Helper()
	path := "/api/v1/namespaces/default/pods/" + name
	l.apply(path, fmt.Sprintf(callerManifest, name, node, target))
	l.eventually(fmt.Sprintf("call from %s to %s", node, target), func(ctx context.Context) error {
		p, err := l.pod(ctx, name)
		if err == nil && p.Status.Phase != "Succeeded" {
			err = errors.New("phase " + p.Status.Phase)
		}
		return err
	})
}

// TestLifeOfACluster brings a cluster up, does to its nodes what happens to
// machines, takes it down, and compares the machine with what it was before. KUBERNETES=1.36.3
// chooses the release.
func TestLifeOfACluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ctx := context.Background()
	o := Options{
		Name: fmt.Sprintf("life-%d", os.Getpid()), KubernetesVersion: os.Getenv("KUBERNETES"), Nodes: 3, Zones: 3,
	}
	dir, err := Locate(o.Name, "")
	if err != nil {
		t.Fatal(err)
	}
	before := look(t, o.Name, string(dir))
	t.Cleanup(func() {
		if err := Down(ctx, o.Name, "", os.Stderr); err != nil {
			t.Error(err)
		}
	})
	c, err := Up(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	l := life{T: t, ctx: ctx, c: c, client: client}

	l.apply("/api/v1/namespaces/default/services/t", serviceManifest)
	ids := make(map[string]string)
	for _, n := range c.state.Nodes {
		name := "on-" + n.Name
		l.apply("/api/v1/namespaces/default/persistentvolumeclaims/"+name, fmt.Sprintf(claimManifest, name))
		l.apply("/api/v1/namespaces/default/pods/"+name, fmt.Sprintf(podManifest, name, n.Name))
	}
	for _, n := range c.state.Nodes {
		ids["on-"+n.Name] = l.awaitID("on-" + n.Name)
	}
	l.call("call-1", "n1", "on-n2")

	t.Run("up again changes nothing", func(t *testing.T) {
		was := processes(t, c)
		if _, err := Up(ctx, o); err != nil {
			t.Fatal(err)
		}
		now := processes(t, c)
		for _, p := range c.Status(ctx).Components {
			if pid := fmt.Sprint(p.Pid); was[pid] == "" || was[pid] != now[pid] {
				t.Errorf("%s was started anew", p.Name)
			}
		}
	})
	t.Run("killed and partitioned nodes", func(t *testing.T) {
		life{T: t, ctx: ctx, c: c, client: client}.lose(ids)
	})
	t.Run("lost disk", func(t *testing.T) {
		life{T: t, ctx: ctx, c: c, client: client}.loseDisk(ids)
	})
	t.Run("audit", func(t *testing.T) {
		counts, err := c.Audit(audit.Filter{User: "system:node:n1", WritesOnly: true})
		if err != nil || len(counts) == 0 {
			t.Errorf("writes of the kubelet of n1: %v, %v", counts, err)
		}
	})

	started := processes(t, c)
	// Three nodes with an init, three daemons and a pod of two containers with
	// a shim each at the least.
	if len(started) < 20 {
		t.Errorf("the cluster has %d processes, so the test does not see them all", len(started))
	}
	if err := c.Down(ctx, os.Stderr); err != nil {
		t.Fatal(err)
	}
	now := allProcesses(t)
	for pid, identity := range started {
		if now[pid] == identity {
			t.Errorf("down left process %s %s", pid, identity)
		}
	}
	after := look(t, o.Name, string(dir))
	for _, line := range after.without(before) {
		t.Errorf("down left %s", line)
	}
	for _, line := range before.without(after) {
		t.Errorf("down took away %s", line)
	}
}

// lose kills n2 and cuts n3 off at the same time, since the control plane takes
// 50 s to notice either.
func (l life) lose(ids map[string]string) {
	killed := processes(l.T, l.c)
	if err := l.c.KillNode(l.ctx, "n2", false); err != nil {
		l.Fatal(err)
	}
	if err := l.c.PartitionNode(l.ctx, "n3"); err != nil {
		l.Fatal(err)
	}
	left := processes(l.T, l.c)
	if len(left) > len(killed)-5 {
		l.Errorf("of %d processes %d are left: the node's have not ended", len(killed), len(left))
	}
	if id, err := l.id(l.ctx, "on-n2"); err == nil {
		l.Errorf("a pod of the killed node answers: %s", id)
	}
	// Up leaves alone what was taken away on purpose.
	if _, err := Up(l.ctx, Options{Name: l.c.Name()}); err != nil {
		l.Fatal(err)
	}
	if _, err := l.c.NodePid("n2"); err == nil {
		l.Error("up has started the killed node")
	}

	l.awaitReady("n2", false)
	l.awaitReady("n3", false)
	// The containers of the partitioned node run on, and everybody reaches them.
	if id := l.awaitID("on-n3"); id != ids["on-n3"] {
		l.Errorf("the pod of the partitioned node has id %s, want %s", id, ids["on-n3"])
	}
	l.call("call-partitioned", "n1", "on-n3")

	if err := l.c.HealNode(l.ctx, "n3"); err != nil {
		l.Fatal(err)
	}
	if err := l.c.StartNode(l.ctx, "n2", false); err != nil {
		l.Fatal(err)
	}
	l.awaitReady("n3", true)
	if ready, err := l.nodeReady(l.ctx, "n2"); err != nil || !ready {
		l.Errorf("StartNode returned and the node is not ready: %v", err)
	}
	if id := l.awaitID("on-n2"); id != ids["on-n2"] {
		l.Errorf("after its return the pod has id %s, want %s: its disk is another", id, ids["on-n2"])
	}
	if id := l.awaitID("on-n3"); id != ids["on-n3"] {
		l.Errorf("after the partition the pod has id %s, want %s", id, ids["on-n3"])
	}
}

// loseDisk gives n1 an empty disk: its pod comes back with an empty volume.
func (l life) loseDisk(ids map[string]string) {
	if err := l.c.StartNode(l.ctx, "n1", true); err == nil || !strings.Contains(err.Error(), "runs") {
		l.Errorf("a running node lost its disk: %v", err)
	}
	if err := l.c.KillNode(l.ctx, "n1", true); err != nil {
		l.Fatal(err)
	}
	if err := l.c.StartNode(l.ctx, "n1", false); err != nil {
		l.Fatal(err)
	}
	if id := l.awaitID("on-n1"); id == ids["on-n1"] {
		l.Errorf("the volume still has its content %s", id)
	}
}
