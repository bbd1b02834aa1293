package upkeep

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// own says that a certificate comes from an authority of the user's of which there is no Secret.
func (l leaf) own(use v1alpha1.CertificateUse) bool {
	return use == v1alpha1.UseClients && facts.SourceOf(l.secret) != ""
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
		own := k.Cluster.Spec.HasOwn(use)
		if !own {
			k.authority(use)
		}
		reason, err := k.checkGiven(use)
		k.unsigned[use] = k.unsigned[use] || own && err != nil
		if err == nil {
			reason, err = v1alpha1.ReasonInvalidSpec, k.checkIssued(use)
		}
		if err != nil {
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
		copied = copied || leaf.own(use)
		signed = signed || leaf.secret != nil && !leaf.own(use)
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
		if k.Cluster.Spec.Issuer(use) != nil {
			given, found := k.latest(use)
			k.unsigned[use] = true // until it is there: it cannot sign
			if !found {
				return
			}
			want.Annotations = map[string]string{v1alpha1.AnnotationSource: given.Source()}
		}
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
		if signer := leaf.trust.Signer; leaf.secret != nil && !leaf.own(use) && signer != "" &&
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
		k.given(n, use)
	}
}

func (k *Keeper) certificate(n *facts.Node, use v1alpha1.CertificateUse, is leaf, trust facts.Trust) {
	have := is.secret
	annotated, address := have != nil, ""
	own, of, source := k.Cluster.Spec.HasOwn(use), trust, ""
	given := k.GivenTo(use, n.Name)
	switch {
	case own && (!given.Usable() || k.shared(use, given)):
		return
	case own:
		source, of = given.Source(), given.Trust
	case trust.Given:
		if source = k.copied(is, given, trust); source == "" {
			return
		}
		of.Signer = is.trust.Signer // whichever is trusted
	case use == v1alpha1.UseClients:
		if have != nil {
			address = have.Annotations[v1alpha1.AnnotationAddress]
		}
		if n.Pod != nil && n.Pod.Status.PodIP != "" {
			address = n.Pod.Status.PodIP
		}
		annotated = have != nil && have.Annotations[v1alpha1.AnnotationAddress] == address
	}
	annotated = annotated && have.Annotations[v1alpha1.AnnotationSource] == source
	if use == v1alpha1.UseClients && have != nil && k.keeps(is, given.Secret, of.Signer, trust) {
		return
	}
	if annotated && !k.Edited[have.Name] && facts.Owned(have, string(n.Record.UID)) &&
		render.HasCertificateLabels(have.Labels, k.Owner(), use, n.Record) && is.trust.Same(of) {
		if source != "" {
			return
		}
		renew, err := time.Parse(time.RFC3339, have.Annotations[v1alpha1.AnnotationRenewAfter])
		if err == nil && k.Now.Before(renew) {
			k.draft.WakeIn(renew.Sub(k.Now))
			return
		}
	}
	want := render.CertificateSecret(k.Owner(), use, n.Record)
	want.Annotations = map[string]string{}
	if source != "" || facts.SourceOf(have) != "" {
		want.Annotations[v1alpha1.AnnotationSource] = source
	}
	switch {
	case use == v1alpha1.UseInternode:
		want.Annotations[v1alpha1.AnnotationSince] = k.Now.UTC().Format(time.RFC3339)
	case use == v1alpha1.UseClients && source == "":
		want.Annotations[v1alpha1.AnnotationAddress] = address
	}
	w := plan.Write{Verb: plan.IssueCertificate, Object: want, Node: n.Name}
	if have != nil {
		w.UID = have.UID
		w.Why = "two thirds of its life are over, its record was recreated, its pod has another address, its " +
			"authority is replaced, it comes from elsewhere, or somebody edited it"
	}
	k.issue(w)
}

// copied is the source of a certificate between nodes, whose authority is an issuer's: what is
// signed for the node, if every node trusts who has signed it, else what the node has. Empty if
// there is neither.
func (k *Keeper) copied(is leaf, given facts.Given, trust facts.Trust) string {
	switch {
	case given.Usable() && trust.Trusts(given.Trust.Signer) && given.Trust.Signer != trust.Next:
		return given.Source()
	case is.secret == nil || k.Edited[is.secret.Name]:
		return ""
	case slices.Equal(is.trust.Fingerprints(), trust.Fingerprints()):
		return is.secret.Annotations[v1alpha1.AnnotationSource]
	default:
		return facts.Given{Secret: is.secret.Name, Content: is.secret.Annotations[v1alpha1.AnnotationContent]}.Source()
	}
}

// givenAgain is when a certificate of the user's own is looked at again: it sends no event.
const givenAgain = time.Minute

// given sees to it that a node is given a certificate that Helenus does not sign, if the spec says
// so.
func (k *Keeper) given(n *facts.Node, use v1alpha1.CertificateUse) {
	given := k.GivenTo(use, n.Name)
	have := given.Certificate
	switch {
	case k.Cluster.Spec.Issuer(use) != nil:
		if want, asked := k.asked(n, use); !asked && k.NoIssuer[use] == "" {
			k.draft.Write(plan.Write{Verb: plan.ApplyOther, Object: want, Node: n.Name,
				Why: "cert-manager is to sign its certificate for " + string(use)})
		}
	case have != nil:
		k.draft.Write(plan.Write{Verb: plan.Delete, Object: plan.Named(have), UID: have.GetUID(),
			Why: "the spec names no issuer"})
		return
	case !k.Cluster.Spec.HasOwn(use):
		return
	}
	if k.draft.WakeIn(givenAgain); !given.Usable() {
		k.draft.WakeIn(issuedAgain)
	}
}

// issuedAgain is when a certificate is looked at again that cert-manager is to sign.
const issuedAgain = 5 * time.Second

// asked says that cert-manager is asked for what a node is to have, and for what.
func (k *Keeper) asked(n *facts.Node, use v1alpha1.CertificateUse) (*unstructured.Unstructured, bool) {
	have, address := k.GivenTo(use, n.Name).Certificate, ""
	if n.Pod != nil {
		address = n.Pod.Status.PodIP
	}
	want := render.Issued(k.Cluster, use, n.Record, address)
	return want, have != nil && facts.Owned(have, string(n.Record.UID)) &&
		equality.Semantic.DeepDerivative(want.Object["spec"], have.Object["spec"])
}

// checkCertificates refuses, before a ring is made, certificates that it cannot be made with.
func (k *Keeper) checkCertificates() (string, error) {
	if k.Begun() || k.LedgerLost {
		return "", nil
	}
	for _, use := range k.uses() {
		if reason, err := k.checkGiven(use); err != nil {
			return reason, err
		}
	}
	return "", nil
}

// checkGiven refuses certificates that nodes cannot have, with the reason and in words.
func (k *Keeper) checkGiven(use v1alpha1.CertificateUse) (string, error) {
	field, given := certificatesField+string(use), facts.Given{}
	if k.Cluster.Spec.HasOwn(use) {
		given = k.Given[""]
	}
	switch {
	case k.NoIssuer[use] != "":
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonIssuerNotFound, fmt.Errorf("%s.issuerRef: %s: create it, with cert-manager, or take the "+
			"field out and Helenus signs certificates", field, k.NoIssuer[use])
	case given.Missing:
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonInvalidSpec, fmt.Errorf("%s.secretName is %s, and there is no such Secret: create one "+
			"with tls.crt, tls.key and ca.crt, or take the field out and Helenus signs certificates", field,
			given.Secret)
	case given.Problem != "":
		k.draft.WakeIn(secretsAgain)
		return v1alpha1.ReasonInvalidSpec, fmt.Errorf("%s.secretName: Secret %s %s", field, given.Secret, given.Problem)
	case k.shared(use, given):
		return v1alpha1.ReasonInvalidSpec, fmt.Errorf("%s.secretName: Secret %s %s", field, given.Secret, isShared)
	}
	return "", nil
}

const (
	certificatesField = "spec.security.encryption.certificates."
	isShared          = "is of an authority by which nodes know each other and clients know them: these could " +
		"join the ring. Use two"
)

// checkIssued refuses what an issuer has signed and nodes cannot have.
func (k *Keeper) checkIssued(use v1alpha1.CertificateUse) error {
	if k.Cluster.Spec.Issuer(use) == nil {
		return nil
	}
	for _, n := range k.Records() {
		given := k.GivenTo(use, n.Name)
		problem := given.Problem
		if k.shared(use, given) {
			problem = isShared
		}
		if given.Content != "" && problem != "" {
			return fmt.Errorf("%s%s.issuerRef: Secret %s %s", certificatesField, use, given.Secret, problem)
		}
	}
	return nil
}

// shared says that a certificate is of an authority that both nodes and clients would know.
func (k *Keeper) shared(use v1alpha1.CertificateUse, given facts.Given) bool {
	internode := k.Trust[v1alpha1.AuthorityName(k.Cluster.Name, v1alpha1.UseInternode)]
	if use == v1alpha1.UseClients {
		return slices.ContainsFunc(given.Trust.Fingerprints(), internode.Trusts)
	}
	clients := k.Trust[v1alpha1.AuthorityName(k.Cluster.Name, v1alpha1.UseClients)]
	return clients.Trusts(given.Trust.Signer) && !internode.Trusts(given.Trust.Signer)
}

// latest is the newest certificate that the issuer of the spec has signed for a use.
func (k *Keeper) latest(use v1alpha1.CertificateUse) (out facts.Given, found bool) {
	for _, n := range k.Records() {
		if g := k.GivenTo(use, n.Name); !g.Usable() || k.shared(use, g) ||
			found && !g.Trust.MadeAt.After(out.Trust.MadeAt) {
			continue
		} else if _, asked := k.asked(n, use); asked {
			out, found = g, true
		}
	}
	return out, found
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
		for _, use := range k.used {
			if g := k.GivenTo(use, n.Name); g.Problem != "" && g.Certificate != nil &&
				k.Now.After(g.Certificate.GetCreationTimestamp().Add(notIssuedFor)) {
				names = append(names, n.Name)
				why = append(why, fmt.Sprintf("that of node %s for %s: %s", n.Name, use, g.Problem))
			}
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
