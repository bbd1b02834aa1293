package safeguard

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// resizing is a client of an operator whose resizes somebody else sends.
type resizing struct {
	client.Client
	send func(ctx context.Context, pods client.SubResourceClient, pod client.Object, patch client.Patch) error
}

func (r resizing) SubResource(name string) client.SubResourceClient {
	return resizes{r.Client.SubResource(name), r}
}

type resizes struct {
	client.SubResourceClient
	by resizing
}

func (r resizes) Patch(ctx context.Context, pod client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	return r.by.send(ctx, r.SubResourceClient, pod, patch)
}

// withoutUID is a patch of whatever object has the name.
func withoutUID(patch client.Patch, object client.Object) (client.Patch, error) {
	content := map[string]any{}
	text, err := patch.Data(object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	delete(content, "metadata")
	if text, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("write patch: %w", err)
	}
	return client.RawPatch(patch.Type(), text), nil
}

// A pod that is resized before the turn of its node has come is caught.
func TestAResizeOutOfTurn(t *testing.T) {
	s := found(t, "rollout-resized")
	early := writing(func(c client.Client) client.Client {
		return resizing{c, func(ctx context.Context, pods client.SubResourceClient, pod client.Object,
			patch client.Patch) error {
			if err := pods.Patch(ctx, pod, patch); err != nil || pod.GetName() != clusterName+"-dc1-r1-0" {
				return err
			}
			free, err := withoutUID(patch, pod)
			if err != nil {
				return err
			}
			other := &corev1.Pod{}
			other.Namespace, other.Name = pod.GetNamespace(), clusterName+"-dc1-r2-0"
			return pods.Patch(ctx, other, free)
		}}
	})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: early}, "is resized while node "+clusterName+"-dc1-r1-0")
}

// A resize has no effect on another pod that has come under the name since it was decided on.
func TestAResizeByUID(t *testing.T) {
	for _, strip := range []bool{false, true} {
		s := *found(t, "rollout-resized")
		var of *world.World
		create := s.Acts[0].Do
		s.Acts[0].Do = func(w *world.World) error { of = w; return create(w) }
		done := false
		replaced := writing(func(c client.Client) client.Client {
			return resizing{c, func(ctx context.Context, pods client.SubResourceClient, pod client.Object,
				patch client.Patch) error {
				if !done {
					done = true
					if err := replace(ctx, of, pod); err != nil {
						return err
					}
				}
				if strip {
					var err error
					if patch, err = withoutUID(patch, pod); err != nil {
						return err
					}
				}
				return pods.Patch(ctx, pod, patch)
			}}
		})
		const by = "I5: operator-1 writes Pod/" + clusterName + "-dc1-r1-0"
		result := run(t, trial.Trial{Scenario: &s, Seed: 1, Wrap: replaced})
		if got := saysAll(result.Violations, by); got != strip {
			t.Errorf("without the uid: %v; another pod was resized: %v: %q", strip, got, result.Violations)
		}
	}
}

// replace deletes a pod by force and makes another one of its name.
func replace(ctx context.Context, w *world.World, pod client.Object) error {
	old := w.Server.Object("Pod", types.NamespacedName{Namespace: pod.GetNamespace(),
		Name: pod.GetName()}).(*corev1.Pod).DeepCopy()
	if err := w.User().Delete(ctx, old.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	old.UID, old.ResourceVersion, old.Status = "", "", corev1.PodStatus{}
	return w.User().Create(ctx, old)
}

// A node whose host has no room for more serves until it has, in the pod that it has.
func TestAResizeThatIsPutOff(t *testing.T) {
	result := holds(t, trial.Trial{Scenario: found(t, "rollout-deferred"), Seed: 1, Tell: true})
	refuses(t, result, string(v1alpha1.BlockedPodNotResized))
	for name, made := range result.End.Created {
		if strings.HasPrefix(name, "Pod/") && made != 1 {
			t.Errorf("%s was made %d times", name, made)
		}
	}
}

// A JVM whose heap follows from the memory limit is restarted after a resize.
func TestAHeapFollowsAResize(t *testing.T) {
	s := found(t, "rollout-resized")
	keeps := writing(func(c client.Client) client.Client { return heapless{c} })
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: keeps}, "memory: the JVM of node")
}

// heapless is a client of an operator that asks for no restart after a resize.
type heapless struct{ client.Client }

func (h heapless) Patch(ctx context.Context, object client.Object, patch client.Patch,
	options ...client.PatchOption) error {
	record, is := object.(*v1alpha1.CassandraNode)
	if !is || record.Spec.Resized == nil || record.Spec.Restart == nil {
		return h.Client.Patch(ctx, object, patch, options...)
	}
	text, err := patch.Data(object)
	if err != nil {
		return err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return fmt.Errorf("read patch: %w", err)
	}
	if spec, is := content["spec"].(map[string]any); is {
		if resized, is := spec["resized"].(map[string]any); is {
			delete(resized, "restart")
			delete(spec, "restart")
		}
	}
	if text, err = json.Marshal(content); err != nil {
		return fmt.Errorf("write patch: %w", err)
	}
	return h.Client.Patch(ctx, object, client.RawPatch(patch.Type(), text), options...)
}

// Where the API server refuses resizes, the pods are recreated, each in its turn.
func TestPodsThatCannotBeResizedAreRecreated(t *testing.T) {
	s := found(t, "rollout-resized")
	refused := 0
	refuses := writing(func(c client.Client) client.Client {
		return resizing{c, func(_ context.Context, _ client.SubResourceClient, pod client.Object,
			_ client.Patch) error {
			refused++
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.GetName(), fmt.Errorf("exceeded quota"))
		}}
	})
	result := holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: refuses})
	const nodes, changes = 3, 2
	for name, made := range result.End.Created {
		if strings.HasPrefix(name, "Pod/") && made != 1+changes {
			t.Errorf("%s was made %d times", name, made)
		}
	}
	if refused != nodes*changes {
		t.Errorf("%d resizes were tried", refused)
	}
	for name, made := range holds(t, trial.Trial{Scenario: s, Seed: 1}).End.Created {
		if strings.HasPrefix(name, "Pod/") && made != 1 {
			t.Errorf("%s was made %d times, although it can be resized", name, made)
		}
	}
}
