package api

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/act"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	loop "helenus.io/helenus/internal/operator"
)

// givenIdentity is what the webhooks of EKS and Azure put into a pod: a token and variables, in all
// containers.
func givenIdentity(pod *corev1.Pod) (variable corev1.EnvVar, mount corev1.VolumeMount) {
	variable = corev1.EnvVar{Name: "AWS_WEB_IDENTITY_TOKEN_FILE",
		Value: "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"}
	mount = corev1.VolumeMount{Name: "aws-iam-token", ReadOnly: true,
		MountPath: "/var/run/secrets/eks.amazonaws.com/serviceaccount"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "sts.amazonaws.com", Path: "token",
				ExpirationSeconds: new(int64(86400))}}}}}})
	for _, c := range []*corev1.Container{&pod.Spec.InitContainers[0], &pod.Spec.Containers[0]} {
		c.Env, c.VolumeMounts = append(c.Env, variable), append(c.VolumeMounts, mount)
	}
	return variable, mount
}

// TestIdentityOfAPod: a pod that a webhook has given an identity is taken, in a namespace that
// enforces the Pod Security Standard "restricted", and stays as it is when the operator, to which
// it is the pod that it wanted, replaces its agent.
func TestIdentityOfAPod(t *testing.T) {
	namespace := namespace(t)
	_, err := typedClient(t, server).CoreV1().Namespaces().Patch(t.Context(), namespace, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`), metav1.PatchOptions{})
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	operator, err := ctrlclient.New(withToken(tokenOf(t, "helenus-system", "helenus", nil)),
		ctrlclient.Options{Scheme: scheme})
	must(t, err)
	cluster := sample(t, "../../config/samples/demo.yaml", namespace)
	owner := render.OwnerOf(cluster)
	install := facts.Install{ImageRepository: "cassandra", AgentImage: "helenus-agent:1"}
	account := render.AgentServiceAccount(owner, &v1alpha1.Metadata{
		Annotations: map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/backups"}})
	must(t, operator.Create(t.Context(), account))
	record := render.Record(owner, render.WantedNodes(cluster, install)[0], nil, "")
	must(t, operator.Create(t.Context(), record))
	wanted, err := render.Pod(owner, record, install)
	must(t, err)
	made := wanted.DeepCopy()
	variable, mount := givenIdentity(made)
	must(t, operator.Create(t.Context(), made))

	seen := loop.Outline(made).(*corev1.Pod)
	if hash := seen.Annotations[v1alpha1.AnnotationTemplateHash]; hash != render.PodHash(record.Spec.Pod) ||
		!render.HasResources(seen, record.Spec.Pod) {
		t.Errorf("it is to be another pod: %s", hash)
	}
	other := seen.DeepCopy()
	other.Spec.InitContainers[0].Image = "helenus-agent:2"
	other.Annotations[v1alpha1.AnnotationReplacedAgent] = "helenus-agent:2"
	done := (&act.Writer{Client: operator}).Do(t.Context(), &facts.Snapshot{Cluster: cluster}, plan.Plan{
		Writes: []plan.Write{{Verb: plan.Change, Object: other, Seen: seen, UID: made.UID}}}, nil, &consistency.Store{})
	if done.Err != nil || done.Rejected != nil {
		t.Fatalf("%+v", done)
	}
	must(t, operator.Get(t.Context(), ctrlclient.ObjectKeyFromObject(made), made))
	if made.Spec.InitContainers[0].Image != "helenus-agent:2" || !slices.ContainsFunc(made.Spec.Volumes,
		func(v corev1.Volume) bool { return v.Name == mount.Name }) {
		t.Errorf("the pod has become %+v", made.Spec)
	}
	for _, c := range []corev1.Container{made.Spec.InitContainers[0], made.Spec.Containers[0]} {
		if !slices.Contains(c.Env, variable) || !slices.ContainsFunc(c.VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.Name == mount.Name }) {
			t.Errorf("container %s has lost its identity: %+v, %+v", c.Name, c.Env, c.VolumeMounts)
		}
	}
}
