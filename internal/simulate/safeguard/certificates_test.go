package safeguard

import (
	"context"
	"crypto/x509"
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// deaf reloads certificates every fourth time alone, and says that it has each time.
type deaf struct {
	execute.JVM
	calls *int
}

func (d deaf) ReloadCertificates(ctx context.Context) error {
	if *d.calls++; *d.calls%4 != 0 {
		return nil
	}
	return d.JVM.ReloadCertificates(ctx)
}

// credulous is an agent that takes the word of Cassandra for what it shows, once it has asked it to
// reload.
type credulous struct {
	execute.Certificates
	calls *int
	asked map[v1alpha1.CertificateUse]int
}

func (b credulous) Served(ctx context.Context, use v1alpha1.CertificateUse, leaf pki.Pair, bundle []byte) (
	*x509.Certificate, error) {
	if *b.calls == b.asked[use] {
		return b.Certificates.Served(ctx, use, leaf, bundle)
	}
	b.asked[use] = *b.calls
	certificates, err := pki.ParseCertificates(leaf.Certificate)
	if err != nil {
		return nil, err
	}
	return certificates[0], nil
}

// A renewed certificate is one that Cassandra shows, not one that it was told to read.
func TestOnlyACertificateThatIsShownIsRenewed(t *testing.T) {
	s := found(t, "renew-certificates")
	wrap := func(believes bool) world.Wrap {
		return host(func(_ *pod.Sandbox, h *execute.Host) {
			calls := new(int)
			h.JVM = deaf{h.JVM, calls}
			if believes {
				h.Certificates = credulous{h.Certificates, calls, map[v1alpha1.CertificateUse]int{}}
			}
		})
	}
	holds(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap(false)})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: wrap(true)}, "wait for an hour is not over")
}

// Without its guard a stage of encryption begins before the one that it rests on has reached every
// node: one that requires encryption, and one that has none, do not see each other.
func TestAStageOfEncryptionIsCompleteFirst(t *testing.T) {
	s := found(t, "encrypt-living-ring")
	refused := judged(t)
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	if refused["EncryptionStageIncomplete"] == 0 {
		t.Errorf("refused %v", refused)
	}
	judged(t, "EncryptionStageIncomplete")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "refuse each other")
}

// Without its guard clients that do not encrypt are refused without a word.
func TestPlainClientsAreNamedFirst(t *testing.T) {
	judged(t, "PlainClients")
	caught(t, trial.Trial{Scenario: found(t, "encrypt-living-ring"), Seed: 1}, "require it is not over")
}

// Without its guard the bundle loses an authority while nodes still show what it has signed, and
// one that is signed by another is shown to nodes that do not trust it yet.
func TestAnAuthorityIsDroppedWhenNoNodeShowsIt(t *testing.T) {
	s := found(t, "rotate-authority")
	refused := judged(t)
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	if refused["AuthorityStageIncomplete"] == 0 {
		t.Errorf("refused %v", refused)
	}
	judged(t, "AuthorityStageIncomplete")
	caught(t, trial.Trial{Scenario: s, Seed: 1}, "refuse each other")
}
