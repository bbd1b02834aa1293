package safeguard

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/agent/journal/memdisk"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// judged counts what each of the operator's guards refuses, for the time of a test; those that are named pass always.
func judged(t *testing.T, allow ...string) map[string]int {
	t.Helper()
	refused := map[string]int{}
	for _, list := range []*[]guard.Guard[guard.Nodes]{&guard.Formation, &guard.Adoption, &guard.Newcomer, &guard.Join, &guard.Cleanup, &guard.NewDatacenter} {
		judge(t, list, refused, allow)
	}
	judge(t, &guard.Joiner, refused, allow)
	judge(t, &guard.AddedDatacenter, refused, allow)
	return refused
}

// judge is judged for the guards on one thing.
func judge[T any](t *testing.T, list *[]guard.Guard[T], refused map[string]int, allow []string) {
	t.Helper()
	whole := *list
	t.Cleanup(func() { *list = whole })
	*list = slices.Clone(whole)
	for i, g := range whole {
		(*list)[i].Check = func(about T) []guard.Finding {
			found := g.Check(about)
			if len(found) > 0 {
				refused[g.Name]++
			}
			if slices.Contains(allow, g.Name) {
				return nil
			}
			return found
		}
	}
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

// ledgerRestored is the story of a backup: somebody puts the ledger back to how it was before the ring formed.
func ledgerRestored() *trial.Scenario {
	return trial.Named("ledger-restored", "the ledger of a ring that serves is put back to its beginning", true, nil,
		trial.Act{Name: "restore the ledger", Do: putBack, Until: stalled(v1alpha1.ReasonForeignDisks), Within: 5 * time.Minute})
}

// putBack gives the cluster the ledger that it began with.
func putBack(w *world.World) error {
	empty, err := facts.EncodeLedger(&facts.Ledger{ClusterUID: trial.Cluster(w).UID})
	if err != nil {
		return err
	}
	m := w.Server.Object("ConfigMap", ledgerKey).(*corev1.ConfigMap).DeepCopy()
	m.Data = empty
	return w.Person().Update(context.Background(), m)
}

// dirty is the story of a provisioner that hands out a volume as an earlier cluster has left it.
func dirty(until func(*world.World) bool) *trial.Scenario {
	var v leftover
	return trial.Named("dirty-volume", "a cluster is created, and one of its volumes is the disk of an earlier cluster", true, deleteClaims,
		v.deletion(), v.kept(),
		trial.Act{Name: "create again", Do: func(w *world.World) error {
			v.handOut(w)
			return w.Person().Create(context.Background(), trial.ThreeRacks(deleteClaims))
		}, Until: until, Within: 30 * time.Minute},
	)
}

// leftover is the disk of a cluster that was deleted.
type leftover struct{ content *pod.Content }

// deletion of the cluster that it is of, which keeps nothing.
func (*leftover) deletion() trial.Act {
	return trial.Act{Name: "delete", Do: func(w *world.World) error {
		w.Network.Forget(world.Namespace + "." + clusterName)
		return w.Person().Delete(context.Background(), trial.Cluster(w).DeepCopy())
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

func TestGuardsOfFormation(t *testing.T) {
	for _, c := range []struct {
		guard    string
		scenario *trial.Scenario
		// doubled are guards that refuse the same.
		doubled []string
		by      string
	}{
		{"every_initial_node_answers_from_its_present_pod", dirty(stalled(v1alpha1.ReasonForeignDisks)), nil, "gets a ticket for the disk of a member of another cluster"},
		{"every_initial_disk_is_empty", dirty(stalled(v1alpha1.ReasonForeignDisks)), nil, "gets a ticket for the disk of a member of another cluster"},
		{"no_initial_node_ever_served_clients", ledgerRestored(), []string{"every_initial_disk_is_empty"}, "I11"},
	} {
		t.Run(c.guard, func(t *testing.T) {
			refused := judged(t, c.doubled...)
			holds(t, trial.Trial{Scenario: c.scenario, Seed: 1})
			if refused[c.guard] == 0 {
				t.Errorf("it has refused nothing: %v", refused)
			}
			judged(t, append(c.doubled, c.guard)...)
			caught(t, trial.Trial{Scenario: c.scenario, Seed: 1}, c.by)
		})
	}
}

// adopted is the story of an adoption, in which the disks of the earlier cluster are changed before it.
func adopted(name string, between func(w *world.World), until func(*world.World) bool, after ...trial.Act) *trial.Scenario {
	var former types.UID
	return trial.Named(name, "a ring is deleted, its disks are mixed up, and it is made anew from them", true, nil, append([]trial.Act{
		{Name: "delete", Do: func(w *world.World) error {
			former = trial.Cluster(w).UID
			return w.Person().Delete(context.Background(), trial.Cluster(w).DeepCopy())
		}, Until: func(w *world.World) bool { return trial.Cluster(w) == nil }, Within: 20 * time.Minute},
		{Name: "adopt", Do: func(w *world.World) error {
			between(w)
			return w.Person().Create(context.Background(), trial.ThreeRacks(func(c *v1alpha1.CassandraCluster) { c.Spec.Volumes.Adopt = former }))
		}, Until: until, Within: 10 * time.Minute},
	}, after...)...)
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
func swapped(w *world.World) {
	v := volumes(w)
	v[0].Content, v[1].Content = v[1].Content, v[0].Content
}

// copied has a node find a copy of another's data under its own marker.
func copied(w *world.World) {
	v := volumes(w)
	from, to := pod.ContentOf(v[0]), pod.ContentOf(v[1])
	files := memdisk.New()
	files.Put(journal.MarkerPath, []byte(to.Files.Files()[journal.MarkerPath]))
	v[1].Content = &pod.Content{Files: files, Data: from.Data.Clone()}
}

func TestGuardsOfAdoption(t *testing.T) {
	incomplete := stalled(v1alpha1.ReasonAdoptionIncomplete)
	for _, c := range []struct {
		guard    string
		scenario *trial.Scenario
		by       string
	}{
		{"every_initial_node_answers_from_its_present_pod", adopted("adopt", func(*world.World) {}, trial.Serves), "panic"},
		{
			"every_disk_is_of_the_adopted_cluster", adopted("adopt-swapped", swapped, incomplete, trial.Act{Name: "swap back", Do: func(w *world.World) error {
				swapped(w)
				for _, s := range w.Pods.Sandboxes() {
					if err := w.Person().Delete(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: s.Name()}}); err != nil {
						return err
					}
				}
				return nil
			}, Until: trial.Serves, Within: 20 * time.Minute}), "act adopt is not over",
		},
		{"every_host_id_is_there_once", adopted("adopt-copy", copied, incomplete), "act adopt is not over"},
	} {
		t.Run(c.guard, func(t *testing.T) {
			refused := judged(t)
			holds(t, trial.Trial{Scenario: c.scenario, Seed: 1})
			if refused[c.guard] == 0 {
				t.Errorf("it has refused nothing: %v", refused)
			}
			judged(t, c.guard)
			caught(t, trial.Trial{Scenario: c.scenario, Seed: 1}, c.by)
		})
	}
}
