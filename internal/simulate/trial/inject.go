package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: world.Namespace, Name: name}
}

// killCaller kills the program that makes a request. It does not return if that is the caller's
// own.
func (r *run) killCaller(request *apiserver.Request) {
	if strings.HasPrefix(request.User, world.UserOperator) {
		for _, o := range r.w.Operators() {
			if o.Name() == request.User {
				r.restart()
				o.Kill()
			}
		}
		return
	}
	r.killAgent(request.Name)
}

// restart starts an operator in a while, as its Deployment does.
func (r *run) restart() {
	r.later(restartPause, "operator starts again", func() { r.w.StartOperator(r.w.Installed) })
}

func (r *run) killAgent(node string) {
	for _, s := range r.w.Pods.Sandboxes() {
		if s.Name() == node {
			s.Kill(layout.AgentContainer)
		}
	}
}

// victim is the pod that a fault meets: another for each point, the same for the same.
func (r *run) victim() *pod.Sandbox {
	all := r.w.Pods.Sandboxes()
	if len(all) == 0 {
		return nil
	}
	return all[len(r.result.Points)%len(all)]
}

// victimHost is the host of the victim, or one of all while there is none.
func (r *run) victimHost() string {
	if s := r.victim(); s != nil {
		return s.Host()
	}
	names := r.w.Kube.Hosts()
	return names[len(r.result.Points)%len(names)]
}

// beside is the pod of the agent at whose step the fault is injected, and a victim for other
// points.
func (r *run) beside() *pod.Sandbox {
	if r.Fault.At.Who != WhoDisk {
		return r.victim()
	}
	node, _, _ := strings.Cut(r.Fault.At.What, "/")
	for _, s := range r.w.Pods.Sandboxes() {
		if s.Name() == node {
			return s
		}
	}
	return nil
}

// secondOperator takes effect if it comes to do something.
func (r *run) secondOperator() bool {
	o := r.w.StartOperator(r.w.Installed)
	r.second = o.Name()
	r.later(staleFor, "second operator ends", o.Kill)
	return false
}

func (r *run) killJVM() bool {
	s := r.beside()
	if s == nil || s.JVM() == nil {
		return false
	}
	s.JVM().Kill()
	return true
}

func (r *run) deletePod() bool {
	s := r.victim()
	return s != nil && r.w.User().Delete(context.Background(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: s.Name()}}) == nil
}

func (r *run) evict() bool {
	s := r.victim()
	return s != nil && r.w.Kube.Evict(keyOf(s.Name())) == nil
}

// lose has hosts go, and come back with their disks or with empty ones. It matters to nobody where
// no pod is.
func (r *run) lose(keep bool, hosts ...string) bool {
	matters := slices.ContainsFunc(r.w.Pods.Sandboxes(),
		func(s *pod.Sandbox) bool { return slices.Contains(hosts, s.Host()) })
	for _, name := range hosts {
		r.w.Kube.Lose(name)
		r.later(awayFor, "host "+name+" returns", func() { r.w.Kube.Return(name, keep) })
	}
	return matters
}

func (r *run) loseHost() bool { return r.lose(true, r.victimHost()) }

func (r *run) loseDisk() bool { return r.lose(false, r.victimHost()) }

func (r *run) loseZone() bool {
	zone := r.w.Kube.Zone(r.victimHost())
	return r.lose(true, slices.DeleteFunc(r.w.Kube.Hosts(),
		func(name string) bool { return r.w.Kube.Zone(name) != zone })...)
}

// tellsOfLostDisk says that the node whose disk it was, or the cluster that was to take it over,
// says that it is empty; or that the user has to clear the disk of a node that could not use its
// ticket on another disk, because those that formed the ring with it remember the first; or that
// the ring has a member that no record is of: with the disk everything that knew of it was lost.
func (r *run) tellsOfLostDisk() bool {
	for _, o := range r.w.Server.Objects("CassandraNode") {
		if o.(*v1alpha1.CassandraNode).Status.Phase == v1alpha1.PhaseDataLost {
			return true
		}
	}
	c := get(r.w)
	if c == nil {
		return false
	}
	if blockedWith("JoiningDiskNotEmpty", "delete its claim")(r.w) ||
		blockedWith("UnknownRingMember", "find its disk")(r.w) {
		return true
	}
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Reason == v1alpha1.ReasonAdoptionIncomplete &&
		strings.Contains(stalled.Message, "it is "+string(v1alpha1.DiskEmpty))
}

// cleansUpLater names the objects that say that a node that waits for the user is to be cleaned up
// when it is back: a ledger that was lost is rebuilt as if every node had data to drop, for only
// the lost one knew better. Of that node no gossip tells the schema where all others have started
// without it, so that none of them is cleaned up either; and what has begun is suspended for it.
func (r *run) cleansUpLater() []string {
	cleans, away := []string{"CassandraCluster/" + clusterName}, false
	for _, o := range r.w.Server.Objects("CassandraNode") {
		n := o.(*v1alpha1.CassandraNode)
		away = away || n.Status.Phase == v1alpha1.PhaseDownTooLong || n.Status.Phase == v1alpha1.PhaseDataLost
		if slices.ContainsFunc(n.Spec.Operations,
			func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationCleanup }) {
			cleans = append(cleans, "CassandraNode/"+n.Name)
		}
	}
	waits := either(blockedWith("NodeDown", "holds data that it no longer owns"),
		blockedWith(v1alpha1.BlockedSchemaVersionsDiffer, `is ""`))
	if !away || len(cleans) == 1 && !waits(r.w) {
		return nil
	}
	return cleans
}

// waitsForLostNode says that the ledger was lost in a scenario in which a node is lost for good,
// and cannot be rebuilt without what its disk holds.
func (r *run) waitsForLostNode() bool {
	c := get(r.w)
	return r.Scenario.LosesNode && c != nil && slices.ContainsFunc(c.Status.Blocked, func(b v1alpha1.BlockedStep) bool {
		return b.Reason == "DisksUnknown"
	})
}

// waitsForLostRecord says that only what is lost could tell how to continue: the ledger, as
// waitsForLostNode says, or the record of a join that is abandoned, or of the last node of a rack
// that is to leave. The others serve meanwhile.
func (r *run) waitsForLostRecord() bool {
	return r.waitsForLostNode() || r.waitsForGivenUpPod() ||
		stalledWith(v1alpha1.ReasonUnsupportedChange, "put its rack back")(r.w) && again(r.w)
}

func (r *run) slow() bool {
	name := r.victimHost()
	r.w.Slow(name, slowness)
	r.later(awayFor, "host "+name+" is as before", func() { r.w.Slow(name, 0) })
	return r.victim() != nil
}

// blind takes effect if there is something to see.
func (r *run) blind() bool {
	if s := r.victim(); s != nil {
		r.w.Blind(s, true)
		r.later(staleFor, "the watches of "+s.Name()+" start over", func() { r.w.Blind(s, false) })
	}
	return false
}

// skew sets the clock of the host of the program at whose point the fault is injected. A program
// does not notice that while it runs (threads.Steady), so it is killed and starts again.
func (r *run) skew(d time.Duration) bool {
	if r.Fault.At.Who == whoOperator {
		r.w.OperatorClock = d
		for _, o := range r.w.Operators() {
			o.Kill()
		}
		r.restart()
		return true
	}
	_, node, _ := strings.Cut(r.Fault.At.What, "/")
	injected := false
	for _, s := range r.w.Pods.Sandboxes() {
		if s.Name() == node {
			r.w.SetClock(s.Host(), d)
			s.Kill(layout.AgentContainer)
			injected = true
		}
	}
	return injected
}

func (r *run) partition() bool {
	name := r.victimHost()
	r.w.Partition(name, true)
	r.later(awayFor, "host "+name+" is back", func() { r.w.Heal(name) })
	return r.victim() != nil
}

func (r *run) deleteLedger() bool {
	return deleteLedger(r.w) == nil
}

func (r *run) deleteRecords() bool {
	deleted := 0
	for _, o := range r.w.Server.Objects("CassandraNode") {
		if r.w.User().Delete(context.Background(),
			&v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(),
				Name: o.GetName()}}) == nil {
			deleted++
		}
	}
	return deleted > 0
}

// child is an object of the cluster of one of the kinds, another for each point and the same for
// the same.
func (r *run) child(kinds []string) client.Object {
	var all []client.Object
	for _, kind := range kinds {
		all = append(all, children(r.w, kind)...)
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(r.result.Points)*7%len(all)]
}

func (r *run) deleteChild() bool {
	o := r.child(childKinds)
	if o == nil {
		return false
	}
	r.awaitSecret(o)
	return r.w.User().Delete(context.Background(), o) == nil
}

// awaitSecret keeps the world from counting as silent before an operator has looked at a Secret
// again.
func (r *run) awaitSecret(o client.Object) {
	if _, secret := o.(*corev1.Secret); secret {
		r.later(secretsLooked, "an operator has looked at its Secrets", func() {})
	}
}

func (r *run) editChild() bool {
	o := r.child(append(slices.Clone(childKinds), "Pod", "PersistentVolumeClaim"))
	if o == nil {
		return false
	}
	r.awaitSecret(o)
	could := edits(o)
	if r.releasing() {
		// nobody looks any more, but the next cluster of the name, which says what it has found
		delete(could, "take its owner away")
	}
	names := slices.Sorted(maps.Keys(could))
	could[names[len(r.result.Points)*5%len(names)]]()
	before := o.GetResourceVersion()
	return r.w.User().Update(context.Background(), o) == nil && o.GetResourceVersion() != before
}

// releasing says that the cluster is all but deleted: its ledger goes last, in the pass that lets
// go of it.
func (r *run) releasing() bool {
	c := get(r.w)
	return c != nil && c.DeletionTimestamp != nil &&
		r.w.Server.Object("ConfigMap", keyOf(v1alpha1.LedgerName(clusterName))) == nil
}

// loseStatus takes the status of every object of ours away.
func (r *run) loseStatus() bool {
	person := r.w.User()
	var clusters v1alpha1.CassandraClusterList
	var nodes v1alpha1.CassandraNodeList
	for _, l := range []client.ObjectList{&clusters, &nodes} {
		if err := person.List(context.Background(), l); err != nil {
			panic(fmt.Sprintf("list %T: %v", l, err)) // nothing stands in the way of a user
		}
	}
	lost := false
	lose := func(o client.Object) {
		before := o.GetResourceVersion()
		lost = person.Status().Update(context.Background(), o) == nil && o.GetResourceVersion() != before || lost
	}
	for i := range clusters.Items {
		clusters.Items[i].Status = v1alpha1.CassandraClusterStatus{}
		lose(&clusters.Items[i])
	}
	for i := range nodes.Items {
		nodes.Items[i].Status = v1alpha1.CassandraNodeStatus{}
		lose(&nodes.Items[i])
	}
	return lost
}

// stale has the operator's view of a kind miss its last changes for a while. It takes effect if
// somebody reads what is missing.
func (r *run) stale(lag int, d time.Duration, restart bool) bool {
	r.lag = lag
	r.later(d, "the view catches up", func() {
		r.lag = 0
		if restart {
			for _, o := range r.w.Operators() {
				o.Kill()
			}
			r.restart()
			return
		}
		r.catchUp()
	})
	return false
}

// merge has the operator's watch of a kind break for a while. It takes effect if several changes of
// an object are seen as one then.
func (r *run) merge(d time.Duration) bool {
	r.lag = 1 << 20
	r.later(d, "the watch starts over", func() {
		r.lag, r.merging = 0, true
		r.catchUp()
	})
	return false
}

func (r *run) catchUp() {
	for _, o := range r.w.Operators() {
		o.CatchUp(r.Fault.View)
	}
}

func (r *run) lagOf(_ *world.Operator, kind string) int {
	if r.lag > 0 && kind == r.Fault.View {
		return r.lag
	}
	return 0
}

// misled is told of a read of which something may be missing.
func (r *run) misled(kind string, stale func() bool) {
	if r.lag > 0 && !r.merging && kind == r.Fault.View && r.Fault.Kind != "merged" && !r.result.Fired && stale() {
		r.fired()
	}
}

// skips says once that nobody is woken by a change.
func (r *run) skips(_ *world.Operator, kind string) bool {
	if r.skipping != kind {
		return false
	}
	r.skipping = ""
	r.fired()
	return true
}

// merges says once that the changes of an object are seen as one.
func (r *run) merges(_ *world.Operator, kind string) bool {
	if !r.merging || kind != r.Fault.View {
		return false
	}
	r.merging = false
	r.fired()
	return true
}
