package compare

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
)

var (
	seedFlag     = flag.Uint64("compare.seed", 1, "seed of the sequences; 0 takes another every time")
	requestsFlag = flag.Int("compare.requests", 10_500, "how many requests to make at least")
	onlyFlag     = flag.String("compare.kinds", "", "compare these kinds alone, separated by commas")
	mostFlag     = flag.Int("compare.most", 5, "how many different differences to look for before giving up")
)

// comparison makes requests of both servers.
type comparison struct {
	real    client.WithWatch
	streams *streams
	runs    atomic.Int64
	made    atomic.Int64
	tally   tally
}

// TestSameAnswers: whatever clients ask, in whatever order, the server in memory answers as the
// real one does, and shows the same to those who watch.
func TestSameAnswers(t *testing.T) {
	loadSubjects(t)
	from := slices.DeleteFunc(slices.Clone(subjects), func(s *subject) bool {
		if *onlyFlag != "" {
			return !slices.Contains(strings.Split(*onlyFlag, ","), s.gvk.Kind)
		}
		return !clean[s.gvk.Kind]
	})
	plain, err := client.NewWithWatch(server, client.Options{Scheme: scheme})
	must(t, err)
	c := withoutServersOwn(plain)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sentinels}}))
	must(t, createAccounts(t.Context(), c, sentinels))
	m := &comparison{real: c, streams: watchAll(t, c)}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	m.look(t, seed, from)
	m.tally.check(t)
}

// look compares one sequence after the other, on all processors.
func (m *comparison) look(t *testing.T, seed uint64, from []*subject) {
	t.Helper()
	began := time.Now()
	known := map[string]bool{}
	var mu sync.Mutex // of known, and of what is looked at more closely
	var next atomic.Uint64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 {
		all.Go(func() {
			for int(m.made.Load()) < *requestsFlag {
				at := seed + next.Add(1) - 1
				requests := generate(at, from)
				last, lines, err := m.run(t.Context(), requests)
				if err == nil && len(lines) == 0 {
					continue
				}
				mu.Lock()
				m.report(t, known, at, requests, last, lines, err)
				enough := len(known) >= *mostFlag
				mu.Unlock()
				if enough || err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d requests from seed %d on in %v", m.made.Load(), seed, time.Since(began).Round(time.Second))
}

// report tells of a difference, by as few requests as it takes, unless one like it was told of.
func (m *comparison) report(t *testing.T, known map[string]bool, seed uint64, requests []request, at int,
	lines []string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("-compare.seed=%d: %v", seed, err)
		return
	}
	sign := signature(requests, at, lines)
	if known[sign] || len(known) >= *mostFlag {
		return
	}
	known[sign] = true
	requests, lines, err = m.shrink(t.Context(), requests[:min(at+1, len(requests))], lines)
	if err != nil {
		t.Errorf("-compare.seed=%d: %v", seed, err)
		return
	}
	var scenario strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&scenario, "  %s\n", r)
	}
	t.Errorf("-compare.seed=%d: after\n%sthe servers differ:\n  %s", seed, scenario.String(),
		strings.Join(lines, "\n  "))
}

// signature is what tells one difference from another, roughly.
func signature(requests []request, at int, lines []string) string {
	what, _, _ := strings.Cut(lines[0], ":")
	if at >= len(requests) {
		return "watch " + what
	}
	r := requests[at]
	if what == "error" {
		what = lines[0][:min(len(lines[0]), 60)]
	}
	return fmt.Sprint(r.Verb, r.Kind, r.Sub, r.Patch, what)
}

const sentinels = "sentinels"

// run makes requests of both servers until they differ, and says at which request and how. What
// differs only in the watches differs after the last.
func (m *comparison) run(ctx context.Context, requests []request) (at int, lines []string, err error) {
	run := int(m.runs.Add(1))
	p := place{fmt.Sprintf("r%d-", run)}
	memory := apiserver.New(kinds, apiserver.Options{Now: time.Now, NewUID: uuid.NewUUID, ShowManagedFields: true})
	events := map[string][]happening{}
	memory.Watch(func(e apiserver.Event) {
		events[e.Kind] = append(events[e.Kind], happening{strings.ToUpper(string(e.Type)), e.Key.Namespace, e.Key.Name,
			e.New.GetResourceVersion(), string(e.New.GetUID())})
	})
	actual, simulated := newSide(m.real, p), newSide(memory.As(tester), p)
	for _, s := range []*side{actual, simulated} {
		for _, n := range []string{"a", "b", ending} {
			if err := s.client.Create(ctx, &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: p.namespace(n)},
			}); err != nil {
				return 0, nil, fmt.Errorf("create namespace: %w", err)
			}
			if err := createAccounts(ctx, s.client, p.namespace(n)); err != nil {
				return 0, nil, err
			}
		}
		if err := s.client.Delete(ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace(ending)},
		}); err != nil {
			return 0, nil, fmt.Errorf("delete namespace: %w", err)
		}
	}
	for i, r := range requests {
		m.made.Add(1)
		a, b := actual.do(ctx, r), simulated.do(ctx, r)
		if lines := difference(actual, simulated, a, b); len(lines) > 0 {
			return i, lines, nil
		}
		m.tally.add(r, a.err)
	}
	for _, kind := range kindsOf(requests) {
		sentinel := fmt.Sprintf("sentinel%d", run)
		object := sentinelOf(kind, sentinel, run)
		if err := m.real.Create(ctx, object); err != nil {
			return 0, nil, fmt.Errorf("create sentinel: %w", err)
		}
		seen, err := m.streams.until(kind, object.GetName(), p)
		if err != nil {
			return 0, nil, err
		}
		if lines := unequalStreams(kind, actual, simulated, seen, events[kind]); len(lines) > 0 {
			return len(requests), lines, nil
		}
	}
	return 0, nil, nil
}

// ending is the namespace that is being deleted.
const ending = "ending"

// createAccounts makes the service accounts that pods need to be admitted.
func createAccounts(ctx context.Context, c client.Client, namespace string) error {
	mount := false
	for _, name := range []string{"default", v1alpha1.AgentServiceAccountName("demo"),
		v1alpha1.AgentServiceAccountName("everything")} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			AutomountServiceAccountToken: &mount}
		if err := c.Create(ctx, account); err != nil {
			return fmt.Errorf("create service account: %w", err)
		}
	}
	return nil
}

// sentinelOf is an object by which a watch is known to have shown all that was before.
func sentinelOf(kind, name string, n int) client.Object {
	k := kindNamed(kind)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range k.bodies[0] {
		u.Object[key] = value
	}
	u = u.DeepCopy()
	u.SetGroupVersionKind(k.gvk)
	u.SetName(name)
	if kind == "CassandraNode" {
		apply(u.Object, change{"spec.rack", fmt.Sprintf("s%d", n)})
		u.SetName(recordName(u.Object, 0))
	}
	if !k.global {
		u.SetNamespace(sentinels)
	}
	return u
}

func kindsOf(requests []request) []string {
	var out []string
	for _, r := range requests {
		if !slices.Contains(out, r.Kind) {
			out = append(out, r.Kind)
		}
	}
	return out
}

func unequalStreams(kind string, actual, simulated *side, a, b []happening) []string {
	said := func(s *side, all []happening) []string {
		out := make([]string, len(all))
		for i, h := range all {
			out[i] = fmt.Sprintf("%s %s/%s %s %s", h.Type, h.Namespace, h.Name, s.symbol("uid", h.UID),
				s.symbol("version", h.Version))
		}
		return out
	}
	x, y := said(actual, a), said(simulated, b)
	if slices.Equal(x, y) {
		return nil
	}
	return []string{fmt.Sprintf("watch of %s:\n  real\n    %s\n  simulated\n    %s", kind, strings.Join(x, "\n    "),
		strings.Join(y, "\n    "))}
}

// shrink leaves out requests as long as the servers differ in some way.
func (m *comparison) shrink(ctx context.Context, requests []request, lines []string) ([]request, []string, error) {
	for size := len(requests) / 2; size > 0; {
		smaller := false
		for from := 0; from < len(requests) && len(requests) > 1; {
			fewer := slices.Delete(slices.Clone(requests), from, min(from+size, len(requests)))
			at, now, err := m.run(ctx, fewer)
			if err != nil {
				return nil, nil, err
			}
			if len(now) == 0 {
				from += size
				continue
			}
			requests, lines, smaller = fewer[:min(at+1, len(fewer))], now, true
		}
		if !smaller || size == 1 {
			size /= 2
		}
	}
	return requests, lines, nil
}

func listFrom(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version}
}

// clean are the kinds that are compared.
var clean = map[string]bool{
	"CassandraCluster": true, "CassandraNode": true, "ConfigMap": true, "Event": true, "Lease": true, "Namespace": true,
	"NetworkPolicy": true, "Node": true, "PersistentVolume": true, "PersistentVolumeClaim": true,
	"Pod": true, "PodDisruptionBudget": true, "Role": true, "RoleBinding": true, "Secret": true, "Service": true,
	"ServiceAccount": true,
}
