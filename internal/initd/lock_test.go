package initd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

// TestOneJVMAtATimeOnAVolume: a second init has the volume only when the last process of the first
// has ended, and its agent sees the one and the other. Where init dies first, its JVM holds the
// volume: this init has no process namespace of its own, so that the JVM outlives it.
func TestOneJVMAtATimeOnAVolume(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "volume", "lock")
	start := func() *container {
		dir, err := os.MkdirTemp("", "initd")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return startContainerOn(t, lock, dir, t.TempDir(), time.Hour, 0)
	}
	run := func(c *container) int {
		pid := c.run().Process.PID
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		return pid
	}
	first := start()
	pid := run(first)

	second := start()
	refused := func() {
		t.Helper()
		seen := second.now()
		if !strings.Contains(seen.Unlocked, "another process holds "+lock) {
			t.Errorf("the second init says %q of the volume", seen.Unlocked)
		}
		state, err := second.Start(background, seen, 1, jvm())
		if !initclient.Refused(err, initapi.CodeUnlocked) || state.Process != nil || state.LastStartID != 0 {
			t.Errorf("start on a volume that is in use: %v, %+v", err, state)
		}
	}
	refused()
	_ = first.cmd.Process.Kill()
	first.end()
	refused()

	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second.until(func(s initapi.State) bool { return s.Unlocked == "" })
	run(second)
}

// TestAVolumeThatCannotBeLockedIsSaid: an init that cannot open the file of the lock says why, and
// tries again.
func TestAVolumeThatCannotBeLockedIsSaid(t *testing.T) {
	dir, err := os.MkdirTemp("", "initd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	volume := filepath.Join(dir, "volume")
	write(t, volume, "no directory")
	c := startContainerOn(t, filepath.Join(volume, "lock"), dir, t.TempDir(), time.Hour, 0)
	if why := c.now().Unlocked; !strings.Contains(why, "not a directory") {
		t.Errorf("it says %q", why)
	}
	if err := os.Remove(volume); err != nil {
		t.Fatal(err)
	}
	c.until(func(s initapi.State) bool { return s.Unlocked == "" })
}
