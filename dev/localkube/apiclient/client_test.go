package apiclient

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// client speaks to a server that answers each request by what it is.
func client(t *testing.T) *Client {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /named":
			fmt.Fprint(w, `{"metadata":{"name":"x"}}`)
		case "PATCH /applied":
			if r.Header.Get("Content-Type") != "application/apply-patch+yaml" ||
				r.URL.Query().Get("fieldManager") == "" || string(body) != "kind: X" {
				t.Errorf("no server-side apply: %s %v %s", r.URL, r.Header, body)
			}
		case "DELETE /forbidden":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","message":"you may not"}`)
		case "GET /plain":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "etcd failed\n")
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","message":"there is none"}`)
		}
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	// The server asks for no client certificate, so this client has none.
	c, err := New(s.URL, ca, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient(t *testing.T) {
	ctx := context.Background()
	c := client(t)
	var named struct{ Metadata struct{ Name string } }
	if err := c.Get(ctx, "/named", &named); err != nil || named.Metadata.Name != "x" {
		t.Errorf("got %+v, %v", named, err)
	}
	if err := c.Apply(ctx, "/applied", "kind: X"); err != nil {
		t.Error(err)
	}
	if err := c.Get(ctx, "/none", nil); !NotFound(err) ||
		!strings.Contains(err.Error(), "GET /none: HTTP 404: there is none") {
		t.Errorf("a missing object: %v", err)
	}
	if err := c.Delete(ctx, "/none"); err != nil {
		t.Errorf("deletion of a missing object: %v", err)
	}
	if err := c.Delete(ctx, "/forbidden"); err == nil || NotFound(err) ||
		!strings.Contains(err.Error(), "you may not") {
		t.Errorf("a forbidden deletion: %v", err)
	}
	if err := c.Get(ctx, "/plain", nil); err == nil || !strings.HasSuffix(err.Error(), "HTTP 500: etcd failed") {
		t.Errorf("an answer that is no Status: %v", err)
	}
}

func TestNewRefusesABadAuthority(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New("https://x", file, "", ""); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("error %v", err)
	}
}
