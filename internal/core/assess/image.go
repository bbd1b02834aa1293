package assess

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
)

// reference is an image as a runtime names what it has pulled: repository and digest. dockershim
// and its heir put docker-pullable:// before it. An image that was loaded by hand is a bare digest,
// and nothing that could be pulled.
var reference = regexp.MustCompile(`^(?:docker-pullable://)?(.+)@(sha256:[0-9a-f]{64})$`)

// ImageDigest is the digest of the image that a node is NORMAL with and that its record names by
// tag, as kubelet tells it; empty if it is not known, or not one that any other host could start.
//
// That is so if the runtime has pulled it from the very repository: an image that a host has by
// several names may be told by another one of them. containerd tells the digest of the index, CRI-O
// may tell the one for the host's architecture, so that all hosts must have the same.
func (v *View) ImageDigest(n *facts.Node) string {
	pod := n.Record.Spec.Pod
	if agent := n.CurrentAgent(); agent == nil || agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal {
		return ""
	}
	made := render.ImageOf(n.Pod, layout.CassandraContainer)
	if digest, pinned := strings.CutPrefix(made, pod.Image+"@"); pinned {
		return digest // its record was recreated since, without one
	}
	if made != pod.Image {
		return ""
	}
	for _, s := range n.Pod.Status.ContainerStatuses {
		pulled := reference.FindStringSubmatch(s.ImageID)
		if s.Name == layout.CassandraContainer && pulled != nil && repository(pulled[1]) == repository(pod.Image) &&
			!v.mixedHosts() {
			return pulled[2]
		}
	}
	return ""
}

// TakenDigest is the digest that a node which takes over an image gets with it: that of the first
// one that has it, so that the image is the same although its tag moves.
func (v *View) TakenDigest(image string) string {
	for _, n := range v.Records() {
		if n.Record.Spec.Pod.Image == image {
			if digest := cmp.Or(n.Record.Spec.Pod.ImageDigest, v.ImageDigest(n)); digest != "" {
				return digest
			}
		}
	}
	return ""
}

// repository of an image that is named by tag, as no name is shortened; of one that is named by
// digest nothing that any other has.
func repository(image string) string {
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	return strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
}

// mixedHosts says that the hosts are of several architectures.
func (v *View) mixedHosts() bool {
	all := map[string]bool{}
	for _, host := range v.Hosts {
		all[host.Labels[corev1.LabelArchStable]] = true
	}
	return len(all) > 1
}
