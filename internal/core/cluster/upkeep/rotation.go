package upkeep

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// broughtIn is how long a certificate takes into its pod at most, before a node is named that has
// not proven it: the kubelet looks every minute or two.
const broughtIn = 5 * time.Minute

// RotateAuthorities replaces the authorities of nodes and of clients: another one is introduced,
// then it signs, then the one before is dropped. Which stage that is in, and by which key, is in
// the Secret of the authority alone: each signature, and each next stage, is made
// by what is there. Each stage gives every node another certificate, which it has to prove.
func (k *Keeper) RotateAuthorities(rules guard.Rules) plan.Result {
	for _, use := range k.used {
		if use != v1alpha1.UseAgent && !k.unsigned[use] {
			k.rotate(rules, use)
		}
	}
	return plan.Nothing()
}

func (k *Keeper) rotate(rules guard.Rules, use v1alpha1.CertificateUse) {
	secret := k.Shared.Secrets[v1alpha1.AuthorityName(k.Cluster.Name, use)]
	if secret == nil {
		return
	}
	trust := k.Trust[secret.Name]
	source, due := k.successor(use, trust)
	switch {
	case len(trust.Trusted) == 0: // it cannot be read
		return
	case due:
		k.turn(secret, "another authority is introduced", &source)
		return
	case len(trust.Trusted) == 1:
		return
	}
	about := guard.Rotating{Nodes: guard.Nodes{Snapshot: k.Snapshot}, Use: use, Trust: trust}
	fresh := false
	for i, n := range k.Records() {
		leaf := k.leavesOf(use).of[i].trust
		if n.Record.Spec.Member == nil && n.Record.Spec.Join == nil &&
			(trust.Next != "" || leaf.Signer == "" || leaf.Signer == trust.Signer) {
			continue // it has no part in the ring, and starts with what the Secret has then
		}
		about.Names = append(about.Names, n.Name)
		fresh = fresh || !slices.Equal(leaf.Fingerprints(), trust.Fingerprints()) ||
			k.Now.Before(leaf.MadeAt.Add(broughtIn))
	}
	refusals := guard.Check(about, rules.Authority...)
	var ends time.Time
	if trust.Next == "" {
		ends = trust.Trusted[len(trust.Trusted)-1].EndsAt
	}
	held := use == v1alpha1.UseClients && k.clientsHold(trust, ends)
	next, what := "the new authority signs", "the new one is to sign certificates for "+string(use)
	if trust.Next == "" {
		next, what = "the authority before is dropped", "the authority before is to be dropped for "+string(use)
	}
	if len(refusals) == 0 && !held {
		k.turn(secret, next, nil)
		return
	}
	k.draft.WakeIn(secretsAgain)
	if fresh {
		return
	}
	for _, r := range refusals {
		k.draft.Block("Authorities", r.Reason, r.Nodes, "%s: %s. Waits until %s", what, r.Message, r.Until)
	}
}

// mostTrusted is how many authorities there are at a time at most.
const mostTrusted = 4

// successor says that another authority is to be introduced: with the source of an issuer's, or
// one that Helenus makes.
func (k *Keeper) successor(use v1alpha1.CertificateUse, trust facts.Trust) (source string, due bool) {
	last, given := trust.Signer, trust.Given
	if trust.Next != "" {
		last, given = trust.Next, trust.NextGiven
	}
	switch {
	case k.SpecRejected, len(trust.Trusted) == 0, len(trust.Trusted) >= mostTrusted:
	case k.Cluster.Spec.Issuer(use) != nil:
		issued, found := k.latest(use)
		return issued.Source(), found && issued.Trust.Signer != last
	case given:
		return "", true
	}
	if len(trust.Trusted) != 1 || given {
		return "", false
	}
	at := k.due(use, trust.Trusted[0])
	k.draft.WakeIn(at.Sub(k.Now))
	return "", !k.Now.Before(at)
}

// due is when an authority is replaced. A person's time counts for those that were made before it.
func (k *Keeper) due(use v1alpha1.CertificateUse, of facts.Authority) time.Time {
	if at := k.Cluster.Spec.RotatedAt(use); at != nil && !k.SpecRejected {
		if asked := at.Truncate(time.Second); asked.After(of.MadeAt) && asked.Before(of.RenewAt) {
			return asked
		}
	}
	return of.RenewAt
}

// turn has the authority go on to its next stage, by the evidence of what is there now.
func (k *Keeper) turn(secret *corev1.Secret, what string, introduced *string) {
	use := v1alpha1.CertificateUse(secret.Labels[v1alpha1.LabelComponent])
	object := render.CertificateSecret(k.Owner(), use, nil)
	object.Annotations = map[string]string{v1alpha1.AnnotationContent: secret.Annotations[v1alpha1.AnnotationContent]}
	if introduced != nil {
		object.Annotations[v1alpha1.AnnotationSource] = *introduced
	}
	k.draft.Write(plan.Write{Verb: plan.RotateAuthority, Object: object, UID: secret.UID, Live: true, Why: what})
	k.draft.Event(corev1.EventTypeNormal, "AuthorityRotated", "%s: %s", authorityInWords[use], what)
	k.draft.WakeIn(time.Second)
}

// clientsAuthority is the ConfigMap by which clients know the nodes. Since when it has its content
// is said beside it: for one that was lost it starts again.
func (k *Keeper) clientsAuthority() *corev1.ConfigMap {
	name := v1alpha1.AuthorityName(k.Cluster.Name, v1alpha1.UseClients)
	out := render.ClientsAuthority(k.Owner(), k.clientsBundle(k.Trust[name]))
	since := k.Now.UTC().Format(time.RFC3339)
	if have := k.Shared.ConfigMaps[out.Name]; have != nil &&
		have.Data[corev1.ServiceAccountRootCAKey] == out.Data[corev1.ServiceAccountRootCAKey] {
		since = have.Annotations[v1alpha1.AnnotationSince]
	}
	if since != "" {
		out.Annotations = map[string]string{v1alpha1.AnnotationSince: since}
	}
	return out
}

// clientsBundle are the authorities that clients are to trust: those of an authority, and until no
// node is known to show what another one has signed, whatever the ConfigMap has.
func (k *Keeper) clientsBundle(trust facts.Trust) string {
	out, have := trust.Bundle, k.Shared.ConfigMaps[v1alpha1.AuthorityName(k.Cluster.Name, v1alpha1.UseClients)]
	other := func(signer string) bool { return signer != "" && !trust.Trusts(signer) }
	if out == "" || have == nil || !slices.ContainsFunc(k.leavesOf(v1alpha1.UseClients).of, func(l leaf) bool {
		return other(l.trust.Signer)
	}) && !slices.ContainsFunc(k.Records(), func(n *facts.Node) bool {
		return slices.ContainsFunc(n.Record.Status.Certificates, func(c v1alpha1.CertificateStatus) bool {
			return c.Use == v1alpha1.UseClients && other(c.Authority)
		})
	}) {
		return out
	}
	for _, certificate := range strings.SplitAfter(have.Data[corev1.ServiceAccountRootCAKey], pemEnd) {
		if !strings.Contains(out, certificate) {
			out += certificate
		}
	}
	return out
}

// pemEnd is where a certificate ends in what Helenus writes.
const pemEnd = "-----END CERTIFICATE-----\n"

// clientsHold says that clients still have time to take over what the ConfigMap has: before nodes
// show certificates of another authority, or if ends is set, before the one is dropped that ends
// then. An authority that has ended is nothing to wait for.
func (k *Keeper) clientsHold(trust facts.Trust, ends time.Time) bool {
	have := k.Shared.ConfigMaps[v1alpha1.AuthorityName(k.Cluster.Name, v1alpha1.UseClients)]
	if have == nil || have.Data[corev1.ServiceAccountRootCAKey] != k.clientsBundle(trust) || k.draft.Has(have) {
		return true
	}
	since, err := time.Parse(time.RFC3339, have.Annotations[v1alpha1.AnnotationSince])
	if err != nil {
		since = k.Now
	}
	hold, asked := v1alpha1.DefaultClientsHold, k.Cluster.Spec.ClientsHold()
	if asked != nil {
		hold = asked.Duration
	}
	until, what := since.Add(hold), "show certificates of the new one"
	if !ends.IsZero() {
		if what = "no longer trust the old one"; until.After(ends) ||
			asked == nil && k.Encryption().ClientCertificates == v1alpha1.ClientCertificatesRequired {
			until = ends
		}
	}
	if !k.Now.Before(until) {
		return false
	}
	k.draft.Notice(v1alpha1.NoticeClientsAuthorityChanges, nil, "ConfigMap %s has the certificates of two "+
		"authorities, which clients must take over: nodes %s from %s on, or sooner if the spec gives a shorter "+
		"security.encryption.certificates.clients.hold", have.Name, what, until.UTC().Format(time.RFC3339))
	k.draft.WakeIn(until.Sub(k.Now))
	return true
}
