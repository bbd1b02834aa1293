package initd

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

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
	if _, err := c.TakeStop(background, seen, time.Second); !initclient.Refused(err, initapi.CodeNotStopping) {
		t.Errorf("take before SIGTERM: %v", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state := c.until(func(s initapi.State) bool { return s.Stopping != nil })
	if s := state.Stopping; s.Taken || s.Alone || !s.Deadline.After(s.Since) || state.Process == nil {
		t.Errorf("stopping %+v", s)
	}
	if _, err := c.Start(background, state, 2, jvm()); !initclient.Refused(err, initapi.CodeStopping) {
		t.Errorf("start after SIGTERM: %v", err)
	}
	for _, lease := range []time.Duration{0, -time.Second, initapi.MaxStopLease + time.Millisecond, 1 << 62} {
		if _, err := c.TakeStop(background, state, lease); !initclient.Refused(err, initapi.CodeInvalid) {
			t.Errorf("lease of %s: %v", lease, err)
		}
	}
	for range 2 { // the second renews
		taken, err := c.TakeStop(background, state, initapi.MaxStopLease)
		if err != nil || !taken.Stopping.Taken || taken.Stopping.Alone {
			t.Fatalf("take: %v, %+v", err, taken.Stopping)
		}
	}
	if _, err := c.Signal(background, state, *state.Process, initclient.SignalKill); err != nil {
		t.Fatal(err)
	}
	if got := c.end(); got != 137 {
		t.Errorf("ended with %d, the JVM with 137", got)
	}
	if _, err := c.State(background); !errors.Is(err, initclient.ErrUnreachable) {
		t.Errorf("state after the end: %v", err)
	}
}

func TestAnAgentThatTookTheStopAndVanishedIsReplaced(t *testing.T) {
	c := startContainer(t, time.Hour)
	c.run()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state := c.until(func(s initapi.State) bool { return s.Stopping != nil })
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
	if e := i.take(time.Second); e == nil || e.Code != initapi.CodeTooLate {
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

func TestACallEndsWithItsContext(t *testing.T) {
	c := startContainer(t, time.Hour)
	ctx, cancel := context.WithCancelCause(background)
	reason := errors.New("the agent ends")
	ended := make(chan error)
	seen := c.now()
	go func() {
		_, err := c.WaitChange(ctx, seen, initapi.MaxWait)
		ended <- err
	}()
	cancel(reason)
	if err := <-ended; !errors.Is(err, reason) || !errors.Is(err, initclient.ErrUnreachable) {
		t.Errorf("wait ended with %v", err)
	}
}
