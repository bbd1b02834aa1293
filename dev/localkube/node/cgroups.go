package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is a mounted cgroup hierarchy.
type hierarchy struct {
	Mount   string
	Unified bool
}

// hierarchies reads the mounted hierarchies: on a machine with cgroup v2 one, on
// one with v1 a hierarchy per controller, on a hybrid one both.
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer func() { _ = f.Close() }()
	return parseHierarchies(f)
}

// parseHierarchies reads the format of proc(5), mountinfo: the mount point is
// the fifth field, the file system type the first after the dash.
func parseHierarchies(r io.Reader) ([]hierarchy, error) {
	var found []hierarchy
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		before, after, ok := strings.Cut(scanner.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 1 {
			continue
		}
		h := hierarchy{Mount: fields[4], Unified: kind[0] == "cgroup2"}
		// A hierarchy may be mounted twice in the same place.
		if (h.Unified || kind[0] == "cgroup") && !slices.Contains(found, h) {
			found = append(found, h)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return found, nil
}

// makeCgroups makes the group below which the kubelet keeps those of its pods.
func makeCgroups(path string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		group := h.Mount
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			parent := group
			group = filepath.Join(group, part)
			if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make cgroup: %w", err)
			}
			if err := delegate(h, parent, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate makes a new group usable: with v1 a cpuset must name CPUs and memory
// before a process can enter, with v2 the parent must hand its controllers down.
func delegate(h hierarchy, parent, group string) error {
	if h.Unified {
		available, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("read controllers: %w", err)
		}
		for controller := range strings.FieldsSeq(string(available)) {
			// One that cannot be handed down is missed only if a pod needs it,
			// and the kubelet says so then.
			_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		}
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(group, file), value, 0o644); err != nil {
			return fmt.Errorf("set %s: %w", file, err)
		}
	}
	return nil
}

// removeCgroups removes the group with all below it from every hierarchy. Its
// processes must have ended.
func removeCgroups(path string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := removeTree(filepath.Join(h.Mount, path)); err != nil {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// RemoveCgroupRoot removes the group of all nodes of a cluster.
func RemoveCgroupRoot(cluster string) error { return removeCgroups(CgroupRoot(cluster)) }

// removeTree removes folders bottom-up. The files in a cgroup are no obstacle to
// rmdir and cannot be removed themselves.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
