package serve

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// pageOf is where a JVM answers with a page, if it is asked for the tables of probes.
func pageOf(t *testing.T, page string) url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Encode(); got != "extra=org.apache.cassandra.metrics.Index.%2A&include=shop.%2A%2Ca.b&limit=7" {
			t.Errorf("asked for tables %q", got)
		}
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return *address
}

func scraped(t *testing.T, jvm url.URL, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header = header
	MetricsHandler(probes{true}, jvm).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	return w
}

var open = http.Header{"Accept": {"application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}}

func TestMetricsFormats(t *testing.T) {
	w := scraped(t, pageOf(t, "cassandra_x 1\n"), http.Header{})
	want := "# TYPE cassandra_up gauge\ncassandra_up 1\n"
	if text := w.Body.String(); !strings.Contains(text, want) ||
		!strings.Contains(text, "# TYPE helenus_agent_jvm_restarts_total counter\n") ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("%v %q", w.Header(), text)
	}
	w = scraped(t, pageOf(t, "cassandra_x 1\n# EOF\n"), open)
	if text := w.Body.String(); !strings.Contains(text, want) || !strings.HasSuffix(text, "\n# EOF\n") ||
		!strings.Contains(text, "# TYPE helenus_agent_jvm_restarts counter\nhelenus_agent_jvm_restarts_total 1\n") ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") {
		t.Errorf("%v %q", w.Header(), text)
	}
	w = scraped(t, pageOf(t, "cassandra_x 1\n"), http.Header{"Accept-Encoding": {"gzip"}})
	reader, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || !strings.HasSuffix(string(text), "cassandra_x 1\n") {
		t.Errorf("%q, %v", text, err)
	}
}

// A JVM that is down, that has not started, or whose page ends early is down.
func TestMetricsOfAJVMThatIsDown(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	address, err := url.Parse(gone.URL)
	if err != nil {
		t.Fatal(err)
	}
	if text := scraped(t, *address, http.Header{}).Body.String(); !strings.Contains(text, "\ncassandra_up 0\n") {
		t.Errorf("%q", text)
	}
	text := scraped(t, pageOf(t, "cassandra_x 1\n"), open).Body.String()
	if !strings.Contains(text, "\ncassandra_up 0\n") || !strings.HasSuffix(text, "\n# EOF\n") ||
		strings.Contains(text, "cassandra_x") {
		t.Errorf("%q", text)
	}
}
