package initd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helenus.io/helenus/internal/initapi"
)

// TestInitStaysSmall: PID 1, which is this package and cmd/helenus-init, has at most 600 lines,
// blank lines and comments included.
func TestInitStaysSmall(t *testing.T) {
	files, err := filepath.Glob("../../cmd/helenus-init/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of cmd/helenus-init: %v, %v", files, err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var lines int
	for _, file := range append(files, own...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(content, []byte("\n"))
	}
	if lines > 600 {
		t.Errorf("helenus-init has %d lines, at most 600 are allowed", lines)
	}
}

// FuzzServe gives one connection arbitrary bytes: init answers in the form of the protocol, or not
// at all, and nothing it supervises changes, because no such request carries its incarnation.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"op":"state"}` + "\n"))
	f.Add([]byte(`{"op":"start","startID":1,"argv":["/bin/true"]}` + "\n"))
	f.Add([]byte(`{"op":"wait","timeoutMillis":1}` + "\n" + `{"op":"state"}` + "\n"))
	f.Add([]byte(`{"op":"take-stop","leaseMillis":-9223372036854775808}` + "\n"))
	f.Add([]byte("{\n"))
	f.Add([]byte("\n"))
	f.Add([]byte(`{"op":"signal","pid":-1,"signal":"KILL","startID":18446744073709551615}` + "\n"))
	f.Add(bytes.Repeat([]byte("x"), initapi.MaxRequestBytes+1))
	f.Fuzz(func(t *testing.T, sent []byte) {
		i := newInit(t)
		client, server := net.Pipe()
		served := make(chan struct{})
		go func() { i.serve(server); close(served) }()
		go func() { // init may close before it has read all
			_, _ = client.Write(append(sent, '\n'))
		}()
		replies := bufio.NewReader(client)
		var hello initapi.Hello
		line, err := replies.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &hello) != nil || hello.Protocol != initapi.ProtocolVersion {
			t.Fatalf("hello %q: %v", line, err)
		}
		line, err = replies.ReadBytes('\n')
		if err != nil {
			t.Fatalf("no reply: %v", err)
		}
		var reply initapi.Reply
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
