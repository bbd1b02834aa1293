package kube

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/simulate/apiserver"
)

// provision makes a volume on a host and binds a claim to it.
func (k *Cluster) provision(claim *corev1.PersistentVolumeClaim, m *Host) {
	name := "pvc-" + string(claim.UID)
	k.volumes[name] = &Volume{Name: name, Host: m.Name, Size: claim.Spec.Resources.Requests.Storage().Value()}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      claim.Spec.Resources.Requests,
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              *claim.Spec.StorageClassName,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volumes/" +
				name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname,
					Operator: corev1.NodeSelectorOpIn, Values: []string{m.Name}}},
			}}}},
		},
	}
	if err := k.client.Create(context.Background(), volume); err != nil {
		panic(fmt.Sprintf("create volume %s: %v", name, err))
	}
	updateStatus(k, volume, volume.UID, func(v *corev1.PersistentVolume) bool {
		v.Status.Phase = corev1.VolumeBound
		return true
	})
	at := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	update(k, at, claim.UID, func(c *corev1.PersistentVolumeClaim) bool {
		c.Spec.VolumeName = name
		return true
	})
	updateStatus(k, at, claim.UID, func(c *corev1.PersistentVolumeClaim) bool {
		c.Status.Phase, c.Status.Capacity, c.Status.AccessModes = corev1.ClaimBound, c.Spec.Resources.Requests,
			c.Spec.AccessModes
		return true
	})
}

// claimChanged protects a new claim, lets one go that no pod uses, and removes the volume of one
// that is gone.
func (k *Cluster) claimChanged(claim *corev1.PersistentVolumeClaim, deleted bool) {
	at := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	switch {
	case deleted:
		if name := claim.Spec.VolumeName; name != "" {
			k.line.After(k.soon(), "reclaim "+name, func() { k.reclaim(name) })
		}
	case claim.DeletionTimestamp != nil:
		k.line.After(k.soon(), "release "+claim.Name, func() {
			if k.claimInUse(claim) {
				return // looked at again when a pod goes
			}
			update(k, at, claim.UID, func(c *corev1.PersistentVolumeClaim) bool {
				before := len(c.Finalizers)
				c.Finalizers = slices.DeleteFunc(c.Finalizers,
					func(f string) bool { return f == apiserver.ClaimProtection })
				return len(c.Finalizers) != before
			})
		})
	case claim.Status.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) < 0 && k.Volume(claim) != nil:
		k.line.After(k.soon(), "grow "+claim.Name, func() { k.grow(claim) })
	default:
		k.place()
	}
}

// grow makes the volume of a claim as large as it asks for, while pods use it.
func (k *Cluster) grow(claim *corev1.PersistentVolumeClaim) {
	at := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	updateStatus(k, at, claim.UID, func(c *corev1.PersistentVolumeClaim) bool {
		v := k.Volume(c)
		if v == nil {
			return false
		}
		v.Size = c.Spec.Resources.Requests.Storage().Value()
		c.Status.Capacity = c.Spec.Resources.Requests
		return true
	})
}

func (k *Cluster) claimInUse(claim *corev1.PersistentVolumeClaim) bool {
	for _, p := range k.order {
		if p.seen.Namespace == claim.Namespace && slices.ContainsFunc(p.seen.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			return true
		}
	}
	return false
}

// reviewClaims looks at claims again that wait to be let go.
func (k *Cluster) reviewClaims(namespace string) {
	var claims corev1.PersistentVolumeClaimList
	if err := k.client.List(context.Background(), &claims, client.InNamespace(namespace)); err != nil {
		panic(fmt.Sprintf("list claims: %v", err))
	}
	for i := range claims.Items {
		if claims.Items[i].DeletionTimestamp != nil {
			k.claimChanged(&claims.Items[i], false)
		}
	}
}

// reclaim removes a volume with what is on it, unless its policy is to keep it.
func (k *Cluster) reclaim(name string) {
	volume := &corev1.PersistentVolume{}
	if err := k.client.Get(context.Background(), client.ObjectKey{Name: name}, volume); err != nil {
		return
	}
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return
	}
	if v := k.volumes[name]; v != nil {
		k.runtime.Destroy(v)
		delete(k.volumes, name)
	}
	update(k, volume, volume.UID, func(v *corev1.PersistentVolume) bool {
		before := len(v.Finalizers)
		v.Finalizers = slices.DeleteFunc(v.Finalizers, func(f string) bool { return f == apiserver.VolumeProtection })
		return len(v.Finalizers) != before
	})
	if err := client.IgnoreNotFound(k.client.Delete(context.Background(), volume)); err != nil {
		panic(fmt.Sprintf("delete volume %s: %v", name, err))
	}
}

// Volume of a claim; nil if it has none.
func (k *Cluster) Volume(claim *corev1.PersistentVolumeClaim) *Volume {
	return k.volumes[claim.Spec.VolumeName]
}

// Volumes are all that exist, by name.
func (k *Cluster) Volumes() map[string]*Volume { return k.volumes }
