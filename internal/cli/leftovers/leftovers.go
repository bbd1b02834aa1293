package leftovers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"helenus.io/helenus/api/v1alpha1"
)

// left is what clusters of a name that are gone have left.
type left struct {
	objects []client.Object // records first, the ledger last
	pods    []string        // that run
	claims  []string
	// passwords are the Secrets without which nobody can log in to what is on the claims.
	passwords []string
	uids      []string
}

// Clear says what clusters of a name that are gone have left, and removes it if yes.
func Clear(ctx context.Context, c client.Client, namespace, name string, yes bool, out io.Writer) error {
	l, err := find(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	if len(l.pods) > 0 {
		return fmt.Errorf("pods of a cluster that is gone still run, and nothing was removed. If nobody needs what "+
			"they serve, stop them, and run this again when they are gone: kubectl delete pod --namespace %s %s",
			namespace, strings.Join(l.pods, " "))
	}
	if len(l.objects) == 0 {
		_, err := fmt.Fprintf(out, "no cluster that is gone has left anything under the name %s in namespace %s\n",
			name, namespace)
		return err
	}
	var said strings.Builder
	fmt.Fprintf(&said, "Left by CassandraCluster %s/%s of the uid %s, which is gone:\n", namespace, name,
		strings.Join(l.uids, ", "))
	for _, o := range l.objects {
		fmt.Fprintf(&said, "  %s\n", titleOf(o))
	}
	if len(l.claims) > 0 {
		fmt.Fprintf(&said, "Volume claims stay, and can be taken over by spec.bootstrap.adopt: %s\n",
			strings.Join(l.claims, ", "))
	}
	if len(l.passwords) > 0 {
		fmt.Fprintf(&said, "Secrets with the passwords of those disks stay, too: %s\n", strings.Join(l.passwords, ", "))
	}
	if !yes {
		said.WriteString("Nothing was removed: run it with --yes to remove the objects.\n")
	}
	if _, err := io.WriteString(out, said.String()); err != nil || !yes {
		return err
	}
	for _, o := range l.objects {
		if err := remove(ctx, c, o); err != nil {
			return fmt.Errorf("remove %s: %w", titleOf(o), err)
		}
	}
	_, err = fmt.Fprintf(out, "Removed %d objects.\n", len(l.objects))
	return err
}

// find looks at the cluster after its objects: of one that is created meanwhile none is
// among them.
func find(ctx context.Context, c client.Client, namespace, name string) (*left, error) {
	var all []client.Object
	for _, list := range []client.ObjectList{
		&v1alpha1.CassandraNodeList{}, &corev1.PodList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{},
		&networkingv1.NetworkPolicyList{},
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{},
		&corev1.ConfigMapList{}, &corev1.PersistentVolumeClaimList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{
			v1alpha1.LabelCluster: name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
		}); err != nil {
			return nil, fmt.Errorf("list what is left of CassandraCluster %s: %w", name, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("read %T: %w", list, err)
		}
		for _, item := range items {
			all = append(all, item.(client.Object))
		}
	}
	present := &v1alpha1.CassandraCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, present)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get CassandraCluster %s: %w", name, err)
	}
	out := &left{}
	for _, o := range all {
		of := o.GetLabels()[v1alpha1.LabelClusterUID]
		if of == "" || types.UID(of) == present.UID {
			continue
		}
		if claim, is := o.(*corev1.PersistentVolumeClaim); is {
			out.claims = append(out.claims, claim.Name)
			continue
		}
		if secret, is := o.(*corev1.Secret); is && (secret.Name == v1alpha1.RolesName(name) ||
			secret.Name == v1alpha1.SuperuserName(name) || secret.Name == v1alpha1.AppliedSuperuserName(name)) {
			out.passwords = append(out.passwords, secret.Name)
			continue
		}
		if pod, is := o.(*corev1.Pod); is && pod.Status.Phase != corev1.PodSucceeded &&
			pod.Status.Phase != corev1.PodFailed {
			out.pods = append(out.pods, pod.Name)
		}
		out.objects = append(out.objects, o)
		if !slices.Contains(out.uids, of) {
			out.uids = append(out.uids, of)
		}
	}
	return out, nil
}

// remove deletes an object as it was seen. A record is held by the operator's finalizer.
func remove(ctx context.Context, c client.Client, o client.Object) error {
	uid := o.GetUID()
	if o.GetDeletionTimestamp() == nil {
		if err := c.Delete(ctx, o, client.Preconditions{UID: &uid}); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerNode) {
		return nil
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil || o.GetUID() != uid {
		return client.IgnoreNotFound(err)
	}
	before := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerNode)
	err := c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsForbidden(err) {
		return errors.Join(errors.New("it takes the right to patch cassandranodes, which an administrator of the "+
			"Kubernetes cluster has"), err)
	}
	return client.IgnoreNotFound(err)
}

// titleOf names an object for people.
func titleOf(o client.Object) string {
	title := kindOf(o) + " " + o.GetName()
	if controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerNode) {
		title += " (held by the finalizer " + v1alpha1.FinalizerNode + ")"
	}
	return title
}

func kindOf(o client.Object) string {
	kind := fmt.Sprintf("%T", o)
	return kind[strings.LastIndex(kind, ".")+1:]
}
