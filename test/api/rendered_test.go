package api

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// resources of the kinds that the operator makes.
var resources = map[string]string{
	"Pod": "pods", "PersistentVolumeClaim": "persistentvolumeclaims", "Service": "services", "ConfigMap": "configmaps",
	"Secret":         "secrets",
	"ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings",
	"PodDisruptionBudget": "poddisruptionbudgets",
	"NetworkPolicy":       "networkpolicies",
	"CassandraNode":       "cassandranodes",
}

// TestRenderedObjects: what the operator makes of each sample, and of a cluster that uses every
// field, is accepted, from the operator with its own rights, in a namespace that enforces the Pod
// Security Standard "restricted", and to the last field. A record that comes back from the API
// server describes the same node as before: else the operator would see a change where there is
// none, and restart what nobody asked it to.
func TestRenderedObjects(t *testing.T) {
	paths, err := filepath.Glob("../../config/samples/*.yaml")
	must(t, err)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		name := filepath.Base(path)
		return strings.HasPrefix(name, "task-") || strings.HasPrefix(name, "backup") || name == "restore.yaml"
	})
	paths = append(paths, "testdata/everything.yaml")
	operator := withToken(tokenOf(t, "helenus-system", "helenus", nil))
	install := facts.Install{Version: "test", ImageRepository: "cassandra", AgentImage: "helenus-agent",
		Namespace: "helenus-system"}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			namespace := namespace(t)
			_, err := typedClient(t, server).CoreV1().Namespaces().Patch(t.Context(), namespace,
				"application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`),
				metav1.PatchOptions{})
			must(t, err)
			cluster := sample(t, path, namespace)
			owner := render.OwnerOf(cluster)
			for _, object := range render.SharedObjects(owner, cluster.Spec.Datacenters) {
				if secret, ok := object.(*corev1.Secret); ok {
					// It is made without a content, which the operator fills in.
					secret.Data = map[string][]byte{pki.KeyCertificate: {}, pki.KeyPrivateKey: {}}
				}
				makeAs(t, operator, object, nil)
			}
			policy, kept := render.NetworkPolicy(cluster, install), networkingv1.NetworkPolicy{}
			makeAs(t, operator, policy, &kept)
			if !equality.Semantic.DeepEqual(kept.Spec, policy.Spec) {
				t.Errorf("the network policy comes back as another, and would be written for ever: %+v", kept.Spec)
			}
			made := 0
			for _, wanted := range render.WantedNodes(cluster, install) {
				record := render.Record(owner, wanted, nil, "")
				for _, volume := range render.Volumes(wanted.Pod) {
					var claim corev1.PersistentVolumeClaim
					makeAs(t, operator, render.Claim(owner, record, volume), &claim)
					record.Spec.Claims = append(record.Spec.Claims, render.Reference(volume.Name, &claim))
				}
				var stored v1alpha1.CassandraNode
				makeAs(t, operator, record, &stored)
				if render.HashesOf(&stored).Hashes != wanted.Hashes() {
					t.Errorf("%s: the record comes back as another: %v", wanted.Name,
						render.Differences(&stored, wanted))
				}
				pod, err := render.Pod(owner, &stored, install)
				must(t, err)
				makeAs(t, operator, pod, nil)
				made++
			}
			if made == 0 {
				t.Error("the sample has no nodes")
			}
		})
	}
}

// sample stores a sample and reads it as the operator does.
func sample(t *testing.T, path, namespace string) *v1alpha1.CassandraCluster {
	t.Helper()
	objects, err := decode(path)
	must(t, err)
	stored, err := dynamicClient(t, server).Resource(clusters).Namespace(namespace).Create(t.Context(), objects[0],
		metav1.CreateOptions{})
	must(t, err)
	cluster := &v1alpha1.CassandraCluster{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, cluster))
	return cluster
}

// makeAs makes an object as somebody, strictly, and reads what came of it into another.
func makeAs(t *testing.T, who *rest.Config, object, into runtime.Object) {
	t.Helper()
	stored, err := makeObject(t.Context(), dynamicClient(t, who), object)
	must(t, err)
	if into != nil {
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, into))
	}
}

func makeObject(ctx context.Context, client dynamic.Interface, object runtime.Object) (*unstructured.Unstructured,
	error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	u := &unstructured.Unstructured{Object: content}
	name, ok := resources[u.GetKind()]
	if !ok {
		return nil, fmt.Errorf("no resource is known for kind %q", u.GetKind())
	}
	stored, err := client.Resource(u.GroupVersionKind().GroupVersion().WithResource(name)).Namespace(u.GetNamespace()).
		Create(ctx, u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, fmt.Errorf("make %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return stored, nil
}
