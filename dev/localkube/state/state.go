package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoCluster says that there is no cluster of this name.
var ErrNoCluster = errors.New("no such cluster")

// Cluster is the recorded description of a cluster.
type Cluster struct {
	Name string `json:"name"`
	// Cache is the folder that its binaries came from.
	Cache             string `json:"cache"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// APIOnly clusters have no nodes; Controllers adds the controller manager.
	APIOnly     bool `json:"apiOnly,omitempty"`
	Controllers bool `json:"controllers,omitempty"`
	// Address is where the control plane listens; the ports belong to it.
	Address      string `json:"address"`
	APIPort      int    `json:"apiPort"`
	EtcdPort     int    `json:"etcdPort"`
	EtcdPeerPort int    `json:"etcdPeerPort"`
	ManagerPort  int    `json:"managerPort"`
	// APIServerArgs are flags that the user added to the API server's.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// Subnet is the second octet of the cluster's 10.x.0.0/16; 0 without nodes.
	Subnet int `json:"subnet,omitempty"`
	// Containerd is the folder of the one that was built for the nodes; empty if the machine's
	// serves.
	Containerd string `json:"containerd,omitempty"`

	Nodes []Node `json:"nodes,omitempty"`
}

// Node is one recorded node.
type Node struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
	// Index counts from 1 and gives the node its addresses.
	Index int `json:"index"`
	// Killed and Partitioned are set by the commands of those names, so that
	// `up` does not undo what a test has done.
	Killed      bool `json:"killed,omitempty"`
	Partitioned bool `json:"partitioned,omitempty"`
}

// Node finds a node by name.
func (c *Cluster) Node(name string) (*Node, error) {
	var names []string
	for i := range c.Nodes {
		if c.Nodes[i].Name == name {
			return &c.Nodes[i], nil
		}
		names = append(names, c.Nodes[i].Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("cluster %s has no nodes: it was started with --api-only", c.Name)
	}
	return nil, fmt.Errorf("cluster %s has no node %q; its nodes are %s", c.Name, name, strings.Join(names, ", "))
}

// Dir is the folder of a cluster's state.
type Dir string

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// ValidateName checks the name of a cluster: it becomes part of file names.
func ValidateName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("cluster name %q: use 1 to 32 lower-case letters, digits and dashes, beginning and ending "+
			"with a letter or digit", name)
	}
	return nil
}

// Root is the folder that holds the state of all clusters of this user.
func Root() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/localkube", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "localkube"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder (give one with --state): %w", err)
	}
	return filepath.Join(home, ".local", "state", "localkube"), nil
}

// Paths of a cluster's files.
func (d Dir) path(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Log is the log file of a component: "kube-apiserver", or "n1/kubelet".
func (d Dir) Log(component string) string { return d.path("logs", component+".log") }

// Pid is the pid file of a component.
func (d Dir) Pid(component string) string { return d.path("run", component+".pid") }

// PKI is a file of keys and certificates.
func (d Dir) PKI(name string) string { return d.path("pki", name) }

// Config is a file of rendered configuration.
func (d Dir) Config(name string) string { return d.path("config", name) }

// Data is the folder in which a component keeps its data.
func (d Dir) Data(component string) string { return d.path("data", component) }

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// Audit is the API server's audit log.
func (d Dir) Audit() string { return d.path("audit", "audit.log") }

// Node is a folder of one node: "disk" holds what survives its death.
func (d Dir) Node(name string, parts ...string) string {
	return d.path(append([]string{"nodes", name}, parts...)...)
}

// Executable is the copy of localkube that runs this cluster's nodes.
func (d Dir) Executable() string { return d.path("localkube") }

// Load reads the cluster's description. Its error is ErrNoCluster when there is
// none.
func (d Dir) Load() (*Cluster, error) {
	content, err := os.ReadFile(d.path("cluster.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s", ErrNoCluster, d)
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's state: %w", err)
	}
	c := new(Cluster)
	if err := json.Unmarshal(content, c); err != nil {
		return nil, fmt.Errorf("read the cluster's state %s (remove the cluster with `down` and start anew): %w",
			d.path("cluster.json"), err)
	}
	return c, nil
}

// Save replaces the cluster's description.
func (d Dir) Save(c *Cluster) error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the cluster's state: %w", err)
	}
	return WriteFile(d.path("cluster.json"), append(content, '\n'), 0o644)
}

// Lock makes this process the only one that changes the cluster. It waits for
// another one to finish, which may take the time of an `up`.
func (d Dir) Lock() (unlock func(), err error) {
	// Beside the folder, not in it: `down` removes the folder.
	return lockFile(string(d) + ".lock")
}

// LockAll makes this process the only one that chooses what clusters share:
// ports, subnets and the machine's settings.
func LockAll() (unlock func(), err error) {
	return lockFile(filepath.Join(os.TempDir(), fmt.Sprintf("localkube-%d.lock", os.Geteuid())))
}

// lockFile locks a file and removes it when it unlocks. Whoever gets the lock
// of a file that was removed meanwhile has locked nothing, and tries again.
func lockFile(path string) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if same(file, path) {
			return func() {
				// Closing unlocks; a file that stays behind is only untidy.
				_ = os.Remove(path)
				_ = file.Close()
			}, nil
		}
		_ = file.Close()
	}
}

func same(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(held, now)
}

// WriteFile replaces a file as a whole, with its folders.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
