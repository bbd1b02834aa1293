package initd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var background = context.Background()

func lastExit(s State) Exit {
	if len(s.Exits) == 0 {
		return Exit{}
	}
	return s.Exits[len(s.Exits)-1]
}

func idle(s State) bool { return s.Process == nil }

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
	if _, err := c.Start(background, seen, 6, jvm()); !Refused(err, CodeRunning) {
		t.Errorf("second start while one runs: %v", err)
	}
	if _, err := c.Start(background, seen, 4, jvm()); !Refused(err, CodeStale) {
		t.Errorf("start with an older id: %v", err)
	}
	if _, err := c.Signal(background, first, *first.Process, SignalKill); err != nil {
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
		"id 0":          func() error { _, err := c.Start(background, seen, 0, jvm()); return err },
		"no argv":       func() error { _, err := c.Start(background, seen, 1, Command{}); return err },
		"relative argv": func() error { _, err := c.Start(background, seen, 1, Command{Argv: []string{"java"}}); return err },
		"relative dir": func() error {
			_, err := c.Start(background, seen, 1, Command{Argv: []string{"/bin/true"}, Dir: "x"})
			return err
		},
		"too large": func() error {
			_, err := c.Start(background, seen, 1, Command{Argv: []string{"/bin/true", strings.Repeat("x", MaxRequestBytes)}})
			return err
		},
	} {
		if err := start(); !Refused(err, CodeInvalid) {
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
	if e := lastExit(state); e.Code != 3 || e.Signal != "" || e.Process != *seen.Process || e.EndedAt.Before(e.StartedAt) {
		t.Errorf("exit %+v of %+v", e, seen.Process)
	}
	seen = c.run()
	if _, err := c.Signal(background, seen, *seen.Process, SignalKill); err != nil {
		t.Fatal(err)
	}
	if e := lastExit(c.until(idle)); e.Code != 137 || e.Signal != "SIGKILL" || e.StartID != 2 {
		t.Errorf("killed: %+v", e)
	}
	state, err := c.Start(background, seen, 3, Command{Argv: []string{"/no/such/program"}})
	if err != nil {
		t.Fatal(err)
	}
	if e := lastExit(state); e.Code != 127 || !strings.Contains(e.Error, "/no/such/program") || state.Process != nil || state.LastStartID != 3 {
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
		if _, err := c.Start(background, seen, id+1, Command{Argv: []string{"/no/such/program"}}); err != nil {
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
	if _, err := c.Signal(background, seen, *seen.Process, SignalTerminate); err != nil {
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
	if _, err := c.Signal(background, seen, *seen.Process, SignalThreadDump); err != nil {
		t.Fatal(err)
	}
	c.expectOutput("jvm threads")

	other := seen
	other.Incarnation = "another"
	for name, refusal := range map[string]struct {
		seen State
		p    Process
		sig  Signal
		want Code
	}{
		"other start":       {seen, Process{StartID: 2, PID: seen.Process.PID}, SignalKill, CodeNotRunning},
		"other pid":         {seen, Process{StartID: 1, PID: seen.Process.PID + 1}, SignalKill, CodeNotRunning},
		"no pid":            {seen, Process{StartID: 1}, SignalKill, CodeNotRunning},
		"other incarnation": {other, *seen.Process, SignalKill, CodeIncarnation},
		"other signal":      {seen, *seen.Process, "STOP", CodeInvalid},
		"no signal":         {seen, *seen.Process, "", CodeInvalid},
	} {
		if _, err := c.Signal(background, refusal.seen, refusal.p, refusal.sig); !Refused(err, refusal.want) {
			t.Errorf("%s: %v, want %s", name, err, refusal.want)
		}
	}
	if _, err := c.Signal(background, seen, *seen.Process, SignalTerminate); err != nil {
		t.Fatal(err)
	}
	c.expectOutput("jvm draining")
	if e := lastExit(c.until(idle)); e.Code != 143 || e.Signal != "" {
		t.Errorf("exit %+v", e)
	}
	if _, err := c.Signal(background, seen, *seen.Process, SignalKill); !Refused(err, CodeNotRunning) {
		t.Errorf("signal to an ended JVM: %v", err)
	}
}

func TestSignalsThatWouldEndAGoProgramAreIgnored(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM} {
		if err := c.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if state := c.now(); state.Seq != seen.Seq || state.Process == nil {
		t.Errorf("state changed: %+v", state)
	}
}

func TestSIGTERMWithoutAnAgentStopsCassandraAndPassesItsStatusOn(t *testing.T) {
	for _, status := range []int{143, 0, 7} {
		c := startContainer(t, time.Millisecond)
		c.run("on-term", fmt.Sprint(status))
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.expectOutput("jvm draining")
		c.expectLog("no agent stops Cassandra")
		c.expectLog(fmt.Sprintf("exit with status %d", status))
		if got := c.end(); got != status {
			t.Errorf("container ended with %d, its JVM with %d", got, status)
		}
	}
}

func TestSIGTERMWithoutAJVMEndsAtOnce(t *testing.T) {
	for _, ranBefore := range []bool{false, true} {
		c := startContainer(t, time.Hour)
		if ranBefore {
			c.run("exit", "3")
			c.until(idle)
		}
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if got := c.end(); got != 143 {
			t.Errorf("ran before %v: ended with %d, want 143", ranBefore, got)
		}
	}
}

func TestAnAgentTakesTheStop(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run()
	if _, err := c.TakeStop(background, seen, time.Second); !Refused(err, CodeNotStopping) {
		t.Errorf("take before SIGTERM: %v", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state := c.until(func(s State) bool { return s.Stopping != nil })
	if s := state.Stopping; s.Taken || s.Alone || !s.Deadline.After(s.Since) || state.Process == nil {
		t.Errorf("stopping %+v", s)
	}
	if _, err := c.Start(background, state, 2, jvm()); !Refused(err, CodeStopping) {
		t.Errorf("start after SIGTERM: %v", err)
	}
	for _, lease := range []time.Duration{0, -time.Second, MaxStopLease + time.Millisecond, 1 << 62} {
		if _, err := c.TakeStop(background, state, lease); !Refused(err, CodeInvalid) {
			t.Errorf("lease of %s: %v", lease, err)
		}
	}
	for range 2 { // the second renews
		taken, err := c.TakeStop(background, state, MaxStopLease)
		if err != nil || !taken.Stopping.Taken || taken.Stopping.Alone {
			t.Fatalf("take: %v, %+v", err, taken.Stopping)
		}
	}
	if _, err := c.Signal(background, state, *state.Process, SignalKill); err != nil {
		t.Fatal(err)
	}
	if got := c.end(); got != 137 {
		t.Errorf("ended with %d, the JVM with 137", got)
	}
	if _, err := c.State(background); !errors.Is(err, ErrUnreachable) {
		t.Errorf("state after the end: %v", err)
	}
}

func TestAnAgentThatTookTheStopAndVanishedIsReplaced(t *testing.T) {
	c := startContainer(t, time.Hour)
	c.run()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state := c.until(func(s State) bool { return s.Stopping != nil })
	if _, err := c.TakeStop(background, state, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c.expectOutput("jvm draining")
	if got := c.end(); got != 143 {
		t.Errorf("ended with %d, want 143", got)
	}
}

func TestATakenStopCannotBeTakenFromInitAgain(t *testing.T) {
	i := newInit(t)
	i.locked(i.stop)
	i.state.Stopping.Deadline = time.Now().Add(-time.Second)
	i.locked(i.stopAlone)
	if !i.state.Stopping.Alone {
		t.Fatal("init does not act after the deadline")
	}
	if e := i.take(time.Second); e == nil || e.Code != CodeTooLate {
		t.Errorf("take after init acted: %v", e)
	}
}

func TestARenewalThatCrossesTheTimerHolds(t *testing.T) {
	i := newInit(t)
	i.locked(i.stop)
	if e := i.take(time.Second); e != nil {
		t.Fatal(e)
	}
	i.locked(i.stopAlone) // as if the timer of the former deadline had fired
	if i.state.Stopping.Alone {
		t.Error("init acts although the stop is taken")
	}
}

// newInit makes an Init of this process, for what needs neither signals nor a JVM.
func newInit(t testing.TB) *Init {
	i := &Init{cfg: Config{Version: "test", Window: time.Hour, Log: testLog{t}}, changed: make(chan struct{}), alone: time.NewTimer(time.Hour)}
	i.state = State{Incarnation: "one", Seq: 1}
	return i
}

type testLog struct{ testing.TB }

func (l testLog) Write(line []byte) (int, error) { l.Logf("%s", line); return len(line), nil }

func TestEveryWaitingAgentHearsOfAChange(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	heard := make(chan State)
	for range 5 {
		go func() {
			state, err := c.WaitChange(background, seen, MaxWait)
			if err != nil {
				t.Errorf("wait: %v", err)
			}
			heard <- state
		}()
	}
	c.run()
	for range 5 {
		if state := <-heard; state.Process == nil || state.Seq <= seen.Seq {
			t.Errorf("heard %+v", state)
		}
	}
	state, err := c.WaitChange(background, State{Incarnation: "another", Seq: 1 << 40}, MaxWait)
	if err != nil || state.Incarnation != seen.Incarnation {
		t.Errorf("wait of an agent that knew another incarnation: %v, %+v", err, state)
	}
	now := c.now()
	if state, err := c.WaitChange(background, now, time.Millisecond); err != nil || state.Seq != now.Seq {
		t.Errorf("wait without a change: %v, %+v", err, state)
	}
}

func TestAgentsThatVanishCostNothing(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.run()
	wait, err := json.Marshal(Request{Op: OpWait, Incarnation: seen.Incarnation, After: seen.Seq})
	if err != nil {
		t.Fatal(err)
	}
	start, err := json.Marshal(Request{Op: OpStart, Incarnation: seen.Incarnation, StartID: 2, Argv: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxConnections { // each kind fills all slots twice
		for _, sent := range []string{"", "{", string(start), string(wait) + "\n"} {
			conn, err := net.Dial("unix", filepath.Join(c.dir, SocketName))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil { // served, not only accepted
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(sent)); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
	}
	state := c.now()
	if state.LastStartID != 1 || state.Process == nil || *state.Process != *seen.Process {
		t.Errorf("state %+v, before %+v", state, seen)
	}
}

func TestHalfOpenConnectionsDoNotShutOthersOut(t *testing.T) {
	c := startContainer(t, time.Hour)
	for range maxConnections - 1 {
		conn, err := net.Dial("unix", filepath.Join(c.dir, SocketName))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	c.now()
}

func TestImageIsReported(t *testing.T) {
	dir, err := os.MkdirTemp("", "initd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	image := t.TempDir()
	conf := filepath.Join(image, "conf")
	write(t, filepath.Join(image, "real", "cassandra.yaml"), "cluster_name: image\n")
	write(t, filepath.Join(image, "real", "triggers", "README.txt"), "triggers\n")
	write(t, filepath.Join(image, "elsewhere"), "linked\n")
	write(t, filepath.Join(image, "java", "release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n")
	for link, target := range map[string]string{conf: "real", filepath.Join(image, "real", "linked"): "../elsewhere", filepath.Join(image, "real", "dangling"): "nowhere"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("JAVA_HOME", filepath.Join(image, "java"))
	t.Setenv("DB_PASSWORD", "not for the agent")

	c := startContainerIn(t, dir, conf, time.Hour)
	first := c.now()
	if first.Image.ConfigDir != conf || first.Image.CassandraHome != "/opt/here" || first.Image.JavaVersion() != "17.0.15" {
		t.Errorf("image %+v", first.Image)
	}
	if first.Image.Environment["CASSANDRA_HOME"] != "/opt/here" || first.Image.Environment["DB_PASSWORD"] != "" {
		t.Errorf("environment %v", first.Image.Environment)
	}
	for name, want := range map[string]string{"cassandra.yaml": "cluster_name: image\n", "triggers/README.txt": "triggers\n", "linked": "linked\n"} {
		got, err := os.ReadFile(filepath.Join(first.Image.Base, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(first.Image.Base, "dangling")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dangling link was copied: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, SocketName)); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket mode %v, %v", info.Mode(), err)
	}

	// The container is restarted: killed hard, its socket and its copy stay behind.
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.end()
	write(t, filepath.Join(image, "real", "cassandra.yaml"), "cluster_name: newer\n")
	c = startContainerIn(t, dir, conf, time.Hour)
	second := c.now()
	if second.Incarnation == first.Incarnation || second.Image.Base == first.Image.Base {
		t.Errorf("incarnation %q and base %q stayed", second.Incarnation, second.Image.Base)
	}
	if got, err := os.ReadFile(filepath.Join(second.Image.Base, "cassandra.yaml")); err != nil || string(got) != "cluster_name: newer\n" {
		t.Errorf("refreshed copy: %q, %v", got, err)
	}
	if _, err := os.Stat(first.Image.Base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former copy stayed: %v", err)
	}
	if _, err := c.Start(background, first, 1, jvm()); !Refused(err, CodeIncarnation) {
		t.Errorf("start decided for the former container: %v", err)
	}
}

func TestAMissingOrHugeConfigurationIsNamed(t *testing.T) {
	huge := t.TempDir()
	write(t, filepath.Join(huge, "file"), "")
	if err := os.Truncate(filepath.Join(huge, "file"), maxConfigBytes+1); err != nil {
		t.Fatal(err)
	}
	for conf, want := range map[string]string{"/no/such/conf": "/no/such/conf", huge: "holds more than"} {
		t.Setenv("CASSANDRA_CONF", conf)
		i := newInit(t)
		i.cfg.Dir = t.TempDir()
		if err := i.readImage(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "CASSANDRA_CONF") {
			t.Errorf("%s: %v", conf, err)
		}
	}
}
