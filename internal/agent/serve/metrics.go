package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/metrics"
)

const (
	// pageTimeout is how long the JVM gets for its page, maxPage how large that may be, and
	// maxScrapes how many ask for it at a time: each costs the JVM time.
	pageTimeout = 10 * time.Second
	maxPage     = 32 << 20
	maxScrapes  = 2
)

// The two formats of Prometheus.
const (
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text"
	openText    = openMetrics + "; version=1.0.0; charset=utf-8"
)

// Metrics serves the agent's own metrics, and behind them those of the JVM, on a listener until ctx
// ends. JVM is where that answers.
func Metrics(ctx context.Context, listener net.Listener, health Health, jvm url.URL) error {
	return run(ctx, counting{listener, newPool(maxPerSource, maxConnections)}, MetricsHandler(health, jvm), true)
}

// MetricsHandler answers with the metrics. A JVM that does not answer in time, or not wholly, is
// down: its page is read to the end before anything is said.
func MetricsHandler(health Health, jvm url.URL) http.Handler {
	client := &http.Client{Timeout: pageTimeout, Transport: &http.Transport{DisableCompression: true}}
	scrapes := make(chan struct{}, maxScrapes)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+layout.MetricsPath, func(w http.ResponseWriter, r *http.Request) {
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		case <-r.Context().Done():
			return
		}
		from := jvm
		from.RawQuery = rules(health.Choice()).Encode()
		open := strings.Contains(r.Header.Get("Accept"), openMetrics)
		up := metrics.Sample{Family: metrics.CassandraUp}
		page, err := scrape(r.Context(), client, from.String(), open)
		switch {
		case err == nil:
			up.Value = 1
		case open:
			page = []byte("# EOF\n")
		}
		w.Header().Set("Content-Type", plainText)
		if open {
			w.Header().Set("Content-Type", openText)
		}
		var out io.Writer = w
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level exists
			defer compressed.Close()                                //nolint:errcheck // the scraper is gone then
			out = compressed
		}
		writeMetrics(out, append(health.Metrics(), up), open)
		_, _ = out.Write(page)
	})
	return mux
}

// rules are the choice of metrics as the Java agent reads it.
func rules(choice v1alpha1.Metrics) url.Values {
	rules := url.Values{}
	set(rules, "extra", choice.Extra)
	t := choice.Tables
	if t == nil {
		return rules
	}
	if t.Mode != "" {
		rules.Set("mode", string(t.Mode))
	}
	if t.Limit > 0 {
		rules.Set("limit", strconv.Itoa(int(t.Limit)))
	}
	set(rules, "include", t.Include)
	set(rules, "exclude", t.Exclude)
	return rules
}

func set[T ~string](rules url.Values, key string, patterns []T) {
	var list []string
	for _, p := range patterns {
		list = append(list, string(p))
	}
	if len(list) > 0 {
		rules.Set(key, strings.Join(list, ","))
	}
}

func scrape(ctx context.Context, client *http.Client, from string, open bool) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("make request for metrics: %w", err)
	}
	want := plainText
	if open {
		want = openText
	}
	request.Header.Set("Accept", want)
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get metrics of Cassandra: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return nil, fmt.Errorf("get metrics of Cassandra: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get metrics of Cassandra: %s", response.Status)
	}
	if open != bytes.HasSuffix(page, []byte("# EOF\n")) || len(page) == maxPage {
		return nil, errors.New("get metrics of Cassandra: the page is not whole")
	}
	return page, nil
}
