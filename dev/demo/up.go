package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/dev/demo/progress"
	"helenus.io/helenus/dev/demo/reach"
)

// samplePath is the sample in a checkout that the demonstration applies.
const samplePath = "config/samples/demo.yaml"

// defaultPatience is how long the ring may take to form. It takes half a minute where images are
// there and cores are free.
const defaultPatience = 15 * time.Minute

// up is one run of the demonstration.
type up struct {
	*settings
	images   install.Images
	patience time.Duration

	steps   *progress.Reporter
	cluster *reach.Cluster
	sample  *v1alpha1.CassandraCluster
	// onThisMachine says that the Kubernetes is that of localkube.
	onThisMachine bool
	// formed is how long the ring took, if it formed in this run.
	formed time.Duration
}

func (u *up) run(ctx context.Context) error {
	var err error
	if u.repository, err = local.FindRepository(orElse(u.repository, ".")); err != nil {
		return err
	}
	if u.sample, err = readSample(filepath.Join(u.repository, samplePath)); err != nil {
		return err
	}
	u.sample.Namespace = u.namespace
	for _, stage := range []func(context.Context) error{u.kubernetes, u.installHelenus, u.ring, u.row, u.show} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func readSample(file string) (*v1alpha1.CassandraCluster, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read sample: %w", err)
	}
	sample := &v1alpha1.CassandraCluster{}
	if err := yaml.UnmarshalStrict(text, sample); err != nil {
		return nil, fmt.Errorf("read sample %s: %w", file, err)
	}
	return sample, nil
}

// kubernetes sees to it that there is one: the user's, or the local cluster with the images in it.
func (u *up) kubernetes(ctx context.Context) error {
	if u.kubeconfig == "" {
		u.onThisMachine = true
		if err := u.localKubernetes(ctx); err != nil {
			return err
		}
	}
	var err error
	if u.cluster, err = reach.Open(u.kubeconfig); err != nil {
		return err
	}
	return u.steps.Run(ctx, "Kubernetes answers", func(_ context.Context, s *progress.Step) error {
		version, err := u.cluster.Core.Discovery().ServerVersion()
		if err != nil {
			return fmt.Errorf("%w: is --kubeconfig %s the one you mean, and is the cluster up?", err, u.kubeconfig)
		}
		s.Note("%s", version.GitVersion)
		return nil
	})
}

func (u *up) localKubernetes(ctx context.Context) error {
	t := local.Tools{Repository: u.repository, Progress: os.Stderr}
	if err := t.Check(); err != nil {
		return err
	}
	u.steps.Say("A Kubernetes of three machines, on this one:")
	if err := t.Up(ctx); err != nil {
		return err
	}
	u.steps.Say("\nImages:")
	files, err := t.Build(ctx, u.sample.Spec.Version)
	if err != nil {
		return err
	}
	err = u.steps.Run(ctx, "images are where the machines pull them",
		func(ctx context.Context, s *progress.Step) error {
			images, err := t.Load(ctx, files)
			if err != nil {
				return err
			}
			u.images.Operator = orElse(u.images.Operator, images.Operator)
			u.images.Agent = orElse(u.images.Agent, images.Agent)
			s.Note("Cassandra %s, the operator, its agent", u.sample.Spec.Version)
			return nil
		})
	if err != nil {
		return err
	}
	u.steps.Say("\nHelenus:")
	u.kubeconfig, err = t.Kubeconfig(ctx)
	return err
}

func (u *up) installHelenus(ctx context.Context) error {
	objects, err := install.Manifest(filepath.Join(u.repository, local.ManifestPath), u.images)
	if err != nil {
		return err
	}
	err = u.steps.Run(ctx, "Helenus is installed", func(ctx context.Context, s *progress.Step) error {
		s.Note("%d objects of %s", len(objects), local.ManifestPath)
		return install.Apply(ctx, u.cluster, objects)
	})
	if err != nil {
		return err
	}
	return u.steps.Run(ctx, "the operator runs", func(ctx context.Context, s *progress.Step) error {
		err := install.AwaitOperator(ctx, u.cluster, func(missing string) { s.Note("%s", missing) })
		if err != nil && strings.Contains(err.Error(), "cannot pull image") && !u.onThisMachine {
			err = fmt.Errorf("%w\nThe machines of this cluster need an image that they can pull. Build the images by "+
				"`bin/images build %s %s --repo .`, push the files that it names to a registry which the cluster "+
				"reaches, and name them by OPERATOR_IMAGE= and AGENT_IMAGE= (--operator-image and --agent-image)", err,
				local.OperatorImage, local.AgentImage)
		}
		if err == nil {
			s.Note("in namespace %s", install.Namespace)
		}
		return err
	})
}

// ring forms the ring, or waits for the one that is there.
func (u *up) ring(ctx context.Context) error {
	if err := u.checkStorage(ctx); err != nil {
		return err
	}
	if err := u.namespaceExists(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	namespace, err := follow.Start(ctx, u.cluster.Config, u.namespace, follow.Kinds())
	if err != nil {
		return err
	}
	name := u.sample.Name
	if there, found := namespace.Now(ctx).Cluster(name); found {
		if there.DeletionTimestamp != nil {
			return fmt.Errorf("the cluster %s is still being deleted: run this again when `demo down` has come to "+
				"its end", name)
		}
		u.sample = there
		u.steps.Say("The cluster %s is there already and is left as it is.", name)
	} else if err := u.create(ctx); err != nil {
		return err
	}
	title := fmt.Sprintf("%d nodes in %d racks form a ring", nodesOf(u.sample), racksOf(u.sample))
	start := time.Now()
	err = u.steps.Run(ctx, title, func(ctx context.Context, s *progress.Step) error {
		serving := follow.Serving(name)
		return namespace.Until(ctx, u.patience, "all nodes serve", func(now follow.Sight) error {
			note, parts := board(now, name)
			s.Note("%s", note)
			s.Parts(parts)
			return serving(now)
		})
	})
	if err != nil {
		return fmt.Errorf("%w\nLook into it by `%s -n %s describe cassandracluster %s`, and into the operator by `%s "+
			"-n %s logs deploy/%s`",
			err, u.kubectl(), u.namespace, name, u.kubectl(), install.Namespace, install.Deployment)
	}
	u.formed = time.Since(start)
	return nil
}

// checkStorage looks for what would leave the claims pending without a word.
func (u *up) checkStorage(ctx context.Context) error {
	if data := u.sample.Spec.Node.Storage.Claims.Data; data != nil && data.StorageClassName != nil {
		return nil
	}
	classes := &storagev1.StorageClassList{}
	if err := u.cluster.Client.List(ctx, classes); err != nil {
		return fmt.Errorf("list storage classes: %w", err)
	}
	if !slices.ContainsFunc(classes.Items, func(c storagev1.StorageClass) bool {
		return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
	}) {
		return errors.New("this Kubernetes has no default storage class, so that no volume would be made for the " +
			"nodes: make one the default by the annotation storageclass.kubernetes.io/is-default-class: \"true\"")
	}
	return nil
}

func (u *up) namespaceExists(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: u.namespace,
		// The pods of Helenus keep to the strictest of Kubernetes' profiles.
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := u.cluster.Client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", u.namespace, err)
	}
	return nil
}

func (u *up) create(ctx context.Context) error {
	machines := &corev1.NodeList{}
	if err := u.cluster.Client.List(ctx, machines); err != nil {
		return fmt.Errorf("list machines: %w", err)
	}
	said := fit(u.sample, machines.Items)
	return u.steps.Run(ctx, "the cluster is applied", func(ctx context.Context, s *progress.Step) error {
		s.Note("%s", strings.Join(append([]string{samplePath}, said...), "; "))
		if err := u.cluster.Client.Create(ctx, u.sample, client.FieldOwner("helenus-demo")); err != nil {
			return fmt.Errorf("create CassandraCluster %s: %w", u.sample.Name, err)
		}
		return nil
	})
}

func racksOf(cluster *v1alpha1.CassandraCluster) int {
	n := 0
	for _, dc := range cluster.Spec.Datacenters {
		n += len(dc.Racks)
	}
	return n
}
