package trial

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// versionScenarios are changes of the release of a ring that serves.
func versionScenarios() []*Scenario {
	earlier := func(of shape) changed {
		return of.with(func(c *v1alpha1.CassandraCluster) { version("4.1.10")(&c.Spec) })
	}
	soaking := threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		version("4.1.10")(&c.Spec)
		c.Spec.Disruption.Soak = &metav1.Duration{Duration: 110 * time.Second}
	})
	growing := scenario("version-grown", "the release changes, and the number of nodes with it: the nodes join when "+
		"all members have the release; the one before is refused, and changes nothing", threeRacks.growing(2),
		Act{Name: "change both", Do: whileWriting(func(s *v1alpha1.CassandraClusterSpec) {
			version("5.0.9")(s)
			nodesPerRack(2)(s)
		}), Until: all(rolledOut, runs("5.0.9", 6), snapshotsBefore("5.0.9")), Within: 2 * time.Hour},
		Act{Name: "ask for the one before", Do: respec(version("4.1.10")), Within: 10 * time.Minute,
			Until: stalledWith(v1alpha1.ReasonUnsupportedChange, "5.0.9 → 4.1.10", "does not read")},
		passing("a quarter of an hour", 15*time.Minute, runs("5.0.9", 6)),
		rolled("take it back", version("5.0.9")))
	growing.Acts[0], growing.Grows = earlier(threeRacks).act(), true
	return []*Scenario{
		scenario("version-patch", "a patch release reaches the nodes, and is taken back", threeRacks,
			changedTo("5.0.9"), changedTo("5.0.6")),
		growing,
		alone(scenario("version-repair", "the release changes while an incremental repair runs: no node is changed "+
			"before it is over", threeRacks,
			Act{Name: "begin a repair", Do: repairIncrementally(1)}, passing("two minutes", 2*time.Minute, serves(3)),
			Act{Name: "change the release", Do: whileWriting(version("5.0.9")), Within: 10 * time.Minute,
				Until: blockedWith(v1alpha1.BlockedIncrementalRepairRunning, clusterName+"-dc1-r3-0 takes part in 1 "+
					"incremental repair")},
			passing("a quarter of an hour", 15*time.Minute, runs("5.0.6", 3)),
			Act{Name: "end it", Do: repairIncrementally(0), Until: all(rolledOut, runs("5.0.9", 3)),
				Within: time.Hour})),
		scenario("version-formats", "a ring of 4.1 becomes one of 5.0, whose SSTables are as they were until it is to "+
			"write the formats of 5.0: then they are upgraded", earlier(threeRacks),
			changedTo("5.0.9"), passing("a quarter of an hour", 15*time.Minute, sstables("nb")),
			Act{Name: "leave the formats of 4.1", Do: whileWriting(yamlSetting("storage_compatibility_mode", `"UPGRADING"`)),
				Until: all(rolledOut, sstables("oa")), Within: time.Hour},
			rolled("and what is compatible with it", yamlSetting("storage_compatibility_mode", `"NONE"`))),
		scenario("version-evicted", "the pod of a node whose turn has not come is deleted between two releases, when "+
			"the tags of both have become other images, and comes back on the old one", soaking,
			Act{Name: "change it", Do: whileWriting(version("5.0.9")), Until: soaks, Within: 30 * time.Minute},
			Act{Name: "delete another pod", Do: func(w *world.World) error {
				w.Kube.Move(world.Install.ImageRepository + ":4.1.10")
				w.Kube.Move(world.Install.ImageRepository + ":5.0.9")
				return deleteLastPod(w)
			}, Until: all(backOn("4.1.10"), oneImage), Within: 15 * time.Minute},
			Act{Name: "the rest follows", Until: all(rolledOut, runs("5.0.9", 3), oneImage, snapshotsBefore("5.0.9")),
				Within: time.Hour}),
		scenario("version-reverted", "a release that does not start reaches one node, and is taken back",
			earlier(threeRacks),
			Act{Name: "change it, with an option that no JVM takes", Do: whileWriting(
				func(s *v1alpha1.CassandraClusterSpec) { version("5.0.9")(s); jvmOption(refusedOption)(s) }),
				Until: all(blockedSaying("ThereIsNoSuchOption"), serves(2)), Within: 30 * time.Minute},
			passing("a quarter of an hour", 15*time.Minute, serves(2)),
			passing("a quarter of an hour", 15*time.Minute, serves(2)),
			rolled("take it back", func(s *v1alpha1.CassandraClusterSpec) { version("4.1.10")(s); jvmOption()(s) }),
			passing("a minute", time.Minute, runs("4.1.10", 3))),
	}
}

func version(release string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Version = release }
}

// repairIncrementally has a node take part in so many incremental repairs.
func repairIncrementally(repairs int) func(*world.World) error {
	return func(w *world.World) error {
		lastPod(w).JVM().RepairIncrementally(repairs)
		return nil
	}
}

func changedTo(release string) Act {
	return Act{Name: "change to " + release, Do: whileWriting(version(release)),
		Until: all(rolledOut, runs(release, 3), snapshotsBefore(release)), Within: time.Hour}
}

// snapshotsBefore says that two disks have the snapshots that are taken before a release: with a
// fault the third node may be down then, and is passed over, or lose its disk.
func snapshotsBefore(release string) func(*world.World) bool {
	return func(w *world.World) bool {
		had := 0
		for _, s := range w.Pods.Sandboxes() {
			for tag, keyspaces := range s.Content(v1alpha1.VolumeData).Data.Snapshots() {
				if strings.HasPrefix(tag, "helenus-before-"+release+"-") &&
					slices.Equal(keyspaces, []string{"system", "system_schema"}) {
					had++
					break
				}
			}
		}
		return had >= 2
	}
}

// sstables says that the SSTables of every keyspace have a version on every disk.
func sstables(version string) func(*world.World) bool {
	return func(w *world.World) bool {
		return !slices.ContainsFunc(w.Pods.Sandboxes(), func(s *pod.Sandbox) bool {
			versions := slices.Collect(maps.Values(s.Content(v1alpha1.VolumeData).Data.SSTables()))
			return len(versions) == 0 || slices.ContainsFunc(versions, func(v string) bool { return v != version })
		})
	}
}

// runs says that so many nodes serve, all with a release.
func runs(release string, n int) func(*world.World) bool {
	return func(w *world.World) bool {
		return serves(n)(w) && !slices.ContainsFunc(w.Pods.Sandboxes(),
			func(s *pod.Sandbox) bool { return s.JVM().Release() != release })
	}
}

// backOn says that the node whose pod was deleted serves in another one with a release.
func backOn(release string) func(*world.World) bool {
	return func(w *world.World) bool {
		p, _ := w.Server.Object("Pod", keyOf(lastPod(w).Name())).(*corev1.Pod)
		return p != nil && string(p.UID) != w.Notes[deletedPod] && serves(3)(w) &&
			tagOf(p) == world.Install.ImageRepository+":"+release
	}
}

func tagOf(p *corev1.Pod) string {
	tag, _, _ := strings.Cut(render.ImageOf(p, layout.CassandraContainer), "@")
	return tag
}

// oneImage says that all nodes with the same tag run the same image.
func oneImage(w *world.World) bool {
	images := map[string]string{}
	for _, object := range w.Server.Objects("Pod") {
		p := object.(*corev1.Pod)
		for _, s := range p.Status.ContainerStatuses {
			if s.Name != layout.CassandraContainer {
				continue
			}
			if images[tagOf(p)] = cmp.Or(images[tagOf(p)], s.ImageID); images[tagOf(p)] != s.ImageID {
				return false
			}
		}
	}
	return true
}
