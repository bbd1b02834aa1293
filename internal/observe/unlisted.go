package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
)

// unlisted looks for what has a name of ours and is not among the objects that our labels found:
// nothing, mostly. Each such name is asked for at the API server itself: that is once while a
// cluster is made. An object of ours whose labels somebody took away belongs to the snapshot all
// the same, so that they are put back; one of somebody else is foreign.
func (r *Reader) unlisted(ctx context.Context, s *facts.Snapshot) error {
	shared := render.SharedObjects(render.OwnerOf(s.Cluster), s.Cluster.Spec.Datacenters)
	if s.NetworkPolicy() == v1alpha1.NetworkPolicyManaged {
		shared = append(shared, render.NetworkPolicy(s.Cluster, s.Install))
	}
	if s.Ledger != nil && len(s.Ledger.Members) > 0 {
		shared = append(shared, render.Repairs(render.OwnerOf(s.Cluster), ""))
	}
	for _, use := range s.CertificateUses(s.Encryption()) {
		if !s.Cluster.Spec.HasOwn(use) {
			shared = append(shared, render.CertificateSecret(render.OwnerOf(s.Cluster), use, nil))
		}
		if use == v1alpha1.UseClients {
			shared = append(shared, render.ClientsAuthority(render.OwnerOf(s.Cluster), ""))
		}
	}
	for _, object := range shared {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		if s.Shared.Has(kind, object.GetName()) {
			continue
		}
		stray, err := r.byName(ctx, s, kind, object.(client.Object), ofLedger)
		if err != nil {
			return err
		}
		if stray != nil {
			addStray(s, stray)
		}
	}
	for _, w := range assess.Wanted(s, r.Now()) {
		if err := r.unlistedOf(ctx, s, w); err != nil {
			return err
		}
	}
	slices.SortFunc(s.Foreign, func(a, b facts.ObjectName) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// unlistedOf looks for the record, the pod and the claims of a node. The record comes first: what
// it owns and pins is ours.
func (r *Reader) unlistedOf(ctx context.Context, s *facts.Snapshot, w render.Wanted) error {
	found := &facts.Node{Name: w.Name, Claims: map[string]*facts.Claim{}}
	if n := s.Nodes[w.Name]; n != nil {
		found = n
	}
	strays := 0
	if found.Record == nil {
		record := &v1alpha1.CassandraNode{ObjectMeta: metaOf(s, w.Name)}
		stray, err := r.byName(ctx, s, "CassandraNode", record,
			func(*facts.Snapshot, client.Object) bool { return record.Spec.Cluster.UID == s.Cluster.UID })
		if err != nil {
			return err
		}
		if stray != nil {
			found.Record = record
			strays++
		}
	}
	if found.Pod == nil {
		pod := &corev1.Pod{ObjectMeta: metaOf(s, w.Name)}
		stray, err := r.byName(ctx, s, "Pod", pod, func(_ *facts.Snapshot, o client.Object) bool {
			return found.Record != nil && facts.Owned(o, string(found.Record.UID))
		})
		if err != nil {
			return err
		}
		if stray != nil {
			found.Pod = pod
			strays++
		}
	}
	for _, v := range render.Volumes(w.Pod) {
		if found.Claims[v.Name] != nil {
			continue
		}
		name := v1alpha1.ClaimName(v.Name, w.Name)
		if found.Record != nil {
			name = render.ClaimName(found.Record, v.Name)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metaOf(s, name)}
		stray, err := r.byName(ctx, s, "PersistentVolumeClaim", claim,
			func(_ *facts.Snapshot, o client.Object) bool { return preferred(found, claim) })
		if err != nil {
			return err
		}
		if stray != nil {
			found.Claims[v.Name] = &facts.Claim{Claim: claim}
			strays++
		}
	}
	if strays > 0 {
		s.Nodes[w.Name] = found
	}
	return nil
}

// byName reads an object from the API server itself, into the given one, and returns it if it is
// ours and has lost labels by which we would have found it. Known says so of one that has neither
// the uid of the cluster in its labels nor the cluster as its owner.
func (r *Reader) byName(ctx context.Context, s *facts.Snapshot, kind string, object client.Object,
	known func(*facts.Snapshot, client.Object) bool) (client.Object, error) {
	key := client.ObjectKeyFromObject(object)
	err := r.Live.Get(ctx, key, object)
	labels := object.GetLabels()
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", kind, key.Name, err)
	case labels[v1alpha1.LabelClusterUID] == string(s.Cluster.UID) && listed(kind, labels, s.Cluster.Name):
		return nil, fmt.Errorf("%w: %s %s", ErrBehind, kind, key.Name) // the cache will show it in a moment
	case labels[v1alpha1.LabelClusterUID] == string(s.Cluster.UID) || owned(s, object) || known(s, object):
		if secret, is := object.(*corev1.Secret); is {
			secret.Data = nil // as of those that are listed
		}
		return object, nil
	}
	another(s, kind, object)
	return nil, nil
}

// listed says that an object has the labels by which we watch and sort those of a cluster.
func listed(kind string, labels map[string]string, cluster string) bool {
	if kind == "PersistentVolumeClaim" && (labels[v1alpha1.LabelNode] == "" || labels[v1alpha1.LabelVolume] == "") {
		return false
	}
	return labels[v1alpha1.LabelCluster] == cluster &&
		(kind == "CassandraNode" || labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy)
}

// ofLedger knows a ledger, which has no owner, by the cluster that is written in it.
func ofLedger(s *facts.Snapshot, object client.Object) bool {
	m, config := object.(*corev1.ConfigMap)
	if !config || m.Name != v1alpha1.LedgerName(s.Cluster.Name) {
		return false
	}
	_, err := ledger.Decode(m.Data, s.Cluster.UID)
	return err == nil
}

// addStray puts a shared object that was found by its name among those that were found by their
// labels.
func addStray(s *facts.Snapshot, object client.Object) {
	name := object.GetName()
	switch o := object.(type) {
	case *corev1.Service:
		s.Shared.Services[name] = o
	case *policyv1.PodDisruptionBudget:
		s.Shared.Budgets[name] = o
	case *corev1.ServiceAccount:
		s.Shared.ServiceAccounts[name] = o
	case *rbacv1.Role:
		s.Shared.Roles[name] = o
	case *rbacv1.RoleBinding:
		s.Shared.RoleBindings[name] = o
	case *corev1.ConfigMap:
		s.Shared.ConfigMaps[name] = o
		if name == v1alpha1.LedgerName(s.Cluster.Name) {
			readLedger(s, o)
		}
	case *corev1.Secret:
		s.Shared.Secrets[name] = o
	case *networkingv1.NetworkPolicy:
		s.Shared.NetworkPolicies[name] = o
	}
}
