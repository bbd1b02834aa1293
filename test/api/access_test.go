package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"helenus.io/helenus/api/v1alpha1"
)

var (
	clusters  = v1alpha1.GroupVersion.WithResource("cassandraclusters")
	nodes     = v1alpha1.GroupVersion.WithResource("cassandranodes")
	tasks     = v1alpha1.GroupVersion.WithResource("cassandratasks")
	schedules = v1alpha1.GroupVersion.WithResource("cassandrataskschedules")
	stores    = v1alpha1.GroupVersion.WithResource("cassandrabackupstores")
	backups   = v1alpha1.GroupVersion.WithResource("cassandrabackups")

	backupSchedules = v1alpha1.GroupVersion.WithResource("cassandrabackupschedules")
	restores        = v1alpha1.GroupVersion.WithResource("cassandrarestores")
)

// The identities that policies know. Tests of the schema impersonate them; tests of the policies
// use real tokens for the agents.
const (
	operatorUser  = "system:serviceaccount:helenus-system:helenus"
	collectorUser = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceUser = "system:serviceaccount:kube-system:namespace-controller"
	podNameKey    = "authentication.kubernetes.io/pod-name"
	podUIDKey     = "authentication.kubernetes.io/pod-uid"
)

// as is a client configuration that impersonates a user. With the group system:masters no role
// stands in the way, so that what refuses is a schema or a policy.
func as(user string, extra map[string][]string, groups ...string) *rest.Config {
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups, Extra: extra}
	return config
}

const masters = "system:masters"

func dynamicClient(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	return client
}

func typedClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// namespace makes a namespace for one test.
func namespace(t testing.TB) string {
	t.Helper()
	made, err := dynamicClient(t, server).Resource(schema.GroupVersionResource{Version: "v1",
		Resource: "namespaces"}).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "test-"},
		}}, metav1.CreateOptions{})
	must(t, err)
	return made.GetName()
}

// eventually waits until a condition holds that the API server or a controller brings about by
// itself.
func eventually(ctx context.Context, what string, condition func(ctx context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, condition); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// decode reads the documents of a YAML file.
func decode(path string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// apply applies a manifest as a user would, and waits until what it defines is in force.
func apply(ctx context.Context, path string) error {
	objects, err := decode(path)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(server)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	known, err := discovery.NewDiscoveryClientForConfig(server)
	if err != nil {
		return fmt.Errorf("make discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))
	for _, object := range objects {
		if err := applyObject(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return inForce(ctx, client, objects)
}

func applyObject(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper,
	object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find resource: %w", err)
	}
	resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

// inForce waits until the definitions are served and each policy is enforced, which the API server
// begins shortly after they are stored.
func inForce(ctx context.Context, client dynamic.Interface, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		resource := schema.GroupVersionResource{
			Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: strings.TrimSuffix(object.GetName(), "."+v1alpha1.Group),
		}
		err := eventually(ctx, object.GetName()+" is served", func(ctx context.Context) (bool, error) {
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
	for policy, probe := range map[string]func(context.Context) error{
		"helenus-node-record": func(ctx context.Context) error {
			return create(ctx, server, nodes, "default", base("CassandraNode"))
		},
		"helenus-agent": func(ctx context.Context) error {
			return create(ctx, as("system:serviceaccount:default:probe-helenus-agent", nil, masters), clusters,
				"default", base("CassandraCluster"))
		},
		"helenus-cluster": func(ctx context.Context) error {
			return create(ctx, as(operatorUser, nil, masters), clusters, "default", base("CassandraCluster"))
		},
		"helenus-operator": operatorProbe,
		"helenus-settings": func(ctx context.Context) error {
			object := base("CassandraCluster")
			if err := put(object.Object, "spec.node.cassandraYaml",
				map[string]any{"num_tokens": int64(4)}); err != nil {
				return err
			}
			return create(ctx, server, clusters, "default", object)
		},
		"helenus-node-status": nodeStatusProbe,
	} {
		err := eventually(ctx, policy+" is enforced", func(ctx context.Context) (bool, error) {
			err := probe(ctx)
			return err != nil && strings.Contains(err.Error(), policy), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// operatorProbe makes a pod as the operator, of no cluster. The account that it would have is real,
// and stays: without it the pod is refused before.
func operatorProbe(ctx context.Context) error {
	accounts := corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"name": v1alpha1.AgentServiceAccountName("demo")}}}
	client, err := dynamic.NewForConfig(server)
	if err != nil {
		return err
	}
	_, err = client.Resource(accounts).Namespace("default").Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return create(ctx, as(operatorUser, nil, masters), pods, "default", podOf(nil))
}

// nodeStatusProbe writes the status of a record as somebody who may not. The record is real, and
// stays.
func nodeStatusProbe(ctx context.Context) error {
	operator, err := dynamic.NewForConfig(as(operatorUser, nil, masters))
	if err != nil {
		return err
	}
	record := base("CassandraNode")
	record.SetName("demo-dc1-r1-99")
	if err := put(record.Object, "spec.ordinal", int64(99)); err != nil {
		return err
	}
	if _, err := operator.Resource(nodes).Namespace("default").Create(ctx, record,
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	current, err := operator.Resource(nodes).Namespace("default").Get(ctx, record.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	_, err = operator.Resource(nodes).Namespace("default").UpdateStatus(ctx, current,
		metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// create asks whether an object would be created.
func create(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace string,
	object *unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(namespace).Create(ctx, object,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
