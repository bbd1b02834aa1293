package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// resizePod notes on a pod what it is to become, and asks for that by the subresource resize, which
// changes nothing else: both of the uid that was seen. What the API server refuses as such (a
// version that cannot, a quota, a policy) is noted on the pod, so that the next pass decides
// otherwise.
func (p *pass) resizePod(ctx context.Context, w plan.Write) error {
	wanted, ok := w.Object.(*corev1.Pod)
	if w.UID == "" || !ok {
		return errors.New("resize without the uid of the pod that was seen")
	}
	to := wanted.Annotations[v1alpha1.AnnotationResize]
	if err := p.noteResize(ctx, w, to); err != nil {
		return err
	}
	resources := func(of []corev1.Container) (out []map[string]any) {
		for _, c := range of {
			if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
				out = append(out, map[string]any{"name": c.Name, "resources": c.Resources})
			}
		}
		return out
	}
	spec := map[string]any{}
	for list, of := range map[string][]map[string]any{"containers": resources(wanted.Spec.Containers),
		"initContainers": resources(wanted.Spec.InitContainers)} {
		if len(of) > 0 {
			spec[list] = of
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.UID}, "spec": spec})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	pod := plan.Named(wanted).(*corev1.Pod)
	err = p.Client.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch),
		client.FieldOwner(v1alpha1.FieldManagerOperator))
	switch {
	case err == nil:
		return p.wrote(pod)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsBadRequest(err):
		if noted := p.noteResize(ctx, w, render.ResizeRefused(to)); noted != nil {
			return errors.Join(err, noted)
		}
		p.Recorder.Eventf(p.snapshot.Cluster, nil, corev1.EventTypeWarning, "ResizeRefused", "Reconcile",
			"pod %s cannot be resized in place and is recreated: %v", wanted.Name, err)
		return nil
	}
	return err
}

func (p *pass) noteResize(ctx context.Context, w plan.Write, note string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.UID,
		"annotations": map[string]string{v1alpha1.AnnotationResize: note}}})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	pod := plan.Named(w.Object).(*corev1.Pod)
	if err := p.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return fmt.Errorf("note the resize: %w", err)
	}
	return p.wrote(pod)
}
