package apiserver

import (
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// builtin is a kind of Kubernetes itself.
type builtin struct {
	version  schema.GroupVersion
	name     string
	resource string
	global   bool
	rules    rules
}

// builtins are the kinds that Helenus reads and writes, with as much of their behaviour as it can
// notice. Their fields are not validated beyond metadata.
func builtins() []builtin {
	core, rbac := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	return []builtin{
		{version: core, name: podKind, resource: "pods", rules: podRules()},
		{version: core, name: "PersistentVolumeClaim", resource: "persistentvolumeclaims", rules: claimRules()},
		{version: core, name: "PersistentVolume", resource: "persistentvolumes", global: true, rules: volumeRules()},
		{version: storagev1.SchemeGroupVersion, name: "StorageClass", resource: "storageclasses", global: true,
			rules: dataOnly()},
		{version: core, name: "Node", resource: "nodes", global: true, rules: nodeRules()},
		{version: core, name: namespaceKind, resource: "namespaces", global: true, rules: namespaceRules()},
		{version: core, name: "Service", resource: "services", rules: serviceRules()},
		{version: core, name: "ConfigMap", resource: "configmaps", rules: configMapRules()},
		{version: core, name: "Secret", resource: "secrets", rules: secretRules()},
		{version: core, name: "ServiceAccount", resource: "serviceaccounts", rules: dataOnly()},
		{version: rbac, name: "Role", resource: "roles", rules: roleRules()},
		{version: rbac, name: "RoleBinding", resource: "rolebindings", rules: roleBindingRules()},
		{version: eventsv1.SchemeGroupVersion, name: "Event", resource: "events", rules: messageRules()},
		{version: coordinationv1.SchemeGroupVersion, name: "Lease", resource: "leases", rules: leaseRules()},
		{version: policyv1.SchemeGroupVersion, name: "PodDisruptionBudget", resource: "poddisruptionbudgets",
			rules: budgetRules()},
		{version: networkingv1.SchemeGroupVersion, name: "NetworkPolicy", resource: "networkpolicies",
			rules: networkPolicyRules()},
	}
}

// dataOnly is for kinds that have neither a generation nor a status of their own.
func dataOnly() rules {
	return rules{unconditional: true, prepareCreate: func(client.Object) {}}
}

// specAndStatus is for kinds whose status is written apart.
func specAndStatus() rules {
	return rules{
		status: true, unconditional: true,
		prepareUpdate: func(object, old client.Object) { part(object, "Status").Set(part(old, "Status")) },
		prepareStatus: func(object, old client.Object, _ metav1.Time) { part(object, "Spec").Set(part(old, "Spec")) },
	}
}

// counted is for kinds whose generation counts the changes of their spec.
func counted(r rules) rules {
	prepare := r.prepareUpdate
	r.prepareUpdate = func(object, old client.Object) {
		prepare(object, old)
		if !equality.Semantic.DeepEqual(part(object, "Spec").Interface(), part(old, "Spec").Interface()) {
			object.SetGeneration(old.GetGeneration() + 1)
		}
	}
	return r
}

func part(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}
