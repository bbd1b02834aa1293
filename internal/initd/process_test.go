package initd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

var background = context.Background()

func lastExit(s initapi.State) initapi.Exit {
	if len(s.Exits) == 0 {
		return initapi.Exit{}
	}
	return s.Exits[len(s.Exits)-1]
}

func idle(s initapi.State) bool { return s.Process == nil }

func TestStartRunsInASessionOfItsOwnAndPassesOutputThrough(t *testing.T) {
	c := startContainer(t, time.Hour)
	state, err := c.Start(background, c.now(), 7, jvm())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.expectOutput("jvm"), `jvm dir=/ X="it is x" leader=true`; got != want {
		t.Errorf("the JVM saw %q, want %q", got, want)
	}
	if p := state.Process; p == nil || p.StartID != 7 || p.PID == 0 || p.StartedAt.Before(state.StartedAt) {
		t.Errorf("process %+v, started at %s", p, state.StartedAt)
	}
	if state.LastStartID != 7 {
		t.Errorf("last start id %d, want 7", state.LastStartID)
	}
}

func TestStartTakesEffectOncePerID(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	first, err := c.Start(background, seen, 5, jvm())
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Start(background, seen, 5, jvm())
	if err != nil || *again.Process != *first.Process || again.Seq != first.Seq {
		t.Errorf("same id again: %v, %+v after %+v", err, again.Process, first.Process)
	}
	if _, err := c.Start(background, seen, 6, jvm()); !initclient.Refused(err, initapi.CodeRunning) {
		t.Errorf("second start while one runs: %v", err)
	}
	if _, err := c.Start(background, seen, 4, jvm()); !initclient.Refused(err, initapi.CodeStale) {
		t.Errorf("start with an older id: %v", err)
	}
	if _, err := c.Signal(background, first, *first.Process, initclient.SignalKill); err != nil {
		t.Fatal(err)
	}
	c.until(idle)
	if state, err := c.Start(background, seen, 5, jvm()); err != nil || state.Process != nil {
		t.Errorf("same id after its end: %v, %+v", err, state.Process)
	}
	if state, err := c.Start(background, seen, 6, jvm()); err != nil || state.Process == nil {
		t.Errorf("next id after the end: %v, %+v", err, state.Process)
	}
}

func TestConcurrentStartsOfOneIDRunOneJVM(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	var agents sync.WaitGroup
	var pids sync.Map
	for range 8 {
		agents.Go(func() {
			state, err := c.Start(background, seen, 1, jvm())
			if err != nil {
				t.Errorf("start: %v", err)
				return
			}
			pids.Store(state.Process.PID, true)
		})
	}
	agents.Wait()
	var count int
	pids.Range(func(any, any) bool { count++; return true })
	if count != 1 {
		t.Errorf("%d JVMs from one start id", count)
	}
}

func TestInvalidStartsAreRefusedAndUseUpNoID(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	for name, start := range map[string]func() error{
		"id 0":    func() error { _, err := c.Start(background, seen, 0, jvm()); return err },
		"no argv": func() error { _, err := c.Start(background, seen, 1, initclient.Command{}); return err },
		"relative argv": func() error {
			_, err := c.Start(background, seen, 1, initclient.Command{Argv: []string{"java"}})
			return err
		},
		"relative dir": func() error {
			_, err := c.Start(background, seen, 1, initclient.Command{Argv: []string{"/bin/true"}, Dir: "x"})
			return err
		},
		"too large": func() error {
			_, err := c.Start(background, seen, 1, initclient.Command{Argv: []string{"/bin/true",
				strings.Repeat("x", initapi.MaxRequestBytes)}})
			return err
		},
	} {
		if err := start(); !initclient.Refused(err, initapi.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if state := c.now(); state.LastStartID != 0 || state.Seq != seen.Seq {
		t.Errorf("refused starts left %+v", state)
	}
}

func TestHowAJVMEndedIsReportedAndInitStays(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run("exit", "3")
	state := c.until(idle)
	if e := lastExit(state); e.Code != 3 || e.Signal != "" || e.Process != *seen.Process ||
		e.EndedAt.Before(e.StartedAt) {
		t.Errorf("exit %+v of %+v", e, seen.Process)
	}
	seen = c.run()
	if _, err := c.Signal(background, seen, *seen.Process, initclient.SignalKill); err != nil {
		t.Fatal(err)
	}
	if e := lastExit(c.until(idle)); e.Code != 137 || e.Signal != "SIGKILL" || e.StartID != 2 {
		t.Errorf("killed: %+v", e)
	}
	state, err := c.Start(background, seen, 3, initclient.Command{Argv: []string{"/no/such/program"}})
	if err != nil {
		t.Fatal(err)
	}
	if e := lastExit(state); e.Code != 127 || !strings.Contains(e.Error, "/no/such/program") || state.Process != nil ||
		state.LastStartID != 3 {
		t.Errorf("missing program: %+v", e)
	}
	if len(state.Exits) != 3 {
		t.Errorf("%d exits, want 3", len(state.Exits))
	}
}

func TestOnlyTheLastExitsAreKept(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	for id := range uint64(keptExits + 4) {
		if _, err := c.Start(background, seen, id+1,
			initclient.Command{Argv: []string{"/no/such/program"}}); err != nil {
			t.Fatal(err)
		}
	}
	state := c.now()
	if len(state.Exits) != keptExits || state.Exits[0].StartID != 5 || lastExit(state).StartID != keptExits+4 {
		t.Errorf("%d exits from %d to %d", len(state.Exits), state.Exits[0].StartID, lastExit(state).StartID)
	}
}

func TestOrphansBecomeChildrenOfInitAndAreReaped(t *testing.T) {
	c := startContainer(t, time.Hour)
	c.run("orphan")
	line := c.expectOutput("orphan parent=")
	if c.cmd.SysProcAttr.Cloneflags != 0 && line != "orphan parent=1" {
		t.Errorf("%s, want 1", line)
	}
	deadline := time.Now().Add(time.Minute)
	for len(zombies(t, c.cmd.Process.Pid)) > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("zombies remain: %v", zombies(t, c.cmd.Process.Pid))
		}
	}
	if state := c.now(); state.Process == nil || len(state.Exits) > 0 {
		t.Errorf("the end of an orphan was taken for that of the JVM: %+v", state)
	}
}

// zombies lists the dead children of a process that were not collected.
func zombies(t *testing.T, parent int) (pids []string) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // ended since
		}
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if fields[0] == "Z" && fields[1] == fmt.Sprint(parent) {
			pids = append(pids, path)
		}
	}
	return pids
}

func TestWhatADeadJVMLeftBehindIsKilled(t *testing.T) {
	c := startContainer(t, time.Hour)
	fifo := filepath.Join(c.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := c.run("leftover", fifo)
	pipe, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	left := bufio.NewScanner(pipe)
	if !left.Scan() || left.Text() != "alive" {
		t.Fatalf("leftover says %q", left.Text())
	}
	if _, err := c.Signal(background, seen, *seen.Process, initclient.SignalTerminate); err != nil {
		t.Fatal(err)
	}
	if e := lastExit(c.until(idle)); e.Code != 143 {
		t.Errorf("exit %+v", e)
	}
	if left.Scan() { // end of file comes with the end of the process
		t.Errorf("leftover lives and says %q", left.Text())
	}
}

func TestSignals(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run()
	if _, err := c.Signal(background, seen, *seen.Process, initclient.SignalThreadDump); err != nil {
		t.Fatal(err)
	}
	c.expectOutput("jvm threads")

	other := seen
	other.Incarnation = "another"
	for name, refusal := range map[string]struct {
		seen initapi.State
		p    initapi.Process
		sig  initclient.Signal
		want initapi.Code
	}{
		"other start": {seen, initapi.Process{StartID: 2, PID: seen.Process.PID}, initclient.SignalKill,
			initapi.CodeNotRunning},
		"other pid": {seen, initapi.Process{StartID: 1, PID: seen.Process.PID + 1}, initclient.SignalKill,
			initapi.CodeNotRunning},
		"no pid":            {seen, initapi.Process{StartID: 1}, initclient.SignalKill, initapi.CodeNotRunning},
		"other incarnation": {other, *seen.Process, initclient.SignalKill, initapi.CodeIncarnation},
		"other signal":      {seen, *seen.Process, "STOP", initapi.CodeInvalid},
		"no signal":         {seen, *seen.Process, "", initapi.CodeInvalid},
	} {
		if _, err := c.Signal(background, refusal.seen, refusal.p, refusal.sig); !initclient.Refused(err,
			refusal.want) {
			t.Errorf("%s: %v, want %s", name, err, refusal.want)
		}
	}
	if _, err := c.Signal(background, seen, *seen.Process, initclient.SignalTerminate); err != nil {
		t.Fatal(err)
	}
	c.expectOutput("jvm draining")
	if e := lastExit(c.until(idle)); e.Code != 143 || e.Signal != "" {
		t.Errorf("exit %+v", e)
	}
	if _, err := c.Signal(background, seen, *seen.Process, initclient.SignalKill); !initclient.Refused(err,
		initapi.CodeNotRunning) {
		t.Errorf("signal to an ended JVM: %v", err)
	}
}

func TestSignalsThatWouldEndAGoProgramAreIgnored(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM} {
		if err := c.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if state := c.now(); state.Seq != seen.Seq || state.Process == nil {
		t.Errorf("state changed: %+v", state)
	}
}

// What a JVM says on its standard error is in the container's log, and its end in the state, for
// the agent to say why there is no Cassandra.
func TestTheLastWordsOfAJVMAreKept(t *testing.T) {
	long := strings.Repeat("a line of a warning that comes again and again\n", 40)
	for name, c := range map[string]struct{ says, want string }{
		"nothing": {"", ""},
		"why it does not start": {"Unrecognized VM option 'X'\nError: no JVM\n",
			"Unrecognized VM option 'X'\nError: no JVM"},
		"the end of much":         {long + "the end", "the end"},
		"less than would be kept": {strings.Repeat("x", 500), strings.Repeat("x", 500)},
	} {
		t.Run(name, func(t *testing.T) {
			box := startContainer(t, time.Hour)
			box.run("refuse", "1", c.says)
			e := lastExit(box.until(idle))
			if e.Code != 1 || !strings.HasSuffix(e.Words, c.want) || c.want == "" && e.Words != "" ||
				len(e.Words) > keptWords {
				t.Errorf("exit %+v, want the words %q", e, c.want)
			}
			if first, _, _ := strings.Cut(c.says, "\n"); len(first) < 100 && first != "" {
				box.expectLog(first)
			}
		})
	}
}
