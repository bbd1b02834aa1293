package act

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// A resize is noted on the pod before it is asked for, both of the uid that was seen, and asks for
// resources alone. What the API server refuses is noted; what only fails is a failure.
func TestAResize(t *testing.T) {
	settings := v1alpha1.PodSettings{Resources: &v1alpha1.Resources{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}}}
	seen := pod("orders-dc1-r1-0")
	seen.UID = "seen"
	pods := schema.GroupResource{Resource: "pods"}
	hash := render.PodHash(settings)
	for name, c := range map[string]struct {
		answer error
		note   string
		fails  bool
	}{
		"done":       {nil, hash, false},
		"refused":    {apierrors.NewForbidden(pods, seen.Name, errors.New("quota")), render.ResizeRefused(hash), false},
		"no such":    {apierrors.NewNotFound(pods, seen.Name), render.ResizeRefused(hash), false},
		"overloaded": {apierrors.NewTooManyRequestsError("later"), hash, true},
		"conflict":   {apierrors.NewConflict(pods, seen.Name, errors.New("uid")), hash, true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked struct {
				Metadata struct{ UID string }
				Spec     struct {
					Containers     []map[string]any
					InitContainers []map[string]any
				}
			}
			w := writer(t, interceptor.Funcs{SubResourcePatch: func(_ context.Context, _ client.Client, name string,
				object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
				text, err := patch.Data(object)
				if err != nil || name != "resize" {
					t.Errorf("%s of subresource %s: %v", text, name, err)
				}
				if err := json.Unmarshal(text, &asked); err != nil {
					t.Error(err)
				}
				return c.answer
			}}, seen.DeepCopy())
			w.Recorder = silent{}
			done := w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: plan.ResizePod,
				Object: render.Resize(seen, settings), UID: seen.UID}}}, confirmed, &consistency.Store{})
			if (done.Err != nil) != c.fails {
				t.Errorf("the pass fails: %v", done.Err)
			}
			got := &corev1.Pod{}
			if err := w.Live.Get(t.Context(), client.ObjectKeyFromObject(seen), got); err != nil {
				t.Fatal(err)
			}
			if note := got.Annotations[v1alpha1.AnnotationResize]; note != c.note {
				t.Errorf("the pod's note is %q, want %q", note, c.note)
			}
			if asked.Metadata.UID != "seen" || len(asked.Spec.Containers) != 1 || len(asked.Spec.Containers[0]) != 2 ||
				asked.Spec.InitContainers != nil {
				t.Errorf("asked for %+v", asked)
			}
		})
	}
	w := writer(t, interceptor.Funcs{}, seen)
	if done := w.Do(t.Context(), snapshot(), plan.Plan{Writes: []plan.Write{{Verb: plan.ResizePod,
		Object: render.Resize(seen, settings)}}}, confirmed, &consistency.Store{}); done.Err == nil {
		t.Error("a pod is resized without a uid")
	}
}
