package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"helenus.io/helenus/internal/core/layout"
)

// overlay applies the user's patches to a pod and refuses a result in which something that Helenus
// owns is missing or changed.
func overlay(pod *corev1.Pod, patches []runtime.RawExtension) (*corev1.Pod, error) {
	if len(patches) == 0 {
		return pod, nil
	}
	text, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	for _, patch := range patches {
		if text, err = strategicpatch.StrategicMergePatch(text, patch.Raw, corev1.Pod{}); err != nil {
			return nil, fmt.Errorf("apply node.overlay: %w", err)
		}
	}
	patched := &corev1.Pod{}
	if err := json.Unmarshal(text, patched); err != nil {
		return nil, fmt.Errorf("apply node.overlay: the result is not a pod: %w", err)
	}
	if err := owned(pod, patched); err != nil {
		return nil, fmt.Errorf("apply node.overlay: %w", err)
	}
	return patched, nil
}

// owned names everything of ours that a patch has touched.
func owned(ours, patched *corev1.Pod) error {
	var errs []error
	same := func(field string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			errs = append(errs, fmt.Errorf("%s belongs to Helenus and cannot be changed by an overlay", field))
		}
	}
	same("metadata.name", ours.Name, patched.Name)
	same("metadata.namespace", ours.Namespace, patched.Namespace)
	same("metadata.ownerReferences", ours.OwnerReferences, patched.OwnerReferences)
	same("metadata.finalizers", ours.Finalizers, patched.Finalizers)
	for _, m := range []struct {
		field         string
		ours, patched map[string]string
	}{
		{"metadata.labels", ours.Labels, patched.Labels},
		{"metadata.annotations", ours.Annotations, patched.Annotations},
	} {
		for _, key := range slices.Sorted(maps.Keys(m.ours)) {
			same(fmt.Sprintf("%s[%s]", m.field, key), m.ours[key], m.patched[key])
		}
	}
	same("spec.hostname", ours.Spec.Hostname, patched.Spec.Hostname)
	same("spec.subdomain", ours.Spec.Subdomain, patched.Spec.Subdomain)
	same("spec.serviceAccountName", ours.Spec.ServiceAccountName, patched.Spec.ServiceAccountName)
	same("spec.restartPolicy", ours.Spec.RestartPolicy, patched.Spec.RestartPolicy)
	same("spec.nodeName", ours.Spec.NodeName, patched.Spec.NodeName)
	same("spec.hostNetwork", ours.Spec.HostNetwork, patched.Spec.HostNetwork)
	same("spec.terminationGracePeriodSeconds", ours.Spec.TerminationGracePeriodSeconds,
		patched.Spec.TerminationGracePeriodSeconds)
	for _, v := range ours.Spec.Volumes {
		at := slices.IndexFunc(patched.Spec.Volumes, func(p corev1.Volume) bool { return p.Name == v.Name })
		if at < 0 || !equality.Semantic.DeepEqual(v, patched.Spec.Volumes[at]) {
			errs = append(errs, fmt.Errorf("spec.volumes[%s] belongs to Helenus and cannot be changed by an overlay",
				v.Name))
		}
	}
	errs = append(errs, ownedContainer("spec.initContainers", layout.AgentContainer, ours.Spec.InitContainers,
		patched.Spec.InitContainers)...)
	errs = append(errs, ownedContainer("spec.containers", layout.CassandraContainer, ours.Spec.Containers,
		patched.Spec.Containers)...)
	return errors.Join(errs...)
}

// ownedContainer checks one of our two containers: the overlay may add variables, mounts and ports
// to it, and a security context; the rest stays.
func ownedContainer(list, name string, ours, patched []corev1.Container) []error {
	var errs []error
	refuse := func(field string) {
		errs = append(errs, fmt.Errorf("%s[%s].%s belongs to Helenus and cannot be changed by an overlay", list, name,
			field))
	}
	find := func(in []corev1.Container) *corev1.Container {
		if at := slices.IndexFunc(in, func(c corev1.Container) bool { return c.Name == name }); at >= 0 {
			return &in[at]
		}
		return nil
	}
	a, b := find(ours), find(patched)
	if b == nil {
		return []error{fmt.Errorf("%s[%s] belongs to Helenus and cannot be removed by an overlay", list, name)}
	}
	for _, f := range []struct {
		field string
		a, b  any
	}{
		{"image", a.Image, b.Image}, {"command", a.Command, b.Command}, {"args", a.Args, b.Args},
		{"resources", a.Resources, b.Resources},
		{"restartPolicy", a.RestartPolicy, b.RestartPolicy}, {"startupProbe", a.StartupProbe, b.StartupProbe},
		{"livenessProbe", a.LivenessProbe, b.LivenessProbe}, {"readinessProbe", a.ReadinessProbe, b.ReadinessProbe},
		{"lifecycle", a.Lifecycle, b.Lifecycle},
	} {
		if !equality.Semantic.DeepEqual(f.a, f.b) {
			refuse(f.field)
		}
	}
	for _, v := range a.Env {
		if !slices.ContainsFunc(b.Env, func(x corev1.EnvVar) bool { return equality.Semantic.DeepEqual(x, v) }) {
			refuse("env[" + v.Name + "]")
		}
	}
	for _, m := range a.VolumeMounts {
		if !slices.ContainsFunc(b.VolumeMounts, func(x corev1.VolumeMount) bool {
			return equality.Semantic.DeepEqual(x, m)
		}) {
			refuse("volumeMounts[" + m.MountPath + "]")
		}
	}
	return errs
}
