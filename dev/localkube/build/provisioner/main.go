// Command provisioner makes and removes the volumes of a localkube cluster. It
// runs on the host, where the disks of all nodes are folders, so a volume costs
// no helper pod and provisioning outlives the loss of any node. Package build
// compiles it together with CoreDNS, against the libraries of Kubernetes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// nodePath is where a node sees the volumes of its disk.
const nodePath = "/var/lib/localkube/volumes"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the provisioner")
	nodes := flag.String("nodes", "", "folder with one folder per node, which holds its disk")
	name := flag.String("name", "", "name of the provisioner, as storage classes give it")
	flag.Parse()
	if err := run(*kubeconfig, *nodes, *name); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig, nodes, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	c := controller.NewProvisionController(ctx, client, name, disks(nodes),
		controller.LeaderElection(false),
		// The volume of a lost node is removed when the node is back, however
		// long that takes.
		controller.FailedProvisionThreshold(0),
		controller.FailedDeleteThreshold(0),
		controller.RateLimiter(workqueue.NewTypedItemExponentialFailureRateLimiter[string](500*time.Millisecond,
			5*time.Second)),
		controller.MetricsPort(0),
	)
	c.Run(ctx)
	return nil
}

// disks is the folder of all nodes. A node NAME keeps its volumes in
// NAME/disk/volumes; the file NAME/running is there while the machine runs.
type disks string

func (d disks) volumes(node string) (string, error) {
	if node == "" || node != filepath.Base(node) {
		return "", fmt.Errorf("node name %q is no file name", node)
	}
	if _, err := os.Stat(filepath.Join(string(d), node, "running")); err != nil {
		return "", fmt.Errorf("the machine of node %s does not run, so its disk cannot be reached", node)
	}
	return filepath.Join(string(d), node, "disk", "volumes"), nil
}

// Provision makes a folder on the disk of the node that the scheduler chose.
func (d disks) Provision(_ context.Context, o controller.ProvisionOptions) (*corev1.PersistentVolume,
	controller.ProvisioningState, error) {
	const done = controller.ProvisioningFinished
	if o.PVC.Spec.Selector != nil {
		return nil, done, fmt.Errorf("claim %s/%s: selectors are not supported", o.PVC.Namespace, o.PVC.Name)
	}
	for _, mode := range o.PVC.Spec.AccessModes {
		if mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod {
			return nil, done, fmt.Errorf("claim %s/%s: access mode %s is not supported by a volume on the disk of "+
				"one node; use ReadWriteOnce or ReadWriteOncePod", o.PVC.Namespace, o.PVC.Name, mode)
		}
	}
	if o.PVC.Spec.VolumeMode != nil && *o.PVC.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return nil, done, fmt.Errorf("claim %s/%s: block volumes are not supported", o.PVC.Namespace, o.PVC.Name)
	}
	base, err := d.volumes(o.SelectedNodeName)
	if err != nil {
		return nil, controller.ProvisioningReschedule, err
	}
	folder := strings.Join([]string{o.PVName, o.PVC.Namespace, o.PVC.Name}, "_")
	path := filepath.Join(base, folder)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, done, fmt.Errorf("make volume: %w", err)
	}
	// Pods write as any user; MkdirAll is bound by the umask.
	if err := os.Chmod(path, 0o777); err != nil {
		return nil, done, fmt.Errorf("make volume writable: %w", err)
	}
	filesystem := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			VolumeMode:                    &filesystem,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(nodePath, folder)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
						Values: []string{o.SelectedNodeName},
					}},
				}},
			}},
		},
	}, done, nil
}

// Delete removes the folder of a released volume.
func (d disks) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	node, err := nodeOf(pv)
	if err != nil {
		return err
	}
	base, err := d.volumes(node)
	if err != nil {
		return err
	}
	folder := filepath.Base(pv.Spec.Local.Path)
	if !strings.HasPrefix(folder, pv.Name+"_") {
		return fmt.Errorf("volume %s: its path %s was not made by this provisioner", pv.Name, pv.Spec.Local.Path)
	}
	if err := os.RemoveAll(filepath.Join(base, folder)); err != nil {
		return fmt.Errorf("remove volume: %w", err)
	}
	return nil
}

// nodeOf reads the one node that a volume of ours is bound to.
func nodeOf(pv *corev1.PersistentVolume) (string, error) {
	if pv.Spec.Local != nil && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
		terms := pv.Spec.NodeAffinity.Required.NodeSelectorTerms
		if len(terms) == 1 && len(terms[0].MatchExpressions) == 1 && len(terms[0].MatchExpressions[0].Values) == 1 {
			return terms[0].MatchExpressions[0].Values[0], nil
		}
	}
	return "", fmt.Errorf("volume %s: it is not a local volume bound to one node", pv.Name)
}
