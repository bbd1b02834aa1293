package pod

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/record"
	"helenus.io/helenus/internal/core/layout"
)

// line is the agent's line to the API server: what it was told by its watches, and its writes. It
// lives as long as the agent.
type line struct {
	s     *Sandbox
	agent *execute.Agent

	record *v1alpha1.CassandraNode
	known  bool
	seeds  []string
	gone   []string // host ids that must never start again
	heard  time.Time
}

// Record as it was last seen.
func (l *line) Record() (*v1alpha1.CassandraNode, bool) { return l.record, l.known }

// Seeds as they were last seen.
func (l *line) Seeds() []string { return l.seeds }

// Replaced are the host ids that must never start again, as they were last seen.
func (l *line) Replaced() []string { return l.gone }

// Secret is the request that package record makes.
func (l *line) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	if !l.s.rt.APIReachable(l.s.host) {
		return nil, fmt.Errorf("read Secret %s: %w", name, errUnreachable)
	}
	secret := &corev1.Secret{}
	if err := l.s.rt.Client(l.s.user()).Get(ctx, client.ObjectKey{Namespace: l.s.pod.Namespace, Name: name},
		secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// HeardAt is when the server last answered: its watches are told something every minute even if
// nothing happens.
func (l *line) HeardAt() time.Time {
	if l.known && l.s.rt.APIReachable(l.s.host) {
		l.heard = l.s.rt.Line.Now().Truncate(time.Minute)
	}
	return l.heard
}

// list is what a watch begins with.
func (l *line) list() {
	ctx, c := context.Background(), l.s.rt.Observer
	n := &v1alpha1.CassandraNode{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: l.s.pod.Namespace, Name: l.s.pod.Name}, n); err != nil {
		n = nil
	}
	l.see(n)
	seeds := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: l.s.pod.Namespace, Name: v1alpha1.SeedsName(l.s.cluster)},
		seeds); err == nil {
		l.seeSeeds(seeds)
	}
}

func (l *line) see(n *v1alpha1.CassandraNode) {
	l.record, l.known, l.heard = n, true, l.s.rt.Line.Now()
	l.agent.Wake()
}

func (l *line) seeSeeds(m *corev1.ConfigMap) {
	seeds, err := record.ParseSeeds(m.Data[layout.SeedsKey])
	if err != nil || len(seeds) == 0 {
		return
	}
	l.seeds, l.gone, l.heard = seeds, record.ParseReplaced(m.Data[layout.ReplacedKey]), l.s.rt.Line.Now()
	l.agent.Wake()
}

// WriteStatus is the request that package record makes.
func (l *line) WriteStatus(ctx context.Context, uid types.UID, status *v1alpha1.CassandraNodeStatus) error {
	if !l.s.rt.APIReachable(l.s.host) {
		return fmt.Errorf("write status: %w", errUnreachable)
	}
	patch, err := record.StatusPatch(uid, status)
	if err != nil {
		return err
	}
	n := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: l.s.pod.Namespace, Name: l.s.pod.Name}}
	if err := l.s.rt.Client(l.s.user()).Status().Patch(ctx, n, client.RawPatch(types.JSONPatchType, patch),
		client.FieldOwner(v1alpha1.FieldManagerAgent)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	n.ManagedFields = nil
	if l.record != nil && l.record.UID == n.UID && version(n) > version(l.record) {
		l.record, l.heard = n, l.s.rt.Line.Now()
	}
	return nil
}

func version(n *v1alpha1.CassandraNode) uint64 {
	v, _ := strconv.ParseUint(n.ResourceVersion, 10, 64)
	return v
}
