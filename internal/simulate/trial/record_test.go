package trial

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/world"
)

var record = flag.String("record", "", "`directory` into which TestRecordOperator writes pages for the tests of "+
	"dashboards and alerts (default: none)")

// TestRecordOperator records the page of metrics of an operator while a ring forms, is backed up,
// loses a host for a while, is repaired, and has a clock that is wrong.
func TestRecordOperator(t *testing.T) {
	if *record == "" {
		t.Skip("-record is not set")
	}
	registry := prometheus.NewRegistry()
	metrics := operator.NewMetrics(registry)
	metrics.Proven(metav1.ConditionTrue)
	schedule := &v1alpha1.CassandraBackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace,
		Name: "nightly"}, Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: clusterName},
		Store:  v1alpha1.BackupStoreReference{Name: "main"},
		Timing: v1alpha1.Timing{Schedule: "0 3 * * *"}, Keep: v1alpha1.BackupRetention{Last: 3}}}
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	var pages bytes.Buffer
	var scrape func(w *world.World)
	scrape = func(w *world.World) {
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Fprintf(&pages, "# page %d\n%s", w.Line.Now().Unix(), answer.Body)
		w.Line.After(time.Minute, "scrape", func() { scrape(w) })
	}
	var line func() time.Time
	s := Named("recorded", "a ring is backed up, loses a host, is repaired, and has a clock that is wrong", true, nil,
		Act{Name: "create store, backup and schedule", Do: func(w *world.World) error {
			if err := giveBackup(w); err != nil {
				return err
			}
			return w.User().Create(context.Background(), schedule)
		}, Until: all(again, backupComplete), Within: 30 * time.Minute},
		Act{Name: "cut off", Do: func(w *world.World) error { w.Partition(w.Kube.Hosts()[0], false); return nil },
			Until: blockedWith("HostUnreachable", "m-a-0"), Within: 10 * time.Minute},
		Act{Name: "wait", Do: func(w *world.World) error { w.Line.RunFor(2 * time.Minute); return nil }},
		Act{Name: "heal", Do: func(w *world.World) error { w.Heal(w.Kube.Hosts()[0]); return nil }, Until: again,
			Within: 30 * time.Minute},
		Act{Name: "repair every two hours", Within: 6 * time.Hour, Do: loseRows, Until: func(w *world.World) bool {
			is := get(w).Status.Repair
			return is != nil && is.Oldest != nil && is.Oldest.LastRepaired != nil
		}},
		Act{Name: "a second ahead", Do: firstClock(time.Second), Until: clockSaid, Within: 15 * time.Minute})
	s.Acts = append([]Act{{Name: "scrape", Do: func(w *world.World) error {
		line = w.Line.Now
		scrape(w)
		return nil
	}}}, s.Acts...)
	result := Trial{Scenario: s, Seed: 1, Quiet: time.Minute, Wrap: world.Wrap{
		Pass: func(_ *world.Operator, r *operator.Reconciler) *operator.Reconciler {
			r.Metrics = metrics
			schedules := &operator.Schedules{Reader: r.Reader, Writer: r.Writer, Now: line, Backups: true,
				Metrics: metrics}
			key := ctrl.Request{NamespacedName: keyOf(schedule.Name)}
			if _, err := schedules.Reconcile(context.Background(), key); err != nil {
				t.Error(err)
			}
			return r
		}}}.Run(kindsOf(t), nil)
	for _, v := range result.Violations {
		t.Error(v)
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	if _, err := w.Write(pages.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*record, "operator.gz"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
