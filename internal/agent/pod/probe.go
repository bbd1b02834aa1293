package pod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/node"
)

// probePath is the file that a probe writes, beside the marker.
const probePath = journal.Dir + "/probe"

// ioErrors are what a device, a file system or a server of files returns that fails. That a volume
// is full, or that a file may not be written, is none: it is said where it matters.
var ioErrors = []error{syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.ENOMEDIUM, syscall.ESTALE, syscall.EUCLEAN,
	syscall.EBADMSG, syscall.ENOTCONN, syscall.EREMOTEIO, syscall.ESHUTDOWN, syscall.ETIMEDOUT}

// Probe has a few bytes written to the volumes on which Cassandra depends, one after the other, and
// says how the first fails that does. Each is named before, since a write may never end.
func (d *Disk) Probe(begins func(volume string)) node.DiskProblem {
	for _, v := range d.volumes {
		if v.name != v1alpha1.VolumeData && v.name != v1alpha1.VolumeCommitlog {
			continue
		}
		begins(v.name)
		if found := v.Probe(); found.Reason != "" {
			return found
		}
	}
	return node.DiskProblem{}
}

// mounted is a volume with the device that was there when the agent began; 0 if that is not known.
type mounted struct {
	Volume
	device uint64
}

// Probe implements Store.
func (v mounted) Probe() node.DiskProblem {
	var s syscall.Statfs_t
	if err := syscall.Statfs(v.Directory, &s); err != nil {
		return v.judge(err)
	}
	if s.Flags&syscall.MS_RDONLY != 0 {
		return v.judge(syscall.EROFS)
	}
	device, err := deviceAt(v.Directory)
	if err != nil {
		return v.judge(err)
	}
	if v.device != 0 && device != v.device {
		return node.DiskProblem{Reason: v1alpha1.ReasonDiskMountChanged, Message: fmt.Sprintf("another file system is "+
			"at %s than the %s volume that was mounted there", v.Directory, v.Name)}
	}
	return v.judge(v.write())
}

// write makes a few bytes durable on a volume that is marked: on others nothing is written.
func (v Volume) write() (err error) {
	root, err := os.OpenRoot(v.Directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if _, err := root.Stat(journal.MarkerPath); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, err := root.OpenFile(probePath, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o660)
	if err != nil {
		return err
	}
	_, err = file.WriteString("The agent writes this file to see whether it can.\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// judge says what an error means for the volume.
func (v Volume) judge(err error) node.DiskProblem {
	switch {
	case errors.Is(err, syscall.EROFS):
		return node.DiskProblem{Reason: v1alpha1.ReasonDiskReadOnly,
			Message: fmt.Sprintf("the %s volume at %s is mounted read-only", v.Name, v.Directory)}
	case slices.ContainsFunc(ioErrors, func(one error) bool { return errors.Is(err, one) }):
		return node.DiskProblem{Reason: v1alpha1.ReasonDiskIOError,
			Message: fmt.Sprintf("the %s volume at %s cannot be written: %v", v.Name, v.Directory, err)}
	}
	return node.DiskProblem{}
}

// deviceAt is the device of the file system in which a directory is.
func deviceAt(directory string) (uint64, error) {
	info, err := os.Stat(directory)
	if err != nil {
		return 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("look at the device of %s: it is not known", directory)
	}
	return s.Dev, nil
}
