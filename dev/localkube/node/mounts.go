package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountAll gives the node a file system of its own where daemons write to fixed
// paths: fresh /run, /tmp, /var/log and /var/lib, with what must survive the
// death of the node bound from its disk. The rest is the host's. All of it is
// seen by this node alone and vanishes with it.
func mountAll(s Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detach the node's mounts from the host's: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// The node's folders may lie below what is about to be covered, so they are
	// opened now and bound through their descriptors.
	sources := map[string]string{
		"/run/localkube/config": s.Config,
		"/run/localkube/bin":    s.Bin,
	}
	if s.Runtime != "" {
		sources[runtimeDir] = s.Runtime
	}
	for _, name := range diskFolders {
		sources[diskTarget(name)] = filepath.Join(s.Disk, name)
	}
	open := make(map[string]*os.File)
	for target, source := range sources {
		f, err := os.Open(source)
		if err != nil {
			return fmt.Errorf("open %s: %w", source, err)
		}
		defer func() { _ = f.Close() }()
		open[target] = f
	}
	for _, path := range []string{"/run", "/tmp", "/var/log", "/var/lib"} {
		mode := "mode=0755"
		if path == "/tmp" {
			mode = "mode=1777"
		}
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, mode); err != nil {
			return fmt.Errorf("mount a fresh %s: %w", path, err)
		}
	}
	for target, f := range open {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", target, err)
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), target, "", unix.MS_BIND|unix.MS_REC,
			""); err != nil {
			return fmt.Errorf("bind %s: %w", target, err)
		}
	}
	// What the kubelet mounts must reach containers that ask for propagation.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts with containers: %w", err)
	}
	return nil
}

// diskFolders are on the node's disk.
var diskFolders = []string{"containerd", "kubelet", "cni", "volumes", "pods"}

// diskTarget is where a folder of the disk is seen inside the node.
func diskTarget(name string) string {
	switch name {
	case "volumes":
		return "/var/lib/localkube/volumes"
	case "pods":
		return "/var/log/pods"
	}
	return "/var/lib/" + name
}
