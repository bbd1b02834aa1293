package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/reach"
)

// fieldManager is who applies.
const fieldManager = "helenus-install"

// Bounds of what may take long; past them it counts as broken.
const (
	establishDeadline = time.Minute
	// RolloutDeadline is how long the operator may take to run.
	RolloutDeadline = 5 * time.Minute
)

// Apply applies objects in their order. Kinds that the objects define are waited for before the
// first object that is not a definition.
func Apply(ctx context.Context, cluster *reach.Cluster, objects []*unstructured.Unstructured) error {
	var definitions []string
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" && len(definitions) > 0 {
			if err := established(ctx, cluster, definitions); err != nil {
				return err
			}
			definitions = nil
		}
		if err := apply(ctx, cluster, object); err != nil {
			return err
		}
		if object.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, object.GetName())
		}
	}
	return established(ctx, cluster, definitions)
}

func apply(ctx context.Context, cluster *reach.Cluster, object *unstructured.Unstructured) error {
	err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
		client.FieldOwner(fieldManager), client.ForceOwnership)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("apply %s %s: you need the rights of an administrator to install Helenus: %w",
			object.GetKind(), object.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// established waits until the API server serves the kinds of definitions.
func established(ctx context.Context, cluster *reach.Cluster, names []string) error {
	if len(names) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, establishDeadline,
		fmt.Errorf("the API server does not serve the new kinds within %s", establishDeadline))
	defer stop()
	watcher, err := cluster.Client.Watch(ctx, &apiextensionsv1.CustomResourceDefinitionList{})
	if err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	defer watcher.Stop()
	missing := slices.Clone(names)
	for len(missing) > 0 {
		select {
		case event, open := <-watcher.ResultChan():
			if !open || event.Type == watch.Error {
				return errors.New("watch definitions: the API server ended the watch; run this again")
			}
			definition, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
			if ok && isEstablished(definition) {
				missing = slices.DeleteFunc(missing, func(name string) bool { return name == definition.Name })
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for %v: %w", missing, context.Cause(ctx))
		}
	}
	return nil
}

func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definition.Status.Conditions,
		func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
}

// AwaitOperator waits until the operator runs as it was applied, and no longer as it was before.
// Progress is told what is still missing.
func AwaitOperator(ctx context.Context, cluster *reach.Cluster, progress func(string)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	namespace, err := follow.Start(ctx, cluster.Config, Namespace, follow.OperatorKinds())
	if err != nil {
		return err
	}
	return namespace.Until(ctx, RolloutDeadline, "the operator runs", func(s follow.Sight) error {
		missing := running(s)
		if missing != nil {
			progress(missing.Error())
		}
		return missing
	})
}

// running holds when all replicas are available and made from the newest template.
func running(s follow.Sight) error {
	d, found := s.Deployment(Deployment)
	if !found {
		return fmt.Errorf("there is no Deployment %s in namespace %s", Deployment, Namespace)
	}
	for _, pod := range s.AllPods() {
		if trouble, pull := follow.PodTrouble(&pod); pull && newest(d.Spec.Template.Spec.Containers[0].Image, &pod) {
			return follow.Never(fmt.Errorf("pod %s %s", pod.Name, trouble))
		}
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	status := d.Status
	switch {
	case status.ObservedGeneration < d.Generation:
		return errors.New("the new version has not been taken up")
	case status.UpdatedReplicas < wanted || status.AvailableReplicas < wanted:
		return fmt.Errorf("%d of %d replicas run%s", min(status.UpdatedReplicas, status.AvailableReplicas), wanted,
			troubles(s))
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Errorf("%d replicas of the old version still run", status.Replicas-status.UpdatedReplicas)
	}
	return nil
}

func newest(image string, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == image })
}

// troubles is what keeps pods of the operator from running, in a few words.
func troubles(s follow.Sight) string {
	for _, pod := range s.AllPods() {
		if trouble, _ := follow.PodTrouble(&pod); trouble != "" {
			return fmt.Sprintf("; pod %s %s", pod.Name, trouble)
		}
	}
	return ""
}
