package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/metrics"
)

// Health is what the probes and Prometheus ask.
type Health interface {
	// Started says that helenus-init lies where the Cassandra container looks for it.
	Started() bool
	Live() (bool, string)
	Ready() (bool, string)
	Metrics() []metrics.Sample
	// Choice of the metrics of Cassandra.
	Choice() v1alpha1.Metrics
}

// Probes serves kubelet's probes on a listener until ctx ends, and nothing else: no connection is
// kept.
func Probes(ctx context.Context, listener net.Listener, health Health) error {
	return run(ctx, counting{listener, newPool(maxPerSource, maxConnections)}, ProbesHandler(health), false)
}

// ProbesHandler answers probes.
func ProbesHandler(health Health) http.Handler {
	mux := http.NewServeMux()
	probe := func(path string, ask func() (bool, string)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			ok, message := ask()
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if !ok {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = fmt.Fprintln(w, message) // a prober that is gone is nobody's error
		})
	}
	probe(layout.StartupPath, func() (bool, string) {
		if !health.Started() {
			return false, "helenus-init is not in the shared volume yet"
		}
		return true, "ok"
	})
	probe(layout.LivePath, health.Live)
	probe(layout.ReadyPath, health.Ready)
	return mux
}

// writeMetrics writes samples in the text format, or in that of OpenMetrics, where the name of a
// counter's family has no ending; samples of one name stand together.
func writeMetrics(w io.Writer, all []metrics.Sample, open bool) {
	slices.SortStableFunc(all, func(a, b metrics.Sample) int { return strings.Compare(a.Name, b.Name) })
	last := ""
	for _, m := range all {
		if m.Name != last {
			name := m.Name
			if open {
				name = strings.TrimSuffix(name, "_total")
			}
			_, _ = fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, m.Help, name, m.Type)
			last = m.Name
		}
		_, _ = fmt.Fprintf(w, "%s%s %s\n", m.Name, labelText(m), strconv.FormatFloat(m.Value, 'g', -1, 64))
	}
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labelText(m metrics.Sample) string {
	if len(m.Labels) == 0 {
		return ""
	}
	var parts []string
	for i, name := range m.Labels {
		parts = append(parts, name+`="`+escapeLabel.Replace(m.Values[i])+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// PhaseMetrics are one sample for each phase, 1 for the present one.
func PhaseMetrics(present v1alpha1.NodePhase, all []v1alpha1.NodePhase) []metrics.Sample {
	out := make([]metrics.Sample, 0, len(all))
	for _, phase := range all {
		m := metrics.Sample{Family: metrics.AgentPhase, Values: []string{string(phase)}}
		if phase == present {
			m.Value = 1
		}
		out = append(out, m)
	}
	return out
}

// Age is a metric of how long ago something was; absent for never.
func Age(of *metrics.Family, at, now time.Time) []metrics.Sample {
	if at.IsZero() {
		return nil
	}
	return []metrics.Sample{{Family: of, Value: now.Sub(at).Seconds()}}
}
