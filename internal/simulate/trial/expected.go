package trial

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// truth is how a cluster stands by the word of the world alone, which its status is held to.
type truth struct {
	// recorded nodes, and those of the spec.
	recorded, described int
	// normal are those whose JVM is NORMAL, and serving those of them that opened client traffic.
	normal, serving int
	// serves says of a datacenter whether any of its nodes does.
	serves map[string]bool
	// upToDate says that each rack of the spec has as many records as it says, with its settings,
	// and no other has one, and that each pod has the image of the spec.
	upToDate bool
}

func (o *checker) truth(c *v1alpha1.CassandraCluster) truth {
	wanted := wantedNodes(c)
	is := truth{described: len(wanted), upToDate: true, serves: map[string]bool{}}
	administered := map[string]bool{}                              // its port is open, and to nobody but its agent
	left, of := map[[2]string]int{}, map[[2]string]render.Wanted{} // of each rack
	for _, w := range wanted {
		rack := [2]string{w.Datacenter, w.Rack}
		left[rack]++
		of[rack] = w
	}
	in := map[string][2]string{}
	for _, object := range o.w.Server.Objects("CassandraNode") {
		if n := object.(*v1alpha1.CassandraNode); n.Labels[v1alpha1.LabelClusterUID] == string(c.UID) {
			is.recorded++
			rack := [2]string{n.Spec.Datacenter, n.Spec.Rack}
			left[rack]--
			in[n.Name] = rack
			is.upToDate = is.upToDate &&
				equality.Semantic.DeepEqual(n.Spec.Configuration.CassandraYaml, of[rack].Configuration.CassandraYaml)
			administered[n.Name] = n.Spec.ClientTraffic == v1alpha1.TrafficAdministrative
		}
	}
	for _, s := range o.w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) {
			is.normal++
			if j.NativeOpen() && !administered[s.Name()] {
				is.serving++
				is.serves[s.Datacenter()] = true
			}
		}
	}
	images := map[string]string{}
	for _, object := range o.w.Server.Objects("Pod") {
		p := object.(*corev1.Pod)
		if i := slices.IndexFunc(p.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == layout.CassandraContainer }); i >= 0 {
			images[p.Name] = p.Spec.Containers[i].Image
		}
	}
	for name, image := range images {
		rack, recorded := in[name]
		w := of[rack].Pod
		is.upToDate = is.upToDate && recorded && (image == w.Image || strings.HasPrefix(image, w.Image+"@"))
	}
	for _, n := range left {
		is.upToDate = is.upToDate && n == 0
	}
	return is
}

// atTheEnd compares what is said with what is.
func (o *checker) atTheEnd() {
	c := get(o.w)
	if c == nil || len(o.result.Violations) > 0 {
		return
	}
	is := o.truth(c)
	if int(c.Status.ReadyNodes) != is.serving {
		o.violated("status.readyNodes is %d, and %d nodes serve clients", c.Status.ReadyNodes, is.serving)
	}
	if c.DeletionTimestamp == nil {
		o.conditions(c, is)
		o.bySpec(c)
		o.memory()
		o.snapshots()
		o.brought()
	}
	if o.may().writes || o.Scenario.LosesDisk && o.Fault != nil && kindOf(o.Fault).class == ClassWorld {
		return // what the world loses beside a disk may be the second copy
	}
	for _, m := range o.w.Audit() {
		o.violated("a write that was acknowledged is lost: %s", m)
	}
}

// conditions: each agrees with the world.
func (o *checker) conditions(c *v1alpha1.CassandraCluster, is truth) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionHealthy, v1alpha1.ConditionAvailable,
		v1alpha1.ConditionUpToDate} {
		// the others are missing where they are not true
		if meta.FindStatusCondition(c.Status.Conditions, kind) == nil {
			o.violated("the condition %s is missing", kind)
			return
		}
	}
	says := func(kind string) bool { return meta.IsStatusConditionTrue(c.Status.Conditions, kind) }
	because := func(kind string) string { return meta.FindStatusCondition(c.Status.Conditions, kind).Message }
	down := o.lastLedger.Stops() == ledger.StageStopped && c.Spec.Stopped
	running := is.recorded - o.stoppedAlone()
	down = down || running < is.recorded && is.normal == running && is.serving == running
	stalled := says(v1alpha1.ConditionStalled) // and may doubt what serves
	whole := is.serving == is.recorded && is.recorded == is.described
	if ready := says(v1alpha1.ConditionReady); ready && !whole || whole && !ready && !stalled {
		o.violated("the condition Ready is %v, and %d of %d nodes serve clients, where the spec has %d", ready,
			is.serving, is.recorded, is.described)
	}
	if healthy := says(v1alpha1.ConditionHealthy); healthy != (is.normal == is.recorded || down) {
		o.violated("the condition Healthy is %v (%s), and %d of %d nodes are NORMAL", healthy,
			because(v1alpha1.ConditionHealthy), is.normal, is.recorded)
	}
	// false may be right there, too: whether a JVM needs a restart is not known here
	if says(v1alpha1.ConditionUpToDate) && !is.upToDate {
		o.violated("the condition UpToDate is true, and the records and pods are not those that the spec describes")
	}
	if (whole || down) && !stalled && says(v1alpha1.ConditionReconciling) {
		o.violated("the condition Reconciling is true (%s), and all %d nodes serve clients",
			because(v1alpha1.ConditionReconciling), is.serving)
	}
	acknowledged, asked := o.w.Probe()
	available, served := says(v1alpha1.ConditionAvailable), asked > 0 && acknowledged == asked && o.eachServes(c, is)
	if is.serving == 0 && available || asked > 0 && available && !served || served && !available && !stalled {
		o.violated("the condition Available is %v (%s), and %d of %d writes through %d nodes are acknowledged at "+
			"LOCAL_QUORUM", available,
			because(v1alpha1.ConditionAvailable), acknowledged, asked, is.serving)
	}
}

// eachServes says that a node of each datacenter is open to clients, but for those that are stopped
// alone, or give up their keyspaces.
func (o *checker) eachServes(c *v1alpha1.CassandraCluster, is truth) bool {
	return !slices.ContainsFunc(c.Spec.Datacenters, func(dc v1alpha1.Datacenter) bool {
		return !is.serves[dc.Name] && o.lastLedger.IsFormed(dc.Name) && !o.lastLedger.Adds(dc.Name) &&
			!o.lastLedger.StopsDatacenter(dc.Name) && !slices.Contains(o.lastLedger.Closed, dc.Name)
	})
}

// memory: a heap that follows from the memory limit has followed it.
func (o *checker) memory() {
	for _, s := range o.w.Pods.Sandboxes() {
		if heap, limit := s.Memory(); s.JVM() != nil && o.Scenario.Resizes && heap != limit/2 {
			o.violated("memory: the JVM of node %s has a heap of %d bytes, and its container %d", s.Name(), heap, limit)
		}
	}
}
