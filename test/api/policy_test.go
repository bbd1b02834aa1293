package api

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"helenus.io/helenus/api/v1alpha1"
)

const policies = "../../config/policy"

// validation is one validation of a policy.
type validation struct {
	policy, expression string
	words              *regexp.Regexp
}

func validations(dir string) ([]validation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	var all []validation
	for _, path := range paths {
		objects, err := decode(path)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			list, _, err := unstructured.NestedSlice(object.Object, "spec", "validations")
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			for _, item := range list {
				fields := item.(map[string]any)
				message, _ := fields["message"].(string)
				expression, _ := fields["messageExpression"].(string)
				words, err := wordsOf(message, expression)
				if err != nil {
					return nil, fmt.Errorf("read %s: %w", path, err)
				}
				all = append(all, validation{object.GetName(), fields["expression"].(string), words})
			}
		}
	}
	return all, nil
}

// scene is a namespace with two nodes of the cluster demo and everybody who might want to write
// something.
type scene struct {
	t         *testing.T
	namespace string
	cluster   types.UID
	pods      [2]*corev1.Pod
	who       map[string]*rest.Config
}

// Actors of a scene. All service accounts have the role cluster-admin there, so that only policies
// are in their way; operator is the real one, with its own role.
const (
	admin         = "administrator"
	operator      = "operator"
	collector     = "garbage collector"
	namespaceCtrl = "namespace controller"
	manager       = "controller manager without accounts"
	agent0        = "agent of node 0"
	agent1        = "agent of node 1"
	unbound       = "unbound token of the agents"
	secret        = "Secret token of the agents"
	stranger      = "agent of another cluster"
	application   = "pod of an application"
)

func newScene(t *testing.T) *scene {
	s := &scene{t: t, namespace: namespace(t)}
	account := v1alpha1.AgentServiceAccountName("demo")
	other := v1alpha1.AgentServiceAccountName("other")
	for _, name := range []string{account, other, "app"} {
		serviceAccount(t, s.namespace, name)
	}
	_, err := typedClient(t, server).RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName,
			Name: "system:serviceaccounts:" + s.namespace}},
	}, metav1.CreateOptions{})
	must(t, err)
	for i := range s.pods {
		s.pods[i] = pod(t, s.namespace, nodeName(i), account)
	}
	s.who = map[string]*rest.Config{
		admin:         server,
		operator:      withToken(tokenOf(t, "helenus-system", "helenus", nil)),
		collector:     as(collectorUser, nil, masters),
		namespaceCtrl: as(namespaceUser, nil, masters),
		manager:       as("system:kube-controller-manager", nil, masters),
		agent0:        withToken(tokenOf(t, s.namespace, account, s.pods[0])),
		agent1:        withToken(tokenOf(t, s.namespace, account, s.pods[1])),
		unbound:       withToken(tokenOf(t, s.namespace, account, nil)),
		secret:        withToken(secretToken(t, s.namespace, account)),
		stranger:      withToken(tokenOf(t, s.namespace, other, pod(t, s.namespace, "other-dc1-r1-0", other))),
		application:   withToken(tokenOf(t, s.namespace, "app", pod(t, s.namespace, "app", "app"))),
	}
	_, err = s.in(admin, tasks).Create(t.Context(), base("CassandraTask"), metav1.CreateOptions{})
	must(t, err)
	_, err = s.in(admin, stores).Create(t.Context(), base("CassandraBackupStore"), metav1.CreateOptions{})
	must(t, err)
	_, err = s.in(admin, backups).Create(t.Context(), base("CassandraBackup"), metav1.CreateOptions{})
	must(t, err)
	_, err = s.in(admin, schedules).Create(t.Context(), base("CassandraTaskSchedule"), metav1.CreateOptions{})
	must(t, err)
	cluster, err := s.in(admin, clusters).Create(t.Context(), base("CassandraCluster"),
		metav1.CreateOptions{})
	must(t, err)
	s.cluster = cluster.GetUID()
	for i := range s.pods {
		_, err := s.in(operator, nodes).Create(t.Context(), s.record(i), metav1.CreateOptions{})
		must(t, err)
	}
	return s
}

func nodeName(i int) string { return v1alpha1.NodeName("demo", "dc1", "r1", int32(i)) }

// record is the record of a node as the operator makes it.
func (s *scene) record(i int) *unstructured.Unstructured {
	record := base("CassandraNode")
	record.SetName(nodeName(i))
	record.SetFinalizers([]string{v1alpha1.FinalizerNode})
	record.SetOwnerReferences(ownedBy(s.cluster))
	must(s.t, put(record.Object, "spec", map[string]any{"ordinal": int64(i)}))
	return record
}

func (s *scene) in(who string, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return dynamicClient(s.t, s.who[who]).Resource(resource).Namespace(s.namespace)
}

var dry = []string{metav1.DryRunAll}

// change writes back an object after a change of it.
func (s *scene) change(who string, resource schema.GroupVersionResource, name string, path string, value any,
	subresources ...string) error {
	current, err := s.in(admin, resource).Get(s.t.Context(), name, metav1.GetOptions{})
	must(s.t, err)
	must(s.t, put(current.Object, path, value))
	_, err = s.in(who, resource).Update(s.t.Context(), current, metav1.UpdateOptions{DryRun: dry}, subresources...)
	return err
}

// status writes the status of node i for the pod of node j.
func (s *scene) status(who string, i, j int) error {
	return s.change(who, nodes, nodeName(i), "status",
		map[string]any{"podUID": string(s.pods[j].UID), "phase": "Waiting"}, "status")
}

// create makes a task that an object of a kind owns; of no kind, nobody.
func (s *scene) create(who, owner string) error {
	task := base("CassandraTask")
	task.SetName("another")
	if owner != "" {
		task.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: owner,
			Name: "owner", UID: "owner", Controller: new(true)}})
	}
	_, err := s.in(who, tasks).Create(s.t.Context(), task, metav1.CreateOptions{DryRun: dry})
	return err
}

// backup has somebody create one with labels.
func (s *scene) backup(who string, labels map[string]string) error {
	b := base("CassandraBackup")
	b.SetName("another")
	b.SetLabels(labels)
	_, err := s.in(who, backups).Create(s.t.Context(), b, metav1.CreateOptions{DryRun: dry})
	return err
}

// drill makes a cluster as the operator, with these labels.
func (s *scene) drill(labels map[string]string) error {
	c := base("CassandraCluster")
	c.SetName("another")
	c.SetLabels(labels)
	_, err := s.in(operator, clusters).Create(s.t.Context(), c, metav1.CreateOptions{DryRun: dry})
	return err
}

// podOf is a pod of the cluster demo as far as the policy of the operator asks, with these labels.
func podOf(labels map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": nodeName(2), "labels": labels},
		"spec": map[string]any{
			"serviceAccountName": v1alpha1.AgentServiceAccountName("demo"), "automountServiceAccountToken": false,
			"containers": []any{map[string]any{"name": "x", "image": "x"}},
		},
	}}
}

// pod has the operator make one with another value at a path.
func (s *scene) pod(path string, value any) error {
	pod := podOf(map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: "demo"})
	if path != "" {
		must(s.t, put(pod.Object, path, value))
	}
	_, err := s.in(operator, corev1.SchemeGroupVersion.WithResource("pods")).Create(s.t.Context(), pod,
		metav1.CreateOptions{DryRun: dry})
	return err
}

func (s *scene) delete(who string, resource schema.GroupVersionResource, name string) error {
	return s.in(who, resource).Delete(s.t.Context(), name, metav1.DeleteOptions{DryRun: dry})
}

func (s *scene) deleteAll(who string, resource schema.GroupVersionResource) error {
	return s.in(who, resource).DeleteCollection(s.t.Context(), metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
}

const (
	byStatus   = "helenus-node-status"
	byRecord   = "helenus-node-record"
	byCluster  = "helenus-cluster"
	byAgent    = "helenus-agent"
	bySettings = "helenus-settings"
	byOperator = "helenus-operator"
)

var denied = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: ((?s).*)$`)

// TestPolicies tries what each actor may and may not write, and then asks whether each validation
// of the policies has refused something, and each policy has let something pass.
func TestPolicies(t *testing.T) {
	s := newScene(t)
	all, err := validations(policies)
	must(t, err)
	if len(all) == 0 {
		t.Fatal("the policies have no validations")
	}
	agents := "system:serviceaccount:" + s.namespace + ":demo-helenus-agent"
	app := "system:serviceaccount:" + s.namespace + ":app"
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	refused, accepted := map[string]bool{}, map[string]bool{}
	for _, c := range []struct {
		name   string
		policy string
		do     func() error
		// refused is the message; empty means that it is accepted.
		refused string
	}{
		{"an agent writes its own status", byStatus, func() error { return s.status(agent0, 0, 0) }, ""},
		{"an agent writes the status of another node", byStatus, func() error { return s.status(agent1, 0, 0) },
			"the agent of pod demo-dc1-r1-1 may not write the status of demo-dc1-r1-0"},
		{"an agent writes the status of another node for its own pod", byStatus,
			func() error { return s.status(agent1, 0, 1) },
			"the agent of pod demo-dc1-r1-1 may not write the status of demo-dc1-r1-0"},
		{"an agent writes its status for another pod", byStatus, func() error { return s.status(agent0, 0, 1) },
			"status.podUID must be the uid of the pod that the token is bound to, " + string(s.pods[0].UID)},
		{"an agent writes a status without a pod", byStatus, func() error {
			return s.change(agent0, nodes, nodeName(0), "status", map[string]any{"phase": "Waiting"}, "status")
		}, "status.podUID must be the uid of the pod that the token is bound to, " + string(s.pods[0].UID)},
		{"an unbound token writes a status", byStatus, func() error { return s.status(unbound, 0, 0) },
			"the token of " + agents + " is bound to no pod: an agent writes with the token that its own pod was " +
				"given"},
		{"a Secret token writes a status", byStatus, func() error { return s.status(secret, 0, 0) },
			"the token of " + agents + " is bound to no pod: an agent writes with the token that its own pod was " +
				"given"},
		{"an agent of another cluster writes a status", byStatus, func() error { return s.status(stranger, 0, 0) },
			"the status of a CassandraNode is written by the agent in its pod alone, not by system:serviceaccount:" +
				s.namespace + ":other-helenus-agent"},
		{"an application writes a status", byStatus, func() error { return s.status(application, 0, 0) },
			"the status of a CassandraNode is written by the agent in its pod alone, not by " + app},
		{"the operator writes a node's status", byStatus, func() error {
			_, err := s.in(operator, nodes).Patch(t.Context(), nodeName(0), "application/merge-patch+json",
				[]byte(`{"status":{"phase":"Normal"}}`), metav1.PatchOptions{DryRun: dry}, "status")
			return err
		}, "the status of a CassandraNode is written by the agent in its pod alone, not by " + operatorUser},
		{"an administrator writes a node's status", byStatus, func() error { return s.status(admin, 0, 0) },
			"the status of a CassandraNode is written by the agent in its pod alone, not by localkube-admin"},

		{"the operator makes a record", byRecord, func() error {
			_, err := s.in(operator, nodes).Create(t.Context(), s.record(2), metav1.CreateOptions{DryRun: dry})
			return err
		}, ""},
		{"an administrator makes a record", byRecord, func() error {
			_, err := s.in(admin, nodes).Create(t.Context(), s.record(2), metav1.CreateOptions{DryRun: dry})
			return err
		}, "CassandraNodes are made by the operator, not by localkube-admin: change the CassandraCluster"},
		{"the operator changes a record", byRecord,
			func() error { return s.change(operator, nodes, nodeName(0), "spec.state", "Stopped") }, ""},
		{"an application changes a record", byRecord,
			func() error { return s.change(application, nodes, nodeName(0), "spec.state", "Stopped") },
			"CassandraNodes are changed by the operator, not by " + app + ": change the CassandraCluster"},
		{"an administrator takes the finalizer of a record away", byRecord, func() error {
			return s.change(admin, nodes, nodeName(0), "metadata", map[string]any{"finalizers": nil})
		}, "CassandraNodes are changed by the operator, not by localkube-admin: change the CassandraCluster"},
		{"an administrator labels a record", byRecord, func() error {
			return s.change(admin, nodes, nodeName(0), "metadata.labels", map[string]any{"x": "y"})
		}, "CassandraNodes are changed by the operator, not by localkube-admin: change the CassandraCluster"},
		{"an administrator writes a record back as it is", byRecord,
			func() error { return s.change(admin, nodes, nodeName(0), "spec.state", "Running") }, ""},
		{"the garbage collector takes a finalizer away", byRecord, func() error {
			return s.change(collector, nodes, nodeName(0), "metadata", map[string]any{"finalizers": nil})
		}, ""},
		{"the garbage collector changes a spec", byRecord,
			func() error { return s.change(collector, nodes, nodeName(0), "spec.state", "Stopped") },
			"CassandraNodes are changed by the operator, not by " + collectorUser + ": change the CassandraCluster"},
		{"the operator deletes a record", byRecord, func() error { return s.delete(operator, nodes, nodeName(0)) }, ""},
		{"the garbage collector deletes a record", byRecord,
			func() error { return s.delete(collector, nodes, nodeName(0)) }, ""},
		{"the namespace controller deletes all records", byRecord,
			func() error { return s.deleteAll(namespaceCtrl, nodes) }, ""},
		{"the controller manager deletes a record", byRecord,
			func() error { return s.delete(manager, nodes, nodeName(0)) }, ""},
		{"an administrator deletes a record", byRecord, func() error { return s.delete(admin, nodes, nodeName(0)) },
			"CassandraNodes are deleted by the operator, not by localkube-admin: change or delete the " +
				"CassandraCluster"},
		{"an administrator deletes all records", byRecord, func() error { return s.deleteAll(admin, nodes) },
			"CassandraNodes are deleted by the operator, not by localkube-admin: change or delete the " +
				"CassandraCluster"},

		{"the operator writes the status of a cluster", byCluster, func() error {
			return s.change(operator, clusters, "demo", "status", map[string]any{"nodes": int64(3)}, "status")
		}, ""},
		{"an administrator writes the status of a cluster", byCluster, func() error {
			return s.change(admin, clusters, "demo", "status", map[string]any{"nodes": int64(3)}, "status")
		}, "the status of a CassandraCluster is written by the operator, not by localkube-admin"},
		{"the operator writes the status of a task", byCluster, func() error {
			return s.change(operator, tasks, "flush", "status", map[string]any{"phase": "Pending"}, "status")
		}, ""},
		{"an administrator writes the status of a task", byCluster, func() error {
			return s.change(admin, tasks, "flush", "status", map[string]any{"phase": "Succeeded"}, "status")
		}, "the status of a CassandraTask is written by the operator, not by localkube-admin"},
		{"the operator creates a task of nobody", byCluster, func() error { return s.create(operator, "") },
			"the operator does not write the spec of a CassandraTask: it belongs to the user"},
		{"the operator creates a task of a cluster", byCluster, func() error { return s.create(operator, "CassandraCluster") },
			"the operator does not write the spec of a CassandraTask: it belongs to the user"},
		{"the operator creates a task of a schedule", byCluster,
			func() error { return s.create(operator, "CassandraTaskSchedule") }, ""},
		{"an administrator writes the status of a schedule", byCluster, func() error {
			return s.change(admin, schedules, "nightly", "status", map[string]any{"active": "mine"}, "status")
		}, "the status of a CassandraTaskSchedule is written by the operator, not by localkube-admin"},
		{"the operator creates a backup of nobody", byCluster, func() error { return s.backup(operator, nil) },
			"the operator does not write the spec of a CassandraBackup: it belongs to the user"},
		{"the operator creates a backup of a schedule", byCluster,
			func() error { return s.backup(operator, map[string]string{v1alpha1.LabelScheduleUID: "s-1"}) }, ""},
		{"the operator holds a backup", byCluster, func() error {
			_, err := s.in(operator, backups).Patch(s.t.Context(), "nightly", "application/merge-patch+json",
				[]byte(`{"metadata":{"finalizers":["`+v1alpha1.FinalizerBackup+`"]}}`), metav1.PatchOptions{DryRun: dry})
			return err
		}, ""},
		{"the operator writes the status of a store", byCluster, func() error {
			return s.change(operator, stores, "main", "status", map[string]any{"checkedSecret": "1"}, "status")
		}, ""},
		{"an administrator writes the status of a store", byCluster, func() error {
			return s.change(admin, stores, "main", "status", map[string]any{"checkedSecret": "2"}, "status")
		}, "the status of a CassandraBackupStore is written by the operator, not by localkube-admin"},
		{"the operator sets a finalizer on a cluster", byCluster, func() error {
			return s.change(operator, clusters, "demo", "metadata",
				map[string]any{"finalizers": []any{v1alpha1.FinalizerCluster}})
		}, ""},
		{"the operator writes the spec of a cluster", byCluster,
			func() error { return s.change(operator, clusters, "demo", "spec.paused", true) },
			"the operator does not write the spec of a CassandraCluster: it belongs to the user"},
		{"the operator creates a cluster of nobody", byCluster, func() error { return s.drill(nil) },
			"the operator does not write the spec of a CassandraCluster: it belongs to the user"},
		{"the operator creates a cluster of a restore drill", byCluster,
			func() error { return s.drill(map[string]string{v1alpha1.LabelScheduleUID: "s-1"}) }, ""},
		{"the operator creates a cluster for a restore", byCluster,
			func() error { return s.drill(map[string]string{v1alpha1.LabelRestoreUID: "r-1"}) }, ""},
		{"the operator creates a backup for a restore", byCluster,
			func() error { return s.backup(operator, map[string]string{v1alpha1.LabelRestoreUID: "r-1"}) }, ""},
		{"the operator deletes a cluster", byCluster, func() error { return s.delete(operator, clusters, "demo") },
			"the operator deletes clusters of restore drills and restores alone, and demo is none"},
		{"the operator deletes a backup", byCluster, func() error { return s.delete(operator, backups, "nightly") }, ""},
		{"an administrator deletes a cluster", byCluster, func() error { return s.delete(admin, clusters, "demo") }, ""},
		{"an application writes the spec of a cluster", byCluster,
			func() error { return s.change(application, clusters, "demo", "spec.paused", true) }, ""},

		{"the operator makes a pod of a cluster", byOperator, func() error { return s.pod("", nil) }, ""},
		{"the operator makes a pod of somebody else", byOperator, func() error {
			return s.pod("metadata.labels", map[string]any{v1alpha1.LabelManagedBy: "somebody"})
		}, "the operator makes pods of clusters alone: demo-dc1-r1-2 has not the labels app.kubernetes.io/managed-by " +
			"and helenus.io/cluster"},
		{"the operator makes a pod with another account", byOperator,
			func() error { return s.pod("spec.serviceAccountName", "app") },
			"a pod of cluster demo has the service account demo-helenus-agent, and no token by itself"},
		{"the operator makes a pod with a token", byOperator,
			func() error { return s.pod("spec.automountServiceAccountToken", true) },
			"a pod of cluster demo has the service account demo-helenus-agent, and no token by itself"},
		{"the operator makes a pod in the network of its host", byOperator,
			func() error { return s.pod("spec.hostNetwork", true) },
			"the operator makes no pods with hostNetwork, hostPID or hostIPC"},
		{"the operator makes a pod with a directory of its host", byOperator, func() error {
			return s.pod("spec.volumes", []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}})
		}, "the operator makes no pods with a hostPath volume"},
		{"the operator makes a privileged container", byOperator, func() error {
			return s.pod("spec.initContainers", []any{map[string]any{"name": "root", "image": "root",
				"securityContext": map[string]any{"privileged": true}}})
		}, "the operator makes no privileged containers"},

		{"an application gives a setting that Helenus owns", bySettings, func() error {
			return s.change(application, clusters, "demo", "spec.node.cassandraYaml",
				map[string]any{"num_tokens": int64(4), "concurrent_reads": int64(4)})
		}, refusalOf("num_tokens")},
		{"an application gives another setting", bySettings, func() error {
			return s.change(application, clusters, "demo", "spec.node.cassandraYaml",
				map[string]any{"concurrent_reads": int64(4)})
		}, ""},

		{"an agent writes its own status and passes this policy too", byAgent,
			func() error { return s.status(agent0, 0, 0) }, ""},
		{"an agent pauses the cluster", byAgent,
			func() error { return s.change(agent0, clusters, "demo", "spec.paused", true) },
			agents + " is an agent of Helenus: it may write the status of its own CassandraNode and nothing else"},
		{"an agent deletes a pod", byAgent, func() error { return s.delete(agent0, pods, nodeName(1)) },
			agents + " is an agent of Helenus: it may write the status of its own CassandraNode and nothing else"},
		{"an unbound token of the agents makes a pod", byAgent, func() error {
			_, err := s.in(unbound, pods).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x"},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "x", "image": "x"}}},
			}}, metav1.CreateOptions{DryRun: dry})
			return err
		}, agents + " is an agent of Helenus: it may write the status of its own CassandraNode and nothing else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.do()
			if c.refused == "" {
				must(t, err)
				accepted[c.policy] = true
				return
			}
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Fatalf("got %v, want it refused", err)
			}
			said := denied.FindStringSubmatch(err.Error())
			if said == nil {
				t.Fatalf("refused by something else than a policy: %v", err)
			}
			for _, v := range all {
				if v.policy == said[1] && v.words.MatchString(said[2]) {
					refused[v.policy+v.expression] = true
				}
			}
			if said[1] != c.policy || said[2] != c.refused {
				t.Fatalf("refused by %s:\n  %s\nwant by %s:\n  %s", said[1], said[2], c.policy, c.refused)
			}
		})
	}
	t.Run("every-validation-was-shown", func(t *testing.T) {
		for _, v := range all {
			if !refused[v.policy+v.expression] {
				t.Errorf("no refused request: %s: %s", v.policy, v.expression)
			}
			if !accepted[v.policy] {
				t.Errorf("no accepted request: %s", v.policy)
			}
		}
		t.Logf("%d validations", len(all))
	})
}

// TestAgentsAreRefusedTwice: what an agent may not do to records, two policies refuse; which of
// them answers is not defined.
func TestAgentsAreRefusedTwice(t *testing.T) {
	s := newScene(t)
	for name, do := range map[string]func() error{
		"change its own spec": func() error { return s.change(agent0, nodes, nodeName(0), "spec.state", "Stopped") },
		"delete its record":   func() error { return s.delete(agent0, nodes, nodeName(0)) },
		"make a record": func() error {
			_, err := s.in(agent0, nodes).Create(t.Context(), s.record(2), metav1.CreateOptions{DryRun: dry})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			if said := denied.FindStringSubmatch(fmt.Sprint(err)); said == nil ||
				said[1] != byAgent && said[1] != byRecord {
				t.Fatalf("got %v, want it refused by %s or %s", err, byAgent, byRecord)
			}
		})
	}
}

// TestTokenEndsWithItsPod: the agent of a pod that is gone writes nothing, although a pod of the
// same name has taken its place.
func TestTokenEndsWithItsPod(t *testing.T) {
	s := newScene(t)
	must(t, s.status(agent0, 0, 0))
	zero := int64(0)
	must(t, typedClient(t, server).CoreV1().Pods(s.namespace).Delete(t.Context(), nodeName(0),
		metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	pod(t, s.namespace, nodeName(0), v1alpha1.AgentServiceAccountName("demo"))
	// The API server remembers for some seconds that a token was good.
	must(t, eventually(t.Context(), "the token of the old pod is refused", func(context.Context) (bool, error) {
		err := s.status(agent0, 0, 0)
		if err != nil && !apierrors.IsUnauthorized(err) {
			return false, fmt.Errorf("refused for another reason: %w", err)
		}
		return err != nil, nil
	}))
}

// TestControllersMayCollect: the controllers of Kubernetes, not merely their names, may delete the
// records of a deleted cluster and of a deleted namespace.
func TestControllersMayCollect(t *testing.T) {
	gone := func(t *testing.T, namespace string) {
		t.Helper()
		must(t, eventually(t.Context(), "the record is gone", func(ctx context.Context) (bool, error) {
			_, err := dynamicClient(t, server).Resource(nodes).Namespace(namespace).Get(ctx, nodeName(0),
				metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		}))
	}
	t.Run("namespace", func(t *testing.T) {
		namespace := namespace(t)
		_, err := dynamicClient(t, as(operatorUser, nil, masters)).Resource(nodes).Namespace(namespace).
			Create(t.Context(), base("CassandraNode"), metav1.CreateOptions{})
		must(t, err)
		must(t, typedClient(t, server).CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
		gone(t, namespace)
	})
	t.Run("garbage", func(t *testing.T) {
		namespace := namespace(t)
		cluster, err := dynamicClient(t, server).Resource(clusters).Namespace(namespace).
			Create(t.Context(), base("CassandraCluster"), metav1.CreateOptions{})
		must(t, err)
		record := base("CassandraNode")
		record.SetOwnerReferences(ownedBy(cluster.GetUID()))
		_, err = dynamicClient(t, as(operatorUser, nil,
			masters)).Resource(nodes).Namespace(namespace).Create(t.Context(), record, metav1.CreateOptions{})
		must(t, err)
		must(t, dynamicClient(t, server).Resource(clusters).Namespace(namespace).Delete(t.Context(), cluster.GetName(),
			metav1.DeleteOptions{}))
		gone(t, namespace)
	})
}
