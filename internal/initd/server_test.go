package initd

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"testing"
	"time"

	"helenus.io/helenus/internal/initapi"
)

// newInit makes an Init of this process, for what needs neither signals nor a JVM.
func newInit(t testing.TB) *Init {
	i := &Init{cfg: Config{Version: "test", Window: time.Hour, Log: testLog{t}}, changed: make(chan struct{}),
		alone: time.NewTimer(time.Hour)}
	i.state = initapi.State{Incarnation: "one", Seq: 1}
	return i
}

type testLog struct{ testing.TB }

func (l testLog) Write(line []byte) (int, error) { l.Logf("%s", line); return len(line), nil }

func TestEveryWaitingAgentHearsOfAChange(t *testing.T) {
	c := startContainer(t, time.Hour)
	seen := c.now()
	heard := make(chan initapi.State)
	for range 5 {
		go func() {
			state, err := c.WaitChange(background, seen, initapi.MaxWait)
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
	state, err := c.WaitChange(background, initapi.State{Incarnation: "another", Seq: 1 << 40}, initapi.MaxWait)
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
	wait, err := json.Marshal(initapi.Request{Op: initapi.OpWait, Incarnation: seen.Incarnation, After: seen.Seq})
	if err != nil {
		t.Fatal(err)
	}
	start, err := json.Marshal(initapi.Request{Op: initapi.OpStart, Incarnation: seen.Incarnation, StartID: 2,
		Argv: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxConnections { // each kind fills all slots twice
		for _, sent := range []string{"", "{", string(start), string(wait) + "\n"} {
			conn, err := net.Dial("unix", filepath.Join(c.dir, initapi.SocketName))
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
		conn, err := net.Dial("unix", filepath.Join(c.dir, initapi.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	c.now()
}
