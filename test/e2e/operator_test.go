//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// operatorKills is how often the operator is killed while a ring forms, and as often while a
	// node joins.
	operatorKills = 20
	// longestWork is how long an operator leads at most before it is killed.
	longestWork = 3 * time.Second
)

// killing kills every operator that comes to lead, after a random while, until so many have been
// killed or stop is called. It says how many were.
func killing(t *testing.T, s *scene.Scene, seed uint64) (stop func() int) {
	t.Helper()
	chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // for moments
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan int, 1)
	go func() {
		leader, n := "", 0
		defer func() { killed <- n }()
		for n < operatorKills {
			next, err := s.KillLeader(ctx, leader, time.Duration(chance.Int64N(int64(longestWork))))
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("kill the operator: %v", err)
				}
				return
			}
			leader = next
			n++
		}
	}()
	return func() int {
		cancel()
		return <-killed
	}
}

// TestOperatorKilled: the operator is killed again and again while a ring forms, and while a node
// joins it under a client's eyes: both come to their end, the client is served, and nothing happens
// twice.
func TestOperatorKilled(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-killed")
	onlyHere(t, s)
	sample := sampleOf(t, "demo.yaml")
	sample.Spec.Node.Placement = &v1alpha1.Placement{HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	var ring *scene.Ring
	stop := killing(t, s, 1)
	took(t, "a ring forms while the operator is killed again and again", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	t.Logf("the operator was killed %d times meanwhile", stop())
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	before := identities(t, ring)
	stop = killing(t, s, 2)
	grow(t, ring, "a node joins while the operator is killed again and again", 4,
		func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) })
	t.Logf("the operator was killed %d times meanwhile", stop())
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
	wantHistory(t, ring, "FormRing", "JoinNode", "Cleanup")
}

// TestNewerOperator: an operator with another image of the agent replaces the agents in the pods
// that run, one alone and then rack by rack. No pod is recreated, no JVM is restarted, and clients
// are served all the while.
func TestNewerOperator(t *testing.T) {
	ring := threeRacks(t)
	was, err := ring.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tagged, digest, pinned := strings.Cut(was.Agent, "@")
	if !pinned {
		t.Skipf("%s has no other name: it is not pinned by its digest", was.Agent)
	}
	t.Cleanup(func() { reinstall(t, ring.Scene, was) })
	// The same image by another name: to Kubernetes it is another one.
	other := tagged[:strings.LastIndex(tagged, ":")] + "@" + digest
	upgrade(t, ring, install.Images{Operator: was.Operator, Agent: other})
	took(t, "the agents of the former operator are back", func() error { return installAgents(t, ring, was) })
}

func reinstall(t *testing.T, s *scene.Scene, images install.Images) {
	t.Helper()
	if err := s.Install(context.WithoutCancel(t.Context()), images); err != nil {
		t.Errorf("install the operator as it was: %v", err)
	}
}

// upgrade installs another operator, and wants nothing but the agents of a ring to be replaced.
func upgrade(t *testing.T, ring *scene.Ring, to install.Images) {
	t.Helper()
	before, started := identities(t, ring), jvms(t, ring)
	while(t, ring, servedThroughout, "the agents are replaced", func() error {
		return installAgents(t, ring, to)
	})
	wantAsBefore(t, before, identities(t, ring))
	for name, p := range jvms(t, ring) {
		if p != started[name] {
			t.Errorf("node %s: its JVM was %+v, and is %+v", name, started[name], p)
		}
	}
	wantEvent(t, ring, "ReplacingAgents", to.Agent)
	wantRingSeen(t, ring)
}

// installAgents installs another operator, and waits until each agent of a ring was replaced by one
// of its image.
func installAgents(t *testing.T, ring *scene.Ring, to install.Images) error {
	t.Helper()
	restarts := map[string]int32{}
	for _, name := range ring.NodeNames(t.Context()) {
		restarts[name] = podOf(t, ring, name).Status.InitContainerStatuses[0].RestartCount
	}
	if err := ring.Install(t.Context(), to); err != nil {
		return err
	}
	return ring.Until(t.Context(), 3*time.Minute, "all agents are of the new image", func(now follow.Sight) error {
		for _, pod := range now.Pods(ring.Name) {
			status := pod.Status.InitContainerStatuses[0]
			if pod.Spec.InitContainers[0].Image != to.Agent || status.RestartCount == restarts[pod.Name] || !status.Ready {
				return fmt.Errorf("the agent of %s is %s: %+v", pod.Name, pod.Spec.InitContainers[0].Image, status)
			}
		}
		return nil
	})
}

// TestNewerRules: another release of Helenus is built, which makes pods with another label and
// another variable, and files with another option, and is installed. Nothing restarts, and the
// update is shown. A change of the user's takes it along.
func TestNewerRules(t *testing.T) {
	onlyInFull(t)
	var s *scene.Scene
	var was install.Images
	t.Cleanup(func() { // when the namespace is gone: the former operator does not know the newer rules
		if was.Agent != "" {
			reinstall(t, s, was)
		}
	})
	s = open(t, "e2e-rules")
	onlyHere(t, s)
	var next install.Images
	took(t, "another release is built", func() (err error) {
		next, err = newerRelease(t)
		return err
	})
	var ring *scene.Ring
	took(t, "a ring of three racks has formed", func() (err error) {
		ring, err = s.Form(t.Context(), sampleOf(t, "demo.yaml"))
		return err
	})
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	installed, err := s.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	was = installed
	upgrade(t, ring, next)
	err = ring.Until(t.Context(), time.Minute, "the update is shown", func(now follow.Sight) error {
		c, _ := now.Cluster(ring.Name)
		if !slices.ContainsFunc(c.Status.Notices, func(n v1alpha1.Notice) bool {
			return n.Reason == v1alpha1.NoticeUpdateAvailable && len(n.Nodes) == 3
		}) {
			return fmt.Errorf("notices: %+v", c.Status.Notices)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	wantNewer(t, ring, false)
	for _, name := range ring.NodeNames(t.Context()) {
		ring.Invariants.ExpectOtherPods(name)
	}
	rollOut(t, ring, "a change takes the newer rules along", func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.TerminationGracePeriodSeconds = ptr(int64(120))
	})
	wantNewer(t, ring, true)
	wantRingSeen(t, ring)
}

// wantNewer wants the pods and the JVMs of a ring to have what newerRelease gives them, or not.
func wantNewer(t *testing.T, ring *scene.Ring, want bool) {
	t.Helper()
	for _, name := range ring.NodeNames(t.Context()) {
		pod := podOf(t, ring, name)
		pid, err := ring.ProcessOf(pod.UID, "java")
		if err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		label := pod.Labels["example.com/newer"] == "yes"
		option := strings.Contains(string(line), "-Dhelenus.newer=yes")
		variable := strings.Contains(string(env), "NEWER=yes")
		if label != want || option != want || variable != want {
			t.Errorf("node %s, newer: label %v, option %v, variable %v, want %v", name, label, option, variable, want)
		}
	}
}

// newerRelease builds the images of a release whose rules are newer than those of this one.
func newerRelease(t *testing.T) (install.Images, error) {
	t.Helper()
	repository, err := local.FindRepository(".")
	if err != nil {
		return install.Images{}, err
	}
	sources := t.TempDir()
	for _, part := range []string{"api", "cmd", "config", "internal"} {
		if err := os.CopyFS(filepath.Join(sources, part), os.DirFS(filepath.Join(repository, part))); err != nil {
			return install.Images{}, err
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		if err := edit(repository, sources, file, "", ""); err != nil {
			return install.Images{}, err
		}
	}
	if err := errors.Join(
		edit(sources, sources, "internal/core/render/pod.go", "\t1: podRevision1,\n", `1: podRevision1,
	2: func(o Owner, record *v1alpha1.CassandraNode, install facts.Install) (*corev1.Pod, error) {
		pod, err := podRevision1(o, record, install)
		if err == nil {
			pod.Labels["example.com/newer"] = "yes"
			c := &pod.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "NEWER", Value: "yes"})
		}
		return pod, err
	},
`),
		edit(sources, sources, "internal/core/config/render.go", "\t1: renderRevision1,\n", `1: renderRevision1,
	2: func(base Files, node *Node) (Files, error) {
		files, err := renderRevision1(base, node)
		if err == nil {
			files[ServerOptions] = append(files[ServerOptions], "\n-Dhelenus.newer=yes\n"...)
		}
		return files, err
	},
`)); err != nil {
		return install.Images{}, err
	}
	tools := local.Tools{Repository: repository, Sources: sources, Tag: "newer", Progress: os.Stderr}
	files, err := tools.Build(t.Context())
	if err != nil {
		return install.Images{}, err
	}
	return tools.Load(t.Context(), files)
}

// edit copies a file, with one text in place of another that has to be there.
func edit(from, to, file, text, instead string) error {
	content, err := os.ReadFile(filepath.Join(from, file))
	if err != nil {
		return err
	}
	if !strings.Contains(string(content), text) {
		return fmt.Errorf("%s does not have %q", file, text)
	}
	return os.WriteFile(filepath.Join(to, file), []byte(strings.Replace(string(content), text, instead, 1)), 0o600)
}

// TestStaleLeader: the operator that leads stands still, and another leads and makes a deleted pod
// again. When the first one continues, in the midst of what it did, it ends, and nothing comes of
// it.
func TestStaleLeader(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	onlyHere(t, ring.Scene)
	before, lost := identities(t, ring), ring.NodeNames(t.Context())[1]
	while(t, ring, gapsAreShort, "the operator stands still, another makes a deleted pod again, and the first "+
		"continues", func() error {
		pod := podOf(t, ring, lost)
		ring.Invariants.ExpectDeletion(pod)
		if err := kubernetes.Client.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}); err != nil {
			return err
		}
		thaw, err := ring.FreezeLeader(t.Context())
		if err != nil {
			return err
		}
		err = ring.Until(t.Context(), time.Minute, "another pod is made", func(now follow.Sight) error {
			_, err := another(now, pod)
			return err
		})
		return errors.Join(err, thaw(t.Context()))
	})
	wantSameMembers(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}
