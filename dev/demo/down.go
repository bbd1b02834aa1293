package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/dev/demo/progress"
	"helenus.io/helenus/dev/demo/reach"
)

// downDeadline is how long stopping the ring in order, and removing the namespace, may each take
// before it counts as broken.
const downDeadline = 10 * time.Minute

// down removes the ring of the demonstration with its data, and the namespace.
func down(ctx context.Context, s *settings, steps *progress.Reporter) error {
	onThisMachine := s.kubeconfig == ""
	if onThisMachine {
		repository, err := local.FindRepository(orElse(s.repository, "."))
		if err != nil {
			return err
		}
		t := local.Tools{Repository: repository, Progress: os.Stderr}
		if err := t.Check(); err != nil {
			return err
		}
		if s.kubeconfig, err = t.Kubeconfig(ctx); err != nil {
			return err
		}
	}
	cluster, err := reach.Open(s.kubeconfig)
	if err != nil {
		return err
	}
	clusters := &v1alpha1.CassandraClusterList{}
	err = cluster.Client.List(ctx, clusters, client.InNamespace(s.namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("list clusters: %w", err)
	}
	for i := range clusters.Items {
		err := steps.Run(ctx, "cluster "+clusters.Items[i].Name+" is stopped and removed",
			func(ctx context.Context, step *progress.Step) error {
				return removeCluster(ctx, cluster, &clusters.Items[i], step)
			})
		if err != nil {
			return err
		}
	}
	err = steps.Run(ctx, "namespace "+s.namespace+" is removed", func(ctx context.Context, _ *progress.Step) error {
		return removeNamespace(ctx, cluster, s.namespace)
	})
	if err != nil {
		return err
	}
	if onThisMachine {
		steps.Say("\nThe local cluster still runs, with Helenus in it; remove it too by: bin/localkube down")
	} else {
		steps.Say("\nHelenus itself is still installed. Remove it, and every other ring with it, by: kubectl "+
			"--kubeconfig %s delete -f %s", s.kubeconfig, local.ManifestPath)
	}
	return nil
}

// removeCluster deletes a cluster with its claims: the rows of a demonstration are worth nothing,
// and claims that stay would be in the way of the next one.
func removeCluster(ctx context.Context, cluster *reach.Cluster, c *v1alpha1.CassandraCluster,
	step *progress.Step) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	namespace, err := follow.Start(ctx, cluster.Config, c.Namespace, follow.Kinds())
	if err != nil {
		return err
	}
	before := c.DeepCopy()
	c.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	if err := cluster.Client.Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("have the claims deleted too: %w", err)
	}
	if err := cluster.Client.Delete(ctx, c, client.Preconditions{UID: &c.UID}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("delete CassandraCluster %s: %w", c.Name, err)
	}
	return namespace.Until(ctx, downDeadline, "it is gone", func(now follow.Sight) error {
		there, found := now.Cluster(c.Name)
		if !found || there.UID != c.UID {
			return nil
		}
		note, parts := board(now, c.Name)
		if there.Status.Step != nil {
			note = there.Status.Step.Message
		}
		step.Note("%s", note)
		step.Parts(parts)
		return fmt.Errorf("%s", note)
	})
}

func removeNamespace(ctx context.Context, cluster *reach.Cluster, name string) error {
	ctx, stop := context.WithTimeoutCause(ctx, downDeadline, fmt.Errorf("not within %s", downDeadline))
	defer stop()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	watcher, err := cluster.Client.Watch(ctx, &corev1.NamespaceList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("watch namespace: %w", err)
	}
	defer watcher.Stop()
	if err := cluster.Client.Delete(ctx, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	for {
		select {
		case event, open := <-watcher.ResultChan():
			if !open || event.Type == watch.Error {
				return fmt.Errorf("watch namespace %s: the API server ended the watch; run this again", name)
			}
			if event.Type == watch.Deleted {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of namespace %s: %w", name, context.Cause(ctx))
		}
	}
}
