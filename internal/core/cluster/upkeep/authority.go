package upkeep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// secretsAgain is when to look again for a Secret that something waits for. Secrets are not
// watched, so nothing tells when one comes or goes.
const secretsAgain = 30 * time.Second

// uses of the certificates that the cluster has.
func (k *Keeper) uses() []v1alpha1.CertificateUse {
	return append([]v1alpha1.CertificateUse{v1alpha1.UseAgent}, k.CertificateUses(k.Encryption())...)
}

// leaf is the Secret with the certificate of a node, nil if there is none, and what it says.
type leaf struct {
	secret *corev1.Secret
	trust  facts.Trust
}

// leaves are the certificates for a use, of each of Records, and what their authority says.
type leaves struct {
	of        []leaf
	authority facts.Trust
}

// leavesOf a use. They are looked up once in a pass.
func (k *Keeper) leavesOf(use v1alpha1.CertificateUse) *leaves {
	if out, known := k.leaves[use]; known {
		return out
	}
	out := &leaves{make([]leaf, len(k.Records())), k.Trust[v1alpha1.AuthorityName(k.Cluster.Name, use)]}
	for i, n := range k.Records() {
		name := v1alpha1.CertificateName(n.Name, use)
		out.of[i] = leaf{k.Shared.Secrets[name], k.Trust[name]}
	}
	k.leaves[use] = out
	return out
}

// authorities sees to it that the cluster has its certificate authorities. One that is lost is not
// made again while anything rests on it: operator and agents, nodes, and clients know each other by
// it, and nobody but a person can say that it is gone for good. It says so by deleting the
// certificates that it has signed, too.
func (k *Keeper) authorities() {
	k.unsigned = map[v1alpha1.CertificateUse]bool{}
	k.used = k.uses()
	for _, use := range k.used {
		if !k.Cluster.Spec.HasOwn(use) {
			k.authority(use)
		} else if reason, err := k.checkGiven(); err != nil {
			k.unsigned[use] = true
			k.draft.Stall(reason, "%s. Nodes keep what they have", err)
		}
	}
	if clients := k.clientsAuthority(); clients.Data[corev1.ServiceAccountRootCAKey] != "" &&
		slices.Contains(k.used, v1alpha1.UseClients) && !k.unsigned[v1alpha1.UseClients] {
		ensure(k, k.Shared.ConfigMaps, clients, repairConfig, edited)
	}
}

func (k *Keeper) authority(use v1alpha1.CertificateUse) {
	want := render.CertificateSecret(k.Owner(), use, nil)
	have := k.Shared.Secrets[want.Name]
	var signed, copied bool
	for _, leaf := range k.leavesOf(use).of {
		copied = copied || facts.SourceOf(leaf.secret) != ""
		signed = signed || leaf.secret != nil && facts.SourceOf(leaf.secret) == ""
	}
	switch {
	case have != nil && k.Edited[want.Name]:
		k.unsigned[use] = true
		k.draft.WakeIn(secretsAgain)
		k.draft.Block("SharedObjects", v1alpha1.BlockedCAModified, nil,
			"Secret %s, %s, was edited: no certificate is signed by it. "+
				"Waits until its content is restored. If the content is lost, delete the Secret and follow the next "+
				"message", want.Name, authorityInWords[use])
	case have != nil && k.foreign(use) != "":
		k.unsigned[use] = true
		k.draft.WakeIn(secretsAgain)
		k.draft.Block("SharedObjects", v1alpha1.BlockedCAModified, nil, "Secret %s, %s, does not have the authority "+
			"by which the certificate in Secret %s is signed: an earlier content was restored. No certificate is "+
			"signed by it. Waits until it has its latest content. If that is lost, delete all these Secrets: "+
			"kubectl delete secrets --namespace %s --selector %s=%s,%s=%s", want.Name, authorityInWords[use],
			k.foreign(use), want.Namespace, v1alpha1.LabelCluster, k.Cluster.Name, v1alpha1.LabelComponent, use)
	case have != nil:
		ensure(k, k.Shared.Secrets, want, func(*corev1.Secret, *corev1.Secret) bool { return true }, edited)
	case !signed:
		k.issue(plan.Write{Verb: plan.IssueAuthority, Object: want})
		if k.Begun() && !copied {
			k.draft.Event(corev1.EventTypeWarning, "AuthorityRenewed",
				"%s and all its certificates were deleted; they are recreated", authorityInWords[use])
		}
	default:
		k.unsigned[use] = true
		k.draft.WakeIn(secretsAgain)
		k.draft.Block("SharedObjects", v1alpha1.BlockedCAMissing, nil,
			"Secret %s, %s, is gone. Existing certificates stay valid until "+
				"they expire, and no other is signed. Waits until it is restored from a backup. To get another one, "+
				"delete the certificates too: kubectl delete secrets --namespace %s --selector %s=%s,%s=%s. "+
				"Cassandra keeps running meanwhile", want.Name, authorityInWords[use], want.Namespace,
			v1alpha1.LabelCluster, k.Cluster.Name, v1alpha1.LabelComponent, use)
	}
}

// foreign is the Secret of a node's certificate that is signed by none of those that the authority
// of its use has; empty if there is none. Nodes that got what that has would not trust the node.
func (k *Keeper) foreign(use v1alpha1.CertificateUse) string {
	all := k.leavesOf(use)
	for _, leaf := range all.of {
		if signer := leaf.trust.Signer; leaf.secret != nil && facts.SourceOf(leaf.secret) == "" && signer != "" &&
			!all.authority.Trusts(signer) {
			return leaf.secret.Name
		}
	}
	return ""
}

var authorityInWords = map[v1alpha1.CertificateUse]string{
	v1alpha1.UseAgent:     "the certificate authority of this cluster",
	v1alpha1.UseInternode: "the certificate authority of the nodes of this ring",
	v1alpha1.UseClients:   "the certificate authority by which clients know this ring",
}

// certificates issues those of one of Records, and others when two thirds of their life are over.
func (k *Keeper) certificates(i int, n *facts.Node) {
	// One of a former record goes with that record.
	if n.Pod != nil && n.Pod.Status.Phase == corev1.PodPending {
		k.draft.WakeIn(secretsAgain) // it may wait for a Secret that somebody deletes
	}
	for _, use := range k.used {
		if !k.unsigned[use] {
			k.certificate(n, use, k.leavesOf(use).of[i], k.leavesOf(use).authority)
		}
	}
	if c := k.Given[n.Name].Certificate; c != nil && k.Cluster.Spec.ClientsIssuer() == nil {
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(c), UID: c.GetUID(),
			Why: "the spec names no issuer"})
	}
}

func (k *Keeper) certificate(n *facts.Node, use v1alpha1.CertificateUse, is leaf, trust facts.Trust) {
	have := is.secret
	annotated, address := have != nil, ""
	of, given, isGiven := trust, facts.Given{}, k.Cluster.Spec.HasOwn(use)
	if isGiven {
		if given = k.GivenTo(n.Name); !k.given(n, given) {
			return
		}
		annotated = have != nil && have.Annotations[v1alpha1.AnnotationSource] == given.Source()
		of = given.Trust
	} else if use == v1alpha1.UseClients {
		if have != nil {
			address = have.Annotations[v1alpha1.AnnotationAddress]
		}
		if n.Pod != nil && n.Pod.Status.PodIP != "" {
			address = n.Pod.Status.PodIP
		}
		annotated = have != nil && have.Annotations[v1alpha1.AnnotationAddress] == address && facts.SourceOf(have) == ""
	}
	if use == v1alpha1.UseClients && have != nil && k.keeps(is, given.Secret, of.Signer, trust) {
		return
	}
	if annotated && !k.Edited[have.Name] && facts.Owned(have, string(n.Record.UID)) &&
		render.HasCertificateLabels(have.Labels, k.Owner(), use, n.Record) && is.trust.Same(of) {
		if isGiven {
			return
		}
		renew, err := time.Parse(time.RFC3339, have.Annotations[v1alpha1.AnnotationRenewAfter])
		if err == nil && k.Now.Before(renew) {
			k.draft.WakeIn(renew.Sub(k.Now))
			return
		}
	}
	want := render.CertificateSecret(k.Owner(), use, n.Record)
	switch {
	case isGiven:
		want.Annotations = map[string]string{v1alpha1.AnnotationSource: given.Source()}
	case use == v1alpha1.UseClients:
		want.Annotations = map[string]string{v1alpha1.AnnotationAddress: address}
		if facts.SourceOf(have) != "" {
			want.Annotations[v1alpha1.AnnotationSource] = ""
		}
	}
	w := plan.Write{Verb: plan.IssueCertificate, Object: want, Node: n.Name}
	if have != nil {
		w.UID = have.UID
		w.Why = "two thirds of its life are over, its record was recreated, its pod has another address, its " +
			"authority is replaced, it comes from elsewhere, or somebody edited it"
	}
	k.issue(w)
}

// givenAgain is when a certificate of the user's own is looked at again: it sends no event.
const givenAgain = time.Minute

// given sees to it that a node is given a certificate that Helenus does not sign, and says that one
// is there.
func (k *Keeper) given(n *facts.Node, given facts.Given) bool {
	k.draft.WakeIn(givenAgain)
	if k.Cluster.Spec.ClientsIssuer() != nil {
		address := ""
		if n.Pod != nil {
			address = n.Pod.Status.PodIP
		}
		want, have := render.Issued(k.Cluster, n.Record, address), given.Certificate
		if have == nil || !equality.Semantic.DeepDerivative(want.Object["spec"], have.Object["spec"]) ||
			!facts.Owned(have, string(n.Record.UID)) {
			k.draft.Write(plan.Write{Verb: plan.ApplyOther, Object: want, Node: n.Name,
				Why: "cert-manager is to sign what it shows to clients"})
		}
	}
	if given.Missing || given.Problem != "" || given.Secret == "" {
		k.draft.WakeIn(issuedAgain)
		return false
	}
	return true
}

// issuedAgain is when a certificate is looked at again that cert-manager is to sign.
const issuedAgain = 5 * time.Second

// checkCertificates refuses, before a ring is made, certificates that it cannot be made with.
func (k *Keeper) checkCertificates() (string, error) {
	if !k.Cluster.Spec.HasOwn(v1alpha1.UseClients) || k.Begun() || k.LedgerLost ||
		!slices.Contains(k.uses(), v1alpha1.UseClients) {
		return "", nil
	}
	return k.checkGiven()
}

// checkGiven refuses certificates for clients that nodes cannot have, with the reason and in words.
func (k *Keeper) checkGiven() (string, error) {
	const field = "spec.security.encryption.certificates.clients"
	given := k.Given[""]
	switch {
	case k.NoIssuer != "":
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonIssuerNotFound, fmt.Errorf("%s.issuerRef: %s: create it, with cert-manager, or take the "+
			"field out and Helenus signs certificates", field, k.NoIssuer)
	case given.Missing:
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonInvalidSpec, fmt.Errorf("%s.secretName is %s, and there is no such Secret: create one "+
			"with tls.crt, tls.key and ca.crt, or take the field out and Helenus signs certificates", field,
			given.Secret)
	case given.Problem != "":
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonInvalidSpec, fmt.Errorf("%s.secretName: Secret %s %s", field, given.Secret, given.Problem)
	}
	return "", nil
}

// keeps says that a node still has a certificate from elsewhere than the spec says: while that is
// refused, and while clients do not trust the other one yet.
func (k *Keeper) keeps(have leaf, source, signer string, trust facts.Trust) bool {
	if k.SpecRejected && facts.SourceOf(have.secret) != source {
		return true
	}
	return have.trust.Signer != "" && !have.trust.Trusts(signer) && !k.Edited[have.secret.Name] &&
		k.clientsHold(trust, time.Time{})
}

// issue writes a Secret. Nothing tells when that is there, so it is looked at again.
func (k *Keeper) issue(w plan.Write) {
	k.draft.Write(w)
	k.draft.WakeIn(time.Second)
}

// notIssuedFor is how long cert-manager may take before it is said that it does not sign.
const notIssuedFor = 2 * time.Minute

// noticeCertificates names the nodes whose Cassandra does not take over a certificate, or whose
// certificate ends soon: both are renewed long before.
func (k *Keeper) noticeCertificates() {
	near := min(k.Cluster.Spec.CertificateLifetime()/4, facts.LongestNear)
	var names, why []string
	for _, n := range k.Records() {
		if g := k.Given[n.Name]; g.Problem != "" && g.Certificate != nil &&
			k.Now.After(g.Certificate.GetCreationTimestamp().Add(notIssuedFor)) {
			names = append(names, n.Name)
			why = append(why, fmt.Sprintf("that of node %s for clients: %s", n.Name, g.Problem))
		}
		for _, c := range n.Record.Status.Certificates {
			said := c.Problem
			switch {
			case c.NotAfter == nil:
			case k.Now.Before(c.NotAfter.Add(-near)):
				k.draft.WakeIn(c.NotAfter.Add(-near).Sub(k.Now))
			default:
				said = strings.Trim("it ends at "+c.NotAfter.UTC().Format(time.RFC3339)+"; "+said, "; ")
			}
			if said == "" {
				continue
			}
			why = append(why, fmt.Sprintf("that of node %s for %s: %s", n.Name, c.Use, said))
			if !slices.Contains(names, n.Name) {
				names = append(names, n.Name)
			}
		}
	}
	if len(names) > 0 {
		k.draft.Notice(v1alpha1.NoticeCertificateNotRenewed, names, "certificates are not renewed: %s. Cassandra "+
			"keeps the one that it has; when that ends, no new connection is made with it", words.List(why, 3))
	}
}
