//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/test/e2e/scene"
	"helenus.io/helenus/tools/generate/dashboards"
	"helenus.io/helenus/tools/generate/queries"
)

const (
	// betweenScrapes is shorter than for most Prometheus, so that what is short is seen.
	betweenScrapes = 10 * time.Second
	// untilProven is how long what was begun may take to be seen.
	untilProven = 10 * time.Minute
)

// notAlways are expressions that give a number while something is wrong, which may be over before
// it is seen. The pages that are kept in the repository have such moments.
var notAlways = []string{"fleet: Notices", "fleet: Steps that are blocked"}

// TestQueriesOnARealRing: every expression of every dashboard and alert gives numbers of a ring
// that clients write to, that is backed up, repaired, and rolled out, with a node down meanwhile.
func TestQueriesOnARealRing(t *testing.T) {
	onlyInFull(t)
	ring := emptyForGrowth(t, "e2e-queries", func(s *v1alpha1.CassandraClusterSpec) {
		s.Repair.Target, s.Repair.Intensity = "1%", "100%"
	})
	bucket(t, ring)
	if err := ring.Kubernetes.Client.Create(t.Context(), &v1alpha1.CassandraBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: ring.Namespace, Name: "often"},
		Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: ring.Name},
			Store: v1alpha1.BackupStoreReference{Name: "main"}, Timing: v1alpha1.Timing{Schedule: "*/2 * * * *"},
			Keep: v1alpha1.BackupRetention{Last: 2}}}); err != nil {
		t.Fatal(err)
	}
	nodes := ring.NodeNames(t.Context())
	all, err := queries.All(dashboards.Values{Namespace: ring.Namespace, Cluster: ring.Name, Pod: nodes[0],
		Keyspace: scene.Keyspace})
	if err != nil {
		t.Fatal(err)
	}
	pages := scraping(t, ring)
	took(t, "rows are written that a node misses",
		func() error { return fillForRepair(t, ring, nodes[1]) })
	while(t, ring, servedThroughout, "the ring is rolled out", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: json.RawMessage("16")}}
		}); err != nil {
			return err
		}
		return ring.RolledOut(t.Context(), untilProven)
	})
	var silent []string
	for began := time.Now(); ; pass(t, betweenScrapes) {
		silent = nil
		for _, q := range all {
			gives, err := pages.gives(t.Context(), q.Expression)
			if err != nil {
				t.Fatal(err)
			}
			if queries.Silent[q.Where] == "" && !gives && !slices.Contains(notAlways, q.Where) {
				silent = append(silent, q.Where+" gives nothing: "+q.Expression)
			}
		}
		if len(silent) == 0 || time.Since(began) > untilRepaired {
			break
		}
	}
	for _, s := range silent {
		t.Error(s)
	}
	t.Logf("%d expressions, %d scrapes", len(all), pages.scrapes)
}

// scraper has what was scraped so far.
type scraper struct {
	mutex   sync.Mutex
	store   *queries.Store
	scrapes int
}

// scraping scrapes until the test ends.
func scraping(t *testing.T, ring *scene.Ring) *scraper {
	t.Helper()
	s := &scraper{store: queries.NewStore(t)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			pages, err := ring.Pages(ctx)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			s.take(ctx, t, pages)
			select {
			case <-ctx.Done():
			case <-time.After(betweenScrapes):
			}
		}
	}()
	return s
}

func (s *scraper) take(ctx context.Context, t *testing.T, pages map[[2]string][]byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := time.Now()
	for of, page := range pages {
		if err := s.store.Scraped(ctx, page, at, map[string]string{"namespace": of[0], "pod": of[1]}); err != nil &&
			ctx.Err() == nil {
			t.Errorf("pod %s: %v", strings.Join(of[:], "/"), err)
		}
		s.scrapes++
	}
}

func (s *scraper) gives(ctx context.Context, expression string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.store.Gives(ctx, expression)
}
