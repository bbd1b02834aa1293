package coverage

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// Trier tries properties. It remembers what fresh clusters come to.
type Trier struct {
	Kinds *apiserver.Kinds
	Seed  uint64
	fresh map[string]*outcome
}

// outcome is how a cluster stands when nothing changes any more.
type outcome struct {
	end     trial.End
	ready   bool
	stalled string
	// waits says that nodes are to join for which there is no host; down, that a node was changed
	// and does not come up, which a roll-out shows and goes no further.
	waits, down bool
}

// Steps counts what was done with a property.
type Steps struct {
	// Applied changes, those that the cluster refused in words, and those that the API server
	// refused.
	Applied, Refused, Invalid int
}

const (
	// settled is how long nothing must be written for a change to be over.
	settled = 90 * time.Second
	// patience is how long that may take.
	patience = 15 * time.Minute
	// attempted is how long a start takes at most that fails, as every minute does. Meanwhile the
	// cluster does not say that the node is down.
	attempted = 10 * time.Second
)

// attempt is one property in one world.
type attempt struct {
	*Trier
	Property
	w          *world.World
	violations []string
	steps      Steps
	lastWrite  time.Time
	// whole is how things stood last when no node waited for a host.
	whole outcome
}

// Try changes a property in every way. What does not hold is returned in words.
func (t *Trier) Try(p Property) (Steps, []string) {
	a := &attempt{Trier: t, Property: p}
	a.begin()
	defer a.w.End()
	base := a.spec()
	if formed := a.outcome(); !formed.ready {
		a.violated("the cluster does not form: %s", formed.stalled)
		return a.steps, a.violations
	}
	values, refused := a.values(base)
	if (len(values) == 0) != a.fixed() {
		a.violated("the API server takes %d of the values that %s is changed to", len(values), p.Path)
	}
	if len(refused) == 0 {
		a.violated("no value is tried that the API server does not take for %s", p.Path)
	}
	for _, v := range values {
		a.step(fmt.Sprintf("%s = %v", p.Path, brief(v)), with(base, p.Path, v))
	}
	if removed := with(base, p.Path, nil); !reflect.DeepEqual(removed, base) {
		a.step(p.Path+" taken away", removed)
	}
	for _, v := range refused {
		a.refused(fmt.Sprintf("%s = %v", p.Path, brief(v)), with(base, p.Path, v))
	}
	a.step(p.Path+" as it was", base)
	if now := a.outcome(); now.stalled != "" {
		a.violated("after all is as it was, the cluster says: %s", now.stalled)
	}
	return a.steps, a.violations
}

func brief(v any) string {
	text := fmt.Sprint(v)
	return text[:min(len(text), 60)]
}

func (a *attempt) violated(format string, args ...any) {
	a.violations = append(a.violations, fmt.Sprintf(format, args...))
}

// begin makes a world with a formed ring.
func (a *attempt) begin() {
	a.w, a.lastWrite = newWorld(a.Kinds, a.Seed), world.Began
	a.w.Watch(func(apiserver.Event) { a.lastWrite = a.w.Line.Now() })
	if err := a.w.User().Create(context.Background(), trial.OneNode()); err != nil {
		panic(fmt.Sprintf("create the cluster: %v", err)) // it is the program's own
	}
	a.settle()
}

func newWorld(kinds *apiserver.Kinds, seed uint64) *world.World {
	w, err := world.New(world.Options{Kinds: kinds, Seed: seed, Zones: []string{"a"}, HostsPerZone: 1})
	if err != nil {
		panic(fmt.Sprintf("make the world: %v", err)) // a defect of the simulator
	}
	w.StartOperator(world.Install)
	return w
}

func (a *attempt) settle() {
	a.lastWrite = a.w.Line.Now()
	quiet := a.w.Line.RunUntil(a.w.Line.Now().Add(patience),
		func() bool { return a.w.Line.Now().Sub(a.lastWrite) > settled })
	down := func() bool { return a.blocked(v1alpha1.BlockedChangedNodeDown) }
	if !quiet && !down() && !a.w.Line.RunUntil(a.w.Line.Now().Add(attempted), down) {
		a.violated("something is still written after %s", patience)
	}
	if down() { // between two attempts, not in the middle of one
		a.w.Line.RunUntil(a.w.Line.Now().Add(attempted), func() bool {
			return slices.ContainsFunc(a.w.Server.Objects("CassandraNode"),
				func(o client.Object) bool { return o.(*v1alpha1.CassandraNode).Status.Blocked != nil })
		})
	}
}

func (a *attempt) cluster() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CassandraCluster"))
	key := types.NamespacedName{Namespace: world.Namespace, Name: trial.ClusterName}
	if err := a.w.User().Get(context.Background(), key, u); err != nil {
		panic(fmt.Sprintf("get the cluster: %v", err)) // nobody deletes it
	}
	return u
}

func (a *attempt) spec() map[string]any {
	return a.cluster().Object["spec"].(map[string]any)
}

func with(spec map[string]any, path string, value any) map[string]any {
	out := runtime.DeepCopyJSON(spec)
	set(out, path, value)
	return out
}

func (a *attempt) write(spec map[string]any, options ...client.UpdateOption) error {
	u := a.cluster()
	u.Object["spec"] = runtime.DeepCopyJSON(spec)
	return a.w.User().Update(context.Background(), u, options...)
}

// values are up to two that the API server takes, other than the present one, and up to two that it
// does not take.
func (a *attempt) values(base map[string]any) (taken, refused []any) {
	const most = 2
	for _, v := range candidates(&a.Schema) {
		spec := with(base, a.Path, v)
		if reflect.DeepEqual(spec, base) {
			continue
		}
		switch err := a.write(spec, client.DryRunAll); {
		case err == nil && len(taken) < most:
			taken = append(taken, v)
		case err != nil && len(refused) < most:
			refused = append(refused, v)
		}
	}
	return taken, refused
}

// refused gives a value that the API server does not take: it says where, and nothing changes.
func (a *attempt) refused(name string, spec map[string]any) {
	before := a.outcome()
	err := a.write(spec)
	if err == nil {
		a.violated("%s is taken, and was refused in a dry run", name)
		return
	}
	a.steps.Invalid++
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(),
		strings.TrimSuffix(strings.Split(a.Path, ".")[0], "[]")) {
		a.violated("%s is refused without saying where: %v", name, err)
	}
	a.settle()
	a.unchanged(name, before)
}

// unchanged says what is other than it was, apart from what the cluster says of itself.
func (a *attempt) unchanged(name string, before outcome) {
	now := a.outcome()
	key := "CassandraCluster" + "/" + trial.ClusterName
	delete(now.end.Objects, key)
	delete(before.end.Objects, key)
	for _, text := range trial.Unlike(now.end, before.end) {
		a.violated("%s is refused, and yet: %s", name, text)
	}
}

// step writes a spec. Either the cluster refuses it in words that name the property, and stays as
// it was when all was well, or it becomes what a fresh cluster of that spec is.
func (a *attempt) step(name string, spec map[string]any) {
	before := a.outcome()
	if !before.waits {
		a.whole = before
	}
	if err := a.write(spec); err != nil {
		if !apierrors.IsInvalid(err) {
			a.violated("%s: %v", name, err)
		}
		a.steps.Invalid++ // not from the value that it has
		return
	}
	a.settle()
	now := a.outcome()
	if now.stalled != "" {
		a.steps.Refused++
		if !a.named(now.stalled) {
			a.violated("%s is refused without a word of it: %s", name, now.stalled)
		}
		a.unchanged(name, before)
		return
	}
	a.steps.Applied++
	switch {
	case a.Path == "security.authentication.mode":
		return // it waits for a person on its way: passwords-living-ring
	// It waits until there are hosts for more nodes, or stays as it was made: a fresh ring has the
	// default.
	case now.waits, strings.HasPrefix(a.Path, "security.encryption.certificates."):
		a.kept(name, a.whole)
		return
	case now.down:
		return // the next value brings it up again
	case spec["stopped"] == true: // which a fresh cluster cannot be
		if len(now.end.Ring) > 0 {
			a.violated("%s, and pods run: %v", name, now.end.Ring)
		}
		return
	}
	encryption := strings.HasPrefix(a.Path, "security.encryption.")
	if encryption && strings.HasSuffix(name, " taken away") { // it is as the ring was made
		spec = with(spec, a.Path, "Disabled")
	}
	fresh := a.freshOf(spec)
	if encryption {
		key := "CassandraCluster" + "/" + trial.ClusterName
		now.end.Objects[key] = fresh.end.Objects[key] // with another spec, and with passes in its history
	}
	if !fresh.ready && fresh.stalled == "" && now.ready {
		return // a paused cluster does not form, and one that has formed stays
	}
	if strings.HasSuffix(a.Path, "restartedAt") { // the record keeps which restart was done
		key := "CassandraNode" + "/" + trial.ClusterName + "-dc1-r1-0"
		now.end.Objects[key] = fresh.end.Objects[key]
	}
	for key := range now.end.Objects { // certificates stay where there were any
		if strings.HasSuffix(key, "-tls") || strings.HasSuffix(key, "-ca") {
			if _, has := fresh.end.Objects[key]; encryption && !has {
				delete(now.end.Objects, key)
			}
		}
	}
	for _, text := range trial.Unlike(now.end, fresh.end) {
		a.violated("%s, compared with a fresh cluster: %s", name, text)
	}
}

// kept says what is other than it was of the things that were there then, apart from the cluster
// itself and what counts its nodes.
func (a *attempt) kept(name string, before outcome) {
	now := a.outcome().end.Objects
	for key, was := range before.end.Objects {
		if kind, _, _ := strings.Cut(key, "/"); kind != "CassandraCluster" &&
			kind != "PodDisruptionBudget" && now[key] != was {
			a.violated("%s waits for hosts, and yet %s is not as it was", name, key)
		}
	}
}

// named says that a refusal names the property: by its own name, by that of what it is in, or by
// what it describes.
func (a *attempt) named(refusal string) bool {
	var names []string
	for _, part := range strings.Split(a.Path, ".") {
		switch name := strings.TrimSuffix(part, "[]"); name {
		case "datacenters", "racks", "nodes", "nodesPerRack":
			names = append(names, "the spec has ", "the spec lacks ")
		case "node", "placement", "storage", "name": // not much of a name
		default:
			names = append(names, name)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(refusal, name) })
}

func (a *attempt) outcome() outcome {
	c := trial.Cluster(a.w)
	o := outcome{end: trial.EndOf(a.w), ready: meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)}
	if s := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled); s != nil &&
		s.Status == metav1.ConditionTrue {
		o.stalled = s.Message
	}
	o.waits, o.down = a.blocked(v1alpha1.BlockedJoiningNodeNotReady), a.blocked(v1alpha1.BlockedChangedNodeDown)
	return o
}

func (a *attempt) blocked(reason v1alpha1.Reason) bool {
	return slices.ContainsFunc(trial.Cluster(a.w).Status.Blocked,
		func(b v1alpha1.BlockedStep) bool { return b.Reason == reason })
}

// freshOf is what a new cluster of a spec comes to.
func (t *Trier) freshOf(spec map[string]any) *outcome {
	key := fmt.Sprint(spec) // maps are printed in the order of their keys
	if known := t.fresh[key]; known != nil {
		return known
	}
	f := &attempt{Trier: t, w: newWorld(t.Kinds, t.Seed)}
	defer f.w.End()
	f.w.Watch(func(apiserver.Event) { f.lastWrite = f.w.Line.Now() })
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "CassandraCluster",
		"metadata": map[string]any{"namespace": world.Namespace, "name": trial.ClusterName},
		"spec":     runtime.DeepCopyJSON(spec),
	}}
	if err := f.w.User().Create(context.Background(), u); err != nil {
		panic(fmt.Sprintf("create a fresh cluster: %v", err)) // the same spec was taken as a change
	}
	f.settle()
	o := f.outcome()
	if t.fresh == nil {
		t.fresh = map[string]*outcome{}
	}
	t.fresh[key] = &o
	return &o
}
