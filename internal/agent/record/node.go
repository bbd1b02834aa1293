package record

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// Line follows the record of one node and the seeds of its cluster, and writes the record's status.
type Line struct {
	api             *API
	namespace, name string
	seedsName       string
	now             func() time.Time
	random          func() float64
	changed         func()
	logf            func(format string, args ...any)

	mu     sync.Mutex
	record *v1alpha1.CassandraNode
	seeds  []string
	// replaced are host ids that must never start again.
	replaced []string
	// known says that the record, or its absence, was read from the server since the start.
	known   bool
	heardAt time.Time
}

// Options of a Line.
type Options struct {
	Namespace, Node, Cluster string
	Now                      func() time.Time
	// Random is between 0 and 1.
	Random func() float64
	// Changed is called after every change of what is seen.
	Changed func()
	Logf    func(format string, args ...any)
}

// NewLine makes a line. Run connects it.
func NewLine(api *API, o Options) *Line {
	return &Line{
		api: api, namespace: o.Namespace, name: o.Node, seedsName: v1alpha1.SeedsName(o.Cluster),
		now: o.Now, random: o.Random, changed: o.Changed, logf: o.Logf,
	}
}

// Run follows both objects until ctx ends.
func (l *Line) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { l.watcher(l.recordsPath(), l.name, l.seeRecord).Run(ctx) })
	both.Go(func() { l.watcher("/api/v1/namespaces/"+l.namespace+"/configmaps", l.seedsName, l.seeSeeds).Run(ctx) })
	both.Wait()
}

func (l *Line) watcher(path, name string, seen func([]byte)) *Watcher {
	return &Watcher{
		api: l.api, path: path, name: name, seen: seen, random: l.random, heard: l.hear,
		failed: func(err error) { l.logf("API server: %v", err) },
	}
}

func (l *Line) recordsPath() string {
	return "/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/" + l.namespace + "/cassandranodes"
}

// Record is the record as it was last seen, nil if it does not exist; known is false before the
// server has answered. The record is not to be changed.
func (l *Line) Record() (record *v1alpha1.CassandraNode, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record, l.known
}

// Seeds as they were last seen; nil before.
func (l *Line) Seeds() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seeds
}

// Replaced are the host ids that must never start again, as they were last seen.
func (l *Line) Replaced() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaced
}

// HeardAt is when the server last answered anything; zero if it never did.
func (l *Line) HeardAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heardAt
}

func (l *Line) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heardAt = l.now()
}

func (l *Line) seeRecord(raw []byte) {
	var record *v1alpha1.CassandraNode
	if raw != nil {
		record = &v1alpha1.CassandraNode{}
		if err := json.Unmarshal(raw, record); err != nil {
			l.logf("read CassandraNode %s: %v", l.name, err)
			return
		}
		record.ManagedFields = nil
	}
	l.mu.Lock()
	l.record, l.known = record, true
	l.mu.Unlock()
	l.changed()
}

func (l *Line) seeSeeds(raw []byte) {
	if raw == nil {
		return // the last ones that were seen are better than none
	}
	var object corev1.ConfigMap
	if err := json.Unmarshal(raw, &object); err != nil {
		l.logf("read ConfigMap %s: %v", l.seedsName, err)
		return
	}
	seeds, err := ParseSeeds(object.Data[layout.SeedsKey])
	if err != nil {
		l.logf("read ConfigMap %s: %v", l.seedsName, err)
		return
	}
	if len(seeds) == 0 {
		return
	}
	l.mu.Lock()
	l.seeds, l.replaced = seeds, ParseReplaced(object.Data[layout.ReplacedKey])
	l.mu.Unlock()
	l.changed()
}

// Secret reads the content of a Secret of the node's namespace, by its name. It is not kept.
func (l *Line) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	if err := l.api.get(ctx, "/api/v1/namespaces/"+l.namespace+"/secrets/"+name, nil, &secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// ParseReplaced reads host ids separated by commas.
func ParseReplaced(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// ParseSeeds reads addresses separated by commas, sorts them and drops repetitions.
func ParseSeeds(text string) ([]string, error) {
	var out []string
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		address, err := netip.ParseAddr(word)
		if err != nil {
			return nil, fmt.Errorf("seed %q is not an address", word)
		}
		out = append(out, address.Unmap().String())
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// WriteStatus makes the status of the record with the given uid what it is to be. A record of
// another uid is not changed: the answer is then
// 422. What the server then has is seen at once.
func (l *Line) WriteStatus(ctx context.Context, uid types.UID, status *v1alpha1.CassandraNodeStatus) error {
	body, err := StatusPatch(uid, status)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	query := url.Values{"fieldManager": {v1alpha1.FieldManagerAgent}}
	response, err := l.api.do(ctx, http.MethodPatch, l.recordsPath()+"/"+l.name+"/status", query,
		string(types.JSONPatchType), body)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	record := &v1alpha1.CassandraNode{}
	if err := decode(response, record); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	record.ManagedFields = nil
	l.hear()
	l.mu.Lock()
	defer l.mu.Unlock()
	// The watch may have brought a later version meanwhile; that one stays.
	if l.record != nil && l.record.UID == record.UID && newer(record.ResourceVersion, l.record.ResourceVersion) {
		l.record = record
	}
	return nil
}

// StatusPatch is the JSON patch (RFC 6902) that replaces the status of the record with a uid, and
// fails on any other. An apply would not do: a write to the status of a custom resource takes the
// metadata from what is stored, so that the API server does not look at a uid in it.
func StatusPatch(uid types.UID, status *v1alpha1.CassandraNodeStatus) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	body, err := json.Marshal([]operation{{"test", "/metadata/uid", uid}, {"add", "/status", status}})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return body, nil
}

// newer compares two resource versions, which since Kubernetes 1.35 are declared to be comparable
// numbers and in fact always were.
func newer(a, b string) bool {
	return len(a) > len(b) || len(a) == len(b) && a > b
}
