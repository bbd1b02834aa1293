package safeguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/process"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
	"helenus.io/helenus/test/memdisk"
)

// judged counts what each of the operator's guards refuses, for the time of a test; those that are
// named pass always.
func judged(t *testing.T, allow ...string) map[string]int {
	t.Helper()
	refused := map[string]int{}
	whole := world.Rules
	t.Cleanup(func() { world.Rules = whole })
	r := &world.Rules
	for _, list := range []*[]guard.Guard[guard.Nodes]{&r.Formation, &r.Adoption, &r.PendingNode, &r.BeforeJoin,
		&r.BeforeLeave, &r.Cleanup, &r.Repair, &r.NewDatacenter, &r.Releases, &r.NewRelease, &r.RollOut, &r.Seen,
		&r.Drain} {
		*list = judge(*list, refused, allow)
	}
	r.Undelivered = judge(r.Undelivered, refused, allow)
	r.Room = judge(r.Room, refused, allow)
	r.Encryption = judge(r.Encryption, refused, allow)
	r.Authority = judge(r.Authority, refused, allow)
	r.Replace = judge(r.Replace, refused, allow)
	r.Placement = judge(r.Placement, refused, allow)
	r.Leaving = judge(r.Leaving, refused, allow)
	r.Withdrawing = judge(r.Withdrawing, refused, allow)
	r.StopDatacenter = judge(r.StopDatacenter, refused, allow)
	r.AddedDatacenter = judge(r.AddedDatacenter, refused, allow)
	return refused
}

// judge is judged for the guards on one thing.
func judge[T any](list []guard.Guard[T], refused map[string]int, allow []string) []guard.Guard[T] {
	out := slices.Clone(list)
	for i, g := range list {
		out[i].Check = func(about T) []guard.Finding {
			found := g.Check(about)
			if len(found) > 0 {
				refused[string(g.Reason)]++
			}
			if slices.Contains(allow, string(g.Reason)) {
				return nil
			}
			return found
		}
	}
	return out
}

// stalled says that the cluster waits for its user, for a reason.
func stalled(reason string) func(*world.World) bool {
	return func(w *world.World) bool {
		c := trial.Cluster(w)
		if c == nil {
			return false
		}
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
		return condition != nil && condition.Status == "True" && condition.Reason == reason
	}
}

// ledgerRestored is the scenario of a backup: somebody puts the ledger back to how it was before
// the ring formed.
func ledgerRestored() *trial.Scenario {
	return trial.Named("ledger-restored", "the ledger of a ring that serves is put back to its beginning", true, nil,
		trial.Act{Name: "restore the ledger", Do: putBack, Until: stalled(v1alpha1.ReasonForeignDisks),
			Within: 5 * time.Minute})
}

// putBack gives the cluster the ledger that it began with.
func putBack(w *world.World) error {
	empty, err := ledger.Encode(&ledger.Ledger{ClusterUID: trial.Cluster(w).UID})
	if err != nil {
		return err
	}
	m := w.Server.Object("ConfigMap", ledgerKey).(*corev1.ConfigMap).DeepCopy()
	m.Data = empty
	return w.User().Update(context.Background(), m)
}

// dirty is the scenario of a provisioner that hands out a volume as an earlier cluster has left it.
func dirty(until func(*world.World) bool) *trial.Scenario {
	var v leftover
	return trial.Named("dirty-volume", "a cluster is created, and one of its volumes is the disk of an earlier cluster",
		true, deleteClaims,
		v.deletion(), v.kept(),
		trial.Act{Name: "create again", Do: func(w *world.World) error {
			v.handOut(w)
			return w.User().Create(context.Background(), trial.ThreeRacks(deleteClaims))
		}, Until: until, Within: 30 * time.Minute},
	)
}

// leftover is the disk of a cluster that was deleted.
type leftover struct{ content *pod.Content }

// deletion of the cluster that it is of, which keeps nothing.
func (*leftover) deletion() trial.Act {
	return trial.Act{Name: "delete", Do: func(w *world.World) error {
		w.Network.Forget(world.Namespace + "." + clusterName)
		return w.User().Delete(context.Background(), trial.Cluster(w).DeepCopy())
	}, Until: claimsLeft, Within: 20 * time.Minute}
}

func (v *leftover) kept() trial.Act {
	return trial.Act{Name: "keep a disk", Do: func(w *world.World) error {
		claim := w.Server.Objects("PersistentVolumeClaim")[0].(*corev1.PersistentVolumeClaim)
		c := pod.ContentOf(w.Kube.Volume(claim))
		v.content = &pod.Content{Files: c.Files, Data: c.Data.Clone()}
		return nil
	}, Until: func(w *world.World) bool { return trial.Cluster(w) == nil }, Within: 20 * time.Minute}
}

// handOut has the next volume that is made be that disk.
func (v *leftover) handOut(w *world.World) {
	left := v.content
	w.Watch(func(e apiserver.Event) {
		if e.Kind == "PersistentVolume" && e.Type == apiserver.Added && left != nil {
			w.Kube.Volumes()[e.Key.Name].Content, left = left, nil
		}
	})
}

func deleteClaims(c *v1alpha1.CassandraCluster) {
	c.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
}

func formationCases() []guardCase {
	return []guardCase{
		{"InitialNodeNotReady", dirty(stalled(v1alpha1.ReasonForeignDisks)), nil, foreignTicket},
		{"DiskNotEmpty", dirty(stalled(v1alpha1.ReasonForeignDisks)), nil, foreignTicket},
		{"ClientTrafficAlreadyOpened", ledgerRestored(), []string{"DiskNotEmpty"}, "I11"},
	}
}

func TestGuardsOfFormation(t *testing.T) {
	for _, c := range formationCases() {
		c.try(t)
	}
}

// earlier is a cluster whose disks another one adopts.
type earlier struct {
	uid types.UID
	// members are the host ids of its nodes, by their names.
	members map[string]string
	// change of its spec, and of that of the other.
	change func(*v1alpha1.CassandraCluster)
}

// adopted is the scenario of an adoption, of what was done to the disks before it and of what comes
// after.
func (e *earlier) adopted(name string, before func(*world.World) error, until func(*world.World) bool,
	after ...trial.Act) *trial.Scenario {
	s := trial.Named(name, "a ring is deleted, its disks are mixed up, and it is recreated from them", true, e.change,
		append([]trial.Act{
			{Name: "delete", Do: func(w *world.World) error {
				e.uid, e.members = trial.Cluster(w).UID, disks(w)
				return w.User().Delete(context.Background(), trial.Cluster(w).DeepCopy())
			}, Until: func(w *world.World) bool { return trial.Cluster(w) == nil }, Within: 20 * time.Minute},
			{Name: "adopt", Do: func(w *world.World) error {
				if err := before(w); err != nil {
					return err
				}
				return w.User().Create(context.Background(), trial.ThreeRacks(func(c *v1alpha1.CassandraCluster) {
					if e.change != nil {
						e.change(c)
					}
					c.Spec.Bootstrap = &v1alpha1.Bootstrap{Adopt: &v1alpha1.Adoption{ClusterUID: e.uid}}
				}))
			}, Until: until, Within: 10 * time.Minute},
		}, after...)...)
	s.HostsPerZone = 3
	return s
}

// disks are the host ids on the volumes of the nodes, by the names of the nodes; those of empty
// ones are empty.
func disks(w *world.World) map[string]string {
	out := map[string]string{}
	for _, o := range w.Server.Objects("PersistentVolumeClaim") {
		if v := w.Kube.Volume(o.(*corev1.PersistentVolumeClaim)); v != nil {
			out[o.GetLabels()[v1alpha1.LabelNode]] = pod.ContentOf(v).Data.HostID()
		}
	}
	return out
}

// misnamed are the records that say of a node that it is a member which another one was.
func (e *earlier) misnamed(w *world.World) []string {
	var out []string
	for _, o := range w.Server.Objects("CassandraNode") {
		if m := o.(*v1alpha1.CassandraNode).Spec.Member; m != nil && m.HostID != e.members[o.GetName()] {
			out = append(out, fmt.Sprintf("the record of node %s says that it is the member %s, and it was %s",
				o.GetName(), m.HostID, e.members[o.GetName()]))
		}
	}
	return out
}

// twins are the JVMs that have a host id with another one.
func twins(w *world.World) []string {
	var out []string
	seen := map[string]string{}
	for _, s := range w.Pods.Sandboxes() {
		if s.JVM() == nil || s.JVM().HostID() == "" {
			continue
		}
		if other := seen[s.JVM().HostID()]; other != "" {
			out = append(out, fmt.Sprintf("nodes %s and %s run with one host id", other, s.Name()))
		}
		seen[s.JVM().HostID()] = s.Name()
	}
	return out
}

// volumes of the nodes, by their names.
func volumes(w *world.World) []*kube.Volume {
	var out []*kube.Volume
	for _, o := range w.Server.Objects("PersistentVolumeClaim") {
		out = append(out, w.Kube.Volume(o.(*corev1.PersistentVolumeClaim)))
	}
	return out
}

// swapped has two nodes find each other's disk.
func swapped(w *world.World) error {
	v := volumes(w)
	v[0].Content, v[1].Content = v[1].Content, v[0].Content
	return nil
}

// swappedBack has them find their own again, in new pods.
func swappedBack(w *world.World) error {
	if err := swapped(w); err != nil {
		return err
	}
	for _, s := range w.Pods.Sandboxes() {
		if err := deletePod(w, s.Name()); err != nil {
			return err
		}
	}
	return nil
}

// copied has a node find a copy of another's data under its own marker.
func copied(w *world.World) error {
	v := volumes(w)
	from, to := pod.ContentOf(v[0]), pod.ContentOf(v[1])
	files := memdisk.New()
	files.Put(journal.MarkerPath, []byte(to.Files.Files()[journal.MarkerPath]))
	v[1].Content = &pod.Content{Files: files, Data: from.Data.Clone()}
	return nil
}

// oneRack is a cluster whose nodes Cassandra cannot tell from each other by their place.
func oneRack(c *v1alpha1.CassandraCluster) {
	dc := &c.Spec.Datacenters[0]
	dc.Racks, dc.NodesPerRack = dc.Racks[:1], 3
}

// exchanged is the scenario of an adoption for which two disks are exchanged, and repaired when
// that is noticed.
func exchanged(by string) *trial.Scenario {
	var e earlier
	return e.adopted("adopt-swapped", swapped, until(by, ledger.AdoptRing), waiting(time.Minute), unharmed(e.misnamed),
		trial.Act{Name: "swap back", Do: swappedBack, Until: trial.Serves, Within: 20 * time.Minute})
}

// duplicated is the scenario of an adoption of a disk and its copy.
func duplicated(by string) *trial.Scenario {
	e := earlier{change: oneRack}
	return e.adopted("adopt-copy", copied, until(by, ledger.AdoptRing), waiting(5*time.Minute), unharmed(twins))
}

func adoptionCases() []guardCase {
	return []guardCase{
		{"DiskNotAdoptable", exchanged("DiskNotAdoptable"), nil, "says that it is the member"},
		{"DuplicateHostID", duplicated("DuplicateHostID"), nil, "run with one host id"},
	}
}

func TestGuardsOfAdoption(t *testing.T) {
	for _, c := range adoptionCases() {
		c.try(t)
	}
}

// lines are an operator's to the agents of some nodes, by their names; a line that is cut says
// nothing.
type lines struct {
	w   *world.World
	cut map[string]bool
	// last is what each agent said last, where that is kept: also by a former pod, or before its
	// disk was lost.
	last map[string]*facts.Agent
}

// wrap of the lines. One that remembers takes the last answer of an agent for its present one.
func (l *lines) wrap(remembers bool) world.Wrap {
	return world.Wrap{Asker: func(_ *world.Operator, t observe.Target, a observe.Asker) observe.Asker {
		return heard{a, l, t, remembers}
	}}
}

type heard struct {
	observe.Asker
	lines     *lines
	target    observe.Target
	remembers bool
}

func (r heard) Facts(ctx context.Context) (*facts.Agent, error) {
	if r.lines.cut[r.target.Node] {
		return r.silence(ctx)
	}
	return r.or(r.Asker.Facts(ctx))
}

func (r heard) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	if r.lines.cut[r.target.Node] {
		return r.silence(ctx)
	}
	return r.or(r.Asker.WaitFacts(ctx, digest, limit))
}

func (r heard) silence(ctx context.Context) (*facts.Agent, error) {
	if err := process.Sleep(ctx, r.lines.w.Line, time.Second); err != nil {
		return nil, err
	}
	return r.or(nil, errors.New("no answer"))
}

func (r heard) or(answer *facts.Agent, err error) (*facts.Agent, error) {
	if err == nil {
		r.lines.last[r.target.Node] = answer
		return answer, nil
	}
	last := r.lines.last[r.target.Node]
	if !r.remembers || last == nil {
		return nil, err
	}
	stale := *last
	stale.PodUID, stale.Address = r.target.Pod, r.target.Address
	return &stale, nil
}

// lostWhileUnheard is the scenario of an adoption that waits for the word of one disk while
// another, which was heard of, is lost.
func lostWhileUnheard(l *lines) *trial.Scenario {
	const by = "InitialNodeNotReady"
	var e earlier
	var early []string
	host := func(w *world.World) string { return sandbox(w, first).Host() }
	return e.adopted("adopt-unheard", func(w *world.World) error {
		l.w, early = w, nil
		clear(l.cut)
		clear(l.last)
		l.cut[last] = true
		watchStarts(w, func(s *pod.Sandbox) {
			for name, id := range disks(w) {
				if id != e.members[name] {
					early = append(early, fmt.Sprintf("node %s starts without the disk of node %s", s.Name(), name))
				}
			}
		})
		return nil
	}, func(w *world.World) bool {
		return blockedBy(w, by) && l.last[first] != nil && l.last[first].Disk == v1alpha1.DiskMember
	},
		trial.Act{Name: "lose a disk", Do: func(w *world.World) error {
			l.cut[first] = true
			at := host(w)
			w.Kube.Lose(at)
			w.Line.RunFor(time.Minute)
			w.Kube.Return(at, false)
			return deletePod(w, first)
		}, Until: func(w *world.World) bool { s := sandbox(w, first); return s != nil && s.Agent() != nil },
			Within: 10 * time.Minute},
		trial.Act{Name: "hear the other", Do: func(w *world.World) error {
			delete(l.cut, last)
			w.Line.RunFor(5 * time.Minute)
			return nil
		}},
		unharmed(func(*world.World) []string { return early }),
		trial.Act{Name: "hear of the loss", Do: func(*world.World) error { delete(l.cut, first); return nil },
			Until: stalled(v1alpha1.ReasonAdoptionIncomplete), Within: 10 * time.Minute},
		unharmed(func(*world.World) []string { return early }))
}

// A disk that was heard of may be gone since: only the present pod can tell. Without the guard
// nobody could adopt what nobody has heard of, so that it stays, and believes what is not from the
// present pod.
func TestWhoIsAdoptedHasToAnswer(t *testing.T) {
	const by = "InitialNodeNotReady"
	l := lines{cut: map[string]bool{}, last: map[string]*facts.Agent{}}
	s := lostWhileUnheard(&l)
	refused := judged(t)
	refuses(t, holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: l.wrap(false), Tell: true}), by)
	if refused[by] == 0 {
		t.Errorf("it has refused nothing: %v", refused)
	}
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: l.wrap(true)}, "starts without the disk of node "+first)
}
