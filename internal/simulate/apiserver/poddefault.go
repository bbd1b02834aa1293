package apiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// defaultPod fills in what a pod leaves out, as far as pods of Helenus and their overlays have it.
func defaultPod(pod *corev1.Pod) {
	spec := &pod.Spec
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if spec.EnableServiceLinks == nil {
		links := corev1.DefaultEnableServiceLinks
		spec.EnableServiceLinks = &links
	}
	if spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirst
	}
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.TerminationGracePeriodSeconds == nil {
		period := int64(corev1.DefaultTerminationGracePeriodSeconds)
		spec.TerminationGracePeriodSeconds = &period
	} else if *spec.TerminationGracePeriodSeconds < 0 {
		*spec.TerminationGracePeriodSeconds = 1
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
	// The first of the addresses is also told alone, and counts if the two differ.
	s := &pod.Status
	if s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP) {
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
	if s.HostIP != "" && (len(s.HostIPs) == 0 || s.HostIPs[0].IP != s.HostIP) {
		s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
}

func defaultContainer(c *corev1.Container) {
	if c.Resources.Limits != nil && c.Resources.Requests == nil {
		c.Resources.Requests = corev1.ResourceList{}
	}
	for name, limit := range c.Resources.Limits {
		if _, has := c.Resources.Requests[name]; !has {
			c.Resources.Requests[name] = limit.DeepCopy()
		}
	}
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, size := range list {
			size.RoundUp(resource.Milli)
			list[name] = size
		}
	}
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if latest(c.Image) {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	if c.TerminationMessagePath == "" {
		c.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
	for i := range c.Ports {
		if c.Ports[i].Protocol == "" {
			c.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultField(from.FieldRef)
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
}

// latest says that an image has no tag, or that it is called so.
func latest(image string) bool {
	if image == "" || strings.ContainsAny(image, " @") {
		return false
	}
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return !tagged || tag == "latest"
}

func defaultField(f *corev1.ObjectFieldSelector) {
	if f != nil && f.APIVersion == "" {
		f.APIVersion = "v1"
	}
}

func orElse(value *int32, other int32) {
	if *value == 0 {
		*value = other
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	orElse(&p.TimeoutSeconds, 1)
	orElse(&p.PeriodSeconds, 10)
	orElse(&p.SuccessThreshold, 1)
	orElse(&p.FailureThreshold, 3)
	if get := p.HTTPGet; get != nil {
		if get.Path == "" {
			get.Path = "/"
		}
		if get.Scheme == "" {
			get.Scheme = corev1.URISchemeHTTP
		}
	}
}

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	mode := func(at **int32) {
		if *at == nil {
			readable := int32(0o644)
			*at = &readable
		}
	}
	switch {
	case v.Secret != nil:
		mode(&v.Secret.DefaultMode)
	case v.ConfigMap != nil:
		mode(&v.ConfigMap.DefaultMode)
	case v.DownwardAPI != nil:
		mode(&v.DownwardAPI.DefaultMode)
		for i := range v.DownwardAPI.Items {
			defaultField(v.DownwardAPI.Items[i].FieldRef)
		}
	case v.Projected != nil:
		mode(&v.Projected.DefaultMode)
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds == nil {
				hour := int64(3600)
				token.ExpirationSeconds = &hour
			}
			if source.DownwardAPI != nil {
				for j := range source.DownwardAPI.Items {
					defaultField(source.DownwardAPI.Items[j].FieldRef)
				}
			}
		}
	}
}
