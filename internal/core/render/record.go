package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// Record is the record of a new node: it has no ticket, serves nobody, and pins the claims that
// already exist.
func Record(owner Owner, w Wanted, claims []v1alpha1.ClaimReference, adopted types.UID) *v1alpha1.CassandraNode {
	return &v1alpha1.CassandraNode{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "CassandraNode"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            w.Name,
			Namespace:       owner.Namespace,
			Labels:          nodeLabels(owner, w.Datacenter, w.Rack, w.Name),
			Finalizers:      []string{v1alpha1.FinalizerNode},
			OwnerReferences: owner.reference(),
		},
		Spec: v1alpha1.CassandraNodeSpec{
			Cluster:       v1alpha1.ClusterReference{Name: owner.Name, UID: owner.UID, AdoptedUID: adopted},
			Datacenter:    w.Datacenter,
			Rack:          w.Rack,
			Ordinal:       w.Ordinal,
			Claims:        claims,
			State:         v1alpha1.StateRunning,
			ClientTraffic: v1alpha1.TrafficClosed,
			Disruption:    w.Disruption,
			TableMetrics:  w.Metrics.Tables,
			ExtraMetrics:  w.Metrics.Extra,
			Configuration: w.Configuration,
			Pod:           w.Pod,
		},
	}
}

// ForApply is what is applied to change an existing record: its identity, its annotations and its
// whole spec, without what the API server owns.
func ForApply(owner Owner, record *v1alpha1.CassandraNode) *v1alpha1.CassandraNode {
	return &v1alpha1.CassandraNode{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "CassandraNode"},
		ObjectMeta: metav1.ObjectMeta{
			Name:            record.Name,
			Namespace:       record.Namespace,
			Labels:          nodeLabels(owner, record.Spec.Datacenter, record.Spec.Rack, record.Name),
			Annotations:     maps.Clone(record.Annotations),
			Finalizers:      []string{v1alpha1.FinalizerNode},
			OwnerReferences: owner.reference(),
		},
		Spec: *record.Spec.DeepCopy(),
	}
}

// Pinned is what a cluster's spec wants of a node that exists: what does not come from the user
// stays as the record has it. Another release of Helenus, or one that was installed with another
// repository of images, is no change, and neither is naming the image that it has.
func Pinned(cluster *v1alpha1.CassandraCluster, w Wanted, record *v1alpha1.CassandraNode) Wanted {
	w.Configuration.Revision, w.Pod.Revision = record.Spec.Configuration.Revision, record.Spec.Pod.Revision
	if w.Configuration.Authentication == "" {
		w.Configuration.Authentication = record.Spec.Configuration.Authentication
	}
	if w.Configuration.Encryption == nil {
		w.Configuration.Encryption = record.Spec.Configuration.Encryption
		w.Pod.Certificates = record.Spec.Pod.Certificates
	}
	// A restart that was done is not done again, and one that is no longer asked for stays done.
	w.Configuration.RestartedAt = Latest(record.Spec.Configuration.RestartedAt, w.Configuration.RestartedAt)
	pod := record.Spec.Pod
	if cluster.Spec.Image == "" && pod.ImageDefaulted && w.Configuration.Version == record.Spec.Configuration.Version {
		w.Pod.Image = pod.Image
	}
	if w.Pod.Image == pod.Image {
		w.Pod.ImageDefaulted, w.Pod.ImageDigest = pod.ImageDefaulted, pod.ImageDigest
	}
	return w
}

// AsMade is what a cluster's spec wants of a node whose record is gone, and with it what it pinned:
// revisions and image are as its pod was made, and as its JVM was configured, and with another
// image goes the version. A pod that differs in more gets what a new one would.
func AsMade(w Wanted, n *facts.Node) Wanted {
	if n.Pod == nil {
		return w
	}
	made := n.Pod.Annotations[v1alpha1.AnnotationTemplateHash]
	if WasResized(n.Pod, w.Pod) {
		made = PodHash(w.Pod)
	}
	has := ImageOf(n.Pod, layout.CassandraContainer)
	tag, digest, _ := strings.Cut(has, "@")
	for revision := range PodRules {
		for _, image := range []string{w.Pod.Image, has, tag} {
			pod := w.Pod
			pod.Revision, pod.Image, pod.ImageDigest = revision, image, ""
			if image == tag {
				pod.ImageDigest = digest
			}
			if PodHash(pod) != made {
				continue
			}
			if w.Pod.Image != image { // its turn has not come
				w.Configuration.Version = releaseOf(image, n.CurrentAgent(), w.Configuration.Version)
			}
			w.Pod = pod
			if agent := n.CurrentAgent(); agent != nil && config.KnowsRevision(agent.Revision) {
				w.Configuration.Revision = agent.Revision
			}
			return w
		}
	}
	return w
}

// releaseOf an image: that of its tag, which by default is one; else that of the disk, if it is of
// another line than the spec's.
func releaseOf(image string, agent *facts.Agent, wanted string) string {
	tag := image[strings.LastIndex(image, ":")+1:]
	switch {
	case settings.LineOf(tag) != "":
		return tag
	case agent != nil && settings.Older(agent.DiskRelease, wanted):
		return agent.DiskRelease
	}
	return wanted
}

// Describes says that a pod has the labels and annotations of its record: our labels, what the spec
// adds, and nothing that it added before.
func Describes(owner Owner, record *v1alpha1.CassandraNode, pod *corev1.Pod) bool {
	var given v1alpha1.Metadata
	if record.Spec.Pod.Metadata != nil {
		given = *record.Spec.Pod.Metadata
	}
	return HasNodeLabels(pod.Labels, owner, record) && pod.Annotations[v1alpha1.AnnotationAdded] == keysOf(given) &&
		Within(given.Labels, pod.Labels) && Within(given.Annotations, pod.Annotations)
}

// Within says that all of some labels or annotations are among others.
func Within(some, all map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

// PodMetadata is a pod with the labels and annotations that its record gives it for as long as it
// has that record, and nothing else.
func PodMetadata(owner Owner, record *v1alpha1.CassandraNode) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: NodeLabels(owner, record)}}
	if given := record.Spec.Pod.Metadata; given != nil {
		add(pod, *given)
	}
	return pod
}

// ImageOf a container of a pod; empty if the pod has no such container.
func ImageOf(pod *corev1.Pod, container string) string {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == container {
				return containers[i].Image
			}
		}
	}
	return ""
}

// PodHash is the hash of what a pod is made of and keeps for life. Two pods with the same hash are
// the same to the user; the agent's image and what the operator installs beside it are not part of
// it.
func PodHash(settings v1alpha1.PodSettings) string {
	settings.ImageDefaulted = false // says where the image comes from, not what it is
	settings.ImageDigest = ""       // says what the image is already
	settings.Metadata = nil         // changes on the pod that runs
	settings.Storage = WithoutSizes(settings.Storage)
	return hash(settings)
}

// HashesOf a record. They are much smaller than what they are of, and do not change while the
// record has the same resourceVersion.
func HashesOf(record *v1alpha1.CassandraNode) *facts.RecordHashes {
	return &facts.RecordHashes{
		UID: record.UID, ResourceVersion: record.ResourceVersion,
		Hashes:      Wanted{Configuration: record.Spec.Configuration, Pod: record.Spec.Pod}.Hashes(),
		PodTemplate: PodHash(record.Spec.Pod),
	}
}

// Hashes of a node as the spec describes it.
func (w Wanted) Hashes() facts.Hashes {
	w.Pod.ImageDigest = "" // no change of the user's
	return facts.Hashes{Configuration: hash(w.Configuration), Pod: hash(w.Pod)}
}

func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // only API types, which come from JSON: cannot happen
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
