//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/test/e2e/scene"
)

// TestHelm: Helm takes over what kubectl has installed, upgrades it, takes that back, uninstalls it
// and installs it again, beside a ring that serves clients all the while: none of its pods is
// recreated, no JVM is restarted, and its volumes stay. While there is no operator nothing looks
// after the ring; then the next one does.
func TestHelm(t *testing.T) {
	if *helm == "" {
		t.Skip("no -helm: see make e2e-helm")
	}
	ring := threeRacks(t)
	images, err := ring.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { asFound(t, images) })
	started, before := jvms(t, ring), identities(t, ring)
	while(t, ring, servedThroughout, "Helm does all that it can to Helenus", func() error {
		values := append(valuesOf("operator", images.Operator), valuesOf("agent", images.Agent)...)
		for _, do := range []struct {
			what string
			args []string
			then func() error
		}{
			{"it takes over what is installed", append([]string{"install", "--take-ownership", "--force-conflicts", chart}, values...),
				func() error { return looksAfter(t.Context(), ring) }},
			{"it upgrades it", append([]string{"upgrade", "--set", "verbose=true", chart}, values...),
				func() error { return looksAfter(t.Context(), ring) }},
			{"it takes that back", []string{"rollback"}, func() error { return looksAfter(t.Context(), ring) }},
			{"it uninstalls it", []string{"uninstall"}, func() error { return isGone(t.Context(), ring) }},
			{"it installs it", append([]string{"install", chart}, values...),
				func() error { return looksAfter(t.Context(), ring) }},
		} {
			began := time.Now()
			if err := runHelm(t.Context(), do.args...); err != nil {
				return err
			}
			t.Logf("%6.1fs  %s", time.Since(began).Seconds(), do.what)
			if err := do.then(); err != nil {
				return fmt.Errorf("%s: %w", do.what, err)
			}
		}
		return nil
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != started[name] {
			t.Errorf("node %s: its JVM was %+v, and is %+v", name, started[name], p)
		}
	}
	wantRingSeen(t, ring)
}

const chart = "../../charts/helenus"

// valuesOf say which image a part of Helenus is to have.
func valuesOf(part, image string) []string {
	tagged, digest, _ := strings.Cut(image, "@")
	colon := strings.LastIndex(tagged, ":")
	set := "images." + part
	return []string{"--set", fmt.Sprintf("%s.repository=%s,%s.tag=%s,%s.digest=%s", set, tagged[:colon], set,
		tagged[colon+1:], set, digest)}
}

// runHelm runs Helm on the release of Helenus, and waits until all is there, or gone.
func runHelm(ctx context.Context, args ...string) error {
	args = append([]string{args[0], "helenus"}, args[1:]...)
	c := exec.CommandContext(ctx, *helm, append(args, "--namespace", install.Namespace, "--wait", "--timeout", "3m")...)
	if c.Env = os.Environ(); kubernetes.Kubeconfig != "" {
		c.Env = append(c.Env, "KUBECONFIG="+kubernetes.Kubeconfig)
	}
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return nil
}

// looksAfter wants the operator to see changes of a ring that change nothing of its nodes.
func looksAfter(ctx context.Context, ring *scene.Ring) error {
	for _, paused := range []bool{true, false} {
		if err := ring.Edit(ctx, func(s *v1alpha1.CassandraClusterSpec) { s.Paused = paused }); err != nil {
			return err
		}
		if err := ring.Until(ctx, time.Minute, "the operator has seen the spec", func(now follow.Sight) error {
			c, _ := now.Cluster(ring.Name)
			if c.Spec.Paused != paused || c.Status.ObservedGeneration != c.Generation {
				return fmt.Errorf("generation %d is there, and %d was seen", c.Generation, c.Status.ObservedGeneration)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// isGone wants nothing of the operator to be there, and all that a ring consists of.
func isGone(ctx context.Context, ring *scene.Ring) error {
	c := kubernetes.Client
	if err := c.Get(ctx, client.ObjectKey{Namespace: install.Namespace, Name: install.Deployment},
		&appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		return errors.Join(errors.New("the operator is still there"), err)
	}
	claims, nodes := &corev1.PersistentVolumeClaimList{}, &v1alpha1.CassandraNodeList{}
	if err := errors.Join(c.List(ctx, claims, client.InNamespace(ring.Namespace)),
		c.List(ctx, nodes, client.InNamespace(ring.Namespace))); err != nil {
		return err
	}
	if len(nodes.Items) == 0 || len(claims.Items) < len(nodes.Items) {
		return fmt.Errorf("%d nodes and %d claims are left", len(nodes.Items), len(claims.Items))
	}
	return nil
}

// asFound has Helenus be installed by its manifest again.
func asFound(t *testing.T, images install.Images) {
	ctx := context.WithoutCancel(t.Context())
	_ = runHelm(ctx, "uninstall") // if there is a release
	repository, err := local.FindRepository(".")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := install.Manifest(filepath.Join(repository, local.ManifestPath), images)
	if err == nil {
		err = install.Apply(ctx, kubernetes, objects)
	}
	if err == nil {
		err = install.AwaitOperator(ctx, kubernetes, func(string) {})
	}
	if err != nil {
		t.Errorf("install Helenus as it was: %v", err)
	}
}
