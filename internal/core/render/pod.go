package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// defaultGracePeriod is how long kubelet waits for an ordered stop before it kills: seconds. A
// drain with little data takes 2.5-13 s (measured), one with full memtables and slow disks minutes.
const defaultGracePeriod int64 = 300

// PodRule makes the pod of a node.
type PodRule func(owner Owner, record *v1alpha1.CassandraNode, install facts.Install) (*corev1.Pod, error)

// PodRules by revision, which is pinned in each record. A new rule that would change what an
// existing node is made of gets a new revision, and the old one stays here as long as records may
// carry it.
var PodRules = map[int32]PodRule{
	1: podRevision1,
}

// NewestPodRevision is by which new records are written.
func NewestPodRevision() int32 { return slices.Max(slices.Collect(maps.Keys(PodRules))) }

// Pod is the pod of a node, made from its record alone and from what is installed. An overlay that
// touches what Helenus owns is an error.
func Pod(owner Owner, record *v1alpha1.CassandraNode, install facts.Install) (*corev1.Pod, error) {
	rule := PodRules[record.Spec.Pod.Revision]
	if rule == nil {
		return nil, fmt.Errorf("render pod: revision %d of the rules is not known to this release, which knows %d",
			record.Spec.Pod.Revision, NewestPodRevision())
	}
	return rule(owner, record, install)
}

func podRevision1(owner Owner, record *v1alpha1.CassandraNode, install facts.Install) (*corev1.Pod, error) {
	settings := record.Spec.Pod
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            record.Name,
			Namespace:       owner.Namespace,
			Labels:          NodeLabels(owner, record),
			Annotations:     map[string]string{v1alpha1.AnnotationTemplateHash: PodHash(settings)},
			OwnerReferences: RecordReference(record),
		},
		Spec: corev1.PodSpec{
			Hostname:                      record.Name,
			Subdomain:                     v1alpha1.NodesServiceName(owner.Name),
			ServiceAccountName:            v1alpha1.AgentServiceAccountName(owner.Name),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(gracePeriod(settings)),
			ImagePullSecrets:              settings.ImagePullSecrets,
			RestartPolicy:                 corev1.RestartPolicyAlways,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser:           new(int64(layout.CassandraUser)),
				RunAsGroup:          new(int64(layout.CassandraUser)),
				FSGroup:             new(int64(layout.CassandraUser)),
				FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
				RunAsNonRoot:        new(true),
				SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{agentContainer(owner, record, install)},
			Containers:     []corev1.Container{cassandraContainer(settings)},
			Volumes:        podVolumes(record),
		},
	}
	if settings.Metadata != nil {
		add(pod, *settings.Metadata)
	}
	place(&pod.Spec, owner, settings.Placement)
	return overlay(pod, settings.Overlay)
}

func gracePeriod(settings v1alpha1.PodSettings) int64 {
	return *cmp.Or(settings.TerminationGracePeriodSeconds, new(defaultGracePeriod))
}

func agentContainer(owner Owner, record *v1alpha1.CassandraNode, install facts.Install) corev1.Container {
	settings, probes := record.Spec.Pod, probesOf(record.Spec.Pod)
	container := corev1.Container{
		Name:            layout.AgentContainer,
		Image:           install.AgentImage,
		ImagePullPolicy: corev1.PullPolicy(settings.ImagePullPolicy),
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Resources:       requirements(settings.AgentResources),
		SecurityContext: restricted(),
		Env: []corev1.EnvVar{
			fieldVariable(layout.EnvPodName, "metadata.name"),
			fieldVariable(layout.EnvPodNamespace, "metadata.namespace"),
			fieldVariable(layout.EnvPodUID, "metadata.uid"),
			fieldVariable(layout.EnvPodIP, "status.podIP"),
			fieldVariable(layout.EnvPodTemplate, "metadata.annotations['"+v1alpha1.AnnotationTemplateHash+"']"),
			fieldVariable(layout.EnvHost, "spec.nodeName"),
			{Name: layout.EnvClusterName, Value: owner.Name},
			{Name: layout.EnvClusterUID, Value: string(owner.UID)},
			{Name: layout.EnvVolumes, Value: volumeList(settings)},
			{Name: layout.EnvGracePeriod, Value: fmt.Sprint(gracePeriod(settings))},
			{Name: layout.EnvMemoryLimit, ValueFrom: &corev1.EnvVarSource{
				ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: layout.CassandraContainer,
					Resource: "limits.memory"},
			}},
		},
		Ports: []corev1.ContainerPort{
			{Name: "facts", ContainerPort: layout.FactsPort, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: layout.HealthPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: layout.MetricsPort, Protocol: corev1.ProtocolTCP},
		},
		// Cassandra's container starts when this one has put helenus-init in its place.
		StartupProbe:  httpProbe(layout.StartupPath, 1, 2, 300, probes.AgentStartup),
		LivenessProbe: httpProbe(layout.LivePath, 10, 5, 6, probes.AgentLiveness),
		VolumeMounts: append(sharedMounts(settings),
			corev1.VolumeMount{Name: "tls", MountPath: layout.CertificateDir, ReadOnly: true},
			corev1.VolumeMount{Name: "token", MountPath: layout.TokenDir, ReadOnly: true},
			corev1.VolumeMount{Name: "agent", MountPath: layout.PrivateDir},
			corev1.VolumeMount{Name: "agent-tmp", MountPath: "/tmp"},
		),
	}
	if len(settings.Certificates) > 0 {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: certificatesVolume,
			MountPath: layout.CassandraCertificateDir, ReadOnly: true})
	}
	if settings.ConfigFiles != nil {
		mount := corev1.VolumeMount{Name: configFilesVolume, MountPath: layout.ConfigFilesDir, ReadOnly: true}
		container.VolumeMounts = append(container.VolumeMounts, mount)
	}
	return container
}

// certificatesVolume has the certificates of Cassandra, which the agent hands to it.
const certificatesVolume = "cassandra-tls"

// certificates are the Secrets of a node, each in a directory of its use.
func certificates(record *v1alpha1.CassandraNode) corev1.Volume {
	projected := &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o440))}
	for _, use := range record.Spec.Pod.Certificates {
		var items []corev1.KeyToPath
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey} {
			items = append(items, corev1.KeyToPath{Key: key, Path: string(use) + "/" + key})
		}
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1alpha1.CertificateName(record.Name, use)},
			Items:                items,
		}})
	}
	return corev1.Volume{Name: certificatesVolume, VolumeSource: corev1.VolumeSource{Projected: projected}}
}

// configFilesVolume is the volume of the user's own files of configuration.
const configFilesVolume = "config-files"

// pinned is the image with its digest, if that is known. The tag stays, for people: no runtime
// heeds it beside a digest. What is never pulled was loaded by hand, mostly by its tag alone.
func pinned(settings v1alpha1.PodSettings) string {
	if settings.ImageDigest == "" || settings.ImagePullPolicy == v1alpha1.PullNever {
		return settings.Image
	}
	return settings.Image + "@" + settings.ImageDigest
}

func cassandraContainer(settings v1alpha1.PodSettings) corev1.Container {
	return corev1.Container{
		Name:            layout.CassandraContainer,
		Image:           pinned(settings),
		ImagePullPolicy: corev1.PullPolicy(settings.ImagePullPolicy),
		Command:         []string{layout.InitBinary},
		Resources:       requirements(settings.Resources),
		SecurityContext: restricted(),
		Env: []corev1.EnvVar{
			// So that cqlsh and nodetool, run by hand, have a home that can be written to.
			{Name: "HOME", Value: "/tmp"},
		},
		Ports: []corev1.ContainerPort{
			{Name: "native", ContainerPort: layout.NativePort, Protocol: corev1.ProtocolTCP},
			{Name: "storage", ContainerPort: layout.StoragePort, Protocol: corev1.ProtocolTCP},
		},
		// The agent answers for the node; it is in the same network. There is no liveness probe:
		// the agent alone judges a JVM.
		ReadinessProbe: httpProbe(layout.ReadyPath, 2, 2, 3, probesOf(settings).Readiness),
		VolumeMounts: append(sharedMounts(settings),
			corev1.VolumeMount{Name: "tmp", MountPath: "/tmp"},
		),
	}
}

// sharedMounts are the mounts that both containers have.
func sharedMounts(settings v1alpha1.PodSettings) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: "helenus", MountPath: layout.SharedDir},
		{Name: "logs", MountPath: layout.LogDir},
	}
	for _, v := range mounted(settings) {
		mounts = append(mounts, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath})
	}
	return mounts
}

// volumeList names the volumes of a node with their paths, for the agent: each carries a marker
// that says whose it is.
func volumeList(settings v1alpha1.PodSettings) string {
	var list []string
	for _, v := range mounted(settings) {
		list = append(list, v.Name+"="+v.MountPath)
	}
	return strings.Join(list, ",")
}

func podVolumes(record *v1alpha1.CassandraNode) []corev1.Volume {
	emptyDir := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	volumes := []corev1.Volume{
		emptyDir("helenus"), emptyDir("logs"), emptyDir("tmp"), emptyDir("agent"), emptyDir("agent-tmp"),
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: v1alpha1.CertificateName(record.Name, v1alpha1.UseAgent), DefaultMode: new(int32(0o440)),
		}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o440)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
					ExpirationSeconds: new(int64(3607))}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
					{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
						FieldPath: "metadata.namespace"}},
				}}},
			},
		}}},
	}
	if len(record.Spec.Pod.Certificates) > 0 {
		volumes = append(volumes, certificates(record))
	}
	if given := record.Spec.Pod.ConfigFiles; given != nil {
		volumes = append(volumes, corev1.Volume{Name: configFilesVolume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: given.ConfigMapName},
				DefaultMode:          new(int32(0o440)),
			},
		}})
	}
	if e := record.Spec.Pod.Storage.Ephemeral; e != nil {
		data := emptyDir(v1alpha1.VolumeData)
		data.EmptyDir.SizeLimit = e.SizeLimit
		volumes = append(volumes, data)
	}
	for _, v := range Volumes(record.Spec.Pod) {
		volumes = append(volumes, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(record, v.Name)},
		}})
	}
	return volumes
}

// claimName is the claim that the record pins for a volume, else the first one's name.
func claimName(record *v1alpha1.CassandraNode, volume string) string {
	for _, c := range record.Spec.Claims {
		if c.Volume == volume {
			return c.Name
		}
	}
	return ClaimName(record, volume)
}

func place(spec *corev1.PodSpec, owner Owner, p *v1alpha1.Placement) {
	// A pod stays bound to a host that does not answer: NotReady of any length proves nothing, and
	// the JVM may well be alive.
	spec.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}
	if p == nil {
		return
	}
	spec.PriorityClassName = p.PriorityClassName
	spec.Tolerations = append(spec.Tolerations, p.Tolerations...)
	spec.NodeSelector = maps.Clone(p.NodeSelector)
	if p.Zone != "" {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[corev1.LabelTopologyZone] = p.Zone
	}
	if p.NodeAffinity != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: p.NodeAffinity}
	}
	selector := &metav1.LabelSelector{MatchLabels: podSelector(owner, "")}
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selector}
	var apart *corev1.PodAntiAffinity
	switch p.HostAntiAffinity {
	case v1alpha1.HostAntiAffinityRequired:
		apart = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case v1alpha1.HostAntiAffinityPreferred:
		apart = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100,
				PodAffinityTerm: term}},
		}
	case v1alpha1.HostAntiAffinityNone:
	}
	if apart != nil {
		if spec.Affinity == nil {
			spec.Affinity = &corev1.Affinity{}
		}
		spec.Affinity.PodAntiAffinity = apart
	}
	for _, c := range p.TopologySpreadConstraints {
		if c.LabelSelector == nil {
			c.LabelSelector = selector
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	}
}

func requirements(r *v1alpha1.Resources) corev1.ResourceRequirements {
	if r == nil {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func probesOf(settings v1alpha1.PodSettings) v1alpha1.Probes {
	return *cmp.Or(settings.Probes, &v1alpha1.Probes{})
}

// httpProbe asks the agent, as the user says it, and else as these numbers do.
func httpProbe(path string, period, timeout, failures int32, given *v1alpha1.Probe) *corev1.Probe {
	over := cmp.Or(given, &v1alpha1.Probe{})
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path,
			Port: intstr.FromInt32(layout.HealthPort)}},
		PeriodSeconds:    *cmp.Or(over.PeriodSeconds, &period),
		TimeoutSeconds:   *cmp.Or(over.TimeoutSeconds, &timeout),
		FailureThreshold: *cmp.Or(over.FailureThreshold, &failures),
	}
}

func fieldVariable(name, path string) corev1.EnvVar {
	return corev1.EnvVar{
		Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
			FieldPath: path}},
	}
}
