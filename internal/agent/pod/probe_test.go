package pod

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// On a real file system, in a mount namespace of this test's thread alone.
func TestProbe(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
		t.Skipf("no mount namespace of its own: %v", err)
	}
	at := t.TempDir()
	mount := func(source, target, kind string, flags uintptr) {
		t.Helper()
		if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
			t.Fatalf("mount %s: %v", target, err)
		}
	}
	mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE)
	mount("tmpfs", at, "tmpfs", 0)
	d := NewDisk([]Volume{{Name: v1alpha1.VolumeData, Directory: at}}, time.Now)
	probe := func(reason string) {
		t.Helper()
		var begun []string
		got := d.Probe(func(volume string) { begun = append(begun, volume) })
		if got.Reason != reason || (reason != "") != strings.Contains(got.Message, at) || len(begun) != 1 {
			t.Errorf("%+v of %v, want %q", got, begun, reason)
		}
	}
	written := filepath.Join(at, probePath)

	probe("")
	if _, err := os.Stat(written); err == nil {
		t.Error("it has written on a volume that is nobody's")
	}
	if err := d.Mark([]string{v1alpha1.VolumeData}, "cluster", "node", ""); err != nil {
		t.Fatal(err)
	}
	probe("")
	if _, err := os.Stat(written); err != nil {
		t.Errorf("it has not written: %v", err)
	}
	mount("", at, "", syscall.MS_REMOUNT|syscall.MS_RDONLY)
	probe(v1alpha1.ReasonDiskReadOnly)
	mount("", at, "", syscall.MS_REMOUNT)
	probe("")
	mount("tmpfs", at, "tmpfs", 0)
	probe(v1alpha1.ReasonDiskMountChanged)
	if err := syscall.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	probe("")
	if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	probe(v1alpha1.ReasonDiskMountChanged)
}

// That a volume is full, or a file may not be written, is no failure of the disk.
func TestWhatAnErrorOfAProbeMeans(t *testing.T) {
	v := Volume{Name: v1alpha1.VolumeCommitlog, Directory: "/commitlog"}
	for err, want := range map[error]string{
		syscall.EIO:    v1alpha1.ReasonDiskIOError,
		syscall.ESTALE: v1alpha1.ReasonDiskIOError,
		syscall.EROFS:  v1alpha1.ReasonDiskReadOnly,
		syscall.ENOSPC: "",
		syscall.EDQUOT: "",
		syscall.EACCES: "",
	} {
		got := v.judge(&os.PathError{Op: "write", Path: probePath, Err: err})
		if got.Reason != want || want != "" && !strings.Contains(got.Message, "commitlog volume at /commitlog") {
			t.Errorf("%v: %+v", err, got)
		}
	}
}
