package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/state"
)

const hybrid = `24 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 24 0:26 / /sys rw,relatime shared:3 - sysfs sysfs rw
31 30 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
34 31 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 master:2 - cgroup2 cgroup2 rw
35 31 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
`

func TestParseHierarchies(t *testing.T) {
	for _, tc := range []struct {
		name, mounts string
		want         []hierarchy
	}{
		{"hybrid", hybrid, []hierarchy{
			{Mount: "/sys/fs/cgroup/cpu,cpuacct"},
			{Mount: "/sys/fs/cgroup/systemd"},
			{Mount: "/sys/fs/cgroup/unified", Unified: true},
		}},
		{"v2", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
			[]hierarchy{{Mount: "/sys/fs/cgroup", Unified: true}}},
		{"none", "24 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n", nil},
	} {
		got, err := parseHierarchies(strings.NewReader(tc.mounts))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestRemoveTree(t *testing.T) {
	root := t.TempDir()
	group := filepath.Join(root, "localkube-x")
	if err := os.MkdirAll(filepath.Join(group, "n1/kubepods/pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeTree(group); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("left are %v, want only other", left)
	}
}

func TestCNIConfigIsJSONWithTheNodesRange(t *testing.T) {
	var c struct {
		Plugins []struct {
			Type string
			IPAM struct{ Ranges [][]struct{ Subnet string } }
		}
	}
	if err := json.Unmarshal([]byte(cniConfig(network.PlanFor(250).Pods(3))), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Plugins) != 2 || c.Plugins[0].Type != "bridge" {
		t.Fatalf("plugins %v, want bridge and portmap", c.Plugins)
	}
	if got := c.Plugins[0].IPAM.Ranges[0][0].Subnet; got != "10.250.67.0/24" {
		t.Errorf("pods of node 3 are in %s, want 10.250.67.0/24", got)
	}
}

func TestContainerdIsTheOneThatWasBuilt(t *testing.T) {
	machine := t.TempDir()
	if err := os.WriteFile(filepath.Join(machine, "containerd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", machine)
	for built, want := range map[string]string{
		"":       filepath.Join(machine, "containerd"),
		"/cache": "/run/localkube/runtime/containerd",
	} {
		got, err := Node{Cluster: &state.Cluster{Containerd: built}}.containerd()
		if err != nil || got != want {
			t.Errorf("built %q: %q, %v, want %q", built, got, err, want)
		}
	}
}

func TestNodeFlags(t *testing.T) {
	s := Spec{Name: "n3", Zone: "c", Index: 3, Subnet: 249, Minor: 35}
	for _, want := range []string{
		"--hostname-override=n3", "--node-ip=10.249.0.13",
		"--node-labels=topology.kubernetes.io/zone=c,topology.kubernetes.io/region=local",
	} {
		if !strings.Contains(strings.Join(kubeletFlags(s), "\n"), want) {
			t.Errorf("kubelet lacks %s: %v", want, kubeletFlags(s))
		}
	}
	if flags := strings.Join(kubeProxyFlags(s), "\n"); !strings.Contains(flags, "--cluster-cidr=10.249.64.0/18") {
		t.Errorf("kube-proxy lacks the range of pods: %s", flags)
	}
	if c := kubeletConfig(network.PlanFor(249), "/localkube-x/n3", 35); !strings.Contains(c,
		"clusterDNS: [10.249.0.2]") || !strings.Contains(c, "cgroupRoot: /localkube-x/n3\n") {
		t.Errorf("kubelet config lacks DNS or cgroup root:\n%s", c)
	}
	s.Minor = 30
	older := kubeletConfig(network.PlanFor(249), "/localkube-x/n3", s.Minor) + strings.Join(kubeProxyFlags(s), "\n")
	if strings.Contains(older, "failCgroupV1") || !strings.Contains(older, "NFTablesProxyMode=true") {
		t.Errorf("a kubelet or kube-proxy of 1.30 would not start:\n%s", older)
	}
	if h := hostsConfig(network.PlanFor(249)); !strings.Contains(h, `[host."http://10.249.0.1:5000"]`) {
		t.Errorf("containerd pulls from elsewhere:\n%s", h)
	}
}
