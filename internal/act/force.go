package act

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// deleteByForce removes a pod from the API server without a word of kubelet, which would have
// stopped what runs in it. So it looks once more, at the API server itself: the host must be gone
// for certain, and the pod must be the one that was seen, on that host. What is otherwise by now is
// a conflict.
func (p *pass) deleteByForce(ctx context.Context, w plan.Write) error {
	if w.UID == "" || w.Host == "" {
		return errors.New("delete by force without the uid and the host of what was seen")
	}
	host := &corev1.Node{}
	switch err := p.Live.Get(ctx, client.ObjectKey{Name: w.Host}, host); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read host %s: %w", w.Host, err)
	case !facts.OutOfService(host):
		return apierrors.NewConflict(corev1.Resource("nodes"), w.Host, errors.New("the host is not gone"))
	}
	pod := &corev1.Pod{}
	switch err := p.Live.Get(ctx, client.ObjectKeyFromObject(w.Object), pod); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read pod %s: %w", w.Object.GetName(), err)
	case pod.UID != w.UID || pod.Spec.NodeName != w.Host:
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name,
			errors.New("it is another pod, or on another host"))
	}
	return p.delete(ctx, w, client.GracePeriodSeconds(0))
}
