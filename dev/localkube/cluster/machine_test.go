//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// machine is what of this machine a cluster could change and must not leave
// changed. Each entry is a line that says where it is from.
type machine []string

// look takes stock. What is another cluster's does not count: they come and go
// while the test runs.
func look(t *testing.T, name, folder string) machine {
	t.Helper()
	var m machine
	add := func(kind string, lines ...string) {
		for _, line := range lines {
			if line != "" {
				m = append(m, kind+": "+line)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	add("mount", strings.Split(string(mounts), "\n")...)

	others := foreignLinks(t, name)
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if !others[l.Attrs().Index] && !others[l.Attrs().MasterIndex] {
			add("link", l.Attrs().Name)
		}
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if !others[r.LinkIndex] {
			add("route", fmt.Sprint(r.Dst))
		}
	}
	tables, err := exec.Command("nft", "list", "tables").Output()
	if err != nil {
		t.Fatal(err)
	}
	add("nft", strings.Split(string(tables), "\n")...)

	if err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, "localkube-"+name) {
			add("cgroup", path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// Another cluster keeps the settings as they must be for its kubelets.
	if len(others) == 0 {
		for _, setting := range sysctls {
			value, err := os.ReadFile(filepath.Join("/proc/sys", setting))
			if err != nil {
				continue
			}
			add("sysctl", setting+" = "+strings.TrimSpace(string(value)))
		}
	}
	// The cluster's own files, and where Kubernetes, containerd and the CNI
	// plugins write by default.
	for _, pattern := range []string{
		folder + "*", "/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd/*",
		"/run/containerd/*", "/run/netns/*", "/var/log/pods", "/var/log/containers",
		"/usr/libexec/kubernetes", "/opt/cni", "/etc/cni/net.d/*", "/root/.kube",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		add("file", files...)
	}
	slices.Sort(m)
	return m
}

// foreignLinks are the indices of the bridges of other clusters.
func foreignLinks(t *testing.T, name string) map[int]bool {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]bool)
	for _, l := range links {
		other, ok := strings.CutPrefix(l.Attrs().Alias, "localkube cluster ")
		if ok && other != name {
			found[l.Attrs().Index] = true
		}
	}
	return found
}

// without gives the lines of m that are not in other.
func (m machine) without(other machine) []string {
	var more []string
	for _, line := range m {
		if !slices.Contains(other, line) {
			more = append(more, line)
		}
	}
	return more
}

// processes are all processes of the cluster: those on the host, and whatever
// runs in the process namespaces of its nodes. By pid, with the start time, so
// that a pid used anew is not taken for an old process.
func processes(t *testing.T, c *Cluster) map[string]string {
	t.Helper()
	mine := make(map[string]bool)
	for _, p := range c.Status(context.Background()).Components {
		mine[fmt.Sprint(p.Pid)] = true
	}
	namespaces := make(map[string]bool)
	for _, n := range c.state.Nodes {
		pid, err := c.NodePid(n.Name)
		if err != nil {
			continue
		}
		ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		if err != nil {
			t.Fatal(err)
		}
		namespaces[ns] = true
	}
	found := make(map[string]string)
	for pid, identity := range allProcesses(t) {
		ns, err := os.Readlink("/proc/" + pid + "/ns/pid_for_children")
		if mine[pid] || err == nil && namespaces[ns] {
			found[pid] = identity
		}
	}
	return found
}

// allProcesses gives for each living process its start time and name.
func allProcesses(t *testing.T) map[string]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, file := range stats {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		name, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest)
		if fields[0] == "Z" {
			continue
		}
		found[filepath.Base(filepath.Dir(file))] = name + ") started at " + fields[19]
	}
	return found
}
