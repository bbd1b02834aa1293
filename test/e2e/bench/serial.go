package main

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// mode is how a node of a ring without Helenus joins.
type mode int

const (
	// bootstrap streams what the node owns from the others, as every node does that joins by
	// Cassandra's own defaults, and waits for the ring delay (30 s). The allocator of tokens is
	// off, which the shipped configuration has on: it would make every node wait some 25 s longer.
	bootstrap mode = iota
	// sameFlags starts the node as Helenus does: tokens given, nothing streamed. What is left is
	// that one waits for the other.
	sameFlags
)

// serialBound is how long one node may take before the run counts as broken. With the ring delay it
// takes about a minute.
const serialBound = 5 * time.Minute

// serial joins nodes one after the other: plain pods of the same image, with the same resources,
// heap and JVM options as those that Helenus makes, and volumes that need no provisioner. The next
// is made when the one before serves CQL. It returns the time from the first pod to the last that
// serves.
func (b *bench) serial(ctx context.Context, sample *v1alpha1.CassandraCluster, size int, m mode) (took time.Duration,
	err error) {
	s, err := scene.Open(ctx, b.cluster, namespaceSerial, b.patience)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			b.say("%s", s.Diagnosis(ctx))
		}
		if closed := s.Close(context.WithoutCancel(ctx)); err == nil {
			err = closed
		}
	}()
	start := time.Now()
	seed, last := "", ""
	for i := range size {
		pod := serialPod(sample, size, i, m, seed)
		pod.Namespace = s.Namespace
		if err := b.cluster.Client.Create(ctx, pod); err != nil {
			return 0, fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		err := s.Until(ctx, serialBound, "pod "+pod.Name+" serves CQL", func(now follow.Sight) error {
			there, found := now.Pod(pod.Name)
			switch {
			case !found || !follow.PodReady(there):
				return fmt.Errorf("pod %s is not ready", pod.Name)
			case slices.ContainsFunc(there.Status.ContainerStatuses,
				func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 }):
				return follow.Never(fmt.Errorf("pod %s was started again", pod.Name))
			}
			if seed == "" {
				seed = there.Status.PodIP
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		last = pod.Name
	}
	took = time.Since(start)
	// A ring that is none would have been quick.
	out, err := b.cluster.Exec(ctx, s.Namespace, last, layout.CassandraContainer, "nodetool", "status")
	if err != nil {
		return 0, err
	}
	if up := strings.Count(out, "\nUN "); up != size {
		return 0, fmt.Errorf("node %s sees %d nodes up and normal, want %d:\n%s", last, up, size, out)
	}
	return took, nil
}

// serialPod is the i-th of so many nodes.
func serialPod(sample *v1alpha1.CassandraCluster, size, i int, m mode, seed string) *corev1.Pod {
	node := sample.Spec.Node
	heap := "384M"
	if node.JVM != nil && node.JVM.Heap != nil {
		heap = strconv.FormatInt(node.JVM.Heap.Value()>>20, 10) + "M"
	}
	options := []string{}
	if node.JVM != nil {
		options = append(options, node.JVM.Options...)
	}
	if m == sameFlags {
		options = append(options, "-Dcassandra.auto_bootstrap=false",
			"-Dcassandra.initial_token="+strings.Join(tokens(size, i, serialTokens), ","))
	}
	environment := []corev1.EnvVar{
		{Name: "CASSANDRA_CLUSTER_NAME", Value: "bench"},
		{Name: "CASSANDRA_SEEDS", Value: seed}, // empty for the first: the entry point makes it its own seed
		{Name: "CASSANDRA_ENDPOINT_SNITCH", Value: "GossipingPropertyFileSnitch"},
		{Name: "CASSANDRA_DC", Value: "dc1"},
		{Name: "CASSANDRA_RACK", Value: fmt.Sprintf("r%d", i%3+1)},
		{Name: "CASSANDRA_NUM_TOKENS", Value: strconv.Itoa(serialTokens)},
		{Name: "MAX_HEAP_SIZE", Value: heap},
		{Name: "HEAP_NEWSIZE", Value: "100M"},
		{Name: "JVM_EXTRA_OPTS", Value: strings.Join(options, " ")},
		{Name: "HOME", Value: "/tmp"},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("serial-%d", i)},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(5)), // nobody misses its data
			AutomountServiceAccountToken:  ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsUser: ptr.To(int64(layout.CassandraUser)), RunAsGroup: ptr.To(int64(layout.CassandraUser)),
				FSGroup:      ptr.To(int64(layout.CassandraUser)),
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{
					Type: corev1.SeccompProfileTypeRuntimeDefault,
				},
			},
			Containers: []corev1.Container{{
				Name:    layout.CassandraContainer,
				Image:   "docker.io/library/cassandra:" + sample.Spec.Version,
				Command: []string{"bash", "-c", serialStart(options)},
				Env:     environment,
				Resources: corev1.ResourceRequirements{Requests: node.Resources.Requests,
					Limits: node.Resources.Limits},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{
						TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(layout.NativePort)},
					},
					PeriodSeconds: 1,
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: layout.DataDir}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
		},
	}
}

// serialTokens is num_tokens, the default of Helenus and of Cassandra.
const serialTokens = 16

// serialStart edits the image's own files as little as the comparison needs, and hands over to its
// entry point. Another collector than that of the image is refused by the JVM while the image's is
// asked for too.
func serialStart(options []string) string {
	lines := []string{
		"set -e",
		"sed -i 's/^allocate_tokens_for/# &/' $CASSANDRA_CONF/cassandra.yaml",
	}
	if slices.ContainsFunc(options, func(o string) bool {
		return strings.HasPrefix(o, "-XX:+Use") && strings.HasSuffix(o, "GC")
	}) {
		lines = append(lines, "sed -i -e '/^-XX:+UseG1GC/d' -e '/^-XX:G1/d' $CASSANDRA_CONF/jvm*-server.options")
	}
	return strings.Join(append(lines, "exec docker-entrypoint.sh cassandra -f"), "\n")
}

// tokens are those of the i-th of n nodes with v tokens each: the whole circle in even steps, in
// turn.
func tokens(n, i, v int) []string {
	step := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(int64(n*v)))
	lowest := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 63))
	var all []string
	for j := range v {
		offset := new(big.Int).Mul(step, big.NewInt(int64(j*n+i)))
		all = append(all, offset.Add(offset, lowest).String())
	}
	return all
}
