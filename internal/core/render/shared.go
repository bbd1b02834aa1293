package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/plan"
)

// NodesService is the headless service of all pods, ready or not: each pod gets its DNS name from
// it.
func NodesService(owner Owner, given *v1alpha1.Services) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: owner.meta(v1alpha1.NodesServiceName(owner.Name), v1alpha1.ComponentCassandra),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 podSelector(owner, ""),
			Ports: []corev1.ServicePort{
				port("native", layout.NativePort), port("storage", layout.StoragePort), port("facts", layout.FactsPort),
				port("metrics", layout.MetricsPort),
			},
		},
	}
	families(service, given)
	if given != nil && given.Nodes != nil {
		add(service, *given.Nodes)
	}
	return service
}

// ClientService is the service of a datacenter's ready pods, for clients.
func ClientService(owner Owner, datacenter string, given *v1alpha1.Services) *corev1.Service {
	meta := owner.meta(v1alpha1.ClientServiceName(owner.Name, datacenter), v1alpha1.ComponentCassandra)
	meta.Labels[v1alpha1.LabelDatacenter] = datacenter
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: podSelector(owner, datacenter),
			Ports:    []corev1.ServicePort{port("native", layout.NativePort)},
		},
	}
	families(service, given)
	if given != nil && given.Clients != nil {
		if given.Clients.Type != "" {
			service.Spec.Type = corev1.ServiceType(given.Clients.Type)
		}
		add(service, given.Clients.Metadata)
	}
	return service
}

// families asks for the families of addresses that the spec names. Without a word Kubernetes
// decides.
func families(service *corev1.Service, given *v1alpha1.Services) {
	if given == nil || len(given.IPFamilies) == 0 {
		return
	}
	policy := corev1.IPFamilyPolicySingleStack
	if len(given.IPFamilies) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	service.Spec.IPFamilyPolicy = &policy
	for _, family := range given.IPFamilies {
		service.Spec.IPFamilies = append(service.Spec.IPFamilies, corev1.IPFamily(family))
	}
}

// Added are the keys of the labels and annotations that the spec had us add to an object.
type Added struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// add gives an object the labels and annotations of the spec, beside our own, and notes their keys.
func add(object metav1.Object, given v1alpha1.Metadata) {
	keys := keysOf(given)
	if keys == "" {
		return
	}
	labels, annotations := maps.Clone(given.Labels), maps.Clone(given.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, object.GetLabels())
	maps.Copy(annotations, object.GetAnnotations())
	annotations[v1alpha1.AnnotationAdded] = keys
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// keysOf the labels and annotations of the spec, as they are noted; empty if there are none.
func keysOf(given v1alpha1.Metadata) string {
	if len(given.Labels) == 0 && len(given.Annotations) == 0 {
		return ""
	}
	labels, annotations := slices.Sorted(maps.Keys(given.Labels)), slices.Sorted(maps.Keys(given.Annotations))
	text, err := json.Marshal(Added{labels, annotations})
	if err != nil {
		panic(fmt.Sprintf("encode keys: %v", err)) // only texts: cannot happen
	}
	return string(text)
}

// AddedTo are the keys that were noted on an object. What cannot be read names none: then nothing
// is taken away.
func AddedTo(object metav1.Object) Added {
	var out Added
	if err := json.Unmarshal([]byte(object.GetAnnotations()[v1alpha1.AnnotationAdded]), &out); err != nil {
		return Added{}
	}
	return out
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(number),
		Protocol: corev1.ProtocolTCP}
}

// Budget is the disruption budget of a datacenter: evictions may leave no fewer than available
// healthy pods.
func Budget(owner Owner, datacenter string, available int,
	unready policyv1.UnhealthyPodEvictionPolicyType) *policyv1.PodDisruptionBudget {
	meta := owner.meta(v1alpha1.DisruptionBudgetName(owner.Name, datacenter), v1alpha1.ComponentCassandra)
	meta.Labels[v1alpha1.LabelDatacenter] = datacenter
	minimum := intstr.FromInt(available)
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &minimum, UnhealthyPodEvictionPolicy: &unready,
			Selector: &metav1.LabelSelector{MatchLabels: podSelector(owner, datacenter)},
		},
	}
}

// Seeds is the ConfigMap with the addresses that the nodes use as seeds, and the host ids that were
// replaced, if there are any.
func Seeds(owner Owner, addresses, replaced []string) *corev1.ConfigMap {
	sorted := slices.Clone(addresses)
	slices.Sort(sorted)
	out := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: owner.meta(v1alpha1.SeedsName(owner.Name), v1alpha1.ComponentAgent),
		Data:       map[string]string{layout.SeedsKey: strings.Join(sorted, ",")},
	}
	if len(replaced) > 0 {
		out.Data[layout.ReplacedKey] = strings.Join(replaced, ",")
	}
	return out
}

// RepairsKey is the key of the history of repairs in its ConfigMap.
const RepairsKey = "history"

// Repairs is the ConfigMap with what is proven to be repaired.
func Repairs(owner Owner, history string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: owner.meta(v1alpha1.RepairsName(owner.Name), v1alpha1.ComponentCassandra),
		Data:       map[string]string{RepairsKey: history},
	}
}

// SeedsIn are the addresses in the ConfigMap of seeds; none if there is no ConfigMap.
func SeedsIn(m *corev1.ConfigMap) []string {
	if m == nil || m.Data[layout.SeedsKey] == "" {
		return nil
	}
	return strings.Split(m.Data[layout.SeedsKey], ",")
}

// ReplacedIn are the host ids in it that were replaced.
func ReplacedIn(m *corev1.ConfigMap) []string {
	if m == nil || m.Data[layout.ReplacedKey] == "" {
		return nil
	}
	return strings.Split(m.Data[layout.ReplacedKey], ",")
}

// AgentServiceAccount is the identity of all agents of a cluster. That an agent writes only its own
// record is the policy's work, by the pod that its token is bound to.
func AgentServiceAccount(owner Owner, given *v1alpha1.Metadata) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   owner.meta(v1alpha1.AgentServiceAccountName(owner.Name), v1alpha1.ComponentAgent),
		AutomountServiceAccountToken: new(false),
	}
	if given != nil {
		add(account, *given)
	}
	return account
}

// AgentRole is what agents may do: read the records of their namespace, the seeds of their cluster
// and the named Secrets, and write the status of records.
func AgentRole(owner Owner, secrets ...string) *rbacv1.Role {
	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: owner.meta(v1alpha1.AgentServiceAccountName(owner.Name), v1alpha1.ComponentAgent),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.Group}, Resources: []string{"cassandranodes"},
				Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{v1alpha1.Group}, Resources: []string{"cassandranodes/status"},
				Verbs: []string{"get", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"},
				ResourceNames: []string{v1alpha1.SeedsName(owner.Name)}, Verbs: []string{"get", "list", "watch"}},
		},
	}
	if len(secrets) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: secrets, Verbs: []string{"get"}})
	}
	return role
}

// AgentRoleBinding gives the role to the account.
func AgentRoleBinding(owner Owner) *rbacv1.RoleBinding {
	name := v1alpha1.AgentServiceAccountName(owner.Name)
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: owner.meta(name, v1alpha1.ComponentAgent),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: owner.Namespace}},
	}
}

// CertificateSecret is the Secret of a certificate, without its content. The authority belongs to
// the cluster, a node's certificate to its record.
func CertificateSecret(owner Owner, use v1alpha1.CertificateUse, record *v1alpha1.CassandraNode) *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Labels: owner.labels(string(use))},
		Type:       corev1.SecretTypeTLS,
	}
	if record == nil {
		secret.Name, secret.OwnerReferences = v1alpha1.AuthorityName(owner.Name, use), owner.reference()
		return secret
	}
	secret.Name, secret.OwnerReferences = v1alpha1.CertificateName(record.Name, use), RecordReference(record)
	secret.Labels[v1alpha1.LabelNode] = record.Name
	return secret
}

// ClientsAuthority is the ConfigMap with the certificates by which clients know the nodes.
func ClientsAuthority(owner Owner, certificates string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: owner.meta(v1alpha1.AuthorityName(owner.Name, v1alpha1.UseClients),
			string(v1alpha1.UseClients)),
		Data: map[string]string{corev1.ServiceAccountRootCAKey: certificates},
	}
}

// ClientNames are the DNS names by which clients reach a node.
func ClientNames(owner Owner, record *v1alpha1.CassandraNode) []string {
	out := []string{"localhost"}
	nodes := v1alpha1.NodesServiceName(owner.Name)
	for _, name := range []string{v1alpha1.ClientServiceName(owner.Name, record.Spec.Datacenter), nodes,
		record.Name + "." + nodes} {
		of := name + "." + owner.Namespace
		out = append(out, name, of, of+".svc", of+".svc.cluster.local")
	}
	return out
}

// ContentHash is the hash of what is in a Secret. It is kept beside it, so that an edit is noticed
// by those who do not keep the content.
func ContentHash(secret *corev1.Secret) string {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		fmt.Fprintf(sum, "%d %s %d ", len(key), key, len(secret.Data[key]))
		sum.Write(secret.Data[key])
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Edited says that what is in a Secret of ours is not what we left there.
func Edited(secret *corev1.Secret) bool {
	return secret.Annotations[v1alpha1.AnnotationContent] != ContentHash(secret)
}

// Ledger is the ConfigMap of a cluster's ledger. It has no owner: nothing but the operator takes it
// away.
func Ledger(owner Owner, data map[string]string) *corev1.ConfigMap {
	meta := owner.meta(v1alpha1.LedgerName(owner.Name), v1alpha1.ComponentLedger)
	meta.OwnerReferences = nil
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta,
		Data:       data,
	}
}

// RecordReference makes a record the controlling owner of an object.
func RecordReference(record *v1alpha1.CassandraNode) []metav1.OwnerReference {
	return []metav1.OwnerReference{reference(apiVersion, "CassandraNode", record.Name, record.UID)}
}

// SharedObjects are the objects that a cluster of these datacenters has beside its nodes, as far as
// their kinds and names go.
func SharedObjects(owner Owner, datacenters []v1alpha1.Datacenter) []plan.Object {
	out := []plan.Object{
		NodesService(owner, nil), Seeds(owner, nil, nil), Ledger(owner, nil),
		CertificateSecret(owner, v1alpha1.UseAgent, nil),
		AgentServiceAccount(owner, nil), AgentRole(owner), AgentRoleBinding(owner),
	}
	for i := range datacenters {
		out = append(out, ClientService(owner, datacenters[i].Name, nil),
			Budget(owner, datacenters[i].Name, 0, policyv1.IfHealthyBudget))
	}
	return out
}
