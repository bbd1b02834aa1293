//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/test/e2e/scene"
)

// mistakes in the description of the nodes of a datacenter, and what the cluster says of each: the
// words of Kubernetes or Cassandra, and the field.
var mistakes = []struct {
	what  string
	do    func(*v1alpha1.NodeTemplate)
	words []string
}{
	{"a storage class that does not exist", func(n *v1alpha1.NodeTemplate) {
		n.Storage.Claims.Data.StorageClassName = ptr("nothing")
	}, []string{"of class nothing has no volume", "storageClassName"}},
	{"a request that no host has room for", func(n *v1alpha1.NodeTemplate) {
		n.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("9000Gi")}
		n.Resources.Limits = n.Resources.Requests.DeepCopy()
	}, []string{"Insufficient memory", "node.resources.requests"}},
	{"a place that does not exist", func(n *v1alpha1.NodeTemplate) {
		n.Placement = &v1alpha1.Placement{Zone: "nowhere", HostAntiAffinity: v1alpha1.HostAntiAffinityNone}
	}, []string{"node affinity/selector", "node.placement"}},
	{"an option that no JVM takes", func(n *v1alpha1.NodeTemplate) {
		n.JVM.Options = append(n.JVM.Options[:len(n.JVM.Options):len(n.JVM.Options)], "-XX:+ThereIsNoSuchOption")
	}, []string{"ThereIsNoSuchOption", "node.jvm.options"}},
}

// TestCorrecting: a datacenter is added to a ring that serves, with one mistake in its description
// after the other. Each is said in a sentence that names node and field, and the nodes of the ring
// are not touched. Then it is abandoned, and added again without a mistake.
func TestCorrecting(t *testing.T) {
	onlyInFull(t)
	ring := forGrowth(t, "e2e-correcting")
	before := identities(t, ring)
	right, newcomer := ring.Spec.Node.DeepCopy(), ring.Name+"-dc2-r1-0"
	while(t, ring, servedThroughout, "a datacenter is added with one mistake after the other, abandoned, and added",
		func() error {
			for i, m := range mistakes {
				took(t, m.what+" is said", func() error {
					err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
						if i == 0 {
							s.Datacenters = append(s.Datacenters, oneMore(s.Datacenters[0]))
						}
						s.Datacenters[1].Node = right.DeepCopy()
						m.do(s.Datacenters[1].Node)
					})
					if err != nil {
						return err
					}
					return said(t.Context(), ring, append(m.words, newcomer)...)
				})
				ring.Invariants.ExpectRestart(newcomer)
				if pod, found := ring.Now(t.Context()).Pod(newcomer); found {
					ring.Invariants.ExpectDeletion(pod)
				}
			}
			var added v1alpha1.Datacenter
			took(t, "the datacenter is abandoned", func() error {
				err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
					added = s.Datacenters[1]
					s.Datacenters = s.Datacenters[:1]
				})
				if err != nil {
					return err
				}
				return ring.Until(t.Context(), growth, "its node is gone", func(now follow.Sight) error {
					if nodes := len(now.Nodes(ring.Name)); nodes != len(before) {
						return fmt.Errorf("there are %d nodes", nodes)
					}
					return nil
				})
			})
			added.Node = nil
			if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
				s.Datacenters = append(s.Datacenters, added)
			}); err != nil {
				return err
			}
			return grown(t, ring, len(before)+1)
		})
	wantAsBefore(t, before, identities(t, ring))
	wantRingSeen(t, ring)
}

// oneMore is a datacenter of one node, to which the rows come.
func oneMore(like v1alpha1.Datacenter) v1alpha1.Datacenter {
	dc := *like.DeepCopy()
	dc.Name, dc.PlannedReplicationFactor, dc.Racks = "dc2", 1, []v1alpha1.Rack{{Name: "r1"}}
	dc.Extend = &v1alpha1.Extend{Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: scene.Keyspace}},
		LocalConsistencyOnly: true}
	return dc
}

// TestCorrectingImages: a ring cannot form, for its image does not exist; then because it is
// private; then because the Secret for it does not exist. Each is said, and the ring forms when the
// Secret is right.
func TestCorrectingImages(t *testing.T) {
	onlyInFull(t)
	s := open(t, "e2e-images")
	onlyHere(t, s)
	local, err := s.Local()
	if err != nil {
		t.Fatal(err)
	}
	sample := sampleOf(t, "one-node.yaml")
	private, login, err := local.PrivateImage("cassandra:" + sample.Spec.Version)
	if err != nil {
		t.Fatal(err)
	}
	const missing, secret = "cassandra:nothing", "registry"
	newcomer := sample.Name + "-dc1-r1-0"
	s.Invariants.ExpectOtherPods(newcomer) // one for each mistake
	var ring *scene.Ring
	took(t, "an image that does not exist is said", func() error {
		wrong := sample.DeepCopy()
		wrong.Spec.Image = missing
		if ring, err = s.Create(t.Context(), wrong); err != nil {
			return err
		}
		return said(t.Context(), ring, newcomer, missing, "see image")
	})
	took(t, "a private image is said", func() error {
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) { s.Image = private }); err != nil {
			return err
		}
		return said(t.Context(), ring, newcomer, private, "401 Unauthorized", "imagePullSecrets")
	})
	took(t, "a Secret that does not exist is of no help", func() error {
		if err := ring.Edit(t.Context(), pullBy("registri")); err != nil {
			return err
		}
		return ring.Until(t.Context(), 3*time.Minute, "a pod with it is there, and it is said",
			func(now follow.Sight) error {
				if pod, found := now.Pod(newcomer); !found ||
					!slices.Contains(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "registri"}) {
					return errors.New("no pod has it")
				}
				return blockedSaying(now, ring, []string{newcomer, private, "imagePullSecrets"})
			})
	})
	took(t, "the ring forms with the Secret that is meant", func() error {
		err := kubernetes.Client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: secret},
			Type:       corev1.SecretTypeDockerConfigJson,
			Data:       map[string][]byte{corev1.DockerConfigJsonKey: login},
		})
		if err == nil {
			err = ring.Edit(t.Context(), pullBy(secret))
		}
		if err == nil {
			err = ring.Formed(t.Context())
		}
		return err
	})
	wantRingSeen(t, ring)
}

func pullBy(secret string) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}}
	}
}

// said waits until the cluster says in one sentence all of some words.
func said(ctx context.Context, ring *scene.Ring, words ...string) error {
	return ring.Until(ctx, 3*time.Minute, "it is said",
		func(now follow.Sight) error { return blockedSaying(now, ring, words) })
}

// blockedSaying holds when something is held back for a reason that has all these words.
func blockedSaying(now follow.Sight, ring *scene.Ring, words []string) error {
	c, found := now.Cluster(ring.Name)
	if !found {
		return errors.New("the cluster is not there")
	}
	for _, b := range allReported(c) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(b.Message, word)
		}
		if all {
			return nil
		}
	}
	return fmt.Errorf("it says %v", allReported(c))
}
