package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to start.
type Spec struct {
	// Name is for messages: kube-apiserver.
	Name string
	// Path and Args are the program and its arguments, without argv[0].
	Path string
	Args []string
	// Env is added to the environment of this process.
	Env []string
	// PidFile and LogFile are absolute paths; the log is appended to.
	PidFile, LogFile string
	// Cloneflags are the namespaces the program gets of its own.
	Cloneflags uintptr
	// ExtraFiles are inherited as file descriptors 3, 4, ...
	ExtraFiles []*os.File
}

// Running is a started program.
type Running struct {
	Name    string
	Pid     int
	pidFile string
	logFile string
	logFrom int64
}

// Start starts the program unless the one in the pid file is still alive, in
// which case it returns that one.
func Start(spec Spec) (*Running, error) {
	if pid, ok := Alive(spec.PidFile); ok {
		return &Running{Name: spec.Name, Pid: pid, pidFile: spec.PidFile, logFile: spec.LogFile}, nil
	}
	for _, file := range []string{spec.PidFile, spec.LogFile} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, fmt.Errorf("start %s: %w", spec.Name, err)
		}
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open log: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("start %s: seek log: %w", spec.Name, err)
	}
	// Not bound to a context: the program outlives this command.
	cmd := exec.Command(spec.Path, spec.Args...) //nolint:noctx // it must not end with the command that starts it
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.ExtraFiles = spec.ExtraFiles
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: spec.Cloneflags}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if err := writePidFile(spec.PidFile, cmd.Process.Pid); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", spec.Name, err), cmd.Process.Kill())
	}
	// Why it ended is in its log; Wait only reaps it.
	go func() { _ = cmd.Wait() }()
	return &Running{Name: spec.Name, Pid: cmd.Process.Pid, pidFile: spec.PidFile, logFile: spec.LogFile, logFrom: from},
		nil
}

// Tail gives the last lines the program wrote since it was started.
func (r *Running) Tail(lines int) string {
	content, err := os.ReadFile(r.logFile)
	if err != nil {
		return err.Error()
	}
	if r.logFrom <= int64(len(content)) {
		content = content[r.logFrom:]
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// WaitFor calls ready until it returns nil, one of the programs ends or ctx is
// done. It asks again after the given pause. The error for a program that ended
// carries the end of its log.
func WaitFor(ctx context.Context, pause time.Duration, ready func(context.Context) error, programs ...*Running) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		for _, r := range programs {
			if _, ok := Alive(r.pidFile); !ok {
				return fmt.Errorf("%s has ended; the end of its log %s:\n%s", r.Name, r.logFile, r.Tail(15))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Alive reads a pid file and tells whether that very process still runs. A pid
// that the kernel has since given to another program does not count.
func Alive(pidFile string) (int, bool) {
	content, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, false
	}
	var pid int
	var started uint64
	if _, err := fmt.Sscanf(string(content), "%d %d", &pid, &started); err != nil {
		return 0, false
	}
	now, ended, err := startTime(pid)
	return pid, err == nil && !ended && now == started
}

// Stop ends the process of the pid file: SIGTERM, then SIGKILL when it has not
// ended after grace (at once when grace is 0). The pid file is removed. No
// process in it is no error.
func Stop(pidFile string, grace time.Duration) error {
	if err := stop(pidFile, grace); err != nil {
		return err
	}
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove pid file: %w", err)
	}
	return nil
}

func stop(pidFile string, grace time.Duration) error {
	pid, ok := Alive(pidFile)
	if !ok {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(fd) }()
	// Between the look and the open the pid may have changed hands.
	if again, ok := Alive(pidFile); !ok || again != pid {
		return nil
	}
	if grace > 0 {
		ended, err := signalAndWait(fd, unix.SIGTERM, grace)
		if err != nil {
			return fmt.Errorf("stop process %d: %w", pid, err)
		}
		if ended {
			return nil
		}
	}
	ended, err := signalAndWait(fd, unix.SIGKILL, 30*time.Second)
	if err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	if !ended {
		return fmt.Errorf("process %d does not end after SIGKILL: it waits in the kernel, see /proc/%d/stack", pid, pid)
	}
	return nil
}

// signalAndWait sends the signal and waits on the pidfd, which becomes readable
// when the process has ended, also when its parent has not yet reaped it.
func signalAndWait(fd int, sig unix.Signal, limit time.Duration) (bool, error) {
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return true, nil
		}
		return false, err
	}
	deadline := time.Now().Add(limit)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(left.Milliseconds())+1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
	}
}

func writePidFile(file string, pid int) error {
	// A program that has ended already is no error of its start: whoever waits
	// for it finds it ended, and shows its log.
	started, _, err := startTime(pid)
	if err != nil {
		return err
	}
	tmp := file + ".tmp"
	if err := os.WriteFile(tmp, fmt.Appendf(nil, "%d %d\n", pid, started), 0o644); err != nil {
		return fmt.Errorf("write pid file: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("write pid file: %w", err)
	}
	return nil
}

// startTime is field 22 of /proc/PID/stat: clock ticks after boot; and whether
// the process has ended and only waits to be reaped.
func startTime(pid int) (ticks uint64, ended bool, err error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false, fmt.Errorf("read start time: %w", err)
	}
	// The program's name, in parentheses, may hold spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, false, fmt.Errorf("read start time of %d: short stat line", pid)
	}
	ticks, err = strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("read start time of %d: %w", pid, err)
	}
	state := fields[0][0]
	return ticks, state == 'Z' || state == 'X', nil
}
