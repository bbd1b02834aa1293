package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// world is the least that plans need to come true: objects that are written are there, pods run and
// their agents do at once what their records say.
type world struct {
	t        testing.TB
	snapshot *facts.Snapshot
	now      time.Time
	uids     int
	versions int
	events   []string
	// resizes says that the kubelet resizes pods at once.
	resizes bool
	// absent are nodes whose agents never answer; dead are those that gossip sees down.
	absent, dead map[string]bool
	// running are the agents by the uid of their pod, whether they answer or not.
	running map[types.UID]*facts.Agent
	// tokens that the nodes took, by name.
	tokens map[string][]string
	// late are nodes whose JVM never comes up, though their agents answer.
	late map[string]bool
	// withoutInit are nodes whose Cassandra container never runs.
	withoutInit map[string]bool
	// lateDisk is what their JVM leaves on the disk.
	lateDisk v1alpha1.DiskState
	// racks that the nodes are in, by the last word of their records.
	racks map[string]v1alpha1.NodeConfiguration
	// keyspaces of all views, strangers in all views, and how much each member stores.
	keyspaces map[string]string
	strangers []facts.Endpoint
	// rumours are what single members see beside that, until one has the others forget it; undying
	// are those that nobody forgets.
	rumours map[string][]facts.Endpoint
	// operate is what an agent says of an operation that it is asked for; by default it has
	// succeeded at once.
	operate func(*facts.Node, v1alpha1.OperationIntent) []v1alpha1.OperationStatus
	// sees says that an agent has asked its JVM after its last operation; by default each has.
	sees    func(*facts.Node) bool
	undying bool
	load    int64
	pending int
	// held is what the volumes hold of nodes whose records forgot it.
	held map[string]v1alpha1.DiskState
	// started is what the JVM in a pod runs with.
	started map[types.UID]v1alpha1.NodeConfiguration
	// observed has the snapshot carry what the operator works out when it observes: what tells
	// views and records apart. A test that edits them must not.
	observed bool
	// pulled is how kubelet names what it has pulled for an image.
	pulled func(image string) string
}

// host that all pods are on.
const host = "host-1"

func newWorld(t testing.TB, datacenters ...v1alpha1.Datacenter) *world {
	t.Helper()
	size := resource.MustParse("10Gi")
	cluster := &v1alpha1.CassandraCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "shop", UID: "cluster-uid", Generation: 1},
		Spec: v1alpha1.CassandraClusterSpec{
			Version:     "5.0.6",
			Datacenters: datacenters,
			Node: &v1alpha1.NodeTemplate{
				NodeSettings: v1alpha1.NodeSettings{
					Storage: &v1alpha1.Storage{
						Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}},
					},
				},
			},
			Security: &v1alpha1.Security{
				Authentication: &v1alpha1.Authentication{Mode: v1alpha1.AuthenticationNone},
				NetworkPolicy:  &v1alpha1.NetworkPolicy{Mode: v1alpha1.NetworkPolicyNone}},
			Disruption: v1alpha1.DisruptionPolicy{Consistency: v1alpha1.ConsistencyLocalQuorum},
			Volumes:    v1alpha1.VolumePolicy{OnClusterDeletion: v1alpha1.ClaimRetain},
		},
	}
	return &world{
		t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), absent: map[string]bool{}, dead: map[string]bool{},
		running: map[types.UID]*facts.Agent{}, started: map[types.UID]v1alpha1.NodeConfiguration{}, tokens: map[string][]string{}, late: map[string]bool{},
		withoutInit: map[string]bool{}, racks: map[string]v1alpha1.NodeConfiguration{}, lateDisk: v1alpha1.DiskJoining,
		snapshot: &facts.Snapshot{
			Cluster: cluster,
			Install: facts.Install{Version: "test", ImageRepository: "cassandra", AgentImage: "helenus-agent:test"},
			Nodes:   map[string]*facts.Node{},
			Hosts: map[string]*corev1.Node{host: {
				ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{corev1.LabelHostname: host}},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
					Status: corev1.ConditionTrue}}},
			}},
			Shared: facts.Shared{
				Services: map[string]*corev1.Service{}, Budgets: map[string]*policyv1.PodDisruptionBudget{},
				ServiceAccounts: map[string]*corev1.ServiceAccount{}, Roles: map[string]*rbacv1.Role{},
				RoleBindings: map[string]*rbacv1.RoleBinding{},
				ConfigMaps:   map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{},
				NetworkPolicies: map[string]*networkingv1.NetworkPolicy{},
			},
		},
	}
}

// datacenter has as many racks as sizes are given.
func datacenter(name string, sizes ...int32) v1alpha1.Datacenter {
	dc := v1alpha1.Datacenter{Name: name, NodesPerRack: 1, NumTokens: 4, PlannedReplicationFactor: 3}
	for i, size := range sizes {
		dc.Racks = append(dc.Racks, v1alpha1.Rack{Name: fmt.Sprintf("r%d", i+1), Nodes: &size})
	}
	return dc
}

func (w *world) uid(kind string) types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("%s-%d", kind, w.uids))
}

func (w *world) version() string {
	w.versions++
	return strconv.Itoa(w.versions)
}

func (w *world) node(name string) *facts.Node {
	n := w.snapshot.Nodes[name]
	if n == nil {
		n = &facts.Node{Name: name, Claims: map[string]*facts.Claim{}}
		w.snapshot.Nodes[name] = n
	}
	return n
}

// pass makes one pass: decide, write, and let the agents work.
func (w *world) pass() plan.Plan {
	w.t.Helper()
	w.readRepairs()
	made := Next(w.snapshot, w.now)
	if !w.observed {
		if again := Next(asObserved(w.snapshot), w.now); !reflect.DeepEqual(again, made) {
			w.t.Fatalf("with what is worked out when a cluster is observed another plan is made:\n%s\ninstead of\n%s",
				again, made)
		}
	}
	for _, write := range made.Writes {
		w.do(write)
	}
	w.now = w.now.Add(time.Second)
	w.agents()
	return made
}

// asObserved is a snapshot with what the operator works out when it observes.
func asObserved(s *facts.Snapshot) *facts.Snapshot {
	out := *s
	out.Nodes = maps.Clone(s.Nodes)
	for name, n := range s.Nodes {
		copied := *n
		if n.Record != nil {
			copied.Hashes = render.HashesOf(n.Record)
		}
		if n.Agent != nil && n.Agent.Ring != nil {
			agent, ring := *n.Agent, *n.Agent.Ring
			ring.KeepView()
			agent.Ring, copied.Agent = &ring, &agent
		}
		out.Nodes[name] = &copied
	}
	return &out
}

// settle passes until nothing is written, and returns the last plan.
func (w *world) settle() plan.Plan {
	w.t.Helper()
	for range 200 {
		if made := w.pass(); len(made.Writes) == 0 {
			return made
		}
	}
	w.t.Fatalf("not quiet after 200 passes; the last plan:\n%s", Next(w.snapshot, w.now))
	return plan.Plan{}
}

func (w *world) do(write plan.Write) {
	w.t.Helper()
	switch write.Verb {
	case plan.Create, plan.IssueAuthority, plan.IssueCertificate:
		if write.Object.SetUID(write.UID); write.UID == "" {
			write.Object.SetUID(w.uid("object"))
		}
		write.Object.SetResourceVersion(w.version())
		if secret, ok := write.Object.(*corev1.Secret); ok {
			if secret.Annotations == nil {
				secret.Annotations = map[string]string{}
			}
			secret.Annotations[v1alpha1.AnnotationRenewAfter] = w.now.Add(1000 * time.Hour).Format(time.RFC3339)
			w.sign(write.Verb, secret)
		}
		w.put(write.Object)
	case plan.RotateAuthority:
		w.rotate(write)
	case plan.ApplyOther:
		w.certify(write)
	case plan.MakePasswords:
		secret := write.Object.(*corev1.Secret)
		secret.UID = w.uid("object")
		if secret.Name == "orders-roles" {
			w.snapshot.Passwords.Roles = secret
		} else {
			w.snapshot.Passwords.Superuser = secret
		}
	case plan.CopyPassword:
		secret, p := write.Object.(*corev1.Secret), &w.snapshot.Passwords
		if had := p.Applied; had == nil {
			secret.UID = w.uid("object")
		} else {
			secret.UID, p.Old = had.UID, true
		}
		secret.ResourceVersion, p.Applied, p.Changed = w.version(), secret, false
	case plan.DropOldPassword:
		secret, p := write.Object.(*corev1.Secret), &w.snapshot.Passwords
		if write.UID != p.Applied.UID || write.ResourceVersion != p.Applied.ResourceVersion {
			w.t.Fatalf("%s: of another Secret than was seen", write)
		}
		secret.UID, secret.ResourceVersion = p.Applied.UID, w.version()
		p.Applied, p.Old = secret, false
	case plan.Apply:
		w.apply(write)
	case plan.Change:
		if write.Seen.GetUID() != write.UID {
			w.t.Fatalf("%s: of another object than was seen", write)
		}
		if claim, ok := write.Object.(*corev1.PersistentVolumeClaim); ok {
			maps.Copy(w.claims()[write.UID].Labels, claim.Labels)
			w.claims()[write.UID].Spec.Resources = claim.Spec.Resources
			return
		}
		w.put(write.Object)
	case plan.Delete, plan.DeleteByForce:
		w.remove(write)
	case plan.PutLedger:
		l := write.Ledger.Copy()
		if have := w.snapshot.Ledger; have != nil && have.UID != "" &&
			(l.UID != have.UID || l.ResourceVersion != have.ResourceVersion) {
			w.t.Fatalf("ledger written on version %q, it has %q", l.ResourceVersion, have.ResourceVersion)
		}
		if l.UID == "" {
			l.UID = w.uid("ledger")
		}
		l.ResourceVersion = w.version()
		w.snapshot.Ledger = l
		m := render.Ledger(render.OwnerOf(w.snapshot.Cluster), nil)
		m.UID = l.UID
		w.snapshot.Shared.ConfigMaps[m.Name] = m
	case plan.ResizePod:
		n := w.snapshot.Nodes[write.Object.GetName()]
		if n.Pod.UID != write.UID {
			w.t.Fatalf("%s: resized another pod", write)
		}
		to := write.Object.(*corev1.Pod)
		maps.Copy(n.Pod.Annotations, to.Annotations)
		n.Pod.Spec.Containers[0].Resources = to.Spec.Containers[0].Resources
		if w.resizes {
			w.kubelet(n)
		}
	case plan.Hold:
		write.Object.SetFinalizers(append(write.Object.GetFinalizers(), write.Finalizer))
	case plan.Release:
		w.release(write)
	case plan.SetOwners:
		w.snapshot.Nodes[write.Object.GetName()].Pod.OwnerReferences = write.Object.GetOwnerReferences()
	case plan.ApplyStatus:
		w.tell(write)
	case plan.Event:
		w.events = append(w.events, write.Reason)
	}
}

// kubelet has the containers of a pod get what the pod asks for.
func (w *world) kubelet(n *facts.Node) {
	tell := func(all []corev1.Container) (out []corev1.ContainerStatus) {
		for _, c := range all {
			out = append(out, corev1.ContainerStatus{Name: c.Name, Resources: &c.Resources})
		}
		return out
	}
	n.Pod.Status.ContainerStatuses, n.Pod.Status.InitContainerStatuses = tell(n.Pod.Spec.Containers),
		tell(n.Pod.Spec.InitContainers)
}

func (w *world) put(object plan.Object) {
	s := &w.snapshot.Shared
	switch o := object.(type) {
	case *corev1.Service:
		s.Services[o.Name] = o
	case *policyv1.PodDisruptionBudget:
		s.Budgets[o.Name] = o
	case *corev1.ServiceAccount:
		s.ServiceAccounts[o.Name] = o
	case *rbacv1.Role:
		s.Roles[o.Name] = o
	case *rbacv1.RoleBinding:
		s.RoleBindings[o.Name] = o
	case *networkingv1.NetworkPolicy:
		s.NetworkPolicies[o.Name] = o
	case *corev1.ConfigMap:
		s.ConfigMaps[o.Name] = o
	case *corev1.Secret:
		s.Secrets[o.Name] = o
	case *v1alpha1.CassandraNode:
		o.Generation = 1
		w.node(o.Name).Record = o
	case *corev1.PersistentVolumeClaim:
		o.Status.Phase = corev1.ClaimBound
		w.node(o.Labels[v1alpha1.LabelNode]).Claims[o.Labels[v1alpha1.LabelVolume]] = &facts.Claim{Claim: o}
	case *corev1.Pod:
		n := w.node(o.Name)
		o.Spec.NodeName = host
		o.Status.PodIP = fmt.Sprintf("10.0.0.%d", w.uids)
		o.Status.Phase = corev1.PodRunning
		if w.pulled != nil {
			o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: layout.CassandraContainer,
				ImageID: w.pulled(render.ImageOf(o, layout.CassandraContainer))}}
		}
		n.Pod = o
	default:
		w.t.Fatalf("created a %T", object)
	}
}

func (w *world) apply(write plan.Write) {
	w.t.Helper()
	if write.UID == "" {
		w.t.Fatalf("%s: no uid", write)
	}
	if claim, ok := write.Object.(*corev1.PersistentVolumeClaim); ok {
		maps.Copy(w.claims()[write.UID].Labels, claim.Labels)
		return
	}
	record, ok := write.Object.(*v1alpha1.CassandraNode)
	if !ok {
		write.Object.SetUID(write.UID)
		w.put(write.Object)
		return
	}
	have := w.snapshot.Nodes[record.Name].Record
	if have.UID != write.UID || have.ResourceVersion != write.ResourceVersion {
		w.t.Fatalf("%s: written on %s/%s, it is %s/%s", write, write.UID, write.ResourceVersion, have.UID,
			have.ResourceVersion)
	}
	have.Spec, have.Annotations = record.Spec, record.Annotations
	have.Generation++
	have.ResourceVersion = w.version()
}

func (w *world) remove(write plan.Write) {
	w.t.Helper()
	switch o := write.Object.(type) {
	case *corev1.Pod:
		n := w.snapshot.Nodes[o.Name]
		if n.Pod.UID != write.UID {
			w.t.Fatalf("%s: deleted another pod", write)
		}
		n.Pod, n.Agent = nil, nil
		w.releaseClaims(n)
	case *corev1.PersistentVolumeClaim:
		when := metav1.NewTime(w.now)
		for _, n := range w.snapshot.Nodes {
			for _, c := range n.Claims {
				if c.Claim.UID == write.UID {
					c.Claim.DeletionTimestamp = &when
				}
			}
			w.releaseClaims(n)
		}
	case *v1alpha1.CassandraNode:
		when := metav1.NewTime(w.now)
		w.snapshot.Nodes[o.Name].Record.DeletionTimestamp = &when
	case *v1alpha1.CassandraTask:
		w.snapshot.Tasks = slices.DeleteFunc(slices.Clone(w.snapshot.Tasks),
			func(t *v1alpha1.CassandraTask) bool { return t.UID == write.UID })
	case *corev1.Secret:
		delete(w.snapshot.Shared.Secrets, o.Name)
	case *unstructured.Unstructured:
		delete(w.snapshot.Given, o.GetName())
	case *corev1.Service:
		delete(w.snapshot.Shared.Services, o.Name)
	case *rbacv1.RoleBinding:
		delete(w.snapshot.Shared.RoleBindings, o.Name)
	case *rbacv1.Role:
		delete(w.snapshot.Shared.Roles, o.Name)
	case *corev1.ServiceAccount:
		delete(w.snapshot.Shared.ServiceAccounts, o.Name)
	case *policyv1.PodDisruptionBudget:
		delete(w.snapshot.Shared.Budgets, o.Name)
	case *networkingv1.NetworkPolicy:
		delete(w.snapshot.Shared.NetworkPolicies, o.Name)
	case *corev1.ConfigMap:
		delete(w.snapshot.Shared.ConfigMaps, o.Name)
		if o.Name == v1alpha1.LedgerName("orders") {
			w.snapshot.Ledger = nil
		}
	default:
		w.t.Fatalf("deleted a %T", write.Object)
	}
}

func (w *world) release(write plan.Write) {
	if c, ok := write.Object.(*v1alpha1.CassandraCluster); ok {
		c.Finalizers = nil
		return
	}
	n := w.snapshot.Nodes[write.Object.GetName()]
	n.Record.Finalizers = nil
	if n.Record.DeletionTimestamp != nil {
		n.Record = nil
	}
}

// releaseClaims lets claims go that are being deleted and that no pod uses, as Kubernetes does.
func (w *world) releaseClaims(n *facts.Node) {
	if n.Pod == nil {
		maps.DeleteFunc(n.Claims, func(_ string, c *facts.Claim) bool { return c.Claim.DeletionTimestamp != nil })
	}
}

func hostID(name string) string { return "host-" + name }

// agents lets every agent do what its record says.
func (w *world) agents() {
	for _, name := range w.snapshot.Names() {
		n := w.snapshot.Nodes[name]
		n.Agent = nil
		if n.Pod == nil || n.Record == nil {
			continue
		}
		if w.running[n.Pod.UID] == nil {
			w.running[n.Pod.UID] = &facts.Agent{Version: "test",
				ClusterUID: "cluster-uid", Node: name, PodUID: n.Pod.UID, Address: n.Pod.Status.PodIP,
				Disk: v1alpha1.DiskEmpty, Phase: v1alpha1.PhaseWaiting,
				Process: facts.ProcessAbsent,
			}
			if disk := cmp.Or(n.Record.Status.Disk, w.held[name]); disk != "" {
				// another pod finds the same disk
				w.running[n.Pod.UID].Disk, w.running[n.Pod.UID].HostID = disk, hostID(name)
			}
		}
		if w.absent[name] {
			continue
		}
		n.Agent = w.running[n.Pod.UID]
		n.Record.Status.PodUID = n.Pod.UID
		n.Record.Status.ObservedGeneration, n.Agent.RecordGeneration = n.Record.Generation, n.Record.Generation
		w.agent(n)
	}
	// one for all: a test that changes what one of them sees gives it a list of its own
	seen := slices.Clip(append(w.endpoints(), w.strangers...))
	for _, name := range w.snapshot.Names() {
		if n := w.snapshot.Nodes[name]; w.observed && n.Record != nil && n.KnownHashes() == nil {
			n.Hashes = render.HashesOf(n.Record)
		}
		if a := w.snapshot.Nodes[name].Agent; a != nil && a.Ring != nil {
			a.Ring.Endpoints, a.Ring.Keyspaces, a.Ring.Pending = slices.Concat(seen, w.rumours[name]), w.keyspaces,
				w.pending
			if w.observed {
				a.Ring.KeepView()
			}
		}
	}
}

func (w *world) agent(n *facts.Node) {
	spec, status := n.Record.Spec, &n.Record.Status
	when := metav1.NewTime(w.now)
	if w.withoutInit[n.Name] {
		n.Agent.Process = facts.ProcessUnknown
		return // it waits for the Cassandra container
	}
	if spec.State == v1alpha1.StateStopped {
		n.Agent.Ring, status.Phase, status.Ready = nil, v1alpha1.PhaseStopped, false
		n.Agent.Process, n.Agent.Phase, n.Agent.Traffic = facts.ProcessAbsent, v1alpha1.PhaseStopped,
			v1alpha1.TrafficClosed
		return
	}
	if j := spec.Join; j != nil {
		if status.Join == nil || status.Join.ID != j.ID {
			status.Join = &v1alpha1.IntentStatus{ID: j.ID, StartedAt: &when}
		}
		switch {
		case j.Withdraw != nil && status.Join.FinishedAt == nil:
			status.Join.WithdrawnAt = &when
		case n.Agent.Disk == v1alpha1.DiskEmpty && w.late[n.Name]:
			n.Agent.Disk = w.lateDisk
			status.Restarts = &v1alpha1.RestartsStatus{Count: 1, LastReason: v1alpha1.RestartStartFailed}
		case !w.late[n.Name] && status.Join.FinishedAt == nil:
			status.Join.FinishedAt = &when
			w.serve(n, j.Tokens)
		}
	}
	if m := spec.Member; m != nil && n.Agent.Ring == nil && n.Agent.Disk == v1alpha1.DiskMember {
		w.serve(n, w.tokens[n.Name])
	}
	for _, o := range spec.Operations {
		if w.operate != nil {
			status.Operations = w.operate(n, o)
			continue
		}
		if status.Operation(o.ID) != nil {
			continue
		}
		status.Operations = []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded, StartedAt: &when,
			FinishedAt: &when}}
		switch {
		case o.Type == v1alpha1.OperationDecommission:
			n.Agent.Ring, n.Agent.Disk, n.Agent.Phase = nil, v1alpha1.DiskLeft, v1alpha1.PhaseLeft
		case o.Type != v1alpha1.OperationAssassinate:
		case w.undying:
			status.Operations[0].Phase, status.Operations[0].Message = v1alpha1.OperationFailed, "it is known"
		default:
			w.rumours = nil
		}
	}
	w.configure(n)
	status.Certificates = w.prove(n)
	if n.Agent.Ring != nil {
		status.Phase, status.Tokens = v1alpha1.PhaseNormal, w.tokens[n.Name]
	}
	status.Disk, status.Address = n.Agent.Disk, n.Agent.Address
	if unaware := spec.Member == nil && n.Agent.TrafficOpened; !unaware ||
		spec.ClientTraffic != v1alpha1.TrafficClosed {
		n.Agent.Traffic = spec.ClientTraffic
	}
	status.ClientTraffic = n.Agent.Traffic
	status.Ready = n.Agent.Ring != nil && spec.ClientTraffic == v1alpha1.TrafficOpen
	n.Agent.Ready = status.Ready
	n.Pod.Status.Conditions = nil
	if status.Ready {
		n.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	n.Agent.ObservedAt = w.now
	if w.sees == nil || w.sees(n) {
		n.Agent.Ended = nil
		for _, o := range status.Operations {
			if o.Phase.Final() {
				n.Agent.Ended = append(n.Agent.Ended, o.ID)
			}
		}
	}
	n.Agent.TrafficOpened = n.Agent.TrafficOpened || spec.ClientTraffic != v1alpha1.TrafficClosed
}

// configure has the JVM of a node take over what needs no restart, or restart as it is asked to.
// With a refused setting it does not come up.
func (w *world) configure(n *facts.Node) {
	spec, status, when := n.Record.Spec, &n.Record.Status, metav1.NewTime(w.now)
	if r := spec.Restart; r != nil && (status.Restart == nil || status.Restart.ID != r.ID) {
		status.Restart = &v1alpha1.IntentStatus{ID: r.ID, StartedAt: &when}
		delete(w.started, n.Pod.UID)
	}
	had, runs := w.started[n.Pod.UID]
	if n.Agent.Ring == nil && !w.refuses(spec.Configuration) {
		return
	}
	if !runs && w.refuses(spec.Configuration) {
		n.Agent.Ring, n.Agent.Process, n.Agent.Phase = nil, facts.ProcessAbsent, v1alpha1.PhaseFailed
		n.Agent.Message = "Cassandra refused its configuration"
		status.Phase, status.Configuration = v1alpha1.PhaseFailed, nil
		return
	}
	changes, err := config.Diff(&had, &spec.Configuration)
	if !runs || err == nil && len(changes.Restart) == 0 {
		had, w.started[n.Pod.UID] = spec.Configuration, spec.Configuration
		changes.Restart = nil
	}
	hash, err := config.Hash(&had)
	if err != nil {
		w.t.Fatal(err)
	}
	status.Configuration = &v1alpha1.ConfigurationStatus{Hash: hash, Encryption: had.Encryption,
		RestartNeeded: len(changes.Restart) > 0}
	status.Proven = &v1alpha1.ProvenStatus{Configuration: hash,
		PodTemplate: n.PodTemplate()}
	if r := status.Restart; r != nil && r.FinishedAt == nil {
		r.FinishedAt = &when
	}
}

// refuses says that no JVM starts with a configuration.
func (w *world) refuses(c v1alpha1.NodeConfiguration) bool {
	return c.JVM != nil && slices.Contains(c.JVM.Options, "-XX:+Refused")
}

func (w *world) serve(n *facts.Node, tokens []string) {
	n.Agent.Disk, n.Agent.HostID, n.Agent.Phase, n.Agent.Process = v1alpha1.DiskMember, hostID(n.Name),
		v1alpha1.PhaseNormal, facts.ProcessRunning
	n.Agent.Ring = &facts.Ring{Mode: facts.ModeNormal, HostID: hostID(n.Name), SchemaVersion: "schema",
		ReleaseVersion: n.Record.Spec.Configuration.Version, Hints: map[string]int{}, Unfinished: &facts.Unfinished{},
		PlainClients: []string{}}
	w.tokens[n.Name] = tokens
	n.Agent.Space = &facts.Space{Capacity: 10 << 30, Free: 10<<30 - w.load, Data: w.load}
}

func (w *world) endpoints() []facts.Endpoint {
	var out []facts.Endpoint
	for _, name := range w.snapshot.Names() {
		n := w.snapshot.Nodes[name]
		if n.Pod == nil || w.running[n.Pod.UID] == nil || w.running[n.Pod.UID].Ring == nil {
			continue
		}
		var tokens []int64
		for _, t := range w.tokens[name] {
			v, err := strconv.ParseInt(t, 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			tokens = append(tokens, v)
		}
		slices.Sort(tokens)
		if n.Record != nil {
			w.racks[name] = n.Record.Spec.Configuration
		}
		rack := w.racks[name]
		out = append(out, facts.Endpoint{
			Address: n.Pod.Status.PodIP, HostID: hostID(name), Datacenter: rack.DatacenterName, Rack: rack.RackName,
			Status: facts.StatusNormal, Live: !w.dead[name], Tokens: tokens, Load: w.load, SchemaVersion: "schema",
		})
	}
	return out
}

func (w *world) wantNames(want ...string) {
	w.t.Helper()
	var got []string
	for _, n := range w.snapshot.Records() {
		got = append(got, n.Name)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("records %v, want %v", got, want)
	}
}

func (w *world) wantOpen() {
	w.t.Helper()
	for _, n := range w.snapshot.Records() {
		if n.Record.Spec.ClientTraffic != v1alpha1.TrafficOpen || n.Record.Spec.Join != nil ||
			n.Record.Spec.Member == nil {
			w.t.Errorf("node %s: traffic %s, ticket %v, member %v; want an open member without a ticket",
				n.Name, n.Record.Spec.ClientTraffic, n.Record.Spec.Join, n.Record.Spec.Member)
		}
	}
	if w.snapshot.Ledger.Step != nil {
		w.t.Errorf("step %s is still open in stage %s", w.snapshot.Ledger.Step.Kind, w.snapshot.Ledger.Step.Stage)
	}
}

// reported are the blocked steps of a plan, and its notices after them.
func reported(p plan.Plan) []v1alpha1.BlockedStep {
	out := slices.Clone(p.Blocked)
	for _, n := range p.Notices {
		out = append(out, v1alpha1.BlockedStep{Reason: n.Reason, Nodes: n.Nodes, Message: n.Message})
	}
	return out
}

func wantStalled(t *testing.T, made plan.Plan, reason string, words ...string) {
	t.Helper()
	if made.Stalled == nil || made.Stalled.Reason != reason {
		t.Fatalf("stalled %+v, want reason %s; the plan:\n%s", made.Stalled, reason, made)
	}
	for _, word := range words {
		if !strings.Contains(made.Stalled.Message, word) {
			t.Errorf("stalled message %q does not say %q", made.Stalled.Message, word)
		}
	}
}

// wantedOf are the nodes that the spec describes.
func wantedOf(w *world) []render.Wanted {
	return render.WantedNodes(w.snapshot.Cluster, w.snapshot.Install)
}
