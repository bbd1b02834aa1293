package initapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestProtocolIsFrozen holds every message to the bytes that released agents and inits exchange. A
// state of version 1 is one of version 2 without "unlocked".
func TestProtocolIsFrozen(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	process := Process{StartID: 4, PID: 17, StartedAt: at}
	var got bytes.Buffer
	for _, message := range []any{
		Hello{Protocol: ProtocolVersion, Version: "0.1.0"},
		Request{Op: OpState},
		Request{Op: OpWait, Incarnation: "ABC", After: 9, TimeoutMillis: 30000},
		Request{Op: OpStart, Incarnation: "ABC", StartID: 4, Argv: []string{"/opt/cassandra/bin/cassandra", "-f"},
			Env: []string{"A=b"}, Dir: "/opt/cassandra"},
		Request{Op: OpSignal, Incarnation: "ABC", StartID: 4, PID: 17, Signal: "TERM"},
		Request{Op: OpTakeStop, Incarnation: "ABC", LeaseMillis: 10000},
		Reply{Error: &Error{CodeStopping, "the container stops"}, State: &State{
			Incarnation: "ABC", Seq: 9, StartedAt: at, LastStartID: 4, Process: &process,
			Image: Image{ConfigDir: "/etc/cassandra", Base: "/helenus/base/ABC", CassandraHome: "/opt/cassandra",
				JavaRelease: "JAVA_VERSION=\"17\"\n", Environment: map[string]string{
					"CASSANDRA_HOME": "/opt/cassandra",
				}},
			Exits: []Exit{{Process: process, EndedAt: at, Code: 137, Signal: "SIGKILL"},
				{Process: process, EndedAt: at, Code: 127, Error: "run /x in /: no such file or directory"}},
			Stopping: &Stopping{Since: at, Deadline: at.Add(2 * time.Second), Taken: true},
		}},
		Reply{Error: &Error{CodeUnlocked, "another process holds it"}, State: &State{Incarnation: "ABC", Seq: 1,
			StartedAt: at, Unlocked: "another process holds it"}},
	} {
		if err := json.NewEncoder(&got).Encode(message); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "protocol.golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the protocol changed. It is frozen: add optional fields only.\ngot:\n%swant:\n%s", got.String(), want)
	}
}

func TestTheReleaseInAnImage(t *testing.T) {
	for want, jars := range map[string][]string{
		"5.0.6":         {"/opt/cassandra/lib/apache-cassandra-5.0.6.jar"},
		"5.0.6-patched": {"lib/apache-cassandra-thrift.jar", "lib/apache-cassandra-5.0.6-patched.jar"},
	} {
		if got := (Image{Jars: jars}).Release(); got != want {
			t.Errorf("%v: %q, want %q", jars, got, want)
		}
	}
	for _, jars := range [][]string{nil, {"apache-cassandra-.jar"}, {"apache-cassandra-4.1.jar", "apache-cassandra-5.0.jar"}} {
		if got := (Image{Jars: jars}).Release(); got != "" {
			t.Errorf("%v: %q", jars, got)
		}
	}
}
