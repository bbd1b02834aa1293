package compare

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/test/api/live"
)

// tester is the user of both servers: the name of its requests' field manager if they give none.
const tester = "tester"

// The two servers, which all tests share: the configuration of the real one, the kinds of the one
// in memory, and the scheme of both.
var (
	server *rest.Config
	kinds  *apiserver.Kinds
	scheme = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// without controllers: they would write too
	code, err := live.With(ctx, "test-compare", false, live.TestOutput(),
		func(config *rest.Config, _ string) (int, error) {
			config.UserAgent = tester
			server = config
			if err := prepare(ctx); err != nil {
				return 1, err
			}
			return m.Run(), nil
		})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/api/compare:", err)
		code = 1
	}
	os.Exit(code)
}

// prepare gives both servers the kinds of Helenus, and the real one what every world has from the
// start: a default storage class.
func prepare(ctx context.Context) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register kinds: %w", err)
		}
	}
	definitions, err := readDefinitions("../../../config/crd")
	if err != nil {
		return err
	}
	if kinds, err = apiserver.Compile(scheme, definitions); err != nil {
		return fmt.Errorf("compile kinds: %w", err)
	}
	c, err := client.New(server, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	late := storagev1.VolumeBindingWaitForFirstConsumer
	if err := c.Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: apiserver.StorageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "nobody", VolumeBindingMode: &late,
	}); err != nil {
		return fmt.Errorf("create storage class: %w", err)
	}
	for _, d := range definitions {
		if err := c.Create(ctx, d); err != nil {
			return fmt.Errorf("create definition %s: %w", d.Name, err)
		}
		if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				now := &apiextensionsv1.CustomResourceDefinition{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(d), now); err != nil {
					return false, err
				}
				for _, condition := range now.Status.Conditions {
					if condition.Type == apiextensionsv1.Established &&
						condition.Status == apiextensionsv1.ConditionTrue {
						return true, nil
					}
				}
				return false, nil
			}); err != nil {
			return fmt.Errorf("wait for definition %s: %w", d.Name, err)
		}
	}
	return nil
}

func readDefinitions(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("find definitions in %s: %d found, %w", folder, len(paths), err)
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read definition: %w", err)
		}
		out[i] = &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, out[i]); err != nil {
			return nil, fmt.Errorf("read definition %s: %w", path, err)
		}
	}
	return out, nil
}
