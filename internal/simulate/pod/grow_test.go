package pod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// growth is a ring of one node that serves clients and grows by hand: what an operator would do to
// the records is done here, without its guards.
type growth struct {
	*testing.T
	w *world.World
	c client.Client
	// tickets of the nodes that are to join, by name.
	tickets map[string]*v1alpha1.JoinTicket
	written int
	// scenario of the agents.
	scenario []string
}

// newGrowth forms the ring, with a keyspace of one replica: what a join loses is lost.
func newGrowth(t *testing.T, kinds *apiserver.Kinds, seed uint64) *growth {
	t.Helper()
	return newGrowthOf(t, kinds, seed, "5.0.6")
}

// newGrowthOf is newGrowth with a release of Cassandra.
func newGrowthOf(t *testing.T, kinds *apiserver.Kinds, seed uint64, release string) *growth {
	t.Helper()
	w, err := world.New(world.Options{Kinds: kinds, Seed: seed, Zones: []string{"a"}, HostsPerZone: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.End)
	g := &growth{T: t, w: w, c: w.User(), tickets: map[string]*v1alpha1.JoinTicket{}}
	w.Trace = func(who, line string) {
		if who == "agent" {
			g.scenario = append(g.scenario, fmt.Sprintf("%9.3fs %s", w.Line.Now().Sub(world.Began).Seconds(), line))
		}
	}
	w.StartOperator(world.Install)
	cluster := trial.OneNode()
	cluster.Spec.Version = release
	if err := g.c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	g.await("a ring that serves", 10*time.Minute, func() bool { return trial.Serves(w) })
	if err := w.WriteRows(20, map[string]int{"dc1": 1}); err != nil {
		t.Fatal(err)
	}
	for len(w.Operators()) > 0 {
		w.Operators()[0].Kill()
	}
	g.after(time.Second, g.look)
	return g
}

func (g *growth) await(what string, limit time.Duration, condition func() bool) {
	g.Helper()
	if !g.w.Line.RunUntil(g.w.Line.Now().Add(limit), condition) {
		for _, line := range g.scenario[max(0, len(g.scenario)-40):] {
			g.Log(line)
		}
		g.Fatalf("%s did not come within %s", what, limit)
	}
}

func (g *growth) after(d time.Duration, do func()) { g.w.Line.After(d, "test", do) }

func (g *growth) must(err error) {
	if err != nil {
		g.Errorf("%v", err)
	}
}

const first = "orders-dc1-r1-0"

func nodeName(ordinal int) string { return fmt.Sprintf("orders-dc1-r1-%d", ordinal) }

func (g *growth) record(name string) *v1alpha1.CassandraNode {
	n, _ := g.w.Server.Object("CassandraNode",
		types.NamespacedName{Namespace: world.Namespace, Name: name}).(*v1alpha1.CassandraNode)
	return n
}

// like makes an object for another node out of one of the first node's.
func like[T client.Object](g *growth, of T, name string, into T) T {
	text, err := json.Marshal(of)
	g.must(err)
	g.must(json.Unmarshal([]byte(strings.ReplaceAll(string(text), first, name)), into))
	into.SetUID("")
	into.SetResourceVersion("")
	into.SetManagedFields(nil)
	into.SetFinalizers(nil)
	into.SetOwnerReferences(nil)
	return into
}

// add makes claim, record and pod of a further node; it waits for its ticket.
func (g *growth) add(ordinal int) string {
	g.Helper()
	name := nodeName(ordinal)
	key := client.ObjectKey{Namespace: world.Namespace, Name: "data-" + first}
	claim := &corev1.PersistentVolumeClaim{}
	g.must(g.c.Get(g.Context(), key, claim))
	mine := like(g, claim, name, &corev1.PersistentVolumeClaim{})
	mine.Spec.VolumeName, mine.Annotations, mine.Status = "", nil, corev1.PersistentVolumeClaimStatus{}
	g.must(g.c.Create(g.Context(), mine))
	secret := &corev1.Secret{}
	g.must(g.c.Get(g.Context(), client.ObjectKey{Namespace: world.Namespace, Name: first + "-agent-tls"}, secret))
	g.must(g.c.Create(g.Context(), like(g, secret, name, &corev1.Secret{})))
	record := like(g, g.record(first), name, &v1alpha1.CassandraNode{})
	record.Spec.Ordinal, record.Spec.Member, record.Spec.ClientTraffic = int32(ordinal), nil, v1alpha1.TrafficClosed
	record.Spec.Operations, record.Spec.Join, record.Status = nil, nil, v1alpha1.CassandraNodeStatus{}
	record.Spec.Claims = []v1alpha1.ClaimReference{{Volume: v1alpha1.VolumeData, Name: mine.Name, UID: mine.UID}}
	g.must(g.c.Create(g.Context(), record))
	g.tickets[name] = nil
	return name
}

// invite gives a node its ticket.
func (g *growth) invite(name string, id string, tokens ...string) {
	g.Helper()
	g.tickets[name] = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: id}, Mode: v1alpha1.JoinBootstrap,
		Tokens: tokens}
	g.change(name, func(n *v1alpha1.CassandraNode) { n.Spec.Join = g.tickets[name].DeepCopy() })
}

func (g *growth) change(name string, change func(*v1alpha1.CassandraNode)) {
	n := g.record(name).DeepCopy()
	change(n)
	g.must(g.c.Update(context.Background(), n))
}

// look is what happens every second: pods are there, tickets that were used go, members open client
// traffic, the seed is the first node, and a client writes.
func (g *growth) look() {
	g.after(time.Second, g.look)
	for ordinal := range 4 {
		name := nodeName(ordinal)
		key := types.NamespacedName{Namespace: world.Namespace, Name: name}
		n := g.record(name)
		if n == nil {
			continue
		}
		if g.w.Server.Object("Pod", key) == nil {
			g.must(g.c.Create(context.Background(), g.podOf(name)))
		}
		s := n.Status
		if j := n.Spec.Join; j != nil && s.Join != nil && s.Join.ID == j.ID && s.Join.FinishedAt != nil {
			g.change(name, func(n *v1alpha1.CassandraNode) {
				n.Spec.Join, n.Spec.Member = nil, &v1alpha1.Member{HostID: s.HostID}
			})
		} else if n.Spec.Member != nil && n.Spec.ClientTraffic != v1alpha1.TrafficOpen {
			g.change(name, func(n *v1alpha1.CassandraNode) { n.Spec.ClientTraffic = v1alpha1.TrafficOpen })
		}
	}
	for _, s := range g.w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.NativeOpen() {
			g.written++
			// one that is refused is on no account
			_ = j.Write("orders", fmt.Sprintf("more-%d", g.written), "x", ring.Quorum)
		}
	}
	g.publishSeeds()
}

// publishSeeds names the members.
func (g *growth) publishSeeds() {
	key := client.ObjectKey{Namespace: world.Namespace, Name: v1alpha1.SeedsName(trial.ClusterName)}
	var seeds []string
	for _, s := range g.w.Pods.Sandboxes() {
		if n := g.record(s.Name()); n != nil && n.Spec.Member != nil {
			seeds = append(seeds, s.Address().String())
		}
	}
	slices.Sort(seeds)
	m := &corev1.ConfigMap{}
	g.must(g.c.Get(context.Background(), key, m))
	if text := strings.Join(seeds, ","); text != "" && text != m.Data[layout.SeedsKey] {
		m.Data = map[string]string{layout.SeedsKey: text}
		g.must(g.c.Update(context.Background(), m))
	}
}

func (g *growth) podOf(name string) *corev1.Pod {
	model := &corev1.Pod{}
	for ordinal := range 4 {
		if o, ok := g.w.Server.Object("Pod", types.NamespacedName{Namespace: world.Namespace,
			Name: nodeName(ordinal)}).(*corev1.Pod); ok && o.DeletionTimestamp == nil {
			text, err := json.Marshal(o)
			g.must(err)
			g.must(json.Unmarshal([]byte(strings.ReplaceAll(string(text), o.Name, first)), model))
			break
		}
	}
	p := like(g, model, name, &corev1.Pod{})
	p.Spec.NodeName, p.Status, p.DeletionTimestamp = "", corev1.PodStatus{}, nil
	return p
}

func (g *growth) sandbox(name string) *pod.Sandbox {
	for _, s := range g.w.Pods.Sandboxes() {
		if s.Name() == name {
			return s
		}
	}
	return nil
}

func (g *growth) deletePod(name string) {
	g.must(client.IgnoreNotFound(g.c.Delete(context.Background(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: name}})))
}

// joined says that a node is a member and serves.
func (g *growth) joined(name string) func() bool {
	return func() bool {
		n := g.record(name)
		return n.Spec.Member != nil && n.Status.Ready && n.Spec.Join == nil
	}
}

// judge holds the ring to what must be: nothing lost, each member with the tokens of its ticket in
// every view.
func (g *growth) judge() {
	g.Helper()
	g.w.Line.RunFor(30 * time.Second)
	for _, lost := range g.w.Audit() {
		g.Errorf("lost: %s", lost)
	}
	for _, s := range g.w.Pods.Sandboxes() {
		answer, _ := s.Agent().Answer()
		if answer == nil || answer.Ring == nil || answer.Ring.Mode != facts.ModeNormal {
			g.Errorf("%s is %+v", s.Name(), answer)
			continue
		}
		members := 0
		for _, e := range answer.Ring.Endpoints {
			if e.InFlight() {
				g.Errorf("%s sees %s as %s", s.Name(), e.Address, e.Status)
			}
			if e.Member() {
				members++
			}
		}
		if members != 1+len(g.tickets) {
			g.Errorf("%s sees %d members", s.Name(), members)
		}
		if k := g.tickets[s.Name()]; k != nil &&
			!slices.Equal(slices.Sorted(slices.Values(k.Tokens)),
				slices.Sorted(slices.Values(g.record(s.Name()).Status.Tokens))) {
			g.Errorf("%s has the tokens %v, not %v", s.Name(), g.record(s.Name()).Status.Tokens, k.Tokens)
		}
	}
	if g.Failed() {
		for _, line := range g.scenario {
			g.Log(line)
		}
	}
}

// tokensOf are sixteen tokens of a node, which it takes from all that are there.
func tokensOf(node int) []string {
	const step = 0x0123456789abcdef
	var out []string
	for i := range 16 {
		offset := uint64(node) * step //nolint:gosec // a small number
		if i%2 == 0 {
			offset = step / uint64(node) //nolint:gosec // a small number
		}
		out = append(out, fmt.Sprint(int64(uint64(i)<<60+offset))) //nolint:gosec // wraps as it should
	}
	return out
}

func kindsOf(t *testing.T) *apiserver.Kinds {
	t.Helper()
	kinds, err := trial.CompileKinds("../../../config/crd")
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// steps of the journal while a node joins, from its ticket to its readiness.
func (g *growth) steps(name string) []memdisk.Step {
	var out []memdisk.Step
	g.w.Pods.Hook = func(s *pod.Sandbox, step memdisk.Step, done bool) error {
		if s.Name() == name && !done && g.tickets[name] != nil {
			out = append(out, step)
		}
		return nil
	}
	g.bring(name)
	return out
}

// bring has a node join.
func (g *growth) bring(name string) {
	g.Helper()
	g.bringWithin(name, 15*time.Minute)
}

// bringWithin is bring for a join that may have to start over.
func (g *growth) bringWithin(name string, limit time.Duration) {
	g.Helper()
	ordinal, err := strconv.Atoi(name[len(name)-1:])
	g.must(err)
	g.add(ordinal)
	g.await("an agent that waits", 5*time.Minute,
		func() bool { return g.record(name).Status.Disk == v1alpha1.DiskEmpty })
	g.invite(name, "grow/"+name, tokensOf(ordinal)...)
	g.await("a member", limit, g.joined(name))
}

// when does something once, at an age of the JVM of a node.
func (g *growth) when(name string, age time.Duration, do func()) (done *bool) {
	done = new(bool)
	var watch func()
	watch = func() {
		if s := g.sandbox(name); s != nil && s.JVM() != nil && g.w.Line.Now().Sub(s.JVM().StartedAt()) >= age {
			*done = true
			do()
			return
		}
		g.after(100*time.Millisecond, watch)
	}
	watch()
	return done
}
