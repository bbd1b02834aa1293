//go:build cassandra

package jolokia

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordExchanges writes testdata from a running node: go test -tags cassandra -run Record with
// HELENUS_JOLOKIA_URL, HELENUS_JOLOKIA_USER, HELENUS_JOLOKIA_PASSWORD, and
// HELENUS_RECORD=<release>.
func TestRecordExchanges(t *testing.T) {
	release := os.Getenv("HELENUS_RECORD")
	if release == "" {
		t.Skip("HELENUS_RECORD is not set: nothing to record")
	}
	for _, e := range exchanges {
		recorder := &recorder{}
		client, err := New(Config{
			URL:       os.Getenv("HELENUS_JOLOKIA_URL"),
			User:      os.Getenv("HELENUS_JOLOKIA_USER"),
			Password:  os.Getenv("HELENUS_JOLOKIA_PASSWORD"),
			Transport: recorder,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Do(context.Background(), e.requests...); err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", " ")
		if err := encoder.Encode(recorder.last); err != nil {
			t.Fatal(err)
		}
		directory := filepath.Join("testdata", release)
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, e.name+".json"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// recorder keeps the last exchange that passes through it.
type recorder struct{ last exchange }

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
