package initd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestProtocolIsFrozen holds every message to the bytes that released agents and inits exchange.
func TestProtocolIsFrozen(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	process := Process{StartID: 4, PID: 17, StartedAt: at}
	var got bytes.Buffer
	for _, message := range []any{
		Hello{Protocol: ProtocolVersion, Version: "0.1.0"},
		Request{Op: OpState},
		Request{Op: OpWait, Incarnation: "ABC", After: 9, TimeoutMillis: 30000},
		Request{Op: OpStart, Incarnation: "ABC", StartID: 4, Argv: []string{"/opt/cassandra/bin/cassandra", "-f"}, Env: []string{"A=b"}, Dir: "/opt/cassandra"},
		Request{Op: OpSignal, Incarnation: "ABC", StartID: 4, PID: 17, Signal: string(SignalTerminate)},
		Request{Op: OpTakeStop, Incarnation: "ABC", LeaseMillis: 10000},
		Reply{Error: refuse(CodeStopping, "the container stops"), State: &State{
			Incarnation: "ABC", Seq: 9, StartedAt: at, LastStartID: 4, Process: &process,
			Image:    Image{ConfigDir: "/etc/cassandra", Base: "/helenus/base/ABC", CassandraHome: "/opt/cassandra", JavaRelease: "JAVA_VERSION=\"17\"\n", Environment: map[string]string{"CASSANDRA_HOME": "/opt/cassandra"}},
			Exits:    []Exit{{Process: process, EndedAt: at, Code: 137, Signal: "SIGKILL"}, {Process: process, EndedAt: at, Code: 127, Error: "run /x in /: no such file or directory"}},
			Stopping: &Stopping{Since: at, Deadline: at.Add(2 * time.Second), Taken: true},
		}},
	} {
		if err := json.NewEncoder(&got).Encode(message); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "protocol.golden")
	if *update {
		write(t, golden, got.String())
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the protocol changed. It is frozen: add optional fields only.\ngot:\n%swant:\n%s", got.String(), want)
	}
}

// TestInitStaysSmall: the promise of the design, blank lines and comments included.
func TestInitStaysSmall(t *testing.T) {
	files, err := filepath.Glob("../../cmd/helenus-init/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of cmd/helenus-init: %v, %v", files, err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	// The agent's side, and the messages that both sides share.
	notInit := map[string]bool{"client.go": true, "install.go": true, "protocol.go": true, "doc.go": true}
	var lines int
	for _, file := range append(files, own...) {
		if strings.HasSuffix(file, "_test.go") || notInit[file] {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(content, []byte("\n"))
	}
	if lines > 570 {
		t.Errorf("helenus-init has %d lines, at most 570 are allowed", lines)
	}
}

// FuzzServe gives one connection arbitrary bytes: init answers in the form of the protocol, or not at all, and nothing it
// supervises changes, because no such request carries its incarnation.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"op":"state"}` + "\n"))
	f.Add([]byte(`{"op":"start","startID":1,"argv":["/bin/true"]}` + "\n"))
	f.Add([]byte(`{"op":"wait","timeoutMillis":1}` + "\n" + `{"op":"state"}` + "\n"))
	f.Add([]byte(`{"op":"take-stop","leaseMillis":-9223372036854775808}` + "\n"))
	f.Add([]byte("{\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"op":"signal","pid":-1,"signal":"KILL","startID":18446744073709551615}` + "\n"))
	f.Add(bytes.Repeat([]byte("x"), MaxRequestBytes+1))
	f.Fuzz(func(t *testing.T, sent []byte) {
		i := newInit(t)
		client, server := net.Pipe()
		served := make(chan struct{})
		go func() { i.serve(server); close(served) }()
		go func() { // init may close before it has read all
			_, _ = client.Write(append(sent, '\n'))
		}()
		replies := bufio.NewReader(client)
		var hello Hello
		if err := readLine(replies, &hello); err != nil || hello.Protocol != ProtocolVersion {
			t.Fatalf("hello %+v: %v", hello, err)
		}
		line, err := replies.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no reply: %v", err)
		}
		var reply Reply
		if err := json.Unmarshal(line, &reply); err != nil || reply.Error == nil && reply.State == nil {
			t.Fatalf("reply %s: %v", line, err)
		}
		_ = client.Close()
		<-served
		if i.state.Seq != 1 || i.state.LastStartID != 0 {
			t.Fatalf("the state changed: %+v", i.state)
		}
	})
}
