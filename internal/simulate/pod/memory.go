package pod

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/layout"
)

// Resize implements kube.Resizer: an agent that starts from now on is told the new resources.
func (s *Sandbox) Resize(pod *corev1.Pod) {
	resized := s.pod.DeepCopy()
	resized.Spec = *pod.Spec.DeepCopy()
	s.pod = resized
}

// MemoryLimit of the Cassandra container in bytes; 0 if it has none.
func (s *Sandbox) MemoryLimit() int64 {
	for _, c := range s.pod.Spec.Containers {
		if c.Name == layout.CassandraContainer {
			return c.Resources.Limits.Memory().Value()
		}
	}
	return 0
}

// Memory is the heap that the last JVM was started with, and the memory limit, in bytes.
func (s *Sandbox) Memory() (heap, limit int64) {
	for line := range strings.Lines(string(s.files.rendered[config.ServerOptions])) {
		if _, err := fmt.Sscanf(line, "-Xmx%dM", &heap); err == nil {
			heap <<= 20
		}
	}
	return heap, s.MemoryLimit()
}
