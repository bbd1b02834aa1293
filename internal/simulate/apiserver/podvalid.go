package apiserver

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	restartPolicies = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyNever,
		corev1.RestartPolicyOnFailure}
	pullPolicies = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
)

// validPod looks at what users of Helenus can put into a pod by settings and overlays, and at what
// Helenus itself could get wrong.
func validPod(object client.Object) (errs field.ErrorList) {
	pod, at := object.(*corev1.Pod), field.NewPath("spec")
	spec := &pod.Spec
	volumes := map[string]bool{}
	for i, v := range spec.Volumes {
		errs = append(errs, validLabel(v.Name, true, at.Child("volumes").Index(i).Child("name"))...)
		if volumes[v.Name] {
			errs = append(errs, field.Duplicate(at.Child("volumes").Index(i).Child("name"), v.Name))
		}
		volumes[v.Name] = true
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(at.Child("containers"), ""))
	}
	names := map[string]bool{}
	for i := range spec.Containers {
		errs = append(errs, validContainer(&spec.Containers[i], volumes, names, at.Child("containers").Index(i))...)
	}
	for i := range spec.InitContainers {
		errs = append(errs, validContainer(&spec.InitContainers[i], volumes, names,
			at.Child("initContainers").Index(i))...)
	}
	if !slices.Contains(restartPolicies, spec.RestartPolicy) {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), spec.RestartPolicy, restartPolicies))
	}
	errs = append(errs, metavalidation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector"))...)
	if s := spec.ActiveDeadlineSeconds; s != nil && (*s < 1 || *s > math.MaxInt32) {
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *s,
			utilvalidation.InclusiveRangeError(1, math.MaxInt32)))
	}
	errs = append(errs, validLabel(spec.Hostname, false, at.Child("hostname"))...)
	errs = append(errs, validLabel(spec.Subdomain, false, at.Child("subdomain"))...)
	return errs
}

func validNewPod(object client.Object) field.ErrorList {
	if spec := &object.(*corev1.Pod).Spec; spec.NodeName != "" && len(spec.SchedulingGates) > 0 {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "nodeName"),
			"cannot be set until all schedulingGates have been cleared")}
	}
	return nil
}

// validLabel is a name that can be part of a DNS name.
func validLabel(name string, required bool, at *field.Path) (errs field.ErrorList) {
	switch {
	case name == "" && required:
		return field.ErrorList{field.Required(at, "")}
	case name == "":
		return nil
	}
	for _, why := range utilvalidation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(at, name, why))
	}
	return errs
}

func validContainer(c *corev1.Container, volumes, names map[string]bool, at *field.Path) field.ErrorList {
	errs := validLabel(c.Name, true, at.Child("name"))
	if names[c.Name] {
		errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
	}
	names[c.Name] = true
	errs = append(errs, validImage(c.Image, at.Child("image"))...)
	if !slices.Contains(pullPolicies, c.ImagePullPolicy) {
		errs = append(errs, field.NotSupported(at.Child("imagePullPolicy"), c.ImagePullPolicy, pullPolicies))
	}
	for i, m := range c.VolumeMounts {
		name := at.Child("volumeMounts").Index(i).Child("name")
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(name, ""))
		case !volumes[m.Name]:
			errs = append(errs, field.NotFound(name, m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(at.Child("volumeMounts").Index(i).Child("mountPath"), ""))
		}
	}
	for i, e := range c.Env {
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("env").Index(i).Child("name"), ""))
		}
	}
	for name, request := range c.Resources.Requests {
		if limit, has := c.Resources.Limits[name]; has && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(at.Child("resources", "requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

func validImage(image string, at *field.Path) field.ErrorList {
	switch {
	case image == "":
		return field.ErrorList{field.Required(at, "")}
	case strings.TrimSpace(image) != image:
		return field.ErrorList{field.Invalid(at, image, "must not have leading or trailing whitespace")}
	default:
		return nil
	}
}

// validPodUpdate lets images, a deadline, and tolerations beside those that are there be changed,
// and nothing else.
func validPodUpdate(object, old client.Object) (errs field.ErrorList) {
	now, before := object.(*corev1.Pod).Spec.DeepCopy(), &old.(*corev1.Pod).Spec
	at := field.NewPath("spec")
	changed := ""
	switch {
	case len(now.Containers) != len(before.Containers):
		changed = "containers"
	case len(now.InitContainers) != len(before.InitContainers):
		changed = "initContainers"
	}
	if changed != "" {
		return field.ErrorList{field.Forbidden(at.Child(changed), "pod updates may not add or remove containers")}
	}
	switch is, was := now.ActiveDeadlineSeconds, before.ActiveDeadlineSeconds; {
	case is == nil && was != nil:
		errs = append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), is,
			"must not update from a positive integer to nil value"))
	case is == nil:
	case *is < 0:
		return append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *is,
			utilvalidation.InclusiveRangeError(0, math.MaxInt32)))
	case was != nil && *was < *is:
		return append(errs, field.Invalid(at.Child("activeDeadlineSeconds"), *is,
			"must be less than or equal to previous value"))
	}
	for _, was := range before.Tolerations {
		if !slices.ContainsFunc(now.Tolerations, func(is corev1.Toleration) bool {
			is.TolerationSeconds = was.TolerationSeconds
			return equality.Semantic.DeepEqual(is, was)
		}) {
			errs = append(errs, field.Forbidden(at.Child("tolerations"),
				"existing toleration can not be modified except its tolerationSeconds"))
			break
		}
	}
	for i, gate := range now.SchedulingGates {
		if !slices.Contains(before.SchedulingGates, gate) {
			errs = append(errs, field.Forbidden(at.Child("schedulingGates").Index(i).Child("name"),
				"only deletion is allowed, but found new scheduling gate '"+gate.Name+"'"))
		}
	}
	for i := range now.Containers {
		now.Containers[i].Image = before.Containers[i].Image
	}
	for i := range now.InitContainers {
		now.InitContainers[i].Image = before.InitContainers[i].Image
	}
	now.ActiveDeadlineSeconds, now.Tolerations, now.SchedulingGates = before.ActiveDeadlineSeconds, before.Tolerations,
		before.SchedulingGates
	if !equality.Semantic.DeepEqual(now, before) {
		errs = append(errs, field.Forbidden(at, "pod updates may not change fields other than "+
			"`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

func validPodStatus(object, old client.Object) field.ErrorList {
	s, at := &object.(*corev1.Pod).Status, field.NewPath("status")
	errs := validation.ValidateImmutableField(s.QOSClass, old.(*corev1.Pod).Status.QOSClass, at.Child("qosClass"))
	for i, address := range s.PodIPs {
		if _, err := netip.ParseAddr(address.IP); err != nil {
			errs = append(errs, field.Invalid(at.Child("podIPs").Index(i), address.IP,
				"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
		}
	}
	return errs
}
