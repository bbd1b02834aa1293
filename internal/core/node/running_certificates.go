package node

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// proveCertificates has the JVM take over certificates that it has not shown yet: after each start,
// and after each renewal. Its ports are open when it is on its way into the ring.
func proveCertificates(p *pass) outcome {
	if !p.answers() {
		return done
	}
	switch p.JVM.Ring.Mode {
	case facts.ModeStarting, facts.ModeDraining, facts.ModeDrained:
		return done
	default:
	}
	var uses []v1alpha1.CertificateUse
	for _, c := range p.Certificates {
		if c.Given != "" && c.Given != c.Served && (c.Use != v1alpha1.UseClients || p.JVM.Ring.NativeRunning) {
			uses = append(uses, c.Use)
		}
	}
	if len(uses) == 0 {
		return done
	}
	return act(ProveCertificates{Uses: uses, Why: "Cassandra has not shown the certificates yet that it was given"})
}

// mostTrusted is the bound of the schema.
const mostTrusted = 8

func (p *pass) reportCertificates(s *v1alpha1.CassandraNodeStatus) {
	for _, c := range p.Certificates {
		if c.Served == "" && c.Problem == "" {
			continue
		}
		out := v1alpha1.CertificateStatus{Use: c.Use, SerialNumber: c.SerialNumber, Authority: c.Authority,
			Trusted: c.Trusted[:min(len(c.Trusted), mostTrusted)], Problem: words.Shorten(c.Problem, 1024)}
		if !c.NotAfter.IsZero() {
			out.NotAfter = &metav1.Time{Time: c.NotAfter}
		}
		s.Certificates = append(s.Certificates, out)
	}
}
