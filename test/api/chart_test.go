package api

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// rendered is the chart with values, in a namespace. Helm's library is in a module of its own.
func rendered(t *testing.T, namespace, values string) (path string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	must(t, os.WriteFile(file, []byte(values), 0o600))
	command := exec.CommandContext(t.Context(), "go", "run", "./render", "--namespace", namespace, "--values", file)
	command.Dir = "../../tools/generate"
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		t.Log(said.String())
		return said.String(), err
	}
	path = filepath.Join(t.TempDir(), "chart.yaml")
	must(t, os.WriteFile(path, text, 0o600))
	return path, nil
}

// placed is where an object of a manifest is written.
func placed(t *testing.T, mapper meta.RESTMapper, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	kind := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	must(t, err)
	of := dynamicClient(t, server).Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return of.Namespace(o.GetNamespace())
	}
	return of
}

// TestChart: what the chart makes of values, the API server takes; and an operator that looks after
// some namespaces has rights there alone.
func TestChart(t *testing.T) {
	known, err := discovery.NewDiscoveryClientForConfig(server)
	must(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))
	for _, name := range []string{"chart-shop", "chart-bank", "chart-operator"} {
		_, err := typedClient(t, server).CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
	}
	const narrow = `
watch: {namespaces: [chart-shop, chart-bank]}
images:
  operator: {repository: registry.example.com/helenus/operator, digest: "sha256:DIGEST"}
  agent: {repository: registry.example.com/helenus/agent, tag: v1}
  cassandra: {repository: registry.example.com/cassandra}
  pullSecrets: [{name: pull}]
serviceAccount: {annotations: {iam.example.com/role: helenus}}
podAnnotations: {example.com/a: "1"}
podLabels: {team: data}
nodeSelector: {kubernetes.io/arch: arm64}
tolerations: [{key: dedicated, operator: Equal, value: system, effect: NoSchedule}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions:
  [{key: zone, operator: Exists}]}}]}}
priorityClassName: system-cluster-critical
resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}
replicas: 3
verbose: true
`
	for name, c := range map[string]struct{ namespace, values string }{
		"as it is":             {"helenus-system", "{}"},
		"without definitions":  {"helenus-system", "crds: {install: false}\nnetworkPolicy: {enabled: false}\n"},
		"with everything else": {"chart-operator", strings.ReplaceAll(narrow, "DIGEST", strings.Repeat("0f", 32))},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := rendered(t, c.namespace, c.values)
			must(t, err)
			objects, err := decode(path)
			must(t, err)
			for _, o := range objects {
				if _, err := placed(t, mapper, o).Apply(t.Context(), o.GetName(), o,
					metav1.ApplyOptions{FieldManager: "chart", Force: true, DryRun: dry}); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
			if c.namespace == "helenus-system" {
				return
			}
			// Its roles for real, under names that are nobody else's.
			for _, o := range objects {
				switch o.GetKind() {
				case "ClusterRoleBinding":
					o.SetName("chart-" + o.GetName())
				case "Role", "RoleBinding":
				default:
					continue
				}
				if o.GetNamespace() != "kube-system" {
					_, err := placed(t, mapper, o).Apply(t.Context(), o.GetName(), o,
						metav1.ApplyOptions{FieldManager: "chart", Force: true})
					must(t, err)
				}
			}
		})
	}
	t.Run("a key that it does not know", func(t *testing.T) {
		said, err := rendered(t, "helenus-system", "image: mine\n")
		if err == nil || !strings.Contains(said, "'image'") {
			t.Errorf("%v: %s", err, said)
		}
	})
	user := "system:serviceaccount:chart-operator:helenus"
	for r, want := range map[request]bool{
		{verb: "get", resource: "secrets", namespace: "chart-shop"}:                                           true,
		{verb: "create", resource: "pods", namespace: "chart-bank"}:                                           true,
		{verb: "watch", group: "helenus.io", resource: "cassandraclusters", namespace: "chart-shop"}:          true,
		{verb: "watch", resource: "nodes"}:                                                                    true,
		{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"}:                            true,
		{verb: "update", group: leaseGroup, resource: "leases", namespace: "chart-operator", name: "helenus"}: true,
		{verb: "get", resource: "secrets", namespace: "default"}:                                              false,
		{verb: "get", resource: "secrets", namespace: "chart-operator"}:                                       false,
		{verb: "create", resource: "pods", namespace: "default"}:                                              false,
		{verb: "watch", group: "helenus.io", resource: "cassandraclusters"}:                                   false,
		{verb: "create", group: rbacGroup, resource: "rolebindings", namespace: "default"}:                    false,
		{verb: "delete", resource: "persistentvolumes"}:                                                       false,
	} {
		if got := may(t, user, nil, r); got != want {
			t.Errorf("%s: %t, want %t", r, got, want)
		}
	}
}
