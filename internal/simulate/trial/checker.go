package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/disk"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/world"
)

// checker watches a run and knows what must never be.
type checker struct {
	*run
	// writes of operators and agents, and the last of them.
	writes      int
	lastWrite   time.Time
	lastWritten string
	// created and deleted count objects by kind and name.
	created, deleted map[string]int
	// jvms counts starts by node, of those that do not end at once.
	jvms map[string]int
	// hostIDs are those that each node has ever had, by cluster and node.
	hostIDs map[string]string
	// authorities are the credentials of each cluster, by its uid and their use; introduced are
	// those that are to follow.
	authorities, introduced map[string]string
	// lastLedger is the last that was written.
	lastLedger *ledger.Ledger
	// owners are the clusters of which each host id was a member first.
	owners map[string]types.UID
	// served are the datacenters, by the uid of their cluster and their name, that have opened
	// client traffic.
	served map[string]bool
	// had are the nodes that have ever had an address, and ended the operations whose end their
	// agent has told.
	had   map[string][]string
	ended map[string]v1alpha1.OperationPhase
	// turns are when the status of a node came from another pod than before.
	turns map[string][]time.Time
	// doubled is how many operations began on a node beside themselves.
	doubled int
	// refusals is how many nodes began that do not connect with others.
	refusals int
	// pods that follow those that have failed.
	pace pace
	// topology of the ring, where one grows.
	topology topology
	turn     turn
	budgets  budgets
}

func newChecker(r *run) *checker {
	o := &checker{
		run: r, created: map[string]int{}, deleted: map[string]int{}, jvms: map[string]int{},
		hostIDs:     map[string]string{},
		authorities: map[string]string{}, introduced: map[string]string{}, served: map[string]bool{}, owners: map[string]types.UID{},
		lastWrite: world.Began,
		turns:     map[string][]time.Time{},
		had:       map[string][]string{}, ended: map[string]v1alpha1.OperationPhase{},
	}
	o.pace = pace{checker: o, nodes: map[string]*failing{}}
	o.topology = topology{checker: o}
	o.budgets = budgets{checker: o, loose: map[string]time.Time{}, shut: map[string]time.Time{}}
	o.turn = turn{checker: o, described: map[[2]string]map[facts.Hashes]bool{}, recreated: map[string]bool{},
		over: map[string]bool{}}
	r.w.Watch(o.changed)
	r.w.Network.WatchOpened(o.opened)
	r.w.Pods.Bucket.Written = o.described
	r.w.Network.WatchDefaulted(o.defaulted)
	return o
}

// opened: no client gets Unavailable from a node that has only just been opened.
func (o *checker) opened(p *cassandra.Process) {
	o.administered(p)
	const blindAfter = 58 * time.Second
	if row := o.w.RefusedAt(p); row != "" && p.NormalFor() < blindAfter {
		o.violated("sight: a node is opened to clients %s after it was NORMAL, and refuses %s, which others serve",
			p.NormalFor(), row)
	}
}

// changed judges a change of an object.
func (o *checker) changed(e apiserver.Event) {
	writes := o.w.Server.Writes()
	w := writes[len(writes)-1]
	byOperator := strings.HasPrefix(w.User, world.UserOperator)
	if byOperator || strings.HasPrefix(w.User, "system:serviceaccount:") {
		o.writes++
		o.lastWrite, o.lastWritten = o.w.Line.Now(), fmt.Sprintf("%s %s %s/%s", w.User, w.Verb, e.Kind, e.Key.Name)
	}
	o.budgets.changed(e, byOperator)
	if operator.Cached(e.New) {
		o.result.Changes[e.Kind] = append(o.result.Changes[e.Kind], o.w.Line.Now())
	}
	if o.Scenario.Grows {
		o.topology.look()
	}
	name := e.Kind + "/" + uuids.ReplaceAllString(e.Key.Name, "<uid>")
	switch e.Type {
	case apiserver.Added:
		o.created[name]++
	case apiserver.Deleted:
		o.deleted[name]++
	case apiserver.Modified:
	}
	if byOperator && e.Type != apiserver.Added && !o.seen(w.User, e.New.GetUID()) {
		o.violated("I5: %s writes %s of the uid %s, which it has never seen", w.User, name, e.New.GetUID())
	}
	begunDeleting := e.Type == apiserver.Deleted ||
		e.New.GetDeletionTimestamp() != nil && e.Old != nil && e.Old.GetDeletionTimestamp() == nil
	switch object := e.New.(type) {
	case *corev1.Pod:
		if ip := object.Status.PodIP; ip != "" && !slices.Contains(o.had[ip], object.Name) {
			o.had[ip] = append(o.had[ip], object.Name)
		}
		o.pace.changed(e, object, byOperator)
		if byOperator && e.Type != apiserver.Added {
			o.forced(object)
			o.turn.resized(e.Old.(*corev1.Pod), object)
		}
		if byOperator && begunDeleting {
			o.podDeleted(object)
		}
	case *corev1.PersistentVolumeClaim:
		if byOperator && begunDeleting {
			o.claimDeleted(object)
		}
	case *corev1.ConfigMap:
		o.seeds(e, object, w.User)
		o.ledger(e, object, w.User)
	case *corev1.Secret:
		o.secret(e, object, w.User)
		o.passwords(e, object, w.User)
		o.applied(e, object, w.User)
	case *v1alpha1.CassandraNode:
		o.contested(e, object)
		o.asksClients(e, object)
		o.asksInTurn(e, object)
		o.worksOn(e, object, byOperator)
		o.record(e, object, byOperator)
	case *v1alpha1.CassandraTask:
		o.task(e, object)
	case *v1alpha1.CassandraRestore:
		old, _ := e.Old.(*v1alpha1.CassandraRestore)
		o.restore(old, object)
	case *v1alpha1.CassandraBackup:
		old, _ := e.Old.(*v1alpha1.CassandraBackup)
		o.backup(old, object)
	case *v1alpha1.CassandraCluster:
		o.turn.describe(object)
		if o.w.ClocksAreTrue() && slices.ContainsFunc(object.Status.Notices,
			func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.NoticeClocksDiffer }) {
			o.violated("clocks: they are said to differ, and all are true")
		}
	}
}

// asks: an operator deletes no object but the one that it saw, and changes neither the ledger nor a
// record but in the version that it saw. A client that is wrapped is to show what that is good for.
func (o *checker) asks(r *apiserver.Request) {
	byVersion := r.Kind == "CassandraNode" || r.Kind == "ConfigMap" && r.Name == v1alpha1.LedgerName(clusterName)
	changes := r.Subresource == "" && (r.Verb == apiserver.Update || r.Verb == apiserver.Patch)
	if strings.HasPrefix(r.User, world.UserOperator) && o.Wrap.Client == nil &&
		(r.Verb == apiserver.Delete && r.UID == "" || byVersion && changes && r.Version == "") {
		o.violated("I5: %s is of any object of the name, or of any version", r)
	}
}

// contested: the agents of two pods of a node do not overwrite each other's status without end.
func (o *checker) contested(e apiserver.Event, n *v1alpha1.CassandraNode) {
	old, modified := e.Old.(*v1alpha1.CassandraNode)
	if !modified || old.Status.PodUID == n.Status.PodUID {
		return
	}
	const most = 20 // a minute
	now := o.w.Line.Now()
	turns := slices.DeleteFunc(o.turns[n.Name], func(at time.Time) bool { return now.Sub(at) > time.Minute })
	o.turns[n.Name] = append(turns, now)
	if len(turns) == most {
		o.violated("the status of node %s comes from one pod and then from another %d times a minute", n.Name, most)
	}
}

func (o *checker) seen(user string, uid types.UID) bool {
	for _, one := range o.w.Operators() {
		if one.Name() == user {
			return one.HasSeen(uid)
		}
	}
	return true // it was killed by this very write
}

// podDeleted: no pod of a node that serves is deleted, unless its cluster is, nor one with the data
// of a member before the ledger says that this is replaced.
func (o *checker) podDeleted(p *corev1.Pod) {
	if c := get(o.w); c == nil || c.DeletionTimestamp != nil || string(c.UID) != p.Labels[v1alpha1.LabelClusterUID] {
		if s := o.sandbox(p.UID); s != nil && s.JVM() != nil && s.JVM().NativeOpen() &&
			(c == nil || string(c.UID) == p.Labels[v1alpha1.LabelClusterUID]) {
			o.violated("principle 7: pod %s is deleted while its JVM serves clients: it was not stopped in order",
				p.Name)
		}
		return
	}
	if s := o.sandbox(p.UID); s != nil && s.JVM() != nil && s.JVM().Mode() == string(facts.ModeNormal) && !justNormal(s) {
		o.violated("I1: the operator deletes pod %s, whose node is NORMAL", p.Name)
	}
	n, _ := o.w.Server.Object("CassandraNode", keyOf(p.Name)).(*v1alpha1.CassandraNode)
	if n != nil && n.Spec.Pod.Storage.Ephemeral != nil && n.Status.PodUID == p.UID &&
		n.Status.Disk == v1alpha1.DiskMember && p.Status.Phase == corev1.PodRunning && o.lastLedger != nil &&
		!slices.Contains(o.lastLedger.Replaced, n.Status.HostID) {
		o.violated("the operator deletes pod %s with its data, and nobody is to take the place of %s", p.Name,
			n.Status.HostID)
	}
}

// justNormal says that a node that is NORMAL takes no clients, and that not even its agent has seen
// it yet.
func justNormal(s *pod.Sandbox) bool {
	if s.Agent() == nil || s.JVM().NativeOpen() {
		return false
	}
	answer, _ := s.Agent().Answer()
	return answer != nil && answer.Phase == v1alpha1.PhaseJoining
}

// forced: no pod is taken out of the API server without the word of its kubelet, unless its host is
// gone for certain or has ended it.
func (o *checker) forced(p *corev1.Pod) {
	grace := p.DeletionGracePeriodSeconds
	if p.DeletionTimestamp == nil || grace == nil || *grace > 0 || p.Spec.NodeName == "" ||
		p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return
	}
	host, there := o.w.Server.Object("Node", types.NamespacedName{Name: p.Spec.NodeName}).(*corev1.Node)
	if !there {
		return
	}
	silent := unheard(o.w, host.Name)
	if !silent || !slices.ContainsFunc(host.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		o.violated("proof: the operator deletes pod %s by force, and nobody has said that host %s is gone", p.Name,
			host.Name)
	}
	if s := o.sandbox(p.UID); s != nil && s.JVM() != nil {
		o.violated("proof: the operator deletes pod %s by force, whose JVM lives", p.Name)
	}
}

func (o *checker) sandbox(uid types.UID) *pod.Sandbox {
	for _, s := range o.w.Pods.Sandboxes() {
		if s.PodUID() == uid {
			return s
		}
	}
	return nil
}

// claimDeleted: I3.
func (o *checker) claimDeleted(c *corev1.PersistentVolumeClaim) {
	cluster := get(o.w)
	of := c.Labels[v1alpha1.LabelClusterUID]
	switch {
	case c.Status.Phase != corev1.ClaimBound:
	case cluster == nil || string(cluster.UID) != of:
		o.violated("I3: claim %s is deleted, whose cluster is another than the present one or none", c.Name)
	case cluster.DeletionTimestamp == nil:
		left := cluster.Spec.Volumes.OnScaleIn == v1alpha1.ClaimDelete &&
			gaveAway(pod.ContentOf(o.w.Kube.Volume(c)).Data)
		if v := o.w.Kube.Volume(c); v != nil && !pod.ContentOf(v).Data.Report().Empty() && !left {
			o.violated("I3: claim %s is deleted with data on it while its cluster lives", c.Name)
		}
	case cluster.Spec.Volumes.OnClusterDeletion != v1alpha1.ClaimDelete:
		o.violated("I3: claim %s is deleted although volumes.onClusterDeletion is %s", c.Name,
			cluster.Spec.Volumes.OnClusterDeletion)
	default:
		for _, s := range o.w.Pods.Sandboxes() {
			if s.Name() == c.Labels[v1alpha1.LabelNode] && s.JVM() != nil {
				o.violated("I3: claim %s is deleted while a JVM of node %s lives", c.Name, s.Name())
			}
		}
	}
}

// seeds: I6.
func (o *checker) seeds(e apiserver.Event, m *corev1.ConfigMap, user string) {
	if user == world.UserPerson || m.Name != v1alpha1.SeedsName(clusterName) || e.Type == apiserver.Deleted ||
		m.DeletionTimestamp != nil {
		return
	}
	text := m.Data[layout.SeedsKey]
	if text == "" {
		o.violated("I6: the list of seeds is empty")
		return
	}
	l := o.lastLedger
	if l == nil {
		return
	}
	for _, address := range strings.Split(text, ",") {
		if !slices.ContainsFunc(o.had[address], func(node string) bool {
			return l.Members[node] != "" || l.Step != nil && l.Step.Kind != ledger.JoinNode &&
				slices.Contains(l.Step.Wave(), node)
		}) {
			o.violated("I6: %s is a seed, and was never the address of a member or of a node that forms a ring, but "+
				"of %v", address, o.had[address])
		}
	}
}

func (o *checker) servedAny(cluster types.UID) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(o.served)),
		func(dc string) bool { return strings.HasPrefix(dc, string(cluster)+"/") })
}

// overBefore says that a step is in its last stage, so that the write which closes it can open the
// next. A roll-out has one stage: it is over when no node is asked to go down for it. Those of a
// datacenter that is stopped alone are down for that.
func (o *checker) overBefore(s *ledger.Step) bool {
	if s.Kind == ledger.RollOut {
		return !slices.ContainsFunc(o.w.Server.Objects("CassandraNode"), func(object client.Object) bool {
			n := object.(*v1alpha1.CassandraNode)
			return o.turn.asked(n) && o.lastLedger.StoppedDatacenter(n.Spec.Datacenter) == nil
		})
	}
	return s.Stage == ledger.StageOpen || s.Kind != ledger.AddDatacenter && s.Stage == ledger.StageOperations ||
		s.Kind == ledger.StopDatacenter && s.Stage == ledger.StageStopped
}

// ledger: I8. An open step is closed before the next one is opened, or with the same write. What a
// user makes of it is not the product's.
func (o *checker) ledger(e apiserver.Event, m *corev1.ConfigMap, user string) {
	if m.Name != v1alpha1.LedgerName(clusterName) {
		return
	}
	if e.Type == apiserver.Deleted {
		o.budgets.written(nil)
		return
	}
	if user == world.UserPerson {
		o.lastLedger, _ = ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
		o.budgets.written(nil)
		return
	}
	old, now := o.lastLedger, o.decode(m)
	o.lastLedger = now
	o.budgets.written(now)
	if old == nil || now == nil || old.ClusterUID != now.ClusterUID || e.Type != apiserver.Modified {
		return
	}
	o.steps(old, now)
	if old.Step == nil && now.Step != nil && now.Step.Kind == ledger.FormRing && o.servedAny(now.ClusterUID) {
		o.violated("I11: a ring is formed again after client traffic was opened")
	}
	for name, id := range old.Members {
		if was, still := now.Members[name]; !still && o.left(name, id, now) {
			delete(o.hostIDs, string(now.ClusterUID)+"/"+name) // another may join under its name
		} else if !still || was != id && !slices.Contains(now.Replaced, id) {
			o.violated("the ledger forgets that node %s is the member %s: it says %q", name, id, was)
		}
	}
	if old.TrafficAllowed && !now.TrafficAllowed {
		o.violated("I11: the ledger takes back that client traffic may open")
	}
}

func (o *checker) decode(m *corev1.ConfigMap) *ledger.Ledger {
	l, err := ledger.Decode(m.Data, types.UID(m.Labels[v1alpha1.LabelClusterUID]))
	if err != nil {
		o.violated("the ledger cannot be read: %v", err)
		return nil
	}
	return l
}

// secret: I7. Only with everything that it has signed has somebody said that an authority is gone
// for good.
func (o *checker) secret(e apiserver.Event, s *corev1.Secret, user string) {
	use := v1alpha1.CertificateUse(s.Labels[v1alpha1.LabelComponent])
	if user == world.UserPerson || s.Name != v1alpha1.AuthorityName(clusterName, use) || e.Type == apiserver.Deleted {
		return
	}
	of := s.Labels[v1alpha1.LabelClusterUID] + "/" + string(use)
	key := string(s.Data[corev1.TLSPrivateKeyKey])
	if before, known := o.authorities[of]; known && before != key && o.certificates(use) > 0 && o.introduced[of] != key {
		o.violated("I7: the certificate authority of the cluster for %s is generated again", use)
	}
	o.authorities[of], o.introduced[of] = key, string(s.Data[pki.KeyNextKey])
}

// certificates counts what rests on the authority of a use.
func (o *checker) certificates(use v1alpha1.CertificateUse) int {
	n := 0
	for _, s := range o.w.Server.Objects("Secret") {
		if s.GetLabels()[v1alpha1.LabelNode] != "" && s.GetLabels()[v1alpha1.LabelComponent] == string(use) {
			n++
		}
	}
	return n
}

// record: tickets, host ids, intents.
func (o *checker) record(e apiserver.Event, n *v1alpha1.CassandraNode, byOperator bool) {
	if n.Spec.ClientTraffic == v1alpha1.TrafficOpen {
		datacenter := string(n.Spec.Cluster.UID) + "/" + n.Spec.Datacenter
		if !o.served[datacenter] && o.servedAny(n.Spec.Cluster.UID) {
			o.letIn(n)
		}
		o.served[datacenter] = true
	}
	if e.Type == apiserver.Deleted {
		o.pace.forget(n.Name)
		return
	}
	var old *v1alpha1.CassandraNode
	if e.Old != nil {
		old = e.Old.(*v1alpha1.CassandraNode)
	}
	if byOperator && n.Spec.Join != nil && (old == nil || old.Spec.Join == nil) {
		o.ticket(n, old == nil)
	}
	// A node that has only begun to join, and has lost its disk, may begin again: no other has seen
	// it in the ring, or its peers refuse.
	// The status of one that has left may lack what its agent could not tell before it was killed.
	if id := n.Status.HostID; id != "" && n.Status.Disk == v1alpha1.DiskMember &&
		n.Spec.State != v1alpha1.StateDecommissioned {
		key := string(n.Spec.Cluster.UID) + "/" + n.Name
		if before, known := o.hostIDs[key]; known && before != id && !takesPlaceOf(n, before) {
			o.violated("node %s was %s and is %s: it has joined twice", n.Name, before, id)
		}
		o.hostIDs[key] = id
		if _, known := o.owners[id]; !known {
			o.owners[id] = n.Spec.Cluster.UID
		}
	}
	o.operations(n)
	o.turn.changed(old, n)
	if n.Spec.State == v1alpha1.StateDecommissioned && old != nil && old.Spec.State != n.Spec.State &&
		!o.left(n.Name, old.Spec.Member.HostID, o.lastLedger) {
		o.violated("leave: node %s is said to have left, and its disk or a member that is up says otherwise", n.Name)
	}
	if version := n.Spec.Configuration.Version; old == nil || old.Spec.Configuration.Version != version {
		if d := o.disk(n.Name); d != nil && settings.Older(version, d.Newest()) {
			o.violated("I9: the record of node %s gets version %s, and its disk is one of %s", n.Name, version,
				d.Newest())
		}
	}
	if m := n.Spec.Member; m != nil && old != nil && old.Spec.Member != nil && old.UID == n.UID &&
		old.Spec.Member.HostID != m.HostID && !takesPlaceOf(n, old.Spec.Member.HostID) {
		o.violated("the record of node %s changes its member from %s to %s", n.Name, old.Spec.Member.HostID, m.HostID)
	}
}

// letIn: clients that come into a datacenter which was added to one that they use find there what
// they have written.
func (o *checker) letIn(n *v1alpha1.CassandraNode) {
	if missed := o.w.AuditWithin(ringName, n.Spec.Configuration.DatacenterName); len(missed) > 0 {
		o.violated("I11: clients are let into datacenter %s, where reads at LOCAL_QUORUM may miss %d acknowledged "+
			"writes: %s", n.Spec.Datacenter, len(missed), missed[0])
	}
}

// operations: I4. What has ended does not begin again by the same intent, and nothing begins on a
// node beside itself, whatever became of the agent that began it.
func (o *checker) operations(n *v1alpha1.CassandraNode) {
	doubled := o.w.Network.Doubled()
	for _, what := range doubled[o.doubled:] {
		o.violated("I4: %s", what)
	}
	o.doubled = len(doubled)
	refusals := o.w.Network.Refusals()
	for _, what := range refusals[o.refusals:] {
		o.violated("%s", what)
	}
	o.refusals = len(refusals)
	for _, op := range n.Status.Operations {
		key := n.Name + "/" + op.ID
		if ended := o.ended[key]; ended != "" && op.Phase == v1alpha1.OperationRunning {
			o.violated("I4: operation %s runs on node %s, where it had ended as %s", op.ID, n.Name, ended)
		}
		if op.Phase.Final() {
			o.ended[key] = op.Phase
		}
	}
}

// steps judges what is opened and suspended: I8, and that nothing of a suspended step runs.
func (o *checker) steps(old, now *ledger.Ledger) {
	if now.Step != nil && old.Step != nil && old.Step.ID != now.Step.ID && now.StepByID(old.Step.ID) == nil &&
		!o.overBefore(old.Step) {
		o.violated("I8: step %s is opened while step %s is open", now.Step.ID, old.Step.ID)
	}
	if now.Step != nil && len(now.Maintenance) > 0 || len(now.Maintenance) > ledger.MostMaintenance {
		o.violated("I8: %d steps of maintenance are open, and %v", len(now.Maintenance), now.Step)
	}
	for _, s := range now.Open() {
		if old.StepByID(s.ID) == nil {
			o.topology.opened(s, now.Members)
			if slices.Contains(moving, s.Kind) && len(old.Members) > 0 {
				o.budgets.closed(string(s.Kind) + " is opened")
			}
		}
	}
	for _, s := range now.Suspended {
		for _, object := range o.w.Server.Objects("CassandraNode") {
			n := object.(*v1alpha1.CassandraNode)
			runs := slices.ContainsFunc(n.Status.Operations, func(op v1alpha1.OperationStatus) bool {
				return ledger.OfIntent(op.ID) == s.ID && !op.Phase.Final()
			})
			p, exists := o.w.Server.Object("Pod", keyOf(n.Name)).(*corev1.Pod)
			if runs && exists && p.UID == n.Status.PodUID &&
				!slices.ContainsFunc(old.Suspended, func(was *ledger.Step) bool { return was.ID == s.ID }) {
				o.violated("I2: step %s is suspended while node %s runs an operation of it", s.ID, n.Name)
			}
		}
	}
}

// disk is what a node's claim, or its pod, has of Cassandra; nil if it has no volume.
func (o *checker) disk(name string) *cassandra.Disk {
	if e, _ := o.w.Server.Object("CassandraNode", keyOf(name)).(*v1alpha1.CassandraNode); e != nil &&
		e.Spec.Pod.Storage.Ephemeral != nil {
		for _, s := range o.w.Pods.Sandboxes() {
			if s.Name() == name {
				return s.Content(v1alpha1.VolumeData).Data
			}
		}
		return nil
	}
	claim := claimOf(o.w, name)
	if claim == nil || o.w.Kube.Volume(claim) == nil {
		return nil
	}
	return pod.ContentOf(o.w.Kube.Volume(claim)).Data
}

// ticket: I8 and I11. A record that is recreated has the ticket that its node had.
func (o *checker) ticket(n *v1alpha1.CassandraNode, again bool) {
	l := o.lastLedger // somebody else may have deleted it since
	if l == nil {
		o.violated("node %s gets a ticket without a ledger", n.Name)
		return
	}
	step, _, _ := strings.Cut(n.Spec.Join.ID, "/")
	if l.Step == nil || l.Step.ID != step {
		o.violated("I8: node %s gets ticket %s, and no such step is open", n.Name, n.Spec.Join.ID)
	}
	if n.Spec.Join.Mode == v1alpha1.JoinNew && o.served[string(n.Spec.Cluster.UID)+"/"+n.Spec.Datacenter] {
		o.violated("I11: node %s gets a New ticket after clients were let into its datacenter", n.Name)
	}
	if claim := claimOf(o.w, n.Name); claim != nil {
		v := o.w.Kube.Volume(claim)
		switch {
		case v == nil:
		case o.foreign(pod.ContentOf(v).Data, n.Spec.Cluster.UID):
			o.violated("node %s gets a ticket for the disk of a member of another cluster", n.Name)
		case !again && !pod.ContentOf(v).Data.Report().Empty():
			o.violated("I8: node %s gets a ticket for a disk that is not empty", n.Name)
		}
	}
}

// foreign says that a disk is that of a member of another cluster.
func (o *checker) foreign(disk *cassandra.Disk, cluster types.UID) bool {
	of, known := o.owners[disk.HostID()]
	return known && of != cluster
}

// jvmStarts judges the start of a JVM: never on an empty disk where the node has been a member, and
// never without streaming into a datacenter that serves.
func (o *checker) jvmStarts(s *pod.Sandbox, command initclient.Command) *cassandra.Exit {
	o.starts(s)
	if !s.Refused() {
		o.jvms[s.Name()]++ // how often one is tried that ends at once depends on when that is repaired
	}
	if s.Content(v1alpha1.VolumeData).Data.InUse() {
		o.violated("two JVMs run on the data directory of node %s: one starts in pod %s", s.Name(), s.PodUID())
	}
	c := get(o.w)
	if c == nil {
		return nil
	}
	if heap, limit := s.Memory(); o.Scenario.Resizes && heap > limit/2 {
		o.violated("memory: node %s starts with a heap of %d bytes in a container of %d", s.Name(), heap, limit)
	}
	record, _ := o.w.Server.Object("CassandraNode", keyOf(s.Name())).(*v1alpha1.CassandraNode)
	before, member := o.hostIDs[string(c.UID)+"/"+s.Name()]
	if id := s.Content(v1alpha1.VolumeData).Data.HostID(); id != "" && takesPlaceOf(record, id) {
		o.violated("Replaced: node %s starts on the disk of the member %s, whose place another has taken", s.Name(), id)
	}
	if member && !takesPlaceOf(record, before) && s.Content(v1alpha1.VolumeData).Data.Report().Empty() {
		o.violated("DataLost: node %s, which is the member %s, starts on an empty disk", s.Name(), before)
	}
	if member && gaveAway(s.Content(v1alpha1.VolumeData).Data) {
		o.violated("leave: node %s starts on the disk of a member that has given its data away", s.Name())
	}
	if disk := s.Content(v1alpha1.VolumeData).Data; o.foreign(disk, c.UID) &&
		o.owners[disk.HostID()] != c.Spec.AdoptedUID() {
		o.violated("node %s starts on the disk of a member of another cluster", s.Name())
	}
	if record != nil && o.served[string(c.UID)+"/"+record.Spec.Datacenter] &&
		slices.Contains(command.Argv, "cassandra.auto_bootstrap=false") && !isMember(s) {
		o.violated("I11: node %s starts without streaming in a datacenter whose client traffic is open", s.Name())
	}
	for _, other := range o.w.Pods.Sandboxes() {
		if other != s && other.Name() == s.Name() && other.JVM() != nil {
			o.violated("node %s starts in pod %s while its JVM in pod %s runs", s.Name(), s.PodUID(), other.PodUID())
		}
	}
	return nil
}

// isMember says that the disk of a pod is a member's, by Cassandra's word.
func isMember(s *pod.Sandbox) bool {
	local := s.Content(v1alpha1.VolumeData).Data.Report().Local
	return local != nil && local.Bootstrapped == disk.Completed
}

// why says how the cluster stands, for an act that does not end.
func (o *checker) why() string {
	c := get(o.w)
	if c == nil {
		return "there is no cluster"
	}
	var parts []string
	for _, condition := range c.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Message))
	}
	if s := c.Status.Step; s != nil {
		parts = append(parts, "step "+s.Name+": "+s.Message)
	}
	for _, b := range c.Status.Blocked {
		parts = append(parts, "blocked by "+string(b.Reason)+": "+b.Message)
	}
	for _, n := range c.Status.Notices {
		parts = append(parts, "notice "+string(n.Reason)+": "+n.Message)
	}
	return strings.Join(parts, "; ")
}
