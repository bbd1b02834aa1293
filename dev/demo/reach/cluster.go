package reach

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// Cluster is a Kubernetes cluster that can be reached.
type Cluster struct {
	// Kubeconfig is the file that says it; empty for what kubectl would take.
	Kubeconfig string
	// Config is how, and as whom.
	Config *rest.Config
	// Client reads and writes objects, those of Helenus among them.
	Client client.WithWatch
	// Core is for what is no object: logs, exec, port forwarding.
	Core kubernetes.Interface
}

// Open reads a kubeconfig and does not speak to the API server yet. An empty path means what
// kubectl would take: $KUBECONFIG, else ~/.kube/config.
func Open(kubeconfig string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	config.UserAgent = "helenus-dev"
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	objects, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &Cluster{Kubeconfig: kubeconfig, Config: config, Client: objects, Core: core}, nil
}

// Scheme knows the kinds of Kubernetes, of Helenus, and the definitions of kinds.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}
