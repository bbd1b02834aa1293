package facts

import (
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

// Hashes tell apart what nodes are described as: of their configuration and of their pod.
type Hashes struct{ Configuration, Pod string }

// RecordHashes are the hashes of a record. To hash the records of a thousand nodes takes longer
// than to decide about them.
type RecordHashes struct {
	// UID and ResourceVersion of the record that they are of. Of another version they say nothing.
	UID             types.UID
	ResourceVersion string
	Hashes
	// PodTemplate is what a pod that is made of the record has in its annotation.
	PodTemplate string
}

// KnownHashes of a node's record as it is; nil if nobody has worked them out.
func (n *Node) KnownHashes() *RecordHashes {
	if h := n.Hashes; h != nil && n.Record != nil && h.UID == n.Record.UID &&
		h.ResourceVersion == n.Record.ResourceVersion {
		return h
	}
	return nil
}

// PodTemplate is the hash of what the pod of a node is: what it was made from, or what it was
// resized to since, by its record.
func (n *Node) PodTemplate() string {
	if n.Record != nil && n.Record.Spec.Resized.Of(n.Pod.UID) {
		return n.Record.Spec.Resized.PodTemplate
	}
	return n.Pod.Annotations[v1alpha1.AnnotationTemplateHash]
}
