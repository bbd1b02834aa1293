package doctor

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/installation"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sound is an installation with a cluster of one node, and nothing wrong with either.
func sound() *Facts {
	cluster := specimen("shop")
	cluster.Name, cluster.Generation, cluster.Status.ObservedGeneration = "orders", 3, 3
	cluster.Spec.Datacenters[0].Racks[0].Node = &v1alpha1.NodeSettings{Placement: &v1alpha1.Placement{Zone: "a"}}
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy,
		v1alpha1.ConditionUpToDate} {
		cluster.Status.Conditions = append(cluster.Status.Conditions, metav1.Condition{Type: name, Status: "True"})
	}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 2}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Image: "registry:5000/operator:v1"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orders-dc1-r1-0"}}
	pod.Status.PodIP = "10.0.0.1"
	secret := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "tls", Annotations: map[string]string{
		v1alpha1.AnnotationRenewAfter: now.Add(-time.Hour).Format(time.RFC3339)}}}
	return &Facts{
		Now: now, Plugin: "v1", OperatorNamespace: "helenus-system", Kubernetes: Seen[string]{It: "v1.34.0-rc.1"},
		Operator: Operator{Said: "helenus-b leads"}, Deployment: seen(deployment, nil),
		Definitions: seen(installation.Compared{Same: 3}, nil), Policies: seen(installation.Compared{Same: 10}, nil),
		Refusals: []Refusal{{"helenus-agent", errors.New("ValidatingAdmissionPolicy 'helenus-agent' denied request")}},
		Rights:   seen(installation.Rights{Asked: 100}, nil),
		Proof:    seen(&metav1.Condition{Status: metav1.ConditionTrue, Message: "all is there"}, nil),
		Hosts: seen([]corev1.Node{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			corev1.LabelTopologyZone: "a"}}}}, nil),
		Classes: seen([]storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{
			"storageclass.kubernetes.io/is-default-class": "true"}}, AllowVolumeExpansion: new(true),
			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}}, nil),
		Clusters: []Cluster{{CassandraCluster: cluster, Pods: seen([]corev1.Pod{pod}, nil),
			Named: seen(map[string]bool{pod.Name: true}, nil), Secrets: seen([]metav1.PartialObjectMetadata{secret}, nil),
			Inspection: seen(&inspectapi.Inspection{Snapshot: inspectapi.Snapshot{Nodes: []inspectapi.Node{
				{Name: pod.Name, Pod: true, Agent: &inspectapi.Agent{}}, {Name: "without a pod"}}}}, nil)}},
	}
}

// Each thing that is not as it should be is found by its check, and by no other.
func TestJudge(t *testing.T) {
	for _, f := range Judge(sound()) {
		if f.Result != Good {
			t.Errorf("nothing is wrong: %+v", f)
		}
	}
	hidden := apierrors.NewForbidden(corev1.Resource("x"), "y", nil)
	condition := func(name, reason string, status metav1.ConditionStatus) func(*Facts, *Cluster) {
		return func(_ *Facts, c *Cluster) {
			c.Status.Conditions = append([]metav1.Condition{{Type: name, Status: status, Reason: reason, Message: "why"}},
				c.Status.Conditions...)
		}
	}
	for _, c := range []struct {
		check  string
		result Result
		words  string
		change func(*Facts, *Cluster)
	}{
		{"Kubernetes", Wrong, "v1.33.9 is too old", func(f *Facts, _ *Cluster) { f.Kubernetes.It = "v1.33.9" }},
		{"Kubernetes", Warning, "not known", func(f *Facts, _ *Cluster) { f.Kubernetes.Err = hidden }},
		{"versions", Warning, "plugin v2, operator v1", func(f *Facts, _ *Cluster) { f.Plugin = "v2" }},
		{"versions", Warning, "operator v2", func(_ *Facts, c *Cluster) { c.Inspection.It.Operator.Version = "v2" }},
		{"versions", Warning, "not known by its image", func(f *Facts, _ *Cluster) {
			f.containers()[0].Image = "registry:5000/operator@sha256:1"
		}},
		{"definitions", Wrong, "A: missing", func(f *Facts, _ *Cluster) { f.Definitions.It.Missing = []string{"A"} }},
		{"definitions", Wrong, "A: not as in this", func(f *Facts, _ *Cluster) { f.Definitions.It.Different = []string{"A"} }},
		{"definitions", Warning, "not known", func(f *Facts, _ *Cluster) { f.Definitions.Err = hidden }},
		{"operator", Wrong, "NO LEADER", func(f *Facts, _ *Cluster) { f.Operator.Problem = "NO LEADER" }},
		{"operator", Warning, "not known", func(f *Facts, _ *Cluster) { f.Operator.Err = hidden }},
		{"operator", Warning, "1 of 2 replicas", func(f *Facts, _ *Cluster) { f.Deployment.It.Status.ReadyReplicas = 1 }},
		{"rights", Wrong, "helenus may not get pods", func(f *Facts, _ *Cluster) { f.Rights.It.Missing = []string{"get pods"} }},
		{"proof of the operator", Wrong, "may not get pods", func(f *Facts, _ *Cluster) {
			f.Proof.It = &metav1.Condition{Status: metav1.ConditionFalse, Message: "may not get pods"}
		}},
		{"proof of the operator", Warning, "not known", func(f *Facts, _ *Cluster) { f.Proof.Err = hidden }},
		{"rights", Warning, "not known", func(f *Facts, _ *Cluster) { f.Rights.Err = hidden }},
		{"policies", Wrong, "B: missing", func(f *Facts, _ *Cluster) { f.Policies.It.Missing = []string{"B"} }},
		{"policy helenus-agent", Wrong, "accepted", func(f *Facts, _ *Cluster) { f.Refusals[0].Err = nil }},
		{"policy helenus-agent", Warning, "not tried", func(f *Facts, _ *Cluster) { f.Refusals[0].Err = errUntried }},
		{"policy helenus-agent", Warning, "not known", func(f *Facts, _ *Cluster) { f.Refusals[0].Err = hidden }},
		{"watched", Wrong, "does not look after namespace shop", func(f *Facts, _ *Cluster) {
			f.containers()[0].Args = []string{"--agent-image=x", "--namespaces=bank,shops"}
		}},
		{"zones", Wrong, "with a", func(f *Facts, _ *Cluster) { f.Hosts.It[0].Labels = nil }},
		{"zones", Warning, "not known", func(f *Facts, _ *Cluster) { f.Hosts = Seen[[]corev1.Node]{Err: hidden} }},
		{"storage", Wrong, "none", func(f *Facts, _ *Cluster) { f.Classes.It[0].Annotations = nil }},
		{"storage", Wrong, "fast is not there", func(_ *Facts, c *Cluster) {
			c.Spec.Node.Storage.Claims.Data.StorageClassName = new("fast")
		}},
		{"storage", Warning, "cannot grow", func(f *Facts, _ *Cluster) { f.Classes.It[0].AllowVolumeExpansion = nil }},
		{"storage", Warning, "before their pods", func(f *Facts, _ *Cluster) {
			f.Classes.It[0].VolumeBindingMode = new(storagev1.VolumeBindingImmediate)
		}},
		{"storage", Warning, "not known", func(f *Facts, _ *Cluster) { f.Classes.Err = hidden }},
		{"agents", Wrong, "orders-dc1-r1-0 (timeout)", func(_ *Facts, c *Cluster) {
			n := &c.Inspection.It.Snapshot.Nodes[0]
			n.Agent, n.Unreachable = nil, "timeout"
		}},
		{"agents", Warning, "not known", func(_ *Facts, c *Cluster) { c.Inspection = Seen[*inspectapi.Inspection]{Err: hidden} }},
		{"clocks", Warning, "2 s apart", func(_ *Facts, c *Cluster) {
			c.Status.Notices = []v1alpha1.Notice{{Reason: "Other"}, {Reason: v1alpha1.NoticeClocksDiffer, Message: "2 s apart"}}
		}},
		{"clocks", Warning, "not known", func(_ *Facts, c *Cluster) { c.Status.Conditions = nil }},
		{"DNS", Wrong, "orders leads not to orders-dc1-r1-0", func(_ *Facts, c *Cluster) { c.Named.It = nil }},
		{"DNS", Warning, "not known", func(_ *Facts, c *Cluster) { c.Pods.Err = hidden }},
		{"certificates", Wrong, "tls since 2026-02-27", func(_ *Facts, c *Cluster) {
			c.Secrets.It[0].Annotations[v1alpha1.AnnotationRenewAfter] = "2026-02-27T00:00:00Z"
		}},
		{"certificates", Wrong, "edited", func(_ *Facts, c *Cluster) {
			c.Status.Blocked = []v1alpha1.BlockedStep{{Reason: v1alpha1.BlockedCAModified, Message: "edited"}}
		}},
		{"certificates", Warning, "not known", func(_ *Facts, c *Cluster) { c.Secrets.Err = hidden }},
		{"conditions", Warning, "not seen the spec", func(_ *Facts, c *Cluster) { c.Generation++ }},
		{"condition Ready", Warning, "False, X: why", condition("Ready", "X", "False")},
		{"condition Available", Wrong, "Unknown, X: why", condition("Available", "X", "Unknown")},
		{"condition Healthy", Warning, "Stopped", condition("Healthy", v1alpha1.ReasonStopped, "False")},
		{"condition UpToDate", Warning, "why", condition("UpToDate", "X", "False")},
		{"condition Stalled", Wrong, "InvalidSpec", condition("Stalled", "InvalidSpec", "True")},
	} {
		t.Run(c.check+" "+c.words, func(t *testing.T) {
			f := sound()
			c.change(f, &f.Clusters[0])
			found := false
			for _, is := range Judge(f) {
				if is.Check == c.check {
					found = true
					if is.Result != c.result || !strings.Contains(is.Found, c.words) {
						t.Errorf("%+v", is)
					}
				} else if is.Result != Good {
					t.Errorf("it is found by another check: %+v", is)
				}
			}
			if !found {
				t.Error("it is not found")
			}
		})
	}
}

// Objects of another release are no fault where plugin and operator differ. The oldest Kubernetes
// is that of the chart.
func TestReleases(t *testing.T) {
	f := sound()
	f.Plugin, f.Policies.It.Different = "v2", []string{"B"}
	if is := f.compared(f.Policies.It); is.Result != Warning || !strings.Contains(is.Help, "use the plugin") {
		t.Errorf("%+v", is)
	}
	chart, err := os.ReadFile("../../../charts/helenus/Chart.yaml")
	if err != nil || !strings.Contains(string(chart), `kubeVersion: ">=`+oldest+`.0-0"`) {
		t.Errorf("the chart has another: %s (%v)", chart, err)
	}
}
