package trial

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/world"
)

// tableScenarios are those in which a user has a table of a ring brought back from a backup, while
// clients write to it.
func tableScenarios() []*Scenario {
	begins := []Act{passing("until the client has written all", 2*time.Minute, again),
		{Name: "back up", Within: time.Minute, Until: again, Do: remember(func(w *world.World) error {
			defer w.Network.BackedUp()
			return backUp(w)
		})},
		passing("until the operator sees the store", 10*time.Second, again)}
	with := func(name, about string, acts ...Act) *Scenario {
		return scenario(name, about, threeRacks, append(begins[:len(begins):len(begins)], acts...)...)
	}
	over := all(again, restoreIs(v1alpha1.TaskSucceeded), nothingAsked)
	return []*Scenario{
		with("tables-merged", "a table that was truncated by mistake comes back from a backup",
			Act{Name: "truncate the table, and restore it", Do: func(w *world.World) error {
				w.Network.Truncate(world.Keyspace)
				w.WriteOn(12)
				return w.User().Create(context.Background(), restoreOf(v1alpha1.RestoreMerge))
			}, Until: over, Within: 30 * time.Minute}),
		with("tables-replaced", "a table gets the rows of a backup in place of those that it has",
			Act{Name: "write each row again, and ask for the earlier ones", Do: func(w *world.World) error {
				return errors.Join(w.WriteRows(25, nil),
					w.User().Create(context.Background(), restoreOf(v1alpha1.RestoreReplace)))
			}, Until: waitsToBeConfirmed, Within: 30 * time.Minute},
			Act{Name: "confirm", Do: func(w *world.World) error {
				w.Network.Outdated()
				w.WriteOn(12)
				return w.User().Patch(context.Background(), restoreOf(v1alpha1.RestoreReplace),
					client.RawPatch(types.MergePatchType, []byte(`{"spec":{"confirm":true}}`)))
			}, Until: over, Within: 30 * time.Minute}),
	}
}

func restoreOf(mode v1alpha1.RestoreMode) *v1alpha1.CassandraRestore {
	return &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "restore"},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: clusterName},
			Store: v1alpha1.BackupStoreReference{Name: storeName}, Backup: backupID, Mode: mode,
			Tables: []v1alpha1.RestoredTable{{From: world.Keyspace + ".rows"}}}}
}

// restoreIn is nil if there is none.
func restoreIn(w *world.World) *v1alpha1.CassandraRestore {
	r, _ := w.Server.Object("CassandraRestore", keyOf("restore")).(*v1alpha1.CassandraRestore)
	return r
}

func restoreIs(phase v1alpha1.TaskPhase) func(*world.World) bool {
	return func(w *world.World) bool { r := restoreIn(w); return r != nil && r.Status.Phase == phase }
}

func waitsToBeConfirmed(w *world.World) bool {
	r := restoreIn(w)
	return r != nil && strings.Contains(r.Status.Message, "waits for spec.confirm")
}

// restore: what has finished stays so.
func (o *checker) restore(old, now *v1alpha1.CassandraRestore) {
	if old != nil && old.Status.Finished() && old.Status.Phase != now.Status.Phase {
		o.violated("restore: it was %s and is %q", old.Status.Phase, now.Status.Phase)
	}
}

// brought: at the end no row is there that was to go, and no node keeps what it has downloaded.
func (o *checker) brought() {
	for _, s := range o.w.Pods.Sandboxes() {
		if p := s.JVM(); p != nil {
			if left := p.OutdatedIn(world.Keyspace); len(left) > 0 {
				o.violated("restore: node %s has rows that were to go: %v", s.Name(), left)
			}
		}
		if r, left := restoreIn(o.w), s.Content(v1alpha1.VolumeData).Data.StagedIn("restore"); len(left) > 0 &&
			r != nil && r.Status.Finished() {
			o.violated("restore: node %s still has %s", s.Name(), left[0])
		}
	}
}
