package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cli/leftovers"
	"helenus.io/helenus/internal/simulate/world"
)

// deletionScenarios are the other ways in which a cluster is deleted, and what one leaves whose
// finalizer somebody takes away.
func deletionScenarios() []*Scenario {
	return []*Scenario{
		scenario("delete-foreground", "a ring is deleted in the foreground: its objects go before it", threeRacks,
			Act{Name: "delete", Do: removeBy(metav1.DeletePropagationForeground), Until: gone, Within: 20 * time.Minute,
				Despite: true}),
		scenario("delete-orphan", "a ring is deleted as orphan, which takes its objects from it", threeRacks,
			Act{Name: "delete", Do: removeBy(metav1.DeletePropagationOrphan), Until: gone, Within: 20 * time.Minute,
				Despite: true}),
		alone(scenario("leftovers", "the finalizer of a deleted ring is taken away; the next of its name says what is "+
			"left, which the user removes, and takes over the disks", threeRacks,
			Act{Name: "delete and strip", Do: remember(strip), Within: time.Minute, Despite: true,
				Until: func(w *world.World) bool { return get(w) == nil }},
			Act{Name: "create the next", Do: func(w *world.World) error {
				return w.User().Create(context.Background(), threeRacks.cluster())
			}, Until: stalledWith(v1alpha1.ReasonLeftovers, "kubectl helenus clear-leftovers orders --namespace "),
				Within: 10 * time.Minute},
			Act{Name: "stop what runs", Do: stopFormer, Within: 20 * time.Minute,
				Until: func(w *world.World) bool { return len(formerPods(w)) == 0 }},
			Act{Name: "clear", Do: clearLeftovers, Until: stalledWith(v1alpha1.ReasonForeignDisks),
				Within: 10 * time.Minute},
			Act{Name: "delete the next", Do: remove, Until: gone, Within: 20 * time.Minute},
			Act{Name: "adopt", Do: adopt, Until: ready, Within: 30 * time.Minute})),
	}
}

func removeBy(how metav1.DeletionPropagation) func(*world.World) error {
	return func(w *world.World) error {
		return client.IgnoreNotFound(w.User().Delete(context.Background(), shape{}.cluster(),
			client.PropagationPolicy(how)))
	}
}

// strip deletes the cluster, and takes away what has it wait for the operator.
func strip(w *world.World) error {
	if err := remove(w); err != nil {
		return err
	}
	return client.IgnoreNotFound(w.User().Patch(context.Background(), shape{}.cluster(),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}

// formerPods are those of the cluster whose finalizer was taken away.
func formerPods(w *world.World) []client.Object {
	return slices.DeleteFunc(w.Server.Objects("Pod"), func(o client.Object) bool {
		return o.GetLabels()[v1alpha1.LabelClusterUID] != w.Notes[former]
	})
}

// stopFormer deletes pods as the command asks for, which removes nothing before.
func stopFormer(w *world.World) error {
	pods := formerPods(w)
	if len(pods) == 0 {
		return nil // a fault has ended them
	}
	var said bytes.Buffer
	err := leftovers.Clear(context.Background(), w.User(), world.Namespace, clusterName, true, &said)
	if err == nil || !strings.Contains(err.Error(), "kubectl delete pod --namespace "+world.Namespace) {
		return fmt.Errorf("cleared while pods run: %w: %s", err, said.String())
	}
	var errs []error
	for _, o := range pods {
		errs = append(errs, client.IgnoreNotFound(w.User().Delete(context.Background(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()},
		})))
	}
	return errors.Join(errs...)
}

// clearLeftovers first has them listed, which changes nothing.
func clearLeftovers(w *world.World) error {
	var said bytes.Buffer
	before := len(w.Server.Writes())
	err := leftovers.Clear(context.Background(), w.User(), world.Namespace, clusterName, false, &said)
	if err != nil || len(w.Server.Writes()) != before || !strings.Contains(said.String(), "ConfigMap orders-ledger") {
		return fmt.Errorf("list what is left: %w: %s", err, said.String())
	}
	return leftovers.Clear(context.Background(), w.User(), world.Namespace, clusterName, true, &said)
}
