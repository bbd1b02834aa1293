//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
)

// TestEncryptALivingRing: a ring that requires encryption between its nodes leaves it by all
// stages, and comes back by them, while a client is there.
func TestEncryptALivingRing(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	for _, n := range ring.Nodes(t.Context()) {
		ring.Invariants.ExpectOtherPods(n.Name) // they mount other Secrets
	}
	const passes = 3
	for _, mode := range []v1alpha1.EncryptionMode{v1alpha1.EncryptionDisabled, v1alpha1.EncryptionRequired} {
		while(t, ring, servedThroughout, "encryption between nodes: "+string(mode), func() error {
			if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
				if s.Security == nil {
					s.Security = &v1alpha1.Security{}
				}
				s.Security.Encryption = &v1alpha1.Encryption{Internode: &v1alpha1.InternodeEncryption{Mode: mode}}
			}); err != nil {
				return err
			}
			return ring.RolledOut(t.Context(), passes*rollingOut)
		})
		c, _ := ring.Now(t.Context()).Cluster(ring.Name)
		if got := c.Status.Security.Encryption.Internode; got != mode {
			t.Errorf("all nodes run %s, want %s", got, mode)
		}
		for _, n := range ring.Nodes(t.Context()) {
			if got := n.Status.Configuration.Encryption.OrNotEncrypted().Internode; got != mode {
				t.Errorf("node %s runs %s, want %s", n.Name, got, mode)
			}
		}
	}
	wantTLS(t, ring)
	wantRingSeen(t, ring)
}

// TestRotateAuthority: both authorities of a ring are replaced while a client is there. No JVM is
// started for that.
func TestRotateAuthority(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
	before := authorities(ring.Now(t.Context()), ring.Name)
	if len(before) != 2 {
		t.Fatalf("authorities %v", before)
	}
	was := jvms(t, ring)
	while(t, ring, servedThroughout, "both authorities are replaced", func() error {
		at := metav1.Now()
		if err := ring.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			if s.Security == nil {
				s.Security = &v1alpha1.Security{}
			}
			s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
				Internode: &v1alpha1.InternodeAuthority{RotatedAt: &at},
				Clients:   &v1alpha1.ClientsAuthority{RotatedAt: &at, Hold: &metav1.Duration{}}}}
		}); err != nil {
			return err
		}
		return ring.Until(t.Context(), 15*time.Minute, "two other authorities sign", func(now follow.Sight) error {
			all := authorities(now, ring.Name)
			for fingerprint := range before {
				if _, still := all[fingerprint]; still {
					return fmt.Errorf("authorities %v", all)
				}
			}
			if len(all) != len(before) {
				return fmt.Errorf("authorities %v", all)
			}
			return nil
		})
	})
	for name, now := range jvms(t, ring) {
		if now != was[name] {
			t.Errorf("the JVM of node %s was %+v and is %+v", name, was[name], now)
		}
	}
	wantTLS(t, ring)
	wantRingSeen(t, ring)
}

// authorities of a cluster by their fingerprints.
func authorities(now follow.Sight, cluster string) map[string]v1alpha1.AuthorityStage {
	out := map[string]v1alpha1.AuthorityStage{}
	if c, there := now.Cluster(cluster); there && c.Status.Security != nil && c.Status.Security.Encryption != nil {
		for _, a := range c.Status.Security.Encryption.Authorities {
			out[a.Fingerprint] = a.Stage
		}
	}
	return out
}
