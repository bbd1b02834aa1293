package assess

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// What kubelet tells of an image is the user's image only if any host could pull it by that.
func TestWhatAnImageIs(t *testing.T) {
	const hub = "docker.io/library/"
	sha := "sha256:" + strings.Repeat("0a", 32)
	host := func(architecture string) *corev1.Node {
		n := &corev1.Node{}
		n.Labels = map[string]string{corev1.LabelArchStable: architecture}
		return n
	}
	for name, c := range map[string]struct {
		image, id string
		change    func(*scene, *facts.Node)
		want      string
	}{
		"containerd's":                        {image: "cassandra:5.0.6", id: hub + "cassandra@" + sha, want: sha},
		"Docker's":                            {image: "c:5", id: "docker-pullable://c@" + sha, want: sha},
		"of a registry with a port":           {image: "a.b:5000/c", id: "a.b:5000/c@" + sha, want: sha},
		"of a registry with a port, by tag":   {image: "a.b:5000/c:1", id: "a.b:5000/c@" + sha, want: sha},
		"loaded by hand":                      {image: "cassandra:5.0.6", id: sha},
		"loaded by hand into Docker":          {image: "cassandra:5.0.6", id: "docker://" + sha},
		"loaded by hand under another name":   {image: "cassandra:5.0.6", id: hub + "import-2026-01-01@" + sha},
		"the same name of another registry":   {image: "cassandra:5.0.6", id: "registry.example/cassandra@" + sha},
		"by tag":                              {image: "cassandra:5.0.6", id: hub + "cassandra:5.0.6"},
		"nothing yet":                         {image: "cassandra:5.0.6"},
		"a digest that is none":               {image: "cassandra:5.0.6", id: "cassandra@sha256:0a"},
		"the user's own digest":               {image: "cassandra@" + sha, id: hub + "cassandra@" + sha},
		"the user's own digest, beside a tag": {image: "cassandra:5@" + sha, id: hub + "cassandra@" + sha},
		"before its node is NORMAL": {image: "cassandra:5.0.6", id: "cassandra@" + sha,
			change: func(_ *scene, n *facts.Node) { n.Agent.Ring.Mode = "JOINING" }},
		"while its agent does not answer": {image: "cassandra:5.0.6", id: "cassandra@" + sha,
			change: func(_ *scene, n *facts.Node) { n.Agent = nil }},
		"of a pod that is yet to be recreated": {image: "cassandra:5.0.6", id: "cassandra@" + sha,
			change: func(_ *scene, n *facts.Node) { n.Record.Spec.Pod.Image = "cassandra:5.0.9" }},
		"of a pod that was made with it, whose record is new": {image: "cassandra:5.0.6", id: sha, want: sha,
			change: func(_ *scene, n *facts.Node) { n.Pod.Spec.Containers[0].Image += "@" + sha }},
		"of another container": {image: "cassandra:5.0.6", id: "cassandra@" + sha,
			change: func(_ *scene, n *facts.Node) { n.Pod.Status.ContainerStatuses[0].Name = "sidecar" }},
		"on hosts of several architectures": {image: "cassandra:5.0.6", id: "cassandra@" + sha,
			change: func(s *scene, _ *facts.Node) {
				s.Hosts = map[string]*corev1.Node{"a": host("amd64"), "b": host("arm64")}
			}},
		"on hosts of one architecture": {image: "cassandra:5.0.6", id: "cassandra@" + sha, want: sha,
			change: func(s *scene, _ *facts.Node) {
				s.Hosts = map[string]*corev1.Node{"a": host("arm64"), "b": host("arm64")}
			}},
	} {
		s := newScene(t)
		n := s.Nodes[first]
		n.Record.Spec.Pod.Image = c.image
		n.Pod.Spec.Containers = []corev1.Container{{Name: layout.CassandraContainer, Image: c.image}}
		n.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: layout.CassandraContainer, ImageID: c.id}}
		if c.change != nil {
			c.change(s, n)
		}
		if got := s.view().ImageDigest(n); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		s.Cluster.Spec.Image = n.Record.Spec.Pod.Image
		if got := s.view().Wanted[1].Pod.ImageDigest; got != c.want {
			t.Errorf("%s: another node takes over %q, want %q", name, got, c.want)
		}
	}
}
