package cluster

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// What the webhook of a cloud has put into pods is neither seen nor taken away: no pod is changed
// or recreated, then or when the account of the agents gets another identity.
func TestPodsWithAnIdentity(t *testing.T) {
	w := formed(t)
	given := corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::1:role/backups"}
	for _, name := range three {
		spec := &w.snapshot.Nodes[name].Pod.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "aws-iam-token"})
		for _, c := range []*corev1.Container{&spec.InitContainers[0], &spec.Containers[0]} {
			c.Env = append(c.Env, given)
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "aws-iam-token", MountPath: "/secrets"})
		}
	}
	before := w.pods()
	w.settle()
	const role = "eks.amazonaws.com/role-arn"
	w.change(func(spec *v1alpha1.CassandraClusterSpec) {
		spec.ServiceAccount = &v1alpha1.Metadata{Annotations: map[string]string{role: given.Value}}
	})
	w.settle()
	if of := w.snapshot.Shared.ServiceAccounts["orders-helenus-agent"]; of.Annotations[role] != given.Value {
		t.Errorf("the account has %v", of.Annotations)
	}
	if !maps.Equal(w.pods(), before) || w.open() != nil {
		t.Errorf("pods %v have become %v", before, w.pods())
	}
	for _, name := range three {
		if c := w.snapshot.Nodes[name].Pod.Spec.InitContainers[0]; c.Env[len(c.Env)-1] != given {
			t.Errorf("the agent of %s has %v", name, c.Env)
		}
	}
}
