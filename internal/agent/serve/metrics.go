package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/metrics"
)

const (
	// exporterTimeout is how long the exporter in the JVM gets for its page, maxPage how large that
	// may be, and maxScrapes how many ask for it at a time: each costs the JVM time.
	exporterTimeout = 10 * time.Second
	maxPage         = 32 << 20
	maxScrapes      = 2
)

// Metrics serves the agent's own metrics, and behind them the page of the exporter in the JVM, on a
// listener until ctx ends.
func Metrics(ctx context.Context, listener net.Listener, health Health, exporter string) error {
	return run(ctx, counting{listener, newPool(maxPerSource, maxConnections)}, MetricsHandler(health, exporter), true)
}

// MetricsHandler answers with the metrics. Exporter is the URL of that page.
func MetricsHandler(health Health, exporter string) http.Handler {
	client := &http.Client{Timeout: exporterTimeout, Transport: &http.Transport{DisableCompression: true}}
	scrapes := make(chan struct{}, maxScrapes)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+layout.MetricsPath, func(w http.ResponseWriter, r *http.Request) {
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		case <-r.Context().Done():
			return
		}
		up := metrics.Sample{Family: metrics.AgentExporter}
		page, err := scrape(r.Context(), client, exporter)
		if err == nil {
			defer page.Close() //nolint:errcheck // it was only read
			up.Value = 1
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		writeMetrics(w, append(health.Metrics(), up))
		if err == nil {
			_, _ = io.Copy(w, io.LimitReader(page, maxPage)) // what ends early shows by its length
		}
	})
	return mux
}

func scrape(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("make request for metrics: %w", err)
	}
	request.Header.Set("Accept", "text/plain; version=0.0.4")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get metrics of Cassandra: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // nothing of it is wanted
		return nil, fmt.Errorf("get metrics of Cassandra: %s", response.Status)
	}
	return response.Body, nil
}
