package initclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helenus.io/helenus/internal/initapi"
)

// answering listens on a socket and answers every connection with the same bytes.
func answering(t *testing.T, socket, answer string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(answer))
			_ = conn.(*net.UnixConn).CloseWrite()
		}
	}()
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "initd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, initapi.SocketName)
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	hello := `{"protocol":2,"version":"0.1.0"}` + "\n"
	for answer, want := range map[string]struct {
		unreachable bool
		message     string
	}{
		"":                                     {true, "read hello"},
		"junk\n":                               {true, "read hello"},
		hello:                                  {true, ""},
		hello + `{"sta`:                        {true, ""},
		hello + "{}\n":                         {false, "reply without a state"},
		`{"protocol":3}` + "\n":                {false, "speaks protocol 3, this agent 1 to 2: delete the pod"},
		hello + `{"state":{"seq":"x"}}` + "\n": {true, ""},
		hello + strings.Repeat(" ", maxReplyBytes): {true, ""},
	} {
		socket := socketPath(t)
		answering(t, socket, answer)
		_, err := NewClient(socket).State(context.Background())
		if err == nil || errors.Is(err, ErrUnreachable) != want.unreachable ||
			!strings.Contains(err.Error(), want.message) {
			t.Errorf("answer %.40q: %v", answer, err)
		}
	}
}

// TestAnInitWithoutALockStartsNothing: an init of the first version says nothing of a lock, so that
// by its state none is held.
func TestAnInitWithoutALockStartsNothing(t *testing.T) {
	for version, want := range map[string]string{"1": "helenus-init 0.1.0 knows no lock of the data volume", "2": ""} {
		socket := socketPath(t)
		answering(t, socket, `{"protocol":`+version+`,"version":"0.1.0"}`+"\n"+`{"state":{"incarnation":"X"}}`+"\n")
		state, err := NewClient(socket).State(t.Context())
		if err != nil || state.Incarnation != "X" || !strings.HasPrefix(state.Unlocked, want) ||
			(state.Unlocked == "") != (want == "") {
			t.Errorf("version %s: %+v, %v", version, state, err)
		}
	}
}

func ExampleClient() {
	ctx := context.Background()
	client := NewClient("/helenus/init.sock")
	state, err := client.State(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if state.Process == nil {
		state, err = client.Start(ctx, state, state.LastStartID+1,
			Command{Argv: []string{"/opt/cassandra/bin/cassandra", "-f"}})
	}
	for err == nil && state.Process != nil {
		state, err = client.WaitChange(ctx, state, initapi.MaxWait)
	}
}
