package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const gib = 1 << 30

// Root requires the rights that nodes need.
func Root() error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster with nodes needs root, for namespaces, bridges and cgroups: run it with sudo, " +
			"or start an API server alone with `localkube up --api-only`, which needs no root")
	}
	return nil
}

// Disk requires free space below a folder, which need not exist yet.
func Disk(path string, need uint64, purpose string) error {
	existing := path
	for {
		if _, err := os.Stat(existing); err == nil {
			break
		}
		if existing == filepath.Dir(existing) {
			break
		}
		existing = filepath.Dir(existing)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(existing, &fs); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", existing, err)
	}
	free := fs.Bavail * uint64(fs.Bsize)
	if free < need {
		return fmt.Errorf("%s needs %.1f GiB on the disk of %s, and %.1f GiB are free: make room, or choose another "+
			"place", purpose, float64(need)/gib, path, float64(free)/gib)
	}
	return nil
}

// BuildDisk is what compiling everything needs: sources, build cache, binaries.
const BuildDisk = 12 * gib

// ClusterDisk is what a cluster and a few rings on it need, with their images
// and data: with less, the kubelets would evict their pods in the middle.
const ClusterDisk = 6 * gib

// Listen requires that nobody listens where we are about to.
func Listen(ctx context.Context, address netip.Addr, port int, who string) error {
	where := netip.AddrPortFrom(address, uint16(port)).String()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", where)
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%s needs the address %s and another process listens there: find it with `ss -ltnp 'sport "+
			"= :%d'` and stop it", who, where, port)
	}
	if err != nil {
		return fmt.Errorf("%s cannot listen on %s: %w", who, where, err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close %s: %w", where, err)
	}
	return nil
}

// Machine is what Kernel looks at. The zero value is this machine.
type Machine struct {
	// Root is the root of the file system.
	Root string
	// Release is the kernel's: 6.1.0-13-amd64.
	Release string
}

// ThisMachine describes the machine we run on.
func ThisMachine() (Machine, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Machine{}, fmt.Errorf("ask for the kernel's release: %w", err)
	}
	return Machine{Root: "/", Release: unix.ByteSliceToString(u.Release[:])}, nil
}

// Kernel requires what nodes need of the kernel and reports everything that is
// missing at once.
func Kernel(m Machine) error {
	return errors.Join(m.release(), m.overlay(), m.namespaces(), m.cgroups())
}

// release: kube-proxy programs nftables, which needs Linux 5.13.
func (m Machine) release() error {
	var major, minor int
	if _, err := fmt.Sscanf(m.Release, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("read the kernel's release %q: %w", m.Release, err)
	}
	if major < 5 || major == 5 && minor < 13 {
		return fmt.Errorf("kernel %s is too old: kube-proxy's nftables mode needs 5.13 or newer", m.Release)
	}
	return nil
}

func (m Machine) overlay() error {
	content, err := os.ReadFile(filepath.Join(m.Root, "proc/filesystems"))
	if err != nil {
		return fmt.Errorf("read the kernel's file systems: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] == "overlay" {
			return nil
		}
	}
	return errors.New("the kernel lacks the overlay file system, which containers are made of: try `modprobe overlay`")
}

func (m Machine) namespaces() error {
	var missing []string
	for _, ns := range []string{"mnt", "pid", "net", "uts", "ipc"} {
		if _, err := os.Lstat(filepath.Join(m.Root, "proc/self/ns", ns)); err != nil {
			missing = append(missing, ns)
		}
	}
	if missing != nil {
		return fmt.Errorf("the kernel lacks the namespaces %s: it must be built with CONFIG_NAMESPACES and all kinds "+
			"of them", strings.Join(missing, ", "))
	}
	return nil
}

// controllers that the kubelet requires.
var controllers = []string{"cpu", "cpuset", "memory", "pids"}

func (m Machine) cgroups() error {
	base := filepath.Join(m.Root, "sys/fs/cgroup")
	has := make(map[string]bool)
	v2, err := os.ReadFile(filepath.Join(base, "cgroup.controllers"))
	if err == nil {
		for c := range strings.FieldsSeq(string(v2)) {
			has[c] = true
		}
	} else {
		entries, err := os.ReadDir(base)
		if err != nil {
			return fmt.Errorf("no cgroups are mounted at /sys/fs/cgroup: mount them, on most systems with `mount -t "+
				"cgroup2 none /sys/fs/cgroup`: %w", err)
		}
		for _, e := range entries {
			// Controllers may share a hierarchy: cpu,cpuacct.
			for c := range strings.SplitSeq(e.Name(), ",") {
				has[c] = true
			}
		}
	}
	var missing []string
	for _, c := range controllers {
		if !has[c] {
			missing = append(missing, c)
		}
	}
	if missing != nil {
		return fmt.Errorf("cgroup controllers are missing: %s; enable them, for memory often with "+
			"cgroup_enable=memory on the kernel's command line", strings.Join(missing, ", "))
	}
	return nil
}

// Firewall requires that the machine's firewall lets through what nodes send each
// other. Where the kernel filters bridged packets, as after the start of Docker,
// they pass the rules for forwarded ones. The rules are those that
// `iptables -S FORWARD` prints.
func Firewall(m Machine, rules string) error {
	content, err := os.ReadFile(filepath.Join(m.Root, "proc/sys/net/bridge/bridge-nf-call-iptables"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read whether bridged packets are filtered: %w", err)
	}
	if strings.TrimSpace(string(content)) != "1" {
		return nil
	}
	if !strings.Contains(rules, "-P FORWARD DROP") || strings.Contains(rules, "-i lk+ -o lk+ -j ACCEPT") {
		return nil
	}
	return errors.New("this machine's firewall drops forwarded packets, and with them what nodes send each other: " +
		"run `iptables -I FORWARD -i lk+ -o lk+ -j ACCEPT`")
}
