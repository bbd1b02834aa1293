package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// connection is to one API server, as one user.
type connection struct {
	config    *rest.Config
	client    client.Client
	namespace string
}

// connect reads the kubeconfig. It does not speak to the API server yet.
func (s *settings) connect() (*connection, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(s.rules, &s.overrides)
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no kubeconfig was found: name one by --kubeconfig or $KUBECONFIG")
	case err != nil:
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 300 // as kubectl
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &connection{config: config, client: c, namespace: namespace}, nil
}

// connected is a command that has a connection.
func (s *settings) connected(run func(context.Context, *connection, []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.connect()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args)
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}

// kubernetes asks the API server for its version.
func (c *connection) kubernetes() (*version.Info, error) {
	core, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	server, err := core.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	return server, nil
}

// cluster gets a CassandraCluster. An error says what to do.
func (c *connection) cluster(ctx context.Context, name string) (*v1alpha1.CassandraCluster, error) {
	cluster := &v1alpha1.CassandraCluster{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, cluster)
	switch {
	case err == nil:
		return cluster, nil
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("helenus is not installed in this Kubernetes cluster, which has no kind "+
			"CassandraCluster: apply Helenus' install.yaml, or choose another --context (%w)", err)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read CassandraClusters in namespace %q: ask its administrator for one of "+
			"the roles view, edit and admin there (%w)", c.namespace, err)
	case apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("the API server does not know you: log in again, or choose another --context (%w)", err)
	case apierrors.IsNotFound(err):
		return nil, c.noSuchCluster(ctx, name)
	default:
		return nil, fmt.Errorf("get CassandraCluster %s: %w", name, err)
	}
}

// noSuchCluster names those that there are: in this namespace, or else in others that the user may
// see.
func (c *connection) noSuchCluster(ctx context.Context, name string) error {
	here := &v1alpha1.CassandraClusterList{}
	if err := c.client.List(ctx, here, client.InNamespace(c.namespace)); err == nil && len(here.Items) > 0 {
		return fmt.Errorf("there is no CassandraCluster %q in namespace %q; there is %s", name, c.namespace,
			namesOf(here, false))
	}
	anywhere := &v1alpha1.CassandraClusterList{}
	if err := c.client.List(ctx, anywhere); err == nil && len(anywhere.Items) > 0 {
		return fmt.Errorf("there is no CassandraCluster in namespace %q; name another one by --namespace: there is %s",
			c.namespace, namesOf(anywhere, true))
	}
	return fmt.Errorf("there is no CassandraCluster %q in namespace %q: look into another one by --namespace, or "+
		"make one by kubectl apply", name, c.namespace)
}

// mostNames is how many clusters an error names.
const mostNames = 10

func namesOf(list *v1alpha1.CassandraClusterList, withNamespace bool) string {
	var names []string
	for i := range list.Items {
		name := list.Items[i].Name
		if withNamespace {
			name = list.Items[i].Namespace + "/" + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if more := len(names) - mostNames; more > 0 {
		names = append(names[:mostNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
