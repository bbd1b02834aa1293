package initd

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"helenus.io/helenus/internal/initapi"
)

// start runs the JVM in a session of its own. The caller holds i.mu, as for every function of this
// file: reaping and signalling exclude each other, so that a signal never reaches a pid that was
// freed.
func (i *Init) start(r initapi.Request) *initapi.Error {
	switch p, s := i.state.Process, i.state.Stopping; {
	case r.StartID == 0 || len(r.Argv) == 0 || !filepath.IsAbs(r.Argv[0]) || r.Dir != "" && !filepath.IsAbs(r.Dir):
		return initapi.Refuse(initapi.CodeInvalid, "start needs a startID, and absolute paths as argv[0] and dir")
	case r.StartID == i.state.LastStartID:
		return nil // took effect before; the state tells what became of it
	case r.StartID < i.state.LastStartID:
		return initapi.Refuse(initapi.CodeStale, "start %d is older than the last, %d", r.StartID, i.state.LastStartID)
	case s != nil:
		return initapi.Refuse(initapi.CodeStopping, "the container stops since %s", s.Since.Format(time.RFC3339))
	case i.lock == nil:
		return initapi.Refuse(initapi.CodeUnlocked, "%s", i.state.Unlocked)
	case p != nil:
		return initapi.Refuse(initapi.CodeRunning, "start %d runs as pid %d", p.StartID, p.PID)
	}
	dir := cmp.Or(r.Dir, "/")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(r.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
	words, stderr, err := hear(i.cfg.Log)
	if err != nil {
		return initapi.Refuse(initapi.CodeInvalid, "make a pipe for standard error: %v", err)
	}
	attr := &syscall.ProcAttr{Dir: dir, Env: append(env, r.Env...), Files: []uintptr{0, 1, stderr.Fd(), i.lock.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true}}
	pid, err := syscall.ForkExec(r.Argv[0], r.Argv, attr)
	_ = stderr.Close()
	i.words = words
	p := initapi.Process{StartID: r.StartID, PID: pid, StartedAt: time.Now().UTC()}
	i.state.LastStartID = r.StartID
	if err != nil {
		i.ended(initapi.Exit{Process: p, Code: 127, Error: fmt.Sprintf("run %s in %s: %v", r.Argv[0], dir, err)})
		return nil
	}
	i.state.Process = &p
	i.logf("start %d: pid %d: %s", p.StartID, p.PID, r.Argv[0])
	i.change()
	return nil
}

// signal sends TERM and QUIT to the JVM alone, because an archive command that runs during the
// drain must be able to end, and KILL to its process group.
func (i *Init) signal(startID uint64, pid int, name string) *initapi.Error {
	if name != "TERM" && name != "QUIT" && name != "KILL" {
		return initapi.Refuse(initapi.CodeInvalid, "signal %q is none of TERM, QUIT, KILL", name)
	}
	if p := i.state.Process; p == nil || p.StartID != startID || p.PID != pid {
		return initapi.Refuse(initapi.CodeNotRunning, "start %d with pid %d does not run", startID, pid)
	}
	i.logf("start %d: SIG%s to pid %d", startID, name, pid)
	if name == "KILL" {
		pid = -pid
	}
	if err := syscall.Kill(pid, unix.SignalNum("SIG"+name)); err != nil {
		return initapi.Refuse(initapi.CodeNotRunning, "signal pid %d: %v", pid, err)
	}
	return nil
}

// reap collects every ended child, orphans too, and records the end of the JVM.
func (i *Init) reap() {
	if p := i.state.Process; p != nil {
		var info unix.Siginfo
		// While the dead JVM is not collected its session ID is not reused: end what it left
		// behind.
		if unix.Waitid(unix.P_PID, p.PID, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil &&
			info.Signo != 0 {
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		}
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		if p := i.state.Process; p != nil && p.PID == pid {
			e := initapi.Exit{Process: *p, Code: status.ExitStatus(), Words: i.words.end()}
			if status.Signaled() {
				e.Code, e.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
			}
			i.ended(e)
		}
	}
}

// ended records the end of a start.
func (i *Init) ended(e initapi.Exit) {
	e.EndedAt = time.Now().UTC()
	i.state.Process = nil
	i.state.Exits = append(i.state.Exits, e)
	i.state.Exits = i.state.Exits[max(0, len(i.state.Exits)-keptExits):]
	i.logf("start %d: ended with status %d (%s)", e.StartID, e.Code, cmp.Or(e.Error, e.Signal, "exited"))
	i.change()
}

// cpuTime reads the CPU clock of a process, whose ID is made from the PID (clock_getcpuclockid).
func cpuTime(pid int) (t unix.Timespec) { _ = unix.ClockGettime(int32(^pid<<3|2), &t); return t }

// lockVolume takes the lock of the data volume, for good. Each JVM inherits the descriptor, so that
// the kernel keeps the lock until the last process that has it ends, even if init ends first.
func (i *Init) lockVolume() {
	_ = os.MkdirAll(filepath.Dir(i.cfg.Lock), 0o770)
	file, err := os.OpenFile(i.cfg.Lock, os.O_RDWR|os.O_CREATE, 0o660)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	why := ""
	if i.lock, i.again = file, nil; err != nil {
		_ = file.Close()
		i.lock, i.again, why = nil, time.After(lockAgain), fmt.Sprintf("lock %s: %v", i.cfg.Lock, err)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		why = "another process holds " + i.cfg.Lock
	}
	if why != i.state.Unlocked {
		i.state.Unlocked = why
		i.logf("data volume: %s", cmp.Or(why, "locked"))
		i.change()
	}
}
