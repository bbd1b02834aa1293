package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// secretsAgain is when to look again for a Secret that something waits for. Secrets are not watched, so nothing tells when one comes or goes.
const secretsAgain = 30 * time.Second

// authority sees to it that the cluster has its certificate authority. One that is lost is not made again while anything rests on it: operator and agents know
// each other by it, and nobody but a person can say that it is gone for good. It says so by deleting the certificates that it has signed, too.
func (p *pass) authority() {
	want := render.CertificateSecret(p.owner(), nil)
	have := p.Shared.Secrets[want.Name]
	var signed []string
	for _, n := range p.Records() {
		if n.Secret != nil {
			signed = append(signed, n.Secret.Name)
		}
	}
	p.unsigned = false
	switch {
	case have != nil && p.AuthorityEdited:
		p.unsigned = true
		p.wakeIn(secretsAgain)
		p.block("SharedObjects", "the_certificate_authority_is_as_it_was_made", nil, "somebody edited Secret %s, the certificate authority of this cluster: no certificate is signed by it. "+
			"Put its content back; if that is lost, delete it, and see what is said then", want.Name)
	case have != nil:
		ensure(p, p.Shared.Secrets, want, func(*corev1.Secret, *corev1.Secret) bool { return true }, edited)
	case len(signed) == 0:
		p.write(plan.Write{Verb: plan.IssueAuthority, Object: want})
		if p.begun() {
			p.event(corev1.EventTypeWarning, "AuthorityRenewed", "the certificate authority and all certificates were deleted; they are made anew")
		}
	default:
		p.unsigned = true
		p.wakeIn(secretsAgain)
		p.block("SharedObjects", "the_certificate_authority_is_there", nil, "Secret %s, the certificate authority of this cluster, is gone. Certificates that are there serve until they end, "+
			"and no other is signed. Put it back from a backup; or, to have another one, delete the certificates too: kubectl delete secrets --namespace %s --selector %s=%s,%s=%s. "+
			"Cassandra runs on meanwhile", want.Name, want.Namespace, v1alpha1.LabelCluster, p.Cluster.Name, v1alpha1.LabelComponent, v1alpha1.ComponentAgent)
	}
}
