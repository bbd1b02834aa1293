package scene

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addressesInUse is the folder of a host of the local cluster in which the CNI plugin host-local
// has a file for each address of a pod, by its name.
const addressesInUse = "/var/lib/cni/networks/pods"

// LeaveFree takes all addresses of a host of the local cluster that no pod has, but for one: the
// next pod gets that. The function that it returns gives them back.
func (s *Scene) LeaveFree(host, address string) (giveBack func() error, err error) {
	init, err := s.hostInit(host)
	if err != nil {
		return nil, err
	}
	free, err := netip.ParseAddr(address)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join("/proc", strconv.Itoa(init), "root", addressesInUse)
	var taken []string
	giveBack = func() error {
		var errs []error
		for _, file := range taken {
			errs = append(errs, os.Remove(file))
		}
		return errors.Join(errs...)
	}
	const bits = 24 // of each host's pods
	all := netip.PrefixFrom(free, bits).Masked()
	for a := all.Addr(); all.Contains(a); a = a.Next() {
		file := filepath.Join(folder, a.String())
		if a == free {
			_, err := os.Lstat(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = errors.New("a pod has it")
			}
			return nil, errors.Join(fmt.Errorf("leave address %s free: %w", address, err), giveBack())
		}
		switch err := take(file); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return nil, errors.Join(fmt.Errorf("leave address %s free: take %s: %w", address, a, err), giveBack())
		default:
			taken = append(taken, file)
		}
	}
	return giveBack, nil
}

func take(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Cordon keeps the scheduler from putting pods on a host, or lets it again.
func (s *Scene) Cordon(ctx context.Context, host string, closed bool) error {
	node := &corev1.Node{}
	if err := s.Kubernetes.Client.Get(ctx, client.ObjectKey{Name: host}, node); err != nil {
		return fmt.Errorf("cordon host %s: %w", host, err)
	}
	before := node.DeepCopy()
	node.Spec.Unschedulable = closed
	if err := s.Kubernetes.Client.Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cordon host %s: %w", host, err)
	}
	return nil
}

// Bind puts a pod on a host in the scheduler's place.
func (s *Scene) Bind(ctx context.Context, pod *corev1.Pod, host string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: host},
	}
	if err := s.Kubernetes.Core.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind pod %s to host %s: %w", pod.Name, host, err)
	}
	return nil
}
