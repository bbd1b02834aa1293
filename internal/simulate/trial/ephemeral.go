package trial

import (
	"context"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/world"
)

// ephemeralScenarios are those of rings whose data goes with their pods.
func ephemeralScenarios() []*Scenario {
	of := threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		replacesBy(v1alpha1.ReplacementRepairBefore)(c)
		c.Spec.Node.Storage = &v1alpha1.Storage{
			Ephemeral: &v1alpha1.EphemeralStorage{SizeLimit: new(resource.MustParse("2Gi"))}}
	})
	out := []*Scenario{
		replacing(scenario("ephemeral", "a JVM of a ring on ephemeral storage is killed and keeps its data; then a "+
			"pod is deleted, and its node is replaced without hands", of,
			Act{Name: "kill", Do: func(w *world.World) error {
				noteMember(w)
				return onLostNode(killJVM)(w)
			}, Until: all(grown, either(isMemberStill, newPods(1), renewed)), Within: 15 * time.Minute},
			Act{Name: "have one lack rows", Do: lacksRows},
			Act{Name: "delete the pod", Do: func(w *world.World) error {
				noteMember(w)
				return deletePodOf(lostNode)(w)
			}, Until: all(newPods(1), haveReplaced(1), not(isMemberStill), grown), Within: time.Hour})),
		replacing(scenario("ephemeral-rollout", "a change that takes new pods reaches a ring on ephemeral storage: "+
			"each node is replaced before the next one gives its data up", of,
			Act{Name: "change the pods", Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Node.TerminationGracePeriodSeconds = new(int64(200))
			}), Until: all(haveTaken(3), haveReplaced(3), grown), Within: 2 * time.Hour})),
		alone(replacing(scenario("ephemeral-all-lost", "all pods of a ring on ephemeral storage are deleted at once: "+
			"no ring forms again by itself", of,
			Act{Name: "delete the pods", Do: func(w *world.World) error {
				w.Network.Forget(ringName) // its rows are lost with it
				return deletePods(3)(w)
			}, Until: dataLost(3), Within: 15 * time.Minute},
			passing("an hour", time.Hour, dataLost(3), serves(0))))),
	}
	for _, s := range out {
		s.Renews = true
	}
	return out
}

// dataLost says that so many nodes are down without their data, by their own word.
func dataLost(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		lost := slices.DeleteFunc(slices.Clone(w.Server.Objects("CassandraNode")), func(o client.Object) bool {
			return o.(*v1alpha1.CassandraNode).Status.Phase != v1alpha1.PhaseDataLost
		})
		return len(lost) == n
	}
}

// tellsOfLostPods says that data went with pods that no replacement brings back: that of two nodes,
// the loss of which the user has to accept, or any before the ring has formed.
func tellsOfLostPods(w *world.World) bool {
	c := get(w)
	forming := c != nil && c.Status.Step != nil && c.Status.Step.Name == string(ledger.FormRing)
	return forming && !dataLost(0)(w) || dataLost(2)(w) && blockedWith(v1alpha1.BlockedSecondRackDown, "AcceptLoss")(w)
}

// noteMember notes the pods, and which member the lost node is: a fault may have had it replaced.
func noteMember(w *world.World) {
	notePods(w)
	w.Notes["member"] = memberOf(w, lostNode)
}

// isMemberStill says that the lost node is the member that was noted.
func isMemberStill(w *world.World) bool { return memberOf(w, lostNode) == w.Notes["member"] }

// memberOf is the host id of the member that a node is by its record; empty if it is none.
func memberOf(w *world.World, node string) string {
	n, _ := w.Server.Object("CassandraNode", keyOf(node)).(*v1alpha1.CassandraNode)
	if n == nil || n.Spec.Member == nil {
		return ""
	}
	return n.Spec.Member.HostID
}

// renewed says that the spec was edited, and that a roll-out has replaced a node for that.
func renewed(w *world.World) bool {
	return get(w).Generation > 1 && succeeded(string(ledger.RenewNode))(w)
}

// renewal is the text of whose places nodes have taken: in the record of one whose pod has its
// data, and in the seeds.
var renewal = regexp.MustCompile(`"ephemeral":\{[^{}]*\}\}[^{}]*\},"rack":"[^"]*"(,"replaced":\[[^]]*\])?` +
	`|"replaced":"[^"]*",`)

// haveReplaced says that nodes have taken the places of so many members, or more, as the seeds
// tell: records may be recreated since.
func haveReplaced(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		seeds, _ := w.Server.Object("ConfigMap", keyOf(v1alpha1.SeedsName(clusterName))).(*corev1.ConfigMap)
		return seeds != nil && len(render.ReplacedIn(seeds)) >= n
	}
}

// deletePodOf deletes the pod of a node.
func deletePodOf(node string) func(*world.World) error {
	return func(w *world.World) error {
		return w.User().Delete(context.Background(),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: node}})
	}
}
