package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/dev/localkube/control"
	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/versions"
)

// InitCommand is the hidden command of localkube that becomes a node's init.
const InitCommand = "node-init"

// Spec is what a node's init is told.
type Spec struct {
	Name   string `json:"name"`
	Zone   string `json:"zone"`
	Index  int    `json:"index"`
	Subnet int    `json:"subnet"`
	// Folders on the host.
	Config string `json:"config"`
	Disk   string `json:"disk"`
	Logs   string `json:"logs"`
	// Bin is the folder of kubelet and kube-proxy.
	Bin string `json:"bin"`
	// Containerd is the path of the daemon; Runtime is the folder of one that was built for the
	// node.
	Containerd string `json:"containerd"`
	Runtime    string `json:"runtime,omitempty"`
	// Minor release of Kubernetes: 35 of 1.35.4.
	Minor int `json:"minor"`
}

func (s Spec) plan() network.Plan { return network.PlanFor(s.Subnet) }

// Node is a node of a cluster, seen from the host.
type Node struct {
	Dir     state.Dir
	Cluster *state.Cluster
	Node    *state.Node
	// Bin is the folder of kubelet and kube-proxy.
	Bin string
}

func (n Node) plan() network.Plan { return network.PlanFor(n.Cluster.Subnet) }

func (n Node) pidFile() string { return n.Dir.Pid(n.Node.Name + "/node") }

func (n Node) disk() string { return n.Dir.Node(n.Node.Name, "disk") }

func (n Node) config(name string) string { return n.Dir.Node(n.Node.Name, "config", name) }

// running is the file that tells the provisioner that the disk can be reached.
func (n Node) running() string { return n.Dir.Node(n.Node.Name, "running") }

func (n Node) cgroup() string {
	return filepath.Join(CgroupRoot(n.Cluster.Name), n.Node.Name)
}

// CgroupRoot is the group of all nodes of a cluster, in every hierarchy.
func CgroupRoot(cluster string) string { return "/localkube-" + cluster }

// Pid is the process of the node's init.
func (n Node) Pid() (int, bool) { return process.Alive(n.pidFile()) }

// Start starts the node unless it runs. When it returns, the daemons are being
// started; the node registers itself within seconds.
func (n Node) Start(ctx context.Context) error {
	if _, ok := n.Pid(); ok {
		return nil
	}
	if err := n.prepare(); err != nil {
		return fmt.Errorf("node %s: %w", n.Node.Name, err)
	}
	if err := n.launch(); err != nil {
		return fmt.Errorf("node %s: %w", n.Node.Name, errors.Join(err, n.Kill()))
	}
	return nil
}

// launch starts init in namespaces of its own and lets it go on once its cable
// is laid.
func (n Node) launch() error {
	inner, outer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	defer func() { _ = outer.Close() }()
	init, err := process.Start(process.Spec{
		Name: "node " + n.Node.Name, Path: n.Dir.Executable(), Args: []string{InitCommand, n.config("node.json")},
		PidFile: n.pidFile(), LogFile: n.Dir.Log(n.Node.Name + "/node"),
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		ExtraFiles: []*os.File{inner},
	})
	if closeErr := inner.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("close pipe: %w", closeErr)
	}
	if err != nil {
		return err
	}
	if err := n.plan().Connect(n.Node.Index, init.Pid); err != nil {
		return err
	}
	if err := os.WriteFile(n.running(), nil, 0o644); err != nil {
		return fmt.Errorf("mark the node as running: %w", err)
	}
	if _, err := outer.Write([]byte{1}); err != nil {
		return fmt.Errorf("let the node go on: %w; see %s", err, n.Dir.Log(n.Node.Name+"/node"))
	}
	return nil
}

// Kill loses the node as one loses a machine: first nobody hears from it any
// more, then everything on it is gone but its disk.
func (n Node) Kill() error {
	if err := os.Remove(n.running()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("unmark the node: %w", err)
	}
	if err := n.plan().Disconnect(n.Node.Index); err != nil {
		return err
	}
	// With process 1 the kernel ends every process of the node, before this
	// returns.
	if err := process.Stop(n.pidFile(), 0); err != nil {
		return err
	}
	return removeCgroups(n.cgroup())
}

// LoseDisk replaces the disk of a killed node by an empty one. Volumes that were
// on it are there again as empty folders, like a new disk mounted in the place
// of a broken one.
func (n Node) LoseDisk() error {
	if _, ok := n.Pid(); ok {
		return fmt.Errorf("node %s runs: kill it before it loses its disk", n.Node.Name)
	}
	volumes, err := os.ReadDir(filepath.Join(n.disk(), "volumes"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list volumes: %w", err)
	}
	if err := os.RemoveAll(n.disk()); err != nil {
		return fmt.Errorf("remove the disk of %s: %w", n.Node.Name, err)
	}
	for _, v := range volumes {
		path := filepath.Join(n.disk(), "volumes", v.Name())
		if err := os.MkdirAll(path, 0o777); err != nil {
			return fmt.Errorf("make an empty volume: %w", err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			return fmt.Errorf("make an empty volume: %w", err)
		}
	}
	return nil
}

// Partition cuts the node off from the API server; its containers run on.
func (n Node) Partition(ctx context.Context) error {
	pid, ok := n.Pid()
	if !ok {
		return fmt.Errorf("node %s does not run: start it with `localkube node start %s`", n.Node.Name, n.Node.Name)
	}
	return n.plan().Partition(ctx, pid, n.Cluster.APIPort)
}

// Heal takes Partition back.
func (n Node) Heal(ctx context.Context) error {
	pid, ok := n.Pid()
	if !ok {
		return fmt.Errorf("node %s does not run: start it with `localkube node start %s`", n.Node.Name, n.Node.Name)
	}
	return n.plan().Heal(ctx, pid)
}

// prepare makes cgroups, folders, keys and configuration.
func (n Node) prepare() error {
	if err := makeCgroups(n.cgroup()); err != nil {
		return err
	}
	for _, name := range diskFolders {
		if err := os.MkdirAll(filepath.Join(n.disk(), name), 0o755); err != nil {
			return fmt.Errorf("make the node's disk: %w", err)
		}
	}
	if err := n.credentials(); err != nil {
		return err
	}
	containerdPath, err := n.containerd()
	if err != nil {
		return err
	}
	cniBin, err := CNIPlugins()
	if err != nil {
		return err
	}
	release, err := versions.Parse(n.Cluster.KubernetesVersion)
	if err != nil {
		return fmt.Errorf("describe the node: %w", err)
	}
	spec, err := json.Marshal(Spec{
		Name: n.Node.Name, Zone: n.Node.Zone, Index: n.Node.Index, Subnet: n.Cluster.Subnet,
		Config: n.config(""), Disk: n.disk(), Logs: filepath.Dir(n.Dir.Log(n.Node.Name + "/node")),
		Bin: n.Bin, Containerd: containerdPath, Runtime: n.Cluster.Containerd, Minor: release.Minor,
	})
	if err != nil {
		return fmt.Errorf("describe the node: %w", err)
	}
	plan := n.plan()
	for name, content := range map[string]string{
		"node.json":                   string(spec),
		"containerd.toml":             containerdConfig(cniBin),
		"certs.d/_default/hosts.toml": hostsConfig(plan),
		"cni/10-pods.conflist":        cniConfig(plan.Pods(n.Node.Index)),
		"kubelet.yaml":                kubeletConfig(plan, n.cgroup(), release.Minor),
	} {
		if err := state.WriteFile(n.config(name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// containerd is where the node will find the daemon.
func (n Node) containerd() (string, error) {
	if n.Cluster.Containerd != "" {
		return runtimeDir + "/containerd", nil
	}
	path, err := exec.LookPath("containerd")
	if err != nil {
		return "", fmt.Errorf("find containerd: %w", err)
	}
	return path, nil
}

// credentials gives the node its own identity, and only that.
func (n Node) credentials() error {
	kubelet, proxy := "kubelet-"+n.Node.Name, "kube-proxy"
	hosts := []string{n.Node.Name, n.plan().Node(n.Node.Index).String(), "127.0.0.1"}
	if err := control.IssueClient(n.Dir, kubelet, "system:node:"+n.Node.Name, []string{"system:nodes"},
		hosts); err != nil {
		return err
	}
	for name, certificate := range map[string]string{"kubelet": kubelet, "kube-proxy": proxy} {
		if err := control.WriteKubeconfig(n.Dir, n.Cluster, n.config(name+".kubeconfig"), certificate); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"ca.crt": "ca.crt", kubelet + ".crt": "kubelet.crt",
		kubelet + ".key": "kubelet.key"} {
		content, err := os.ReadFile(n.Dir.PKI(from))
		if err != nil {
			return fmt.Errorf("read the node's certificate: %w", err)
		}
		if err := state.WriteFile(n.config(to), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// CNIPlugins finds the folder of the CNI plugins: Debian's, or the one that most
// others use.
func CNIPlugins() (string, error) {
	places := []string{"/usr/lib/cni", "/opt/cni/bin"}
	for _, dir := range places {
		if _, err := os.Stat(filepath.Join(dir, "host-local")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the CNI plugins: no host-local in %v", places)
}
