package initclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
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

func TestInstallReplacesABinaryThatRuns(t *testing.T) {
	dir := t.TempDir()
	dst := filepath.Join(dir, "bin", "helenus-init")
	if err := Install("/bin/cat", dst); err != nil {
		t.Fatal(err)
	}
	running := exec.Command(dst)
	in, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	if err := Install(os.Args[0], dst); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := running.Wait(); err != nil {
		t.Errorf("the running binary ended with %v", err)
	}
	want, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.Stat(dst)
	if err != nil || got.Size() != want.Size() || got.Mode().Perm() != 0o555 {
		t.Errorf("installed %v, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "bin")); err != nil || len(entries) != 1 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
	if err := Install(filepath.Join(dir, "none"), dst); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
	if now, err := os.Stat(dst); err != nil || now.Size() != want.Size() {
		t.Errorf("a failed install changed the target: %v, %v", now, err)
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
