// Package prepare sees to it that there is a Kubernetes with Helenus in it, for the tests and the
// measurements: the local cluster with the images of this checkout, or another one. It imports
// dev/demo.
package prepare

import (
	"cmp"
	"context"
	"io"
	"path/filepath"

	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/dev/demo/reach"
)

// Options say what is wanted. The zero value is the local cluster with what is installed there.
type Options struct {
	// Kubeconfig of another Kubernetes than the local cluster.
	Kubeconfig string
	// Install builds the images and installs Helenus first.
	Install bool
	// Images to install, where they are not to be those that are built here.
	Images install.Images
	// Versions of Cassandra whose images the local cluster is given.
	Versions []string
	// Progress receives what the commands report that this takes.
	Progress io.Writer
}

// Kubernetes prepares it.
func Kubernetes(ctx context.Context, o Options) (*reach.Cluster, error) {
	repository, err := local.FindRepository(".")
	if err != nil {
		return nil, err
	}
	if o.Kubeconfig == "" {
		if err := o.local(ctx, local.Tools{Repository: repository, Progress: o.Progress}); err != nil {
			return nil, err
		}
	}
	cluster, err := reach.Open(o.Kubeconfig)
	if err != nil || !o.Install {
		return cluster, err
	}
	objects, err := install.Manifest(filepath.Join(repository, local.ManifestPath), o.Images)
	if err != nil {
		return nil, err
	}
	if err := install.Apply(ctx, cluster, objects); err != nil {
		return nil, err
	}
	return cluster, install.AwaitOperator(ctx, cluster, func(string) {})
}

// local brings the local cluster up with the images in it, and puts into the options how it is
// reached and what it runs.
func (o *Options) local(ctx context.Context, t local.Tools) error {
	if err := t.Check(); err != nil {
		return err
	}
	if o.Install {
		if err := t.Up(ctx); err != nil {
			return err
		}
		files, err := t.Build(ctx, o.Versions...)
		if err != nil {
			return err
		}
		built, err := t.Load(ctx, files)
		if err != nil {
			return err
		}
		o.Images.Operator = cmp.Or(o.Images.Operator, built.Operator)
		o.Images.Agent = cmp.Or(o.Images.Agent, built.Agent)
	}
	var err error
	o.Kubeconfig, err = t.Kubeconfig(ctx)
	return err
}
