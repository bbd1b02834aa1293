//go:build e2e

package e2e

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

// TestEncryptALivingRing: a ring that requires encryption between its nodes leaves it by all
// stages, and comes back by them, while a client is there.
func TestEncryptALivingRing(t *testing.T) {
	onlyInFull(t)
	ring := threeRacks(t)
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
