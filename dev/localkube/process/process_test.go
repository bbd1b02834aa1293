package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func spec(t *testing.T, script string) Spec {
	t.Helper()
	dir := t.TempDir()
	s := Spec{Name: "sample", Path: "/bin/sh", Args: []string{"-c", script}, PidFile: filepath.Join(dir, "pid"),
		LogFile: filepath.Join(dir, "log")}
	t.Cleanup(func() {
		if err := Stop(s.PidFile, 0); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStartIsIdempotentAndStopEnds(t *testing.T) {
	s := spec(t, "exec sleep 600")
	first, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	if first.Pid != second.Pid {
		t.Fatalf("second start made a second process: %d, then %d", first.Pid, second.Pid)
	}
	if err := Stop(s.PidFile, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, ok := Alive(s.PidFile); ok {
		t.Error("alive after Stop")
	}
	if err := Stop(s.PidFile, time.Second); err != nil {
		t.Errorf("stop of a stopped program: %v", err)
	}
}

func TestStopKillsWhatIgnoresTerm(t *testing.T) {
	s := spec(t, `trap "" TERM; echo ready; while :; do sleep 600; done`)
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := WaitFor(ctx, 5*time.Millisecond, func(context.Context) error {
		if p.Tail(1) != "ready" {
			return errors.New("not yet")
		}
		return nil
	}, p); err != nil {
		t.Fatal(err)
	}
	if err := Stop(s.PidFile, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, ok := Alive(s.PidFile); ok {
		t.Error("alive after Stop")
	}
}

func TestForeignPidIsNotAlive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	// This test's own pid with another start time: a pid used anew.
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d 1\n", os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	if pid, ok := Alive(file); ok {
		t.Fatalf("process %d counts as ours though its start time differs", pid)
	}
	if err := Stop(file, time.Second); err != nil {
		t.Fatal(err)
	}
}

// A start must not depend on whether the program lives long enough to be looked at.
func TestPidFileOfAProgramThatHasEndedAlready(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	// Waits until it has ended and leaves it unreaped.
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	if err := writePidFile(file, cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, ok := Alive(file); ok {
		t.Error("a program that has ended counts as alive")
	}
}

func TestWaitForShowsTheLogOfAProgramThatEnded(t *testing.T) {
	s := spec(t, "echo port 1 is taken; exit 3")
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err = WaitFor(ctx, time.Millisecond, func(context.Context) error { return errors.New("no answer") }, p)
	if err == nil || !strings.Contains(err.Error(), "port 1 is taken") {
		t.Fatalf("error %v, want one with the end of the log", err)
	}
}
