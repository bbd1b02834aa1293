package scene

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/install"
)

// logLines is how much of each log a diagnosis shows.
const logLines int64 = 40

// Diagnosis is what a user wants to see of the scene when something went wrong. What cannot be had
// is said in its place.
func (s *Scene) Diagnosis(ctx context.Context) string {
	var b strings.Builder
	section := func(title, text string, err error) {
		if err != nil {
			text = "cannot be had: " + err.Error()
		}
		fmt.Fprintf(&b, "\n===== %s\n%s\n", title, strings.TrimSpace(text))
	}
	clusters := &v1alpha1.CassandraClusterList{}
	err := s.Kubernetes.Client.List(ctx, clusters, client.InNamespace(s.Namespace))
	for _, c := range clusters.Items {
		section("status of cluster "+c.Name, asYAML(c.Status), nil)
	}
	nodes := &v1alpha1.CassandraNodeList{}
	if err == nil {
		err = s.Kubernetes.Client.List(ctx, nodes, client.InNamespace(s.Namespace))
	}
	section("nodes", nodeLines(nodes.Items), err)
	events, err := s.events(ctx)
	section("events", events, err)
	for _, namespace := range []string{s.Namespace, install.Namespace} {
		pods := &corev1.PodList{}
		if err := s.Kubernetes.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			section("pods of namespace "+namespace, "", err)
		}
		for i := range pods.Items {
			s.logs(ctx, &pods.Items[i], section)
		}
	}
	return b.String()
}

func asYAML(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func nodeLines(nodes []v1alpha1.CassandraNode) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%s: wanted %s, traffic %s; is %s %q, traffic %s, disk %s, host id %s, address %s, pod %s\n",
			n.Name, n.Spec.State, n.Spec.ClientTraffic,
			n.Status.Phase, n.Status.Message, n.Status.ClientTraffic, n.Status.Disk, n.Status.HostID, n.Status.Address,
			n.Status.PodUID)
	}
	return b.String()
}

func (s *Scene) events(ctx context.Context) (string, error) {
	list := &corev1.EventList{}
	if err := s.Kubernetes.Client.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
		return "", err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Compare(a.CreationTimestamp.UnixNano(), b.CreationTimestamp.UnixNano())
	})
	var b strings.Builder
	for _, e := range list.Items[max(0, len(list.Items)-int(logLines)):] {
		fmt.Fprintf(&b, "%s %s %s/%s: %s\n", e.CreationTimestamp.UTC().Format("15:04:05"), e.Reason,
			e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
	return b.String(), nil
}

// logs shows the end of the log of every container, and of the one before it if there was one.
func (s *Scene) logs(ctx context.Context, pod *corev1.Pod, section func(title, text string, err error)) {
	lines := logLines
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, previous := range []bool{true, false} {
			if previous && status.RestartCount == 0 {
				continue
			}
			title := fmt.Sprintf("log of %s/%s, container %s", pod.Namespace, pod.Name, status.Name)
			if previous {
				title += ", before its restart"
			}
			text, err := s.Kubernetes.Core.CoreV1().Pods(pod.Namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{Container: status.Name, Previous: previous,
					TailLines: &lines}).DoRaw(ctx)
			section(title, string(text), err)
		}
	}
}
