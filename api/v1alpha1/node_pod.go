package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodSettings are the effective input of the user for a node's pod and volumes, merged and with
// defaults. They are pinned in the record: a pod that is made again is made from them, so that an
// eviction never carries a node over to a version of the spec that was not rolled out to it.
type PodSettings struct {
	// Revision of the rules by which the pod is rendered. Pinned here, so that a newer Helenus
	// changes no running node.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int32 `json:"revision"`

	// Image of Cassandra.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// Certificates of Cassandra that the agent is given, by their use: what the ring was made with.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Certificates []CertificateUse `json:"certificates,omitempty"`

	// ImageDefaulted says that the user named no image, so that Image is of the repository that the
	// operator was installed with at the time.
	// +optional
	ImageDefaulted bool `json:"imageDefaulted,omitempty"`

	// ImageDigest is what Image was on the host where the node, or another one before it, became
	// NORMAL with it: a pod that is made from now on gets that very image, although its tag moves.
	// Empty: nothing is known that could be pulled by it.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	ImageDigest string `json:"imageDigest,omitempty"`

	// ImagePullPolicy of its two containers. Empty: that of Kubernetes.
	// +optional
	ImagePullPolicy PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets of the pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources of the Cassandra container.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// AgentResources are the resources of the agent container.
	// +optional
	AgentResources *Resources `json:"agentResources,omitempty"`

	// Storage of the node.
	// +required
	Storage Storage `json:"storage"`

	// ConfigFiles that the agent puts over those of the image.
	// +optional
	ConfigFiles *ConfigFiles `json:"configFiles,omitempty"`

	// Placement of the pod.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// TerminationGracePeriodSeconds of the pod. Unset: 300.
	// +optional
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// Probes of the pod.
	// +optional
	Probes *Probes `json:"probes,omitempty"`

	// Metadata is added to the pod.
	// +optional
	Metadata *Metadata `json:"metadata,omitempty"`

	// Overlay is the strategic merge patch on the pod: that of the cluster, then that of the
	// datacenter.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:pruning:PreserveUnknownFields
	Overlay []runtime.RawExtension `json:"overlay,omitempty"`
}
