package initd

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitCPU asks until the processor time of the process is above a value.
func awaitCPU(t *testing.T, pid int, above int64) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		used := cpuTime(pid)
		if used.Nano() > above {
			return used.Nano()
		}
	}
	t.Fatalf("the processor time of %d stays at %d ns", pid, above)
	return 0
}

func TestProcessorTimeTellsAFrozenProcessFromABusyOne(t *testing.T) {
	busy := exec.Command("/bin/sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	pid := busy.Process.Pid
	first := awaitCPU(t, pid, 0)
	awaitCPU(t, pid, first)

	if err := busy.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("not stopped: %v, %v", status, err)
	}
	awaitStill(t, pid)
}

// awaitStill asks until the processor time of the process stays the same while
// this one uses 20 ms. The kernel says that a process stopped a moment before
// it leaves its processor, so the first answer may still be short.
func awaitStill(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	used := cpuTime(pid)
	for ctx.Err() == nil {
		before := used.Nano()
		awaitCPU(t, unix.Getpid(), own()+int64(20*time.Millisecond))
		if used = cpuTime(pid); used.Nano() == before {
			return
		}
	}
	t.Errorf("the stopped process %d goes on to use its processor: %d ns", pid, used.Nano())
}

// own is the processor time of this process, in nanoseconds.
func own() int64 {
	used := cpuTime(unix.Getpid())
	return used.Nano()
}

func TestStateSaysTheProcessorTimeOfTheJVM(t *testing.T) {
	c := startContainer(t, time.Hour)
	if used := c.now().CPUNanos; used != 0 {
		t.Errorf("%d ns without a process", used)
	}
	state := c.run()
	if again := c.now(); again.CPUNanos < state.CPUNanos || again.CPUNanos == 0 || again.Seq != state.Seq {
		t.Errorf("processor time %d ns after %d ns, seq %d after %d", again.CPUNanos, state.CPUNanos, again.Seq,
			state.Seq)
	}
	if used := cpuTime(1 << 22); used.Nano() != 0 {
		t.Errorf("a process that is not there used %d ns", used.Nano())
	}
}
