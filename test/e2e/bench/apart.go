package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// ofNodes and ofStore are the processors of nodes and of the store, where each has its own.
	ofNodes, ofStore = 0, 1
	// pods is the control group of those of the local cluster.
	pods = "localkube-helenus"
)

// alone measures what one node uploads and downloads that has a processor of its own, as the store
// and the client have: as it is where each has a host of its own.
func (b *bench) alone(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) (err error) {
	if err := b.apart(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.together()) }()
	f.alone = &backedUp{}
	_, err = b.form(ctx, shaped(sample, 1), func(ring *scene.Ring) error {
		return b.transfers(ctx, ring, f.alone, func(*scene.Bucket) error { return b.disturbs(ctx, ring, f.alone) })
	})
	return err
}

// apart has all pods run on one processor, and this process with the store on the other.
func (b *bench) apart() error {
	groups, err := groupsOfPods()
	if err != nil {
		return err
	}
	slices.Reverse(groups) // with cgroup v1 a group has the processors of those below it
	b.processor = strconv.Itoa(ofNodes)
	return errors.Join(giveProcessors(groups, b.processor), runOn(ofStore))
}

// together ends that.
func (b *bench) together() error {
	groups, err := groupsOfPods()
	if err != nil {
		return err
	}
	b.processor = ""
	return errors.Join(giveProcessors(groups, fmt.Sprintf("%d-%d", ofNodes, ofStore)), runOn(ofNodes, ofStore))
}

// groupsOfPods are the control groups of the local cluster's pods, each before those below it.
func groupsOfPods() (groups []string, err error) {
	root := "/sys/fs/cgroup/cpuset/" + pods
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup/" + pods // cgroup v2
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the control groups of pods: %w", err)
	}
	return groups, nil
}

// giveProcessors to control groups; those of later pods have those of the one above.
func giveProcessors(groups []string, list string) error {
	for _, group := range groups {
		if err := os.WriteFile(filepath.Join(group, "cpuset.cpus"), []byte(list), 0); err != nil &&
			!errors.Is(err, os.ErrNotExist) { // a pod is gone
			return fmt.Errorf("give processors to pods: %w", err)
		}
	}
	return nil
}

// runOn has all threads of this process run on some processors, and those that they start.
func runOn(processors ...int) error {
	var set unix.CPUSet
	for _, p := range processors {
		set.Set(p)
	}
	for range 2 { // one may start another meanwhile
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("find the threads of this process: %w", err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return fmt.Errorf("find the threads of this process: %w", err)
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("set the processors of thread %d: %w", id, err)
			}
		}
	}
	return nil
}
