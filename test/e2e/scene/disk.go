package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SmallDisk is a volume on a host of the local cluster that can be full while the host has room.
type SmallDisk struct {
	scene  *Scene
	volume *corev1.PersistentVolume
	// init of the host, in whose mounts it is, at a path.
	init int
	path string
}

// SmallDisk makes a volume of so many bytes, in memory, for a claim of the scene that is still to
// be made.
func (s *Scene) SmallDisk(ctx context.Context, host, claim string, size int64) (*SmallDisk, error) {
	init, err := s.hostInit(host)
	if err != nil {
		return nil, err
	}
	d := &SmallDisk{scene: s, init: init, path: "/run/" + s.Namespace + "-" + claim}
	if err := d.enter(ctx, "mkdir", "-p", d.path); err != nil {
		return nil, err
	}
	if err := d.enter(ctx, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=0777", size), "tmpfs",
		d.path); err != nil {
		return nil, err
	}
	d.volume = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			// What a claim asks for is taken on trust.
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              "standard",
			ClaimRef:                      &corev1.ObjectReference{Namespace: s.Namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: d.path},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname,
					Operator: corev1.NodeSelectorOpIn, Values: []string{host}}},
			}}}},
		},
	}
	if err := s.Kubernetes.Client.Create(ctx, d.volume); err != nil {
		return nil, errors.Join(fmt.Errorf("create volume: %w", err), d.enter(ctx, "umount", "--lazy", d.path))
	}
	return d, nil
}

// Fill writes until there is no room left.
func (d *SmallDisk) Fill() error {
	file, err := os.Create(d.filler())
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	zeros := make([]byte, 1<<12)
	for err == nil {
		_, err = file.Write(zeros)
	}
	return file.Close()
}

// Empty takes away what Fill has written.
func (d *SmallDisk) Empty() error { return os.Remove(d.filler()) }

func (d *SmallDisk) filler() string {
	return filepath.Join("/proc", strconv.Itoa(d.init), "root", d.path, "filler")
}

// Remove takes the volume away, as soon as nobody uses it any more.
func (d *SmallDisk) Remove(ctx context.Context) error {
	if err := client.IgnoreNotFound(d.scene.Kubernetes.Client.Delete(ctx, d.volume)); err != nil {
		return fmt.Errorf("delete volume: %w", err)
	}
	return d.enter(ctx, "umount", "--lazy", d.path)
}

// enter runs a program among the mounts of the host, and its processes: umount looks its own mounts
// up in /proc.
func (d *SmallDisk) enter(ctx context.Context, program ...string) error {
	command := exec.CommandContext(ctx, "nsenter",
		append([]string{"-t", strconv.Itoa(d.init), "-m", "-p", "--"},
			program...)...) //nolint:gosec // what this file names
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v on the host: %w: %s", program, err, out)
	}
	return nil
}

// corrupt takes the number of a JVM and a pattern of files below the data volume, ends the JVM,
// saves the first file, spoils it, keeps its checksum, and prints its name.
const corrupt = `set -e
kill -9 $1
for f in /var/lib/cassandra/$2; do break; done
cp -p $f /tmp/saved
yes corrupt | head -c 400 | dd of=$f bs=1 seek=128 conv=notrunc 2>/dev/null
sha256sum $f >/tmp/spoiled
echo $f`

// mend takes the name of the file, which nothing may have touched since, and makes it what it was.
const mend = `set -e
sha256sum --check --quiet /tmp/spoiled
cp -p /tmp/saved $1`

// CorruptFile kills the JVM of a node and spoils a file of it before the next one starts: the first
// that fits a pattern of names below the data volume. The function that it returns makes the file
// what it was, or fails if it is not as it was spoiled.
func (r *Ring) CorruptFile(ctx context.Context, node, pattern string) (undo func(context.Context) error, err error) {
	jvm, err := r.JVM(ctx, node)
	if err != nil {
		return nil, err
	}
	r.Invariants.ExpectRestart(node)
	file, err := r.Run(ctx, node, "sh", "-c", corrupt, "sh", strconv.Itoa(jvm.PID), pattern)
	if err != nil {
		return nil, fmt.Errorf("corrupt %s of %s: %w", pattern, node, err)
	}
	return func(ctx context.Context) error {
		if _, err := r.Run(ctx, node, "sh", "-c", mend, "sh", strings.TrimSpace(file)); err != nil {
			return fmt.Errorf("mend %s of %s: %w", strings.TrimSpace(file), node, err)
		}
		return nil
	}, nil
}
