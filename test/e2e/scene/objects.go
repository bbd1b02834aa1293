package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// objects of a kind that a cluster has, by name.
func (r *Ring) objects(ctx context.Context, list client.ObjectList) (map[string]client.Object, error) {
	list = list.DeepCopyObject().(client.ObjectList)
	if err := r.Kubernetes.Client.List(ctx, list, client.InNamespace(r.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: r.Name}); err != nil {
		return nil, err
	}
	out := map[string]client.Object{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		object := o.(client.Object)
		out[object.GetName()] = object
		return nil
	})
	return out, err
}

// DeleteAll deletes all objects of a kind that the cluster has, as a user does, and returns their
// uids by name.
func (r *Ring) DeleteAll(ctx context.Context, list client.ObjectList) (map[string]types.UID, error) {
	objects, err := r.objects(ctx, list)
	if err != nil {
		return nil, err
	}
	gone := map[string]types.UID{}
	for name, o := range objects {
		uid := o.GetUID()
		r.Invariants.ExpectDeletion(o)
		if err := r.Kubernetes.Client.Delete(ctx, o, client.Preconditions{UID: &uid}); err != nil {
			return nil, fmt.Errorf("delete %s: %w", name, err)
		}
		gone[name] = uid
	}
	return gone, nil
}

// MadeAnew waits until there are others by the names of objects that were deleted.
func (r *Ring) MadeAnew(ctx context.Context, list client.ObjectList, gone map[string]types.UID) error {
	return r.poll(ctx, reaction, "what was deleted is there again", func(ctx context.Context) error {
		objects, err := r.objects(ctx, list)
		if err != nil {
			return err
		}
		for name, uid := range gone {
			if o := objects[name]; o == nil || o.GetUID() == uid {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
}

// EditAll edits all objects of a kind that the cluster has, as a user does, and returns how they
// were, by name.
func (r *Ring) EditAll(ctx context.Context, list client.ObjectList, edit func(client.Object)) (map[string]client.Object,
	error) {
	before, err := r.objects(ctx, list)
	if err != nil {
		return nil, err
	}
	for name, o := range before {
		now := o.DeepCopyObject().(client.Object)
		edit(now)
		if equality.Semantic.DeepEqual(o, now) {
			return nil, fmt.Errorf("edit %s: nothing changes", name)
		}
		if err := r.Kubernetes.Client.Update(ctx, now); err != nil {
			return nil, fmt.Errorf("edit %s: %w", name, err)
		}
	}
	return before, nil
}

// PutRight waits until objects are as they were before somebody edited them.
func (r *Ring) PutRight(ctx context.Context, list client.ObjectList, before map[string]client.Object) error {
	return r.poll(ctx, reaction, "what was edited is as it was", func(ctx context.Context) error {
		now, err := r.objects(ctx, list)
		if err != nil {
			return err
		}
		for name, o := range before {
			if now[name] == nil || !equality.Semantic.DeepEqual(content(o), content(now[name])) {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
}

// content of an object: what a server notes of its changes and a controller of its state left out.
func content(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetManagedFields(nil)
	if budget, ok := o.(*policyv1.PodDisruptionBudget); ok {
		budget.Status = policyv1.PodDisruptionBudgetStatus{}
	}
	return o
}

// TryEvict evicts a pod if its budget allows it.
func (s *Scene) TryEvict(ctx context.Context, pod *corev1.Pod) error {
	eviction := &policyv1.Eviction{}
	eviction.Name, eviction.Namespace = pod.Name, pod.Namespace
	return s.Kubernetes.Client.SubResource("eviction").Create(ctx, pod, eviction)
}

// Evict evicts a pod as soon as its budget allows it.
func (s *Scene) Evict(ctx context.Context, pod *corev1.Pod) error {
	return s.poll(ctx, reaction, "pod "+pod.Name+" can be evicted",
		func(ctx context.Context) error { return s.TryEvict(ctx, pod) })
}

// EmptyVolume loses what is on the volume of a claim, on a host of the local cluster. No pod may
// have it.
func (s *Scene) EmptyVolume(ctx context.Context, host, claim string) error {
	folder, err := s.volumeFolder(ctx, host, claim)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(folder)
	if err == nil && len(files) == 0 {
		err = errors.New("it is empty already")
	}
	for _, f := range files {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, f.Name())))
	}
	if err != nil {
		return fmt.Errorf("empty the volume of claim %s: %w", claim, err)
	}
	return nil
}

// SwapVolume sets aside what is on the volume of a claim, on a host of the local cluster, and puts
// there what was set aside before, if anything was. No pod may have it.
func (s *Scene) SwapVolume(ctx context.Context, host, claim string) error {
	folder, err := s.volumeFolder(ctx, host, claim)
	if err != nil {
		return err
	}
	aside, third := folder+".aside", folder+".third"
	err = os.MkdirAll(aside, 0o777) //nolint:gosec // as the provisioner makes its folders
	for _, way := range [][2]string{{folder, third}, {aside, folder}, {third, aside}} {
		if err == nil {
			err = moveFiles(way[0], way[1])
		}
	}
	if err != nil {
		return fmt.Errorf("swap the volume of claim %s: %w", claim, err)
	}
	return os.Remove(third)
}

// ForgetAside removes what SwapVolume has set aside.
func (s *Scene) ForgetAside(ctx context.Context, host, claim string) error {
	folder, err := s.volumeFolder(ctx, host, claim)
	if err != nil {
		return err
	}
	return os.RemoveAll(folder + ".aside")
}

func moveFiles(from, to string) error {
	err := os.MkdirAll(to, 0o777) //nolint:gosec // see SwapVolume
	if err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	for _, f := range files {
		err = errors.Join(err, os.Rename(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())))
	}
	return err
}

// volumeFolder is where this process finds what is on the volume of a claim.
func (s *Scene) volumeFolder(ctx context.Context, host, claim string) (string, error) {
	init, err := s.hostInit(host)
	if err != nil {
		return "", err
	}
	c, v := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: claim}, c); err != nil {
		return "", fmt.Errorf("find the volume of claim %s: %w", claim, err)
	}
	if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: c.Spec.VolumeName}, v); err != nil {
		return "", fmt.Errorf("find the volume of claim %s: %w", claim, err)
	}
	if v.Spec.Local == nil {
		return "", fmt.Errorf("volume %s of claim %s is not local", v.Name, claim)
	}
	return filepath.Join("/proc", strconv.Itoa(init), "root", v.Spec.Local.Path), nil
}

// OutOfService says that a host is gone for good, as a user does who has looked, or takes that
// back.
func (s *Scene) OutOfService(ctx context.Context, host string, gone bool) error {
	node := &corev1.Node{}
	if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: host}, node); err != nil {
		return fmt.Errorf("say that host %s is gone: %w", host, err)
	}
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	if gone {
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	}
	if err := s.Kubernetes.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("say that host %s is gone: %w", host, err)
	}
	return nil
}
