package trial

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/world"
)

// mistake is something under which nodes do not come, and what the cluster says of it.
type mistake struct {
	name  string
	do    func(*v1alpha1.NodeTemplate)
	words []string
	// not is a word of the mistake before that is not said any more.
	not string
}

// mistakes in what is said of nodes, in an order in which each is found after the ones before were
// corrected: no claim has a volume until a pod has a place.
var mistakes = []mistake{
	{"a class that does not exist", func(n *v1alpha1.NodeTemplate) {
		n.Storage.Claims.Data.StorageClassName = new("nothing")
	}, []string{"of class nothing has no volume", "storageClassName"}, "Insufficient"},
	{"a request that no host has room for", func(n *v1alpha1.NodeTemplate) {
		n.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("900Gi")}
		n.Resources.Limits = n.Resources.Requests
	}, []string{"Insufficient memory", "node.resources.requests"}, "nothing"},
	{"a place that does not exist", func(n *v1alpha1.NodeTemplate) {
		n.Placement = &v1alpha1.Placement{Zone: "nowhere"}
	}, []string{"node affinity/selector", "node.placement)"}, "Insufficient"},
}

// refusedOption is an option that no JVM takes.
const refusedOption = "-XX:+ThereIsNoSuchOption"

const (
	missingImage = "cassandra:5.0.6-missing"
	privateImage = "registry.example/cassandra:5.0.6"
	pullSecret   = "registry"
)

// wrongScenarios are specs under which nodes do not come, and their corrections.
func wrongScenarios() []*Scenario {
	return []*Scenario{wrongForming(), wrongDatacenter(), datacenterGivenUp()}
}

// right is how the nodes of a cluster are described where nothing is wrong.
func right() *v1alpha1.NodeTemplate { return threeRacks.cluster().Spec.Node }

func wrongForming() *Scenario {
	s := &Scenario{
		Name: "badspec-forming", About: "a ring cannot form for one mistake in its spec after the other, and forms " +
			"when the last one is corrected",
		Zones: threeRacks.zones(), HostsPerZone: threeRacks.perZone(),
	}
	for i, m := range mistakes {
		a := Act{Name: m.name, Until: all(blockedSaying(append(m.words, clusterName+"-dc1-")...),
			not(blockedSaying(m.not))), Within: 30 * time.Minute, Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
			s.Node = right()
			// The zone of a rack would stand above that of the cluster.
			s.Datacenters[0].Racks[0].Node = nil
			m.do(s.Node)
		})}
		if i == 0 {
			a.Do = func(w *world.World) error {
				return w.User().Create(context.Background(),
					threeRacks.cluster(func(c *v1alpha1.CassandraCluster) { m.do(c.Spec.Node) }))
			}
		}
		s.Acts = append(s.Acts, a)
	}
	s.Acts = append(s.Acts,
		Act{Name: "an image that does not exist", Until: blockedSaying(missingImage, "see image"),
			Within: 30 * time.Minute, Do: func(w *world.World) error {
				w.Kube.Break(missingImage)
				return respec(func(s *v1alpha1.CassandraClusterSpec) {
					*s = threeRacks.cluster().Spec
					s.Image = missingImage
				})(w)
			}},
		Act{Name: "a private image", Until: blockedSaying(privateImage, "401 Unauthorized"), Within: 30 * time.Minute,
			Do: func(w *world.World) error {
				w.Kube.Restrict(privateImage, pullSecret)
				return respec(func(s *v1alpha1.CassandraClusterSpec) { s.Image = privateImage })(w)
			}},
		Act{Name: "a Secret that does not exist",
			Until: all(podsName("registri"), blockedSaying(privateImage, "401 Unauthorized")), Within: 30 * time.Minute,
			Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registri"}}
			})},
		Act{Name: "an option that no JVM takes", Until: blockedSaying("ThereIsNoSuchOption", "see node.jvm"),
			Within: 30 * time.Minute, Do: func(w *world.World) error {
				if err := w.User().Create(context.Background(),
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace,
						Name: pullSecret}}); err != nil {
					return err
				}
				return respec(func(s *v1alpha1.CassandraClusterSpec) {
					s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecret}}
					s.Node.JVM.Options = []string{refusedOption}
				})(w)
			}},
		Act{Name: "correct it", Until: ready, Within: 30 * time.Minute,
			Do: respec(func(s *v1alpha1.CassandraClusterSpec) { s.Node.JVM.Options = nil })},
	)
	s.Tries = true
	return s
}

func wrongDatacenter() *Scenario {
	var acts []Act
	for i, m := range mistakes {
		acts = append(acts, Act{Name: m.name, Until: all(blockedSaying(append(m.words, clusterName+"-dc2-")...),
			not(blockedSaying(m.not)), serves(3)), Within: 30 * time.Minute,
			Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				if i == 0 {
					secondDatacenter(s)
				}
				s.Datacenters[1].Node = right()
				for r := range s.Datacenters[1].Racks {
					s.Datacenters[1].Racks[r].Node = nil
				}
				m.do(s.Datacenters[1].Node)
			})})
	}
	acts = append(acts,
		Act{Name: "an option that no JVM takes",
			Until:  all(blockedSaying("ThereIsNoSuchOption", "see node.jvm", clusterName+"-dc2-"), serves(3)),
			Within: 30 * time.Minute, Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters[1].Node = right()
				s.Datacenters[1].Node.JVM.Options = []string{refusedOption}
			})},
		Act{Name: "correct it", Until: grown, Within: time.Hour,
			Do: respec(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[1].Node = nil })},
	)
	s := scenario("badspec-datacenter", "a datacenter is added with one mistake after the other, and joins when the "+
		"last one is corrected", threeRacks.growing(2), acts...)
	s.Grows, s.Tries = true, true
	return s
}

func datacenterGivenUp() *Scenario {
	mistaken := Act{Name: "add one with an option that no JVM takes",
		Until:  all(blockedSaying("ThereIsNoSuchOption", "see node.jvm", clusterName+"-dc2-"), serves(3)),
		Within: 30 * time.Minute,
		Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
			secondDatacenter(s)
			s.Datacenters[1].Node = right()
			s.Datacenters[1].Node.JVM.Options = []string{refusedOption}
		})}
	s := scenario("datacenter-given-up", "a datacenter is added whose nodes do not start, is taken out of the spec "+
		"again, and is added once more without the mistake", threeRacks.growing(2),
		mistaken,
		Act{Name: "take it back", Until: all(ready, recordsAre(3)), Within: 30 * time.Minute,
			Do: respec(func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = s.Datacenters[:1] })},
		Act{Name: "add it once more", Until: grown, Within: time.Hour, Do: respec(secondDatacenter)},
	)
	s.Grows, s.Tries = true, true
	return s
}

// podsName says that every pod of the cluster names a Secret to pull its images with.
func podsName(secret string) func(*world.World) bool {
	return func(w *world.World) bool {
		pods := w.Server.Objects("Pod")
		return len(pods) > 0 && !slices.ContainsFunc(pods, func(o client.Object) bool {
			return !slices.Contains(o.(*corev1.Pod).Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
		})
	}
}

// recordsAre says that there are so many records of nodes. One that lost its labels while it was on
// its way out stays until somebody wants its name again.
func recordsAre(n int) func(*world.World) bool {
	return func(w *world.World) bool {
		return n == len(slices.DeleteFunc(w.Server.Objects("CassandraNode"),
			func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelCluster] == "" }))
	}
}

func not(holds func(*world.World) bool) func(*world.World) bool {
	return func(w *world.World) bool { return !holds(w) }
}

// respec has the user edit the spec.
func respec(change func(*v1alpha1.CassandraClusterSpec)) func(*world.World) error {
	return func(w *world.World) error {
		c := get(w).DeepCopy()
		change(&c.Spec)
		return w.User().Update(context.Background(), c)
	}
}
