package cassandra

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"testing"

	"helenus.io/helenus/internal/jolokia"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// answering is a node that answers by a function from the body of a request to that of the answer.
func answering(t testing.TB, answer func(json.RawMessage) json.RawMessage) *Node {
	t.Helper()
	client, err := jolokia.New(jolokia.Config{URL: "http://127.0.0.1:8778/jolokia",
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer(body)))}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	return NewNode(client)
}

// scripted answers each exchange with the next body; it fails the test when there is none left or
// one too many.
func scripted(t *testing.T, bodies ...string) (*Node, *[]string) {
	t.Helper()
	requests := &[]string{}
	node := answering(t, func(request json.RawMessage) json.RawMessage {
		if len(*requests) >= len(bodies) {
			t.Fatalf("request %d, beyond the script: %s", len(*requests)+1, request)
		}
		*requests = append(*requests, string(request))
		return json.RawMessage(bodies[len(*requests)-1])
	})
	t.Cleanup(func() {
		if len(*requests) != len(bodies) {
			t.Errorf("%d requests, the script has %d", len(*requests), len(bodies))
		}
	})
	return node, requests
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// golden compares a value with its golden file, as JSON.
func golden(t *testing.T, path string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}
