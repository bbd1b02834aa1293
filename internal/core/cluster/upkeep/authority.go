package upkeep

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// secretsAgain is when to look again for a Secret that something waits for. Secrets are not
// watched, so nothing tells when one comes or goes.
const secretsAgain = 30 * time.Second

// authority sees to it that the cluster has its certificate authority. One that is lost is not made
// again while anything rests on it: operator and agents know each other by it, and nobody but a
// person can say that it is gone for good. It says so by deleting the certificates that it has
// signed, too.
func (k *Keeper) authority() {
	want := render.CertificateSecret(k.Owner(), nil)
	have := k.Shared.Secrets[want.Name]
	var signed []string
	for _, n := range k.Records() {
		if n.Secret != nil {
			signed = append(signed, n.Secret.Name)
		}
	}
	k.unsigned = false
	switch {
	case have != nil && k.AuthorityEdited:
		k.unsigned = true
		k.draft.WakeIn(secretsAgain)
		k.draft.Block("SharedObjects", v1alpha1.BlockedCAModified, nil,
			"Secret %s, the certificate authority of this cluster, was edited: no certificate is signed by it. "+
				"Waits until its content is restored. If the content is lost, delete the Secret and follow the next "+
				"message", want.Name)
	case have != nil:
		ensure(k, k.Shared.Secrets, want, func(*corev1.Secret, *corev1.Secret) bool { return true }, edited)
	case len(signed) == 0:
		k.draft.Write(plan.Write{Verb: plan.IssueAuthority, Object: want})
		if k.Begun() {
			k.draft.Event(corev1.EventTypeWarning, "AuthorityRenewed",
				"the certificate authority and all certificates were deleted; they are recreated")
		}
	default:
		k.unsigned = true
		k.draft.WakeIn(secretsAgain)
		k.draft.Block("SharedObjects", v1alpha1.BlockedCAMissing, nil,
			"Secret %s, the certificate authority of this cluster, is gone. Existing certificates stay valid until "+
				"they expire, and no other is signed. Waits until it is restored from a backup. To get another one, "+
				"delete the certificates too: kubectl delete secrets --namespace %s --selector %s=%s,%s=%s. "+
				"Cassandra keeps running meanwhile", want.Name, want.Namespace, v1alpha1.LabelCluster, k.Cluster.Name,
			v1alpha1.LabelComponent, v1alpha1.ComponentAgent)
	}
}
