package jolokia

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

const (
	storageService = "org.apache.cassandra.db:type=StorageService"
	streamManager  = "org.apache.cassandra.net:type=StreamManager"
)

// exchanges are requests whose real answers, of Jolokia 2.3.0 in Cassandra 4.1 and 5.0, are kept in
// testdata/<release>/<name>.json.
var exchanges = []struct {
	name     string
	requests []Request
}{
	{"reads", []Request{
		Read(storageService, "OperationMode", "Joined", "Drained"),
		Read(storageService, "BootstrapState"),
		Read(storageService, "OperationMode", "NoSuchAttribute"),
		Read("org.apache.cassandra.db:type=NoSuchBean", "X"),
		ReadPath(streamManager, "CurrentStreams", "*/totalRxBytes"),
	}},
	{"writes", []Request{
		Write(storageService, "RpcTimeout", 10001),
		Write(storageService, "RpcTimeout", 10000),
		Write(storageService, "RpcTimeout", "soon"),
		Write(storageService, "NoSuchAttribute", 1),
	}},
	{"calls", []Request{
		Exec(storageService, "getKeyspaceReplicationInfo(java.lang.String)", "system_auth"),
		Exec(storageService, "getKeyspaceReplicationInfo(java.lang.String)", "no_such_keyspace"),
		Exec(storageService, "noSuchOperation()"),
		Exec(storageService, "rebuild(int)", 1),
		Exec(storageService, "getParentRepairStatus(int)", 1000000),
		Exec(storageService, "removeNode(java.lang.String)", "00000000-0000-0000-0000-000000000000"),
		Exec(storageService, "removeNode(java.lang.String)", "not-a-host-id"),
	}},
}

// exchange is one recorded HTTP exchange.
type exchange struct {
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
}

// releases are the directories of testdata.
var releases = []string{"4.1.10", "5.0.6"}

// replay serves one recorded exchange, and fails the test if the client asks for anything else.
func replay(t *testing.T, release, name string) *Client {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", release, name+".json"))
	if err != nil {
		t.Fatalf("read recorded exchange: %v", err)
	}
	var recorded exchange
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatalf("decode recorded exchange: %v", err)
	}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		if !sameJSON(t, body, recorded.Request) {
			t.Errorf("request is not the recorded one\n got: %s\nwant: %s", body, recorded.Request)
		}
		if user, password, _ := r.BasicAuth(); user != "helenus" || password != "secret" {
			t.Errorf("credential is %q %q", user, password)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Write(recorded.Response) //nolint:errcheck // the client notices
	})
}

// serve starts a server and gives a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := New(Config{URL: server.URL + "/jolokia", User: "helenus", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("decode %s: %v", a, err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("decode %s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

// answersOf replays the named exchange.
func answersOf(t *testing.T, release, name string) []Answer {
	t.Helper()
	for _, e := range exchanges {
		if e.name == name {
			answers, err := replay(t, release, name).Do(context.Background(), e.requests...)
			if err != nil {
				t.Fatalf("%s %s: %v", release, name, err)
			}
			return answers
		}
	}
	t.Fatalf("no exchange %q", name)
	return nil
}
