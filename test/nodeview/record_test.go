//go:build cassandra

package nodeview

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/internal/jolokia"
)

// TestRecordViews writes testdata from a running node: it reads views for HELENUS_RECORD_FOR (a
// duration) and keeps the first of each kind, by mode and gossiped statuses, in HELENUS_RECORD (a
// directory).
func TestRecordViews(t *testing.T) {
	directory := os.Getenv("HELENUS_RECORD")
	if directory == "" {
		t.Skip("HELENUS_RECORD is not set: nothing to record")
	}
	period, err := time.ParseDuration(os.Getenv("HELENUS_RECORD_FOR"))
	if err != nil {
		t.Fatal(err)
	}
	recorder := &recorder{}
	client, err := jolokia.New(jolokia.Config{
		URL: os.Getenv("HELENUS_JOLOKIA_URL"), User: os.Getenv("HELENUS_JOLOKIA_USER"),
		Password:  os.Getenv("HELENUS_JOLOKIA_PASSWORD"),
		Transport: recorder,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), period)
	defer cancel()
	ticker := time.NewTicker(recordInterval)
	defer ticker.Stop()
	for ; ctx.Err() == nil; <-ticker.C {
		recorder.last = exchange{}
		view, err := New(client).View(ctx)
		if recorder.last.Response == nil {
			continue
		}
		kind := kindOf(view, err)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		t.Log(kind, err)
		writeExchange(t, filepath.Join(directory, kind+".json"), recorder.last)
	}
}

// recordInterval is short against the states that a node passes through.
const recordInterval = 50 * time.Millisecond

// kindOf names a view by what distinguishes it.
func kindOf(view View, err error) string {
	if err != nil {
		return "error"
	}
	statuses := []string{}
	for _, state := range view.Gossip {
		status := string(state.Status)
		if status == "" {
			status = "none"
		}
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	return fmt.Sprintf("%s-%s-u%d-m%d", strings.ToLower(string(view.Mode)), strings.Join(slices.Compact(statuses), "-"),
		len(view.Unreachable), len(view.HostIDs))
}

func writeExchange(t *testing.T, path string, recorded exchange) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(recorded); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// recorder keeps the last exchange that passes through it.
type recorder struct{ last exchange }

// RoundTrip passes the request on.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // a response body that was read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	r.last = exchange{Request: body, Response: answer}
	response.Body = io.NopCloser(bytes.NewReader(answer))
	return response, nil
}
