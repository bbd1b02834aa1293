package compare

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// subject is a kind that is compared: what objects of it look like, and what is changed about them.
type subject struct {
	gvk    schema.GroupVersionKind
	global bool
	// names of its objects.
	names []string
	// bodies are what Helenus or Kubernetes make of it.
	bodies []map[string]any
	// changes of single fields, right and wrong ones; statusChanges are those of its status, if it
	// has one.
	changes, statusChanges []change
}

// makesByStatus says that a write of the status of what is not there makes it, half done. Only
// services have that, and nobody means it: it is left out.
func (s *subject) makesByStatus() bool { return s.gvk.Kind == "Service" }

var subjects []*subject

func kindNamed(name string) *subject {
	i := slices.IndexFunc(subjects, func(s *subject) bool { return s.gvk.Kind == name })
	return subjects[i]
}

// metadataChanges are made to objects of every kind.
var metadataChanges = []change{
	{`metadata.labels.color`, "red"},
	{`metadata.labels.color`, "blue"},
	{`metadata.labels.color`, nil},
	{`metadata.labels.color`, "not a label"},
	{`metadata.labels."not/a/key"`, "x"},
	{`metadata.annotations.note`, "one"},
	{`metadata.annotations.note`, nil},
	{`metadata.annotations."not a key"`, "x"},
	{`metadata.finalizers`, []any{"test.helenus.io/hold"}},
	{`metadata.finalizers`, []any{"test.helenus.io/hold", "test.helenus.io/other"}},
	{`metadata.finalizers`, []any{"not a finalizer"}},
	{`metadata.finalizers`, nil},
	{`metadata.ownerReferences`, []any{owner("Namespace", "a", wrongUID)}},
	{`metadata.ownerReferences`, []any{owner("Namespace", "a", wrongUID), owner("Namespace", "a", wrongUID)}},
	{`metadata.ownerReferences`, nil},
	{`metadata.generation`, int64(7)},
	{`metadata.creationTimestamp`, "2001-01-01T00:00:00Z"},
	{`metadata.deletionTimestamp`, "2001-01-01T00:00:00Z"},
	{`metadata.deletionGracePeriodSeconds`, int64(7)},
	{`metadata.managedFields`, []any{}},
}

func owner(kind, name, uid string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}
}

// loadSubjects makes the bodies, once for all tests: the operator's own rendering of clusters that
// a server has filled the defaults in of.
func loadSubjects(t *testing.T) {
	t.Helper()
	if len(subjects) > 0 {
		return
	}
	c, err := client.New(server, client.Options{Scheme: scheme})
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rendered"}}))
	install := facts.Install{Version: "test", ImageRepository: "cassandra", AgentImage: "helenus-agent"}
	for _, path := range []string{"../../../config/samples/demo.yaml", "../testdata/everything.yaml"} {
		text, err := os.ReadFile(path)
		must(t, err)
		cluster := &v1alpha1.CassandraCluster{}
		must(t, yaml.Unmarshal(text, cluster))
		addBody(t, cluster)
		cluster.Namespace = "rendered"
		must(t, c.Create(context.Background(), cluster))
		addRendered(t, cluster, install)
	}
	for _, gvk := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
		corev1.SchemeGroupVersion.WithKind("Namespace"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), eventsv1.SchemeGroupVersion.WithKind("Event"),
	} {
		for _, text := range written[gvk.Kind] {
			object, err := scheme.New(gvk)
			must(t, err)
			must(t, yaml.UnmarshalStrict([]byte(text), object))
			addBody(t, object.(client.Object))
		}
	}
	for _, s := range subjects {
		s.changes, s.statusChanges = changesOf[s.gvk.Kind], statusChangesOf[s.gvk.Kind]
		s.names = []string{"n0", "n0", "n1"}
		if s.gvk.Kind == "CassandraNode" {
			// The name of a record says which node it is of.
			s.bodies = s.bodies[:1]
			s.names = []string{recordName(s.bodies[0], 0), recordName(s.bodies[0], 0), recordName(s.bodies[0], 1), "n0"}
		}
	}
}

// recordName is the name that a record must have.
func recordName(body map[string]any, ordinal int) string {
	spec := body["spec"].(map[string]any)
	return fmt.Sprintf("%s-%s-%s-%d", spec["cluster"].(map[string]any)["name"], spec["datacenter"], spec["rack"],
		ordinal)
}

func addRendered(t *testing.T, cluster *v1alpha1.CassandraCluster, install facts.Install) {
	t.Helper()
	by := render.OwnerOf(cluster)
	for _, object := range render.SharedObjects(by, cluster.Spec.Datacenters) {
		if secret, ok := object.(*corev1.Secret); ok {
			// It is made without a content, which the operator fills in.
			secret.Data = map[string][]byte{pki.KeyCertificate: {}, pki.KeyPrivateKey: {}}
		}
		addBody(t, object)
	}
	addBody(t, render.NetworkPolicy(cluster, install))
	addBody(t, render.Seeds(by, []string{"10.0.0.1"}, nil))
	addBody(t, render.Ledger(by, map[string]string{"a": "b"}))
	wanted := render.WantedNodes(cluster, install)[0]
	record := render.Record(by, wanted, nil, "")
	for _, volume := range render.Volumes(wanted.Pod) {
		claim := render.Claim(by, record, volume)
		addBody(t, claim)
		claim.UID = wrongUID
		record.Spec.Claims = append(record.Spec.Claims, render.Reference(volume.Name, claim))
	}
	addBody(t, record)
	record.UID = wrongUID
	secret := render.CertificateSecret(by, v1alpha1.UseAgent, record)
	secret.Data = map[string][]byte{pki.KeyCertificate: {}, pki.KeyPrivateKey: {}}
	addBody(t, secret)
	pod, err := render.Pod(by, record, install)
	must(t, err)
	addBody(t, pod)
}

// addBody adds an object to the bodies of its kind.
func addBody(t *testing.T, object client.Object) {
	t.Helper()
	gvk, err := apiutil.GVKForObject(object, scheme)
	must(t, err)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, key := range []string{"name", "namespace", "creationTimestamp", "uid", "resourceVersion"} {
			delete(metadata, key)
		}
	}
	delete(content, "status")
	if gvk.Kind == "Node" {
		content["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&object.(*corev1.Node).Status)
		must(t, err)
	}
	i := slices.IndexFunc(subjects, func(s *subject) bool { return s.gvk == gvk })
	if i < 0 {
		i = len(subjects)
		subjects = append(subjects, &subject{gvk: gvk,
			global: slices.Contains([]string{"Node", "PersistentVolume", "Namespace"}, gvk.Kind)})
	}
	subjects[i].bodies = append(subjects[i].bodies, content)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written are bodies of what Kubernetes itself makes.
var written = map[string][]string{
	"Node": {`
metadata: {labels: {kubernetes.io/hostname: m1, topology.kubernetes.io/zone: a}}
status: {conditions: [{type: Ready, status: "True", reason: KubeletReady}]}
`},
	"Event": {`
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: helenus
reportingInstance: helenus-0
action: Pass
reason: Formed
regarding: {apiVersion: helenus.io/v1alpha1, kind: CassandraCluster, namespace: a, name: n0}
note: the ring has formed
type: Normal
`},
	"Lease": {`
spec: {holderIdentity: helenus-0, leaseDurationSeconds: 15, acquireTime: "2026-01-01T00:00:00.000000Z", renewTime: "2026-01-01T00:00:00.000000Z", leaseTransitions: 0}
`},
	"Namespace": {`
metadata: {labels: {team: shop}}
`},
	"PersistentVolume": {`
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: standard
  persistentVolumeReclaimPolicy: Delete
  local: {path: /data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [m1]}]}]}}
`},
}

func list(values ...any) []any { return values }

func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return out
}
