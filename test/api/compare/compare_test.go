package compare

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
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
	seedFlag     = flag.Uint64("compare.seed", 0, "seed of the sequences; 0 takes another every time")
	requestsFlag = flag.Int("compare.requests", 12_000, "how many requests to make at least")
	onlyFlag     = flag.String("compare.kinds", "", "compare these kinds alone, separated by commas")
	mostFlag     = flag.Int("compare.most", 5, "how many different differences to look for before giving up")
)

// comparison makes requests of both servers.
type comparison struct {
	real    client.WithWatch
	streams *streams
	runs    int
	made    int
}

// TestSameAnswers: whatever clients ask, in whatever order, the server in memory answers as the real one does, and shows the same to those who watch.
func TestSameAnswers(t *testing.T) {
	loadSubjects(t)
	from := slices.DeleteFunc(slices.Clone(subjects), func(s *subject) bool {
		if *onlyFlag != "" {
			return !slices.Contains(strings.Split(*onlyFlag, ","), s.gvk.Kind)
		}
		return !clean[s.gvk.Kind]
	})
	c, err := client.NewWithWatch(server, client.Options{Scheme: scheme})
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sentinels}}))
	must(t, createAccounts(t.Context(), c, sentinels))
	m := &comparison{real: c, streams: watchAll(t, c)}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	}
	began := time.Now()
	known := map[string]bool{}
	for n := uint64(0); m.made < *requestsFlag && len(known) < *mostFlag; n++ {
		requests := generate(seed+n, from)
		at, lines, err := m.run(t.Context(), requests)
		must(t, err)
		if len(lines) == 0 {
			continue
		}
		sign := signature(requests, at, lines)
		if known[sign] {
			continue
		}
		known[sign] = true
		requests, lines = m.shrink(t, requests[:min(at+1, len(requests))], lines)
		var story strings.Builder
		for _, r := range requests {
			fmt.Fprintf(&story, "  %s\n", r)
		}
		t.Errorf("-compare.seed=%d: after\n%sthe servers differ:\n  %s", seed+n, story.String(), strings.Join(lines, "\n  "))
	}
	t.Logf("%d requests from seed %d on in %v", m.made, seed, time.Since(began).Round(time.Second))
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

// run makes requests of both servers until they differ, and says at which request and how. What differs only in the watches differs after the last.
func (m *comparison) run(ctx context.Context, requests []request) (at int, lines []string, err error) {
	m.runs++
	p := place{fmt.Sprintf("r%d-", m.runs)}
	memory := apiserver.New(kinds, apiserver.Options{Now: time.Now, NewUID: uuid.NewUUID, ShowManagedFields: true})
	events := map[string][]happening{}
	memory.Watch(func(e apiserver.Event) {
		events[e.Kind] = append(events[e.Kind], happening{strings.ToUpper(string(e.Type)), e.Key.Namespace, e.Key.Name, e.New.GetResourceVersion(), string(e.New.GetUID())})
	})
	actual, simulated := newSide(m.real, p), newSide(memory.As(tester), p)
	for _, s := range []*side{actual, simulated} {
		for _, n := range []string{"a", "b"} {
			if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace(n)}}); err != nil {
				return 0, nil, fmt.Errorf("create namespace: %w", err)
			}
			if err := createAccounts(ctx, s.client, p.namespace(n)); err != nil {
				return 0, nil, err
			}
		}
	}
	for i, r := range requests {
		m.made++
		if lines := difference(actual, simulated, actual.do(ctx, r), simulated.do(ctx, r)); len(lines) > 0 {
			return i, lines, nil
		}
	}
	for _, kind := range kindsOf(requests) {
		sentinel := fmt.Sprintf("sentinel%d", m.runs)
		object := sentinelOf(kind, sentinel, m.runs)
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

// createAccounts makes the service accounts that pods need to be admitted.
func createAccounts(ctx context.Context, c client.Client, namespace string) error {
	mount := false
	for _, name := range []string{"default", v1alpha1.AgentServiceAccountName("demo"), v1alpha1.AgentServiceAccountName("everything")} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, AutomountServiceAccountToken: &mount}
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
		apply(u.Object, change{"spec.ordinal", int64(n)})
		u.SetName(recordName(u.Object, n))
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
			out[i] = fmt.Sprintf("%s %s/%s %s %s", h.Type, h.Namespace, h.Name, s.symbol("uid", h.UID), s.symbol("version", h.Version))
		}
		return out
	}
	x, y := said(actual, a), said(simulated, b)
	if slices.Equal(x, y) {
		return nil
	}
	return []string{fmt.Sprintf("watch of %s:\n  real\n    %s\n  simulated\n    %s", kind, strings.Join(x, "\n    "), strings.Join(y, "\n    "))}
}

// shrink leaves out requests as long as the servers differ in some way.
func (m *comparison) shrink(t *testing.T, requests []request, lines []string) ([]request, []string) {
	t.Helper()
	for size := len(requests) / 2; size > 0; {
		smaller := false
		for from := 0; from < len(requests) && len(requests) > 1; {
			fewer := slices.Delete(slices.Clone(requests), from, min(from+size, len(requests)))
			at, now, err := m.run(t.Context(), fewer)
			must(t, err)
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
	return requests, lines
}

func listFrom(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version}
}

// clean are the kinds that are compared.
var clean = map[string]bool{
	"CassandraCluster": true, "CassandraNode": true, "ConfigMap": true, "PersistentVolumeClaim": true, "Pod": true, "PodDisruptionBudget": true, "Role": true, "RoleBinding": true, "Secret": true, "Service": true, "ServiceAccount": true,
}
