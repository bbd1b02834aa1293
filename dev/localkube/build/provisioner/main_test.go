package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// nodes are n1, which runs, and n2, which does not.
func nodes(t *testing.T) disks {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"n1", "n2"} {
		if err := os.MkdirAll(filepath.Join(root, name, "disk", "volumes"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "n1", "running"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return disks(root)
}

func options(node string, mode corev1.PersistentVolumeAccessMode) controller.ProvisionOptions {
	reclaim := corev1.PersistentVolumeReclaimDelete
	return controller.ProvisionOptions{
		StorageClass:     &storagev1.StorageClass{ReclaimPolicy: &reclaim},
		PVName:           "pvc-1",
		SelectedNodeName: node,
		PVC: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{mode},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		},
	}
}

func TestAVolumeIsAFolderOnTheDiskOfItsNode(t *testing.T) {
	d, ctx := nodes(t), context.Background()
	pv, state, err := d.Provision(ctx, options("n1", corev1.ReadWriteOnce))
	if err != nil || state != controller.ProvisioningFinished {
		t.Fatalf("state %s, error %v", state, err)
	}
	if got := pv.Spec.Local.Path; got != "/var/lib/localkube/volumes/pvc-1_a_data" {
		t.Errorf("the node sees it at %s", got)
	}
	if node, err := nodeOf(pv); err != nil || node != "n1" {
		t.Errorf("it is bound to %q, %v", node, err)
	}
	folder := filepath.Join(string(d), "n1/disk/volumes/pvc-1_a_data")
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o777 {
		t.Errorf("pods of other users cannot write to it: mode %v", info.Mode())
	}
	if err := d.Delete(ctx, pv); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestALostNodeKeepsItsVolumes(t *testing.T) {
	d, ctx := nodes(t), context.Background()
	pv, _, err := d.Provision(ctx, options("n1", corev1.ReadWriteOnce))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(string(d), "n1", "running")); err != nil {
		t.Fatal(err)
	}
	if err := d.Delete(ctx, pv); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("error %v, want one that says that the machine does not run", err)
	}
	if _, err := os.Stat(filepath.Join(string(d), "n1/disk/volumes/pvc-1_a_data")); err != nil {
		t.Errorf("the disk of a lost machine has changed: %v", err)
	}
}

func TestProvisionRefuses(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, tc := range map[string]struct {
		options controller.ProvisionOptions
		change  func(*corev1.PersistentVolumeClaimSpec)
		state   controller.ProvisioningState
		err     string
	}{
		"shared": {options: options("n1", corev1.ReadWriteMany), state: controller.ProvisioningFinished,
			err: "ReadWriteMany is not supported"},
		"lost node": {options: options("n2", corev1.ReadWriteOnce), state: controller.ProvisioningReschedule,
			err: "n2 does not run"},
		"no node": {options: options("", corev1.ReadWriteOnce), state: controller.ProvisioningReschedule,
			err: "no file name"},
		"path for node": {options: options("../n1", corev1.ReadWriteOnce), state: controller.ProvisioningReschedule,
			err: "no file name"},
		"selector": {options: options("n1", corev1.ReadWriteOnce), state: controller.ProvisioningFinished,
			err:    "selectors",
			change: func(s *corev1.PersistentVolumeClaimSpec) { s.Selector = &metav1.LabelSelector{} }},
		"block": {options: options("n1", corev1.ReadWriteOnce), state: controller.ProvisioningFinished, err: "block",
			change: func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = &block }},
	} {
		if tc.change != nil {
			tc.change(&tc.options.PVC.Spec)
		}
		_, state, err := nodes(t).Provision(context.Background(), tc.options)
		if err == nil || !strings.Contains(err.Error(), tc.err) || state != tc.state {
			t.Errorf("%s: state %s, error %v; want %s, %q", name, state, err, tc.state, tc.err)
		}
	}
}

func TestDeleteRefusesWhatItDidNotMake(t *testing.T) {
	d, ctx := nodes(t), context.Background()
	pv, _, err := d.Provision(ctx, options("n1", corev1.ReadWriteOnce))
	if err != nil {
		t.Fatal(err)
	}
	pv.Spec.Local.Path = "/var/lib/localkube/volumes/other"
	if err := d.Delete(ctx, pv); err == nil || !strings.Contains(err.Error(), "was not made by this provisioner") {
		t.Errorf("error %v", err)
	}
}
