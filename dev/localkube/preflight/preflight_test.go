package preflight

import (
	"context"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helenus.io/helenus/dev/localkube/versions"
)

// machine is a file system with the given files.
func machine(t *testing.T, release string, files map[string]string) Machine {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Machine{Root: root, Release: release}
}

// good is a machine with cgroup v1 that lacks nothing, changed by some files; an
// empty content removes a file.
func good(changes map[string]string) map[string]string {
	files := map[string]string{"proc/filesystems": "nodev\tsysfs\n\text4\nnodev\toverlay\n"}
	for _, ns := range []string{"mnt", "pid", "net", "uts", "ipc"} {
		files["proc/self/ns/"+ns] = "x"
	}
	for _, c := range []string{"cpu,cpuacct", "cpuset", "memory", "pids"} {
		files["sys/fs/cgroup/"+c+"/tasks"] = "x"
	}
	for name, content := range changes {
		files[name] = content
		if content == "" {
			delete(files, name)
		}
	}
	return files
}

func TestKernel(t *testing.T) {
	v2 := map[string]string{
		"proc/filesystems": "nodev\toverlay\n", "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
	}
	for _, ns := range []string{"mnt", "pid", "net", "uts", "ipc"} {
		v2["proc/self/ns/"+ns] = "x"
	}
	for _, tc := range []struct {
		name, release string
		files         map[string]string
		want          []string
	}{
		{name: "cgroup v1", release: "6.1.0-13-amd64", files: good(nil)},
		{name: "cgroup v2", release: "5.13.0", files: v2},
		{name: "old kernel", release: "5.10.0-8-amd64", files: good(nil),
			want: []string{"kernel 5.10.0-8-amd64 is too old"}},
		{
			name: "no overlay", release: "6.1.0", files: good(
				map[string]string{"proc/filesystems": "nodev\tfuse-overlayfs\n"},
			), want: []string{"modprobe overlay"},
		},
		{name: "no memory controller", release: "6.1.0",
			files: good(map[string]string{"sys/fs/cgroup/memory/tasks": ""}), want: []string{"missing: memory;"}},
		{name: "all at once", release: "4.19.0",
			files: good(map[string]string{"proc/self/ns/pid": "", "proc/filesystems": "ext4\n"}),
			want:  []string{"too old", "modprobe overlay", "the namespaces pid"}},
	} {
		err := Kernel(machine(t, tc.release, tc.files))
		if tc.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", tc.name, err, want)
			}
		}
	}
}

func TestFirewall(t *testing.T) {
	const file = "proc/sys/net/bridge/bridge-nf-call-iptables"
	const drop = "-P FORWARD DROP\n-A FORWARD -j DOCKER-USER\n"
	for _, tc := range []struct {
		name, filter, rules string
		fails               bool
	}{
		{"not filtered", "0\n", drop, false},
		{"filtered, accepted", "1\n", "-P FORWARD ACCEPT\n", false},
		{"filtered, dropped", "1\n", drop, true},
		{"filtered, let through", "1\n", "-P FORWARD DROP\n-A FORWARD -i lk+ -o lk+ -j ACCEPT\n", false},
	} {
		err := Firewall(machine(t, "6.1.0", map[string]string{file: tc.filter}), tc.rules)
		if (err != nil) != tc.fails {
			t.Errorf("%s: error %v", tc.name, err)
		}
	}
	if err := Firewall(machine(t, "6.1.0", nil), drop); err != nil {
		t.Errorf("a kernel that filters no bridges: %v", err)
	}
}

func TestListenNamesTheTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := l.Addr().(*net.TCPAddr).Port
	address := netip.MustParseAddr("127.0.0.1")
	err = Listen(context.Background(), address, taken, "etcd")
	if err == nil || !strings.Contains(err.Error(), "etcd needs the address "+l.Addr().String()) ||
		!strings.Contains(err.Error(), "ss -ltnp") {
		t.Errorf("error %v, want one that names the address and how to find who has it", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Listen(context.Background(), address, taken, "etcd"); err != nil {
		t.Errorf("a port that is free again: %v", err)
	}
}

func TestDisk(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "not", "there", "yet")
	if err := Disk(folder, 0, "a cluster"); err != nil {
		t.Error(err)
	}
	err := Disk(folder, math.MaxUint64, "building Kubernetes")
	if err == nil || !strings.Contains(err.Error(), "building Kubernetes needs") ||
		!strings.Contains(err.Error(), folder) {
		t.Errorf("error %v, want one that says for what and where", err)
	}
}

func TestGoVersion(t *testing.T) {
	for output, want := range map[string]string{
		"go version go1.26.8 linux/amd64":       "",
		"go version go1.26 linux/arm64":         "",
		"go version go1.25.9 linux/amd64":       "go 1.25 is too old",
		"go version devel go1.27-abc linux/x86": "",
		"gofmt":                                 "read Go's version",
		"go version gcc-12 linux/amd64":         "read Go's version",
	} {
		err := goVersion(output)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", output, err, want)
		}
	}
}

func TestContainerdServes(t *testing.T) {
	const debian = "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3"
	const second = "containerd github.com/containerd/containerd/v2 v2.3.7"
	for _, tc := range []struct {
		output string
		minor  int
		serves bool
		err    string
	}{
		{debian, 35, true, ""},
		{debian, 36, false, ""},
		{second, 36, true, ""},
		{second, 35, true, ""},
		{"containerd", 35, false, "read containerd's version"},
		{"containerd x unknown", 35, false, "read containerd's version"},
	} {
		serves, err := containerdServes(tc.output, versions.Kubernetes{Major: 1, Minor: tc.minor})
		if serves != tc.serves || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q with 1.%d: %v, %v, want %v, %q", tc.output, tc.minor, serves, err, tc.serves, tc.err)
		}
	}
}
