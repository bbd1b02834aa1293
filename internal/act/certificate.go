package act

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/pki"
)

// fillAuthority makes a new certificate authority. The Secret is only ever created, so an authority
// that exists is never replaced.
func (p *pass) fillAuthority(ctx context.Context, secret *corev1.Secret) error {
	pair, err := p.newAuthority(ctx, secret.Annotations[v1alpha1.AnnotationSource])
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key,
		pki.KeyBundle: pair.Certificate}
	secret.Annotations = map[string]string{v1alpha1.AnnotationContent: render.ContentHash(secret)}
	return nil
}

// newAuthority is made, or is the one that has signed the certificate of an issuer: it has no key.
func (p *pass) newAuthority(ctx context.Context, source string) (pki.Pair, error) {
	if source == "" {
		pair, err := pki.NewAuthority(p.owner.Namespace+"/"+p.owner.Name, p.Now())
		if err != nil {
			return pki.Pair{}, fmt.Errorf("make certificate authority: %w", err)
		}
		return pair, nil
	}
	from, err := p.source(ctx, source)
	if err != nil {
		return pki.Pair{}, err
	}
	authority, err := pki.AuthorityOf(from.Data[pki.KeyCertificate], from.Data[pki.KeyBundle])
	if err != nil {
		return pki.Pair{}, fmt.Errorf("take authority of Secret %s: %w", from.Name, err)
	}
	return pki.Pair{Certificate: authority, Key: []byte{}}, nil
}

// source is the Secret that was seen, if it is still what was seen.
func (p *pass) source(ctx context.Context, seen string) (*corev1.Secret, error) {
	name, _, _ := strings.Cut(seen, " ")
	from := &corev1.Secret{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.owner.Namespace, Name: name}, from); err != nil {
		return nil, fmt.Errorf("read certificate of others: %w", err)
	}
	if now := (facts.Given{Secret: name, Content: render.ContentHash(from)}); now.Source() != seen {
		return nil, fmt.Errorf("read certificate of others: Secret %s has changed since it was verified", name)
	}
	return from, nil
}

// rotateAuthority has an authority go on to its next stage. In one write of the version that was
// seen it changes who signs and who is trusted: no certificate is ever signed by anything else.
func (p *pass) rotateAuthority(ctx context.Context, w plan.Write) error {
	secret := &corev1.Secret{}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(w.Object.(*corev1.Secret)), secret); err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	if w.UID == "" || secret.UID != w.UID || render.Edited(secret) ||
		secret.Annotations[v1alpha1.AnnotationContent] != w.Object.GetAnnotations()[v1alpha1.AnnotationContent] {
		return fmt.Errorf("rotate certificate authority: Secret %s is another one than was seen", secret.Name)
	}
	seen, data := secret.DeepCopy(), secret.Data
	authorities, err := pki.ParseCertificates(data[pki.KeyBundle])
	source, introduces := w.Object.GetAnnotations()[v1alpha1.AnnotationSource]
	switch next := data[pki.KeyNextCertificate]; {
	case err != nil:
		return fmt.Errorf("read Secret %s: %w", secret.Name, err)
	case introduces:
		pair, err := p.newAuthority(ctx, source)
		if err != nil {
			return err
		}
		data[pki.KeyNextCertificate], data[pki.KeyNextKey] = pair.Certificate, pair.Key
		if !bytes.Contains(data[pki.KeyBundle], pair.Certificate) {
			data[pki.KeyBundle] = slices.Concat(data[pki.KeyBundle], pair.Certificate)
		}
	case next != nil:
		others := slices.DeleteFunc(authorities,
			func(a *x509.Certificate) bool { return bytes.Equal(pki.Text(a), next) })
		data[pki.KeyBundle] = slices.Concat(next, pki.Text(others...))
		data[pki.KeyCertificate], data[pki.KeyPrivateKey] = next, data[pki.KeyNextKey]
		delete(data, pki.KeyNextCertificate)
		delete(data, pki.KeyNextKey)
	default:
		data[pki.KeyBundle] = data[pki.KeyCertificate]
	}
	secret.Annotations[v1alpha1.AnnotationContent] = render.ContentHash(secret)
	if err := p.Client.Patch(ctx, secret, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(secret)
}

// fillCertificate signs a certificate for the node that the Secret is labelled with. What was
// decided on is minutes old: an authority that somebody has edited since signs nothing either.
func (p *pass) fillCertificate(ctx context.Context, secret *corev1.Secret) error {
	use, source := v1alpha1.CertificateUse(secret.Labels[v1alpha1.LabelComponent]),
		secret.Annotations[v1alpha1.AnnotationSource]
	if p.snapshot.Cluster.Spec.HasOwn(use) && source != "" {
		return p.copyCertificate(ctx, use, secret, nil)
	}
	authority := &corev1.Secret{}
	key := client.ObjectKey{Namespace: p.owner.Namespace, Name: v1alpha1.AuthorityName(p.owner.Name, use)}
	if err := p.Live.Get(ctx, key, authority); err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	if render.Edited(authority) {
		return fmt.Errorf("sign certificate: somebody edited Secret %s, a certificate authority of this cluster",
			key.Name)
	}
	if source != "" {
		return p.copyCertificate(ctx, use, secret, authority.Data[pki.KeyBundle])
	}
	signer, err := pki.ParseAuthority(pki.Pair{Certificate: authority.Data[pki.KeyCertificate],
		Key: authority.Data[pki.KeyPrivateKey]})
	if err != nil {
		return fmt.Errorf("read Secret %s: %w", key.Name, err)
	}
	pair, err := p.sign(signer, use, secret)
	if err != nil {
		return err
	}
	leaf, err := pki.ParseCertificates(pair.Certificate)
	if err != nil {
		return err
	}
	secret.Data = map[string][]byte{pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key,
		pki.KeyBundle: authority.Data[pki.KeyBundle]}
	renew := pki.RenewAt(leaf[0])
	if use != v1alpha1.UseAgent {
		renew = pki.Jittered(renew, p.Now(), secret.Name)
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[v1alpha1.AnnotationRenewAfter] = renew.UTC().Format(time.RFC3339)
	secret.Annotations[v1alpha1.AnnotationContent] = render.ContentHash(secret)
	return nil
}

// copyCertificate takes over a certificate of the user's own, if it is still what was seen; bundle
// is of the authority, if it has one. What a node has already was verified: it may be near its end.
func (p *pass) copyCertificate(ctx context.Context, use v1alpha1.CertificateUse, secret *corev1.Secret,
	bundle []byte) error {
	from, err := p.source(ctx, secret.Annotations[v1alpha1.AnnotationSource])
	if err != nil {
		return err
	}
	pair := pki.Pair{Certificate: from.Data[pki.KeyCertificate], Key: from.Data[pki.KeyPrivateKey]}
	if from.Name != secret.Name {
		if bundle == nil {
			bundle = from.Data[pki.KeyBundle]
		}
		if pair, bundle, err = pki.Given(pair, bundle, p.snapshot.Calls(use), p.Now()); err != nil {
			return fmt.Errorf("copy certificate of Secret %s: %w", from.Name, err)
		}
	}
	secret.Data = map[string][]byte{pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key,
		pki.KeyBundle: bundle}
	secret.Annotations[v1alpha1.AnnotationContent] = render.ContentHash(secret)
	return nil
}

// sign the certificate of a node: an agent's says who it is, those of Cassandra say where it is.
func (p *pass) sign(signer *pki.Authority, use v1alpha1.CertificateUse, secret *corev1.Secret) (pki.Pair, error) {
	name := secret.Labels[v1alpha1.LabelNode]
	if use == v1alpha1.UseAgent {
		return signer.Issue(pki.NodeOf(p.owner.UID, name), p.Now())
	}
	leaf := pki.Leaf{Name: name, Lifetime: p.snapshot.Cluster.Spec.CertificateLifetime()}
	if use == v1alpha1.UseClients {
		leaf.DNSNames = render.ClientNames(p.owner, p.snapshot.Nodes[name].Record)
		leaf.Addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
		if address, err := netip.ParseAddr(secret.Annotations[v1alpha1.AnnotationAddress]); err == nil {
			leaf.Addresses = append(leaf.Addresses, address)
		}
	}
	return signer.IssueLeaf(leaf, p.Now())
}
