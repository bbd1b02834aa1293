package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/inspectapi"
	"helenus.io/helenus/internal/installation"
)

// Seen is what was found, or why it is not known.
type Seen[T any] struct {
	It  T
	Err error
}

func seen[T any](it T, err error) Seen[T] { return Seen[T]{it, err} }

// Facts are what is seen of an installation, and of clusters in a namespace.
type Facts struct {
	Now time.Time
	// Plugin is its version.
	Plugin            string
	OperatorNamespace string
	Kubernetes        Seen[string]
	Operator          Operator
	Deployment        Seen[*appsv1.Deployment]
	// Definitions and Policies of this installation, by the manifest of the plugin.
	Definitions, Policies Seen[installation.Compared]
	Refusals              []Refusal
	Rights                Seen[installation.Rights]
	// Proof is what the operator has found out about its own installation.
	Proof    Seen[*metav1.Condition]
	Hosts    Seen[[]corev1.Node]
	Classes  Seen[[]storagev1.StorageClass]
	Clusters []Cluster
}

// Operator is what is known of it: in words, what is wrong, and why nothing is known.
type Operator struct {
	Said, Problem string
	Err           error
}

// Refusal is what the API server said to a dry run that a policy must refuse.
type Refusal struct {
	Policy string
	// Err is nil if it was accepted.
	Err error
}

// Cluster is what is seen of one.
type Cluster struct {
	*v1alpha1.CassandraCluster
	Inspection Seen[*inspectapi.Inspection]
	Pods       Seen[[]corev1.Pod]
	// Named are the pods that have a name in DNS.
	Named Seen[map[string]bool]
	// Secrets are those with certificates, without their content.
	Secrets Seen[[]metav1.PartialObjectMetadata]
}

// Sources are where facts come from: the API server, as the user.
type Sources struct {
	Client client.Client
	// As is the API server as somebody else.
	As func(user string, groups []string) (client.Client, error)
	// Kubernetes is the version of the API server.
	Kubernetes func() (string, error)
	// Inspect asks the operator about a cluster of the namespace.
	Inspect           func(ctx context.Context, cluster string) (*inspectapi.Inspection, error)
	Operator          Operator
	OperatorNamespace string
	// Namespace is that of the clusters, and the one in which writes are tried.
	Namespace string
	Plugin    string
	Now       time.Time
}

// Look sees all that is judged.
func Look(ctx context.Context, clusters []v1alpha1.CassandraCluster, from Sources) (*Facts, error) {
	wanted, err := installation.Manifest(from.OperatorNamespace)
	if err != nil {
		return nil, err
	}
	c := from.Client
	deployment, hosts, classes := &appsv1.Deployment{}, &corev1.NodeList{}, &storagev1.StorageClassList{}
	f := &Facts{Now: from.Now, Plugin: from.Plugin, OperatorNamespace: from.OperatorNamespace,
		Operator: from.Operator, Kubernetes: seen(from.Kubernetes()),
		Deployment: seen(deployment, c.Get(ctx, client.ObjectKey{Namespace: from.OperatorNamespace,
			Name: installation.Account},
			deployment)),
		Definitions: seen(installation.Compare(ctx, c, wanted, "CustomResourceDefinition")),
		Policies:    seen(installation.Compare(ctx, c, wanted, installation.Policies...)),
		Refusals:    from.refusals(ctx),
	}
	f.Rights = seen(installation.AskFor(ctx, wanted, f.watched(), from.may))
	f.Proof = seen(installation.ReadStatus(ctx, c, from.OperatorNamespace))
	err = c.List(ctx, hosts)
	f.Hosts = seen(hosts.Items, err)
	err = c.List(ctx, classes)
	f.Classes = seen(classes.Items, err)
	for i := range clusters {
		f.Clusters = append(f.Clusters, from.cluster(ctx, &clusters[i]))
	}
	return f, nil
}

// may asks the API server whether the operator has a right.
func (s *Sources) may(ctx context.Context, right *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: installation.User(s.OperatorNamespace),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + s.OperatorNamespace,
			"system:authenticated"},
		ResourceAttributes: right,
	}}
	err := s.Client.Create(ctx, review)
	return review.Status.Allowed, err
}

func (s *Sources) cluster(ctx context.Context, of *v1alpha1.CassandraCluster) Cluster {
	pods, slices := &corev1.PodList{}, &discoveryv1.EndpointSliceList{}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	own := client.MatchingLabels{v1alpha1.LabelCluster: of.Name, v1alpha1.LabelClusterUID: string(of.UID)}
	out := Cluster{CassandraCluster: of, Inspection: seen(s.Inspect(ctx, of.Name))}
	err := s.Client.List(ctx, pods, client.InNamespace(of.Namespace), own)
	out.Pods = seen(pods.Items, err)
	err = s.Client.List(ctx, slices, client.InNamespace(of.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: v1alpha1.NodesServiceName(of.Name)})
	out.Named = seen(map[string]bool{}, err)
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil {
				out.Named.It[e.TargetRef.Name] = true
			}
		}
	}
	err = s.Client.List(ctx, secrets, client.InNamespace(of.Namespace), own)
	out.Secrets = seen(secrets.Items, err)
	return out
}

// watched are the namespaces that the operator looks after; none are all.
func (f *Facts) watched() []string {
	for _, container := range f.containers() {
		for _, argument := range container.Args {
			if list, is := strings.CutPrefix(argument, "--namespaces="); is && list != "" {
				return strings.Split(list, ",")
			}
		}
	}
	return nil
}

func (f *Facts) containers() []corev1.Container {
	if f.Deployment.Err != nil || f.Deployment.It == nil {
		return nil
	}
	return f.Deployment.It.Spec.Template.Spec.Containers
}

// errUntried is a dry run for which there was nothing to write on.
var errUntried = errors.New("there is no CassandraNode to try it on")

// refusals tries writes that each policy must refuse. Those that it must refuse to the operator and
// to an agent are tried under their names, with the groups of the user: roles of groups are what
// lets them as far as the policy.
func (s *Sources) refusals(ctx context.Context) []Refusal {
	as := func(who string, object client.Object) error {
		review := &authenticationv1.SelfSubjectReview{}
		if err := s.Client.Create(ctx, review); err != nil {
			return fmt.Errorf("ask who you are: %w", err)
		}
		c, err := s.As(who, review.Status.UserInfo.Groups)
		if err != nil {
			return fmt.Errorf("connect as %s: %w", who, err)
		}
		return c.Create(ctx, object, client.DryRunAll)
	}
	cluster, owned := specimen(s.Namespace), specimen(s.Namespace)
	owned.Spec.Node.CassandraYaml = v1alpha1.Settings{"num_tokens": {Raw: []byte("4")}}
	agent := "system:serviceaccount:" + s.Namespace + ":" + v1alpha1.AgentServiceAccountName(cluster.Name)
	return []Refusal{
		{"helenus-agent", as(agent, &corev1.ConfigMap{ObjectMeta: cluster.ObjectMeta})},
		{"helenus-cluster", as(installation.User(s.OperatorNamespace), cluster)},
		{"helenus-node-record", s.Client.Create(ctx, recordOf(cluster), client.DryRunAll)},
		{"helenus-node-status", s.writeStatus(ctx)},
		{"helenus-operator", as(installation.User(s.OperatorNamespace), &corev1.Pod{ObjectMeta: cluster.ObjectMeta,
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "doctor", Image: "doctor"}}}})},
		{"helenus-settings", s.Client.Create(ctx, owned, client.DryRunAll)},
	}
}

func (s *Sources) writeStatus(ctx context.Context) error {
	records := &v1alpha1.CassandraNodeList{}
	if err := s.Client.List(ctx, records, client.InNamespace(s.Namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("list CassandraNodes: %w", err)
	}
	if len(records.Items) == 0 {
		return errUntried
	}
	return s.Client.Status().Patch(ctx, &records.Items[0],
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Normal"}}`)), client.DryRunAll)
}

// specimen is a cluster that nothing but a policy refuses. Nobody ever stores it.
func specimen(namespace string) *v1alpha1.CassandraCluster {
	size := resource.MustParse("1Gi")
	node := &v1alpha1.NodeTemplate{}
	node.Storage = &v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: &size}}}
	return &v1alpha1.CassandraCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "helenus-doctor"},
		Spec: v1alpha1.CassandraClusterSpec{Version: "5.0.6", Node: node,
			Disruption: v1alpha1.DisruptionPolicy{Consistency: v1alpha1.ConsistencyLocalQuorum},
			Datacenters: []v1alpha1.Datacenter{{Name: "dc1", NodesPerRack: 1, NumTokens: 16,
				Racks: []v1alpha1.Rack{{Name: "r1"}}}}},
	}
}

func recordOf(cluster *v1alpha1.CassandraCluster) *v1alpha1.CassandraNode {
	w := render.WantedNodes(cluster, facts.Install{ImageRepository: "cassandra"})[0]
	return &v1alpha1.CassandraNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: w.Name},
		Spec: v1alpha1.CassandraNodeSpec{
			Cluster:    v1alpha1.ClusterReference{Name: cluster.Name, UID: "0b2c7d1e-0000-4000-8000-000000000000"},
			Datacenter: w.Datacenter, Rack: w.Rack, Ordinal: w.Ordinal, State: v1alpha1.StateRunning,
			ClientTraffic: v1alpha1.TrafficClosed, Disruption: w.Disruption, Configuration: w.Configuration,
			Pod: w.Pod,
		},
	}
}
