//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// TestDiskLost: a host comes back without its disk. The node says that it lost its data and does
// not start as if it were new; the others serve.
func TestDiskLost(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-disk")
	wantAPerson(t, ring, pod.Name, v1alpha1.PhaseDataLost, "replaced",
		"a host is lost, and comes back without its disk", func() error {
			if err := ring.LoseHost(t.Context(), pod.Spec.NodeName, true); err != nil {
				return err
			}
			return ring.ReturnHost(t.Context(), pod.Spec.NodeName)
		})
}

// TestDownTooLong: a host is down for longer than a table keeps its deletions, beside the five
// minutes for which a node need not note that it is NORMAL, and the six by which others may have
// been NORMAL later where a ring was off as a whole. Its node does not start when it is back; the
// others serve. A user lets it start, and has the repair carried out that is due then.
func TestDownTooLong(t *testing.T) {
	onlyInFull(t)
	const kept, unseen = 10 * time.Second, (5 + 6) * time.Minute
	ring, pod := onHosts(t, "e2e-too-long")
	took(t, "the agent of a node knows for how long deletions are kept", func() error {
		now := time.Now()
		if err := ring.KeepDeletions(t.Context(), kept); err != nil {
			return err
		}
		return ring.Says(t.Context(), pod.Name, layout.AgentContainer, now, "deletions are kept for another time now")
	})
	ring.Invariants.ExpectOtherPods(pod.Name) // Kubernetes takes it away from a host that is gone for five minutes
	wantAPerson(t, ring, pod.Name, v1alpha1.PhaseDownTooLong, "gc_grace",
		"a host is lost, and comes back after eleven minutes and a half", func() error {
			if err := ring.LoseHost(t.Context(), pod.Spec.NodeName, false); err != nil {
				return err
			}
			rest(t, unseen+3*kept)
			return ring.ReturnHost(t.Context(), pod.Spec.NodeName)
		})
	while(t, ring, servedThroughout, "the node is let start, and is repaired", func() error {
		except := func(e v1alpha1.Exception) error {
			e.Node, e.Reason = pod.Name, "nothing was deleted"
			e.Name, e.Until = strings.ToLower(string(e.Type)), metav1.NewTime(time.Now().Add(time.Hour))
			return ring.Edit(t.Context(),
				func(s *v1alpha1.CassandraClusterSpec) { s.Exceptions = append(s.Exceptions, e) })
		}
		if err := except(v1alpha1.Exception{Type: v1alpha1.ExceptionStartAnyway,
			HostID: identities(t, ring)[pod.Name].hostID}); err != nil {
			return err
		}
		if err := untilNode(t, ring, pod.Name, "it serves, and a repair is due", func(n *v1alpha1.CassandraNode) bool {
			return n.Status.Ready && slices.ContainsFunc(n.Status.RepairDue, func(d v1alpha1.RepairDue) bool {
				return d.Reason == v1alpha1.RepairDownLongerThanGCGrace
			})
		}); err != nil {
			return err
		}
		if err := except(v1alpha1.Exception{Type: v1alpha1.ExceptionRepair}); err != nil {
			return err
		}
		return untilNode(t, ring, pod.Name, "it is repaired",
			func(n *v1alpha1.CassandraNode) bool { return n.Status.Ready && len(n.Status.RepairDue) == 0 })
	})
	wantHistory(t, ring, "Repair")
	wantRingSeen(t, ring)
}

// wantAPerson wants a node to wait for the user after something, in a phase and with a word, while
// a client is served by the others.
func wantAPerson(t *testing.T, ring *scene.Ring, victim string, phase v1alpha1.NodePhase, word, what string,
	do func() error) {
	t.Helper()
	ring.Invariants.ExpectRestart(victim)
	client, err := ring.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	took(t, what, do)
	took(t, "the node waits for the user", func() error {
		return ring.Until(t.Context(), 4*time.Minute, "it is in phase "+string(phase), func(now follow.Sight) error {
			for _, n := range now.Nodes(ring.Name) {
				if n.Name == victim && n.Status.Phase == phase && strings.Contains(n.Status.Message, word) {
					return nil
				}
			}
			return errors.New("it is not")
		})
	})
	rest(t, 20*time.Second) // it stays so
	for _, n := range ring.Nodes(t.Context()) {
		if n.Name == victim && n.Status.Phase != phase {
			t.Errorf("node %s is %s: %s", victim, n.Status.Phase, n.Status.Message)
		}
	}
	service, err := client.End(t.Context(), gocql.Quorum)
	t.Log(service)
	if err != nil {
		t.Error(err)
	}
	if service.Gap > longestGap {
		t.Errorf("a partition was not served for %s, want at most %s", service.Gap, longestGap)
	}
}

// TestDiskFull: a node whose disk is full says so, touches nothing, and serves again by itself when
// somebody has made room.
func TestDiskFull(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-disk-full")
	onlyHere(t, s)
	sample := sampleOf(t, "demo.yaml")
	victim := sample.Name + "-dc1-r1-0"
	disk := smallDisk(t, s, "a", v1alpha1.ClaimName(v1alpha1.VolumeData, victim))
	var ring *scene.Ring
	took(t, "a ring of three racks has formed", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written", func() error { return ring.Fill(t.Context(), gocql.Quorum) })
	before := identities(t, ring)
	ring.Invariants.ExpectRestart(victim)
	while(t, ring, gapsAreShort, "a disk is full, and its JVM ends", func() error {
		if err := disk.Fill(); err != nil {
			return err
		}
		if err := ring.KillJVM(t.Context(), victim); err != nil {
			return err
		}
		took(t, "it is said", func() error {
			return ring.Until(t.Context(), 4*time.Minute, "it is said", func(now follow.Sight) error {
				return blockedSaying(now, ring, []string{victim, "no space left on device"})
			})
		})
		rest(t, 30*time.Second) // it stays so
		if now := identities(t, ring)[victim]; now.hostID != before[victim].hostID {
			return fmt.Errorf("node %s has host id %s, and had %s", victim, now.hostID, before[victim].hostID)
		}
		return disk.Empty()
	})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// TestFileCorrupt: a file of a node is corrupt, at first one that its agent reads, then one that
// only Cassandra does. Each time the node says which, touches nothing, and serves again by itself
// when somebody has mended it.
func TestFileCorrupt(t *testing.T) {
	onlyInFull(t)
	ring, pod := onHosts(t, "e2e-corrupt")
	before := identities(t, ring)
	for _, file := range []struct{ what, pattern, words string }{
		{"an SSTable of the node itself is corrupt", "data/system/local-*/*-Data.db",
			"checksum of Data.db does not match"},
		{"the commit log is corrupt", "commitlog/*.log", "processing commit log"},
	} {
		while(t, ring, gapsAreShort, file.what+", until it is mended", func() error {
			mend, err := ring.CorruptFile(t.Context(), pod.Name, file.pattern)
			if err != nil {
				return err
			}
			took(t, "it is said", func() error { return said(t.Context(), ring, pod.Name, file.words) })
			rest(t, 30*time.Second) // it stays so
			return mend(t.Context())
		})
		wantAsBefore(t, before, identities(t, ring))
		wantRingSeen(t, ring)
	}
}

// smallDisk is a disk for a claim, on the host of a zone, until the end of the test.
func smallDisk(t *testing.T, s *scene.Scene, zone, claim string) *scene.SmallDisk {
	t.Helper()
	var hosts corev1.NodeList
	if err := kubernetes.Client.List(t.Context(), &hosts,
		client.MatchingLabels{corev1.LabelTopologyZone: zone}); err != nil {
		t.Fatal(err)
	}
	if len(hosts.Items) == 0 {
		t.Fatalf("no host is in zone %s", zone)
	}
	const size = 768 << 20
	disk, err := s.SmallDisk(t.Context(), hosts.Items[0].Name, claim, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Remove(background); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return disk
}
