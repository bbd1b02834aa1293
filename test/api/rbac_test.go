package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/inspectapi"
)

// request is one thing that somebody may or may not do: "verb group/resource/subresource [name]",
// in any namespace unless said.
type request struct {
	verb, group, resource, subresource, namespace, name string
}

func (r request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s/%s/%s in %q %s", r.verb, r.group, r.resource, r.subresource,
		r.namespace, r.name))
}

// may asks the API server's authoriser.
func may(t *testing.T, user string, groups []string, r request) bool {
	t.Helper()
	review, err := typedClient(t, server).AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, Groups: groups,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource,
					Subresource: r.subresource, Name: r.name,
				},
			},
		}, metav1.CreateOptions{})
	must(t, err)
	return review.Status.Allowed
}

const (
	rbacGroup  = "rbac.authorization.k8s.io"
	leaseGroup = "coordination.k8s.io"
)

// TestOperatorRole holds the operator's role to what it needs, and to no more.
func TestOperatorRole(t *testing.T) {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:helenus-system", "system:authenticated"}
	const shop = "shop"
	var allowed []request
	for _, managed := range []schema.GroupResource{
		{Resource: "pods"}, {Resource: "persistentvolumeclaims"}, {Resource: "services"}, {Resource: "configmaps"},
		{Resource: "serviceaccounts"},
		{Group: "policy", Resource: "poddisruptionbudgets"}, {Group: rbacGroup, Resource: "roles"},
		{Group: rbacGroup, Resource: "rolebindings"}, {Group: "networking.k8s.io", Resource: "networkpolicies"},
		{Group: v1alpha1.Group, Resource: "cassandranodes"},
	} {
		for _, verb := range []string{"get", "list", "watch", "create", "patch", "update", "delete"} {
			allowed = append(allowed, request{verb: verb, group: managed.Group, resource: managed.Resource,
				namespace: shop})
		}
	}
	allowed = append(allowed,
		request{verb: "patch", resource: "pods", subresource: "resize", namespace: shop},
		request{verb: "watch", group: v1alpha1.Group, resource: "cassandraclusters"},
		request{verb: "create", group: v1alpha1.Group, resource: "cassandraclusters", namespace: shop},
		request{verb: "delete", group: v1alpha1.Group, resource: "cassandraclusters", namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandraclusters", namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandraclusters",
			subresource: "status", namespace: shop},
		request{verb: "get", resource: "secrets", namespace: shop,
			name: v1alpha1.AuthorityName("orders", v1alpha1.UseAgent)},
		request{verb: "create", resource: "secrets", namespace: shop},
		request{verb: "watch", group: v1alpha1.Group, resource: "cassandratasks"},
		request{verb: "create", group: v1alpha1.Group, resource: "cassandratasks", namespace: shop},
		request{verb: "delete", group: v1alpha1.Group, resource: "cassandratasks", namespace: shop},
		request{verb: "watch", group: v1alpha1.Group, resource: "cassandrataskschedules"},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrataskschedules", subresource: "status",
			namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandratasks", subresource: "status",
			namespace: shop},
		request{verb: "create", group: monitors.Group, resource: monitors.Resource, namespace: shop},
		request{verb: "delete", group: monitors.Group, resource: monitors.Resource, namespace: shop},
		request{verb: "create", group: certificates.Group, resource: certificates.Resource, namespace: shop},
		request{verb: "patch", group: certificates.Group, resource: certificates.Resource, namespace: shop},
		request{verb: "get", group: certificates.Group, resource: "issuers", namespace: shop},
		request{verb: "get", group: certificates.Group, resource: "clusterissuers"},
		request{verb: "watch", group: definitionKind.Group, resource: definitionKind.Resource,
			name: render.MonitorDefinition},
		request{verb: "watch", group: v1alpha1.Group, resource: "cassandrabackupstores"},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackupstores", subresource: "status",
			namespace: shop},
		request{verb: "create", group: v1alpha1.Group, resource: "cassandrabackups", namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackups", namespace: shop},
		request{verb: "delete", group: v1alpha1.Group, resource: "cassandrabackups", namespace: shop},
		request{verb: "watch", group: v1alpha1.Group, resource: "cassandrabackupschedules"},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackupschedules", subresource: "status",
			namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackups", subresource: "status",
			namespace: shop},
		request{verb: "delete", group: v1alpha1.Group, resource: "cassandrarestores", namespace: shop},
		request{verb: "patch", group: v1alpha1.Group, resource: "cassandrarestores", subresource: "status",
			namespace: shop},
		request{verb: "watch", resource: "nodes"},
		request{verb: "watch", resource: "persistentvolumes"},
		request{verb: "create", group: "events.k8s.io", resource: "events", namespace: shop},
		request{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"},
		request{verb: "create", group: "authorization.k8s.io", resource: "subjectaccessreviews"},
		request{verb: "create", group: leaseGroup, resource: "leases", namespace: "helenus-system"},
		request{verb: "update", group: leaseGroup, resource: "leases", namespace: "helenus-system",
			name: inspectapi.LeaseName},
	)
	refused := []request{
		{verb: "deletecollection", group: v1alpha1.Group, resource: "cassandraclusters", namespace: shop},
		{verb: "patch", group: v1alpha1.Group, resource: "cassandratasks", namespace: shop},
		{verb: "create", group: v1alpha1.Group, resource: "cassandrataskschedules", namespace: shop},
		{verb: "patch", group: v1alpha1.Group, resource: "cassandrataskschedules", namespace: shop},
		{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackupstores", namespace: shop},
		{verb: "update", group: v1alpha1.Group, resource: "cassandrabackups", namespace: shop},
		{verb: "create", group: v1alpha1.Group, resource: "cassandrabackupschedules", namespace: shop},
		{verb: "patch", group: v1alpha1.Group, resource: "cassandrabackupschedules", namespace: shop},
		{verb: "patch", group: v1alpha1.Group, resource: "cassandrarestores", namespace: shop},
		{verb: "deletecollection", resource: "persistentvolumeclaims", namespace: shop},
		{verb: "deletecollection", group: v1alpha1.Group, resource: "cassandranodes", namespace: shop},
		{verb: "list", resource: "secrets", namespace: shop},
		{verb: "list", group: certificates.Group, resource: certificates.Resource, namespace: shop},
		{verb: "create", group: certificates.Group, resource: "issuers", namespace: shop},
		{verb: "create", group: certificates.Group, resource: "certificaterequests", namespace: shop},
		{verb: "watch", resource: "secrets"},
		{verb: "create", resource: "pods", subresource: "exec", namespace: shop},
		{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: shop},
		{verb: "delete", resource: "persistentvolumes"},
		{verb: "patch", resource: "nodes"},
		{verb: "delete", resource: "namespaces"},
		{verb: "create", group: rbacGroup, resource: "clusterrolebindings"},
		{verb: "escalate", group: rbacGroup, resource: "roles", namespace: shop},
		{verb: "bind", group: rbacGroup, resource: "clusterroles"},
		{verb: "impersonate", resource: "users"},
		{verb: "patch", group: definitionKind.Group, resource: definitionKind.Resource},
		{verb: "get", group: definitionKind.Group, resource: definitionKind.Resource},
		{verb: "patch", group: definitionKind.Group, resource: definitionKind.Resource, name: render.MonitorDefinition},
		{verb: "create", group: monitors.Group, resource: "prometheusrules", namespace: shop},
		{verb: "patch", group: "admissionregistration.k8s.io", resource: "validatingadmissionpolicies"},
		{verb: "update", group: leaseGroup, resource: "leases", namespace: "helenus-system", name: "another"},
		{verb: "update", group: leaseGroup, resource: "leases", namespace: "kube-system", name: inspectapi.LeaseName},
	}
	for _, r := range allowed {
		if !may(t, operatorUser, groups, r) {
			t.Errorf("may not, but must: %s", r)
		}
	}
	for _, r := range refused {
		if may(t, operatorUser, groups, r) {
			t.Errorf("may, but must not: %s", r)
		}
	}
}

// TestUserRoles: who may edit or view a namespace may edit or view its clusters, and only view the
// records.
func TestUserRoles(t *testing.T) {
	namespace := namespace(t)
	for _, role := range []string{"admin", "edit", "view"} {
		bind(t, namespace, "ClusterRole", role, "user-"+role)
	}
	cluster := request{group: v1alpha1.Group, resource: "cassandraclusters", namespace: namespace}
	record := request{group: v1alpha1.Group, resource: "cassandranodes", namespace: namespace}
	task := request{group: v1alpha1.Group, resource: "cassandratasks", namespace: namespace}
	schedule := request{group: v1alpha1.Group, resource: "cassandrataskschedules", namespace: namespace}
	ofBackups := request{group: v1alpha1.Group, resource: "cassandrabackupschedules", namespace: namespace}
	status := cluster
	status.subresource = "status"
	must(t, eventually(t.Context(), "the roles are aggregated", func(context.Context) (bool, error) {
		watch := record
		watch.verb = "watch"
		return may(t, "user-admin", nil, watch) && may(t, "user-edit", nil, watch) && may(t, "user-view", nil, watch), nil
	}))
	for _, c := range []struct {
		verb    string
		what    request
		allowed []string
	}{
		{"get", cluster, []string{"admin", "edit", "view"}},
		{"create", cluster, []string{"admin", "edit"}},
		{"patch", cluster, []string{"admin", "edit"}},
		{"delete", cluster, []string{"admin", "edit"}},
		{"patch", status, nil},
		{"create", task, []string{"admin", "edit"}},
		{"delete", task, []string{"admin", "edit"}},
		{"get", task, []string{"admin", "edit", "view"}},
		{"create", schedule, []string{"admin", "edit"}},
		{"create", ofBackups, []string{"admin", "edit"}},
		{"get", ofBackups, []string{"admin", "edit", "view"}},
		{"get", schedule, []string{"admin", "edit", "view"}},
		{"watch", record, []string{"admin", "edit", "view"}},
		{"patch", record, nil},
		{"delete", record, nil},
	} {
		for _, role := range []string{"admin", "edit", "view"} {
			c.what.verb = c.verb
			if got, want := may(t, "user-"+role, nil, c.what), slices.Contains(c.allowed, role); got != want {
				t.Errorf("%s: %s is %t, want %t", role, c.what, got, want)
			}
		}
	}
}

// TestAgentRole: the operator, with its own rights alone, can give the agents of a cluster theirs;
// and these are enough for an agent, and no more.
func TestAgentRole(t *testing.T) {
	namespace := namespace(t)
	cluster, err := dynamicClient(t, server).Resource(clusters).Namespace(namespace).
		Create(t.Context(), base("CassandraCluster"), metav1.CreateOptions{})
	must(t, err)
	owner := render.Owner{Name: cluster.GetName(), Namespace: namespace, UID: cluster.GetUID()}
	client := typedClient(t, withToken(tokenOf(t, "helenus-system", "helenus", nil)))
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), render.AgentServiceAccount(owner, nil),
		metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().Roles(namespace).Create(t.Context(),
		render.AgentRole(owner, v1alpha1.RolesName("demo"), v1alpha1.SuperuserName("demo")), metav1.CreateOptions{})
	must(t, err)
	_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), render.AgentRoleBinding(owner),
		metav1.CreateOptions{})
	must(t, err)
	for _, name := range []string{v1alpha1.SeedsName("demo"), v1alpha1.LedgerName("demo")} {
		seeds := render.Seeds(owner, []string{"10.0.0.1"}, nil)
		seeds.Name = name
		_, err = client.CoreV1().ConfigMaps(namespace).Create(t.Context(), seeds, metav1.CreateOptions{})
		must(t, err)
	}
	for _, secret := range []*corev1.Secret{render.RolesSecret(owner), render.SuperuserSecret(owner)} {
		secret.StringData = map[string]string{corev1.BasicAuthPasswordKey: "secret"}
		_, err = client.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
		must(t, err)
	}
	record := base("CassandraNode")
	_, err = dynamicClient(t, as(operatorUser, nil, masters)).Resource(nodes).Namespace(namespace).Create(t.Context(),
		record, metav1.CreateOptions{})
	must(t, err)

	account := v1alpha1.AgentServiceAccountName("demo")
	bound := pod(t, namespace, record.GetName(), account)
	agent := withToken(tokenOf(t, namespace, account, bound))
	records := dynamicClient(t, agent).Resource(nodes).Namespace(namespace)
	core := typedClient(t, agent).CoreV1()

	watch, err := records.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + record.GetName()})
	must(t, err)
	watch.Stop()
	_, err = records.Patch(t.Context(), record.GetName(), "application/merge-patch+json",
		fmt.Appendf(nil, `{"status":{"podUID":%q,"phase":"Waiting"}}`, bound.UID), metav1.PatchOptions{}, "status")
	must(t, err)
	seeds, err := core.ConfigMaps(namespace).Get(t.Context(), v1alpha1.SeedsName("demo"), metav1.GetOptions{})
	must(t, err)
	if seeds.Data[layout.SeedsKey] != "10.0.0.1" {
		t.Errorf("seeds = %q", seeds.Data)
	}
	for _, name := range []string{v1alpha1.RolesName("demo"), v1alpha1.SuperuserName("demo")} {
		_, err := core.Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
	}
	for name, do := range map[string]func() error{
		"list Secrets": func() error {
			_, err := core.Secrets(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"read the ledger": func() error {
			_, err := core.ConfigMaps(namespace).Get(t.Context(), v1alpha1.LedgerName("demo"), metav1.GetOptions{})
			return err
		},
		"read a Secret": func() error {
			name := v1alpha1.AuthorityName("demo", v1alpha1.UseAgent)
			_, err := core.Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err
		},
		"list pods": func() error {
			_, err := core.Pods(namespace).List(t.Context(), metav1.ListOptions{})
			return err
		},
		"read clusters": func() error {
			_, err := dynamicClient(t, agent).Resource(clusters).Namespace(namespace).List(t.Context(),
				metav1.ListOptions{})
			return err
		},
		"read the records of other namespaces": func() error {
			_, err := dynamicClient(t, agent).Resource(nodes).Namespace("default").List(t.Context(),
				metav1.ListOptions{})
			return err
		},
		"change its spec": func() error {
			_, err := records.Patch(t.Context(), record.GetName(), "application/merge-patch+json",
				[]byte(`{"spec":{"state":"Stopped"}}`), metav1.PatchOptions{})
			return err
		},
	} {
		if err := do(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want it forbidden", name, err)
		}
	}
}

func bind(t *testing.T, namespace, kind, role, user string) {
	t.Helper()
	binding := render.AgentRoleBinding(render.Owner{Name: user, Namespace: namespace})
	binding.OwnerReferences = nil
	binding.RoleRef.Kind, binding.RoleRef.Name = kind, role
	binding.Subjects[0].Kind, binding.Subjects[0].APIGroup, binding.Subjects[0].Name, binding.Subjects[0].Namespace = "User", rbacGroup, user, ""
	_, err := typedClient(t, server).RbacV1().RoleBindings(namespace).Create(t.Context(), binding,
		metav1.CreateOptions{})
	must(t, err)
}
