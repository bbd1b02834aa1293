package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/schedule"
)

// ErrBehind says that the cache does not show our own last writes yet. Nothing may be decided on
// it; an event will come.
var ErrBehind = errors.New("the cache does not show our own writes yet")

// Reader observes clusters.
type Reader struct {
	// Cache is read for everything that is ours: objects with our labels.
	Cache client.Reader
	// Live reads from the API server itself: what has a name of ours without our label, and what a
	// disruptive step must be sure of.
	Live client.Reader
	// Agents answers for the pods.
	Agents *Agents
	// Lookout looks at Secrets of people between passes; nil if passes alone do.
	Lookout *Lookout
	// Install is what this operator was installed with.
	Install facts.Install
	// Now is the clock.
	Now func() time.Time
	// Store opens a store of backups with the content of its Secret.
	Store func(spec v1alpha1.BackupStoreSpec, secret map[string][]byte) (store.Store, error)

	secrets secrets
	hashes  hashes
	repairs repairs
	backups backups
}

// Cluster gathers what is known about one cluster. It returns nil if there is no such cluster.
// Store holds our own writes that must be visible first.
func (r *Reader) Cluster(ctx context.Context, key types.NamespacedName, store *consistency.Store) (*facts.Snapshot,
	error) {
	cluster := &v1alpha1.CassandraCluster{}
	if err := r.Cache.Get(ctx, key, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	o, err := list(ctx, r.Cache, key)
	if err != nil {
		return nil, err
	}
	o.add("CassandraCluster", cluster)
	s := &facts.Snapshot{Cluster: cluster, Install: r.Install, Nodes: map[string]*facts.Node{}}
	o.shared(s)
	if err := r.defaults(ctx, s, cluster); err != nil {
		return nil, err
	}
	listed := s.Ledger
	if err := r.secrets.read(ctx, r.Live, r.Now(), s, o, store); err != nil {
		return nil, err
	}
	if err := r.secrets.readPasswords(ctx, r.Live, r.Now(), s, o, store); err != nil {
		return nil, err
	}
	if err := r.caughtUp(ctx, key.Name, o, store); err != nil {
		return nil, err
	}
	o.nodes(s)
	o.tasks(s)
	for _, look := range []func(context.Context, *facts.Snapshot) error{r.unlisted, r.volumes, r.classes, r.hosts,
		r.backup} {
		if err := look(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.Ledger != listed { // its labels were lost, and what the ring was made with stands in it
		if err := r.defaults(ctx, s, cluster); err != nil {
			return nil, err
		}
	}
	r.hashes.fill(key, s)
	r.repairs.fill(key, s)
	r.Agents.Fill(s)
	if r.Lookout != nil {
		r.Lookout.keep(key, r.secrets.ofPeople(s), func(name string) { r.secrets.drop(key, name) })
	}
	return s, nil
}

// Forget drops everything that is kept of a cluster between passes.
func (r *Reader) Forget(cluster types.NamespacedName) {
	r.Agents.Forget(cluster)
	if r.Lookout != nil {
		r.Lookout.keep(cluster, nil, nil)
	}
	r.secrets.forget(cluster)
	r.hashes.forget(cluster)
	r.repairs.forget(cluster)
	r.backups.forget(cluster)
}

// objects are those that carry the name of a cluster in their labels, in one namespace.
type objects struct {
	records   v1alpha1.CassandraNodeList
	given     v1alpha1.CassandraTaskList
	restores  v1alpha1.CassandraRestoreList
	backups   v1alpha1.CassandraBackupList
	stores    v1alpha1.CassandraBackupStoreList
	schedules v1alpha1.CassandraBackupScheduleList
	pods      corev1.PodList
	claims    corev1.PersistentVolumeClaimList
	services  corev1.ServiceList
	configs   corev1.ConfigMapList
	secrets   []corev1.Secret
	// edited are the names of those whose content is not what we put into them.
	edited   map[string]bool
	accounts corev1.ServiceAccountList
	roles    rbacv1.RoleList
	bindings rbacv1.RoleBindingList
	budgets  policyv1.PodDisruptionBudgetList
	policies networkingv1.NetworkPolicyList

	seen map[consistency.Key]consistency.Seen
}

func list(ctx context.Context, from client.Reader, key types.NamespacedName) (*objects, error) {
	o := &objects{seen: map[consistency.Key]consistency.Seen{}, edited: map[string]bool{}}
	for _, l := range []client.ObjectList{
		&o.records, &o.pods, &o.claims, &o.services, &o.configs, &o.accounts, &o.roles, &o.bindings, &o.budgets,
		&o.policies,
	} {
		if err := from.List(ctx, l, client.InNamespace(key.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: key.Name}); err != nil {
			return nil, fmt.Errorf("list %T: %w", l, err)
		}
	}
	for _, l := range []client.ObjectList{&o.given, &o.restores, &o.backups, &o.stores, &o.schedules} {
		if err := from.List(ctx, l, client.InNamespace(key.Namespace)); err != nil {
			return nil, fmt.Errorf("list %T: %w", l, err)
		}
	}
	each(o, "CassandraNode", o.records.Items)
	each(o, "CassandraTask", o.given.Items)
	each(o, "CassandraRestore", o.restores.Items)
	each(o, "CassandraBackup", o.backups.Items)
	each(o, "Pod", o.pods.Items)
	each(o, "PersistentVolumeClaim", o.claims.Items)
	each(o, "Service", o.services.Items)
	each(o, "ConfigMap", o.configs.Items)
	each(o, "ServiceAccount", o.accounts.Items)
	each(o, "Role", o.roles.Items)
	each(o, "RoleBinding", o.bindings.Items)
	each(o, "PodDisruptionBudget", o.budgets.Items)
	each(o, "NetworkPolicy", o.policies.Items)
	return o, nil
}

func each[T any, P interface {
	*T
	client.Object
}](o *objects, kind string, items []T) {
	for i := range items {
		o.add(kind, P(&items[i]))
	}
}

func (o *objects) add(kind string, object client.Object) {
	o.seen[consistency.Key{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}] = consistency.Seen{
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Deleting: object.GetDeletionTimestamp() != nil,
	}
}

func (o *objects) look(key consistency.Key) (consistency.Seen, bool) {
	seen, ok := o.seen[key]
	return seen, ok
}

// shared sorts the objects that a cluster has beside its nodes: ours by name, those of an earlier
// cluster of the same name as its predecessor's.
func (o *objects) shared(s *facts.Snapshot) {
	s.Shared = facts.Shared{
		Services:        ours(s, "Service", o.services.Items),
		Budgets:         ours(s, "PodDisruptionBudget", o.budgets.Items),
		ServiceAccounts: ours(s, "ServiceAccount", o.accounts.Items),
		Roles:           ours(s, "Role", o.roles.Items),
		RoleBindings:    ours(s, "RoleBinding", o.bindings.Items),
		ConfigMaps:      ours(s, "ConfigMap", o.configs.Items),
		NetworkPolicies: ours(s, "NetworkPolicy", o.policies.Items),
	}
	if m := s.Shared.ConfigMaps[v1alpha1.LedgerName(s.Cluster.Name)]; m != nil {
		readLedger(s, m)
	}
}

func readLedger(s *facts.Snapshot, m *corev1.ConfigMap) {
	l, err := ledger.Decode(m.Data, s.Cluster.UID)
	if err != nil {
		s.LedgerProblem = err.Error()
		return
	}
	l.UID, l.ResourceVersion = m.UID, m.ResourceVersion
	s.Ledger = l
}

// ours are the objects of the cluster, by the uid in their labels or that of their owner: what
// somebody edits is not another's for that.
func ours[T any, P interface {
	*T
	client.Object
}](s *facts.Snapshot, kind string, items []T) map[string]P {
	out := map[string]P{}
	for i := range items {
		object := P(&items[i])
		if object.GetLabels()[v1alpha1.LabelClusterUID] == string(s.Cluster.UID) || owned(s, object) ||
			ofLedger(s, object) {
			out[object.GetName()] = object
			continue
		}
		another(s, kind, object)
	}
	return out
}

// another notes an object of a name of ours that is not ours: of an earlier cluster, or of somebody
// who has to take it away.
func another(s *facts.Snapshot, kind string, object client.Object) {
	labels, name := object.GetLabels(), facts.ObjectName{Kind: kind, Name: object.GetName()}
	list := &s.Foreign
	if labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy &&
		labels[v1alpha1.LabelCluster] == s.Cluster.Name && labels[v1alpha1.LabelClusterUID] != "" {
		list = &s.Predecessor
	}
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// owned says that the controlling owner of an object is the cluster, or one of its records.
func owned(s *facts.Snapshot, object client.Object) bool {
	if facts.Owned(object, string(s.Cluster.UID)) {
		return true
	}
	for _, n := range s.Nodes {
		if n.Record != nil && facts.Owned(object, string(n.Record.UID)) {
			return true
		}
	}
	return false
}

// nodes sorts records, pods, claims and certificates by node. Claims of an earlier cluster are
// among them: they may be adopted. A claim that a record pins is that record's, whatever its labels
// say.
func (o *objects) nodes(s *facts.Snapshot) {
	node := func(name string) *facts.Node {
		n := s.Nodes[name]
		if n == nil {
			n = &facts.Node{Name: name, Claims: map[string]*facts.Claim{}}
			s.Nodes[name] = n
		}
		return n
	}
	type place struct{ node, volume string }
	pins := map[types.UID]place{}
	for name, record := range ours(s, "CassandraNode", o.records.Items) {
		node(name).Record = record
		for _, c := range record.Spec.Claims {
			pins[c.UID] = place{name, c.Volume}
		}
	}
	for name, pod := range ours(s, "Pod", o.pods.Items) {
		node(name).Pod = pod
	}
	for i := range o.claims.Items {
		claim := &o.claims.Items[i]
		at, pinned := pins[claim.UID]
		if !pinned {
			at = place{claim.Labels[v1alpha1.LabelNode], claim.Labels[v1alpha1.LabelVolume]}
		}
		if at.node == "" || at.volume == "" {
			continue // found by its name, if a node wants it
		}
		n := node(at.node)
		if other := n.Claims[at.volume]; other == nil || preferred(n, claim) ||
			!preferred(n, other.Claim) && other.Claim.CreationTimestamp.Before(&claim.CreationTimestamp) {
			n.Claims[at.volume] = &facts.Claim{Claim: claim}
		}
	}
	s.Shared.Secrets, s.Edited = ours(s, "Secret", o.secrets), o.edited
}

// tasks are those that name the cluster, in their order, and so are the restores and the backups.
func (o *objects) tasks(s *facts.Snapshot) {
	for i := range o.given.Items {
		if t := &o.given.Items[i]; t.Spec.Cluster.Name == s.Cluster.Name {
			s.Tasks = append(s.Tasks, t)
		}
	}
	slices.SortFunc(s.Tasks, byAge)
	for i := range o.restores.Items {
		if r := &o.restores.Items[i]; r.Spec.Cluster.Name == s.Cluster.Name {
			s.Restores = append(s.Restores, r)
		}
	}
	slices.SortFunc(s.Restores, byAge)
	for i := range o.backups.Items {
		if b := &o.backups.Items[i]; b.Spec.Cluster.Name == s.Cluster.Name {
			s.Backups = append(s.Backups, b)
		}
	}
	slices.SortFunc(s.Backups, byAge)
	s.Stores = map[string]*v1alpha1.BackupStoreSpec{}
	for i := range o.stores.Items {
		s.Stores[o.stores.Items[i].Name] = &o.stores.Items[i].Spec
	}
	if of := schedule.KeepsLogs(o.schedules.Items, s.Cluster.Name); of != nil && s.Stores[of.Spec.Store.Name] != nil {
		s.CommitLog = &v1alpha1.CommitLogArchive{Store: *s.Stores[of.Spec.Store.Name],
			UploadEvery: of.Spec.PointInTime.UploadEvery, MaxDisk: of.Spec.PointInTime.MaxDisk}
	}
}

func byAge[P client.Object](a, b P) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetUID(), b.GetUID()))
}

// preferred says that a record pins the claim, where a node has several for one volume. Where none
// is pinned it is the youngest: the others are those of members that the node has replaced.
func preferred(n *facts.Node, claim *corev1.PersistentVolumeClaim) bool {
	return n.Record != nil && slices.ContainsFunc(n.Record.Spec.Claims,
		func(c v1alpha1.ClaimReference) bool { return c.UID == claim.UID })
}

// volumes finds the volume of each bound claim.
func (r *Reader) volumes(ctx context.Context, s *facts.Snapshot) error {
	for _, n := range s.Nodes {
		for _, c := range n.Claims {
			if c.Claim.Spec.VolumeName == "" {
				continue
			}
			volume := &corev1.PersistentVolume{}
			err := r.Cache.Get(ctx, client.ObjectKey{Name: c.Claim.Spec.VolumeName}, volume)
			switch {
			case err == nil:
				c.Volume = volume
			case !apierrors.IsNotFound(err):
				return fmt.Errorf("get volume %s: %w", c.Claim.Spec.VolumeName, err)
			}
		}
	}
	return nil
}
