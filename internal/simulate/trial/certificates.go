package trial

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/world"
)

// renewsCertificates has the certificates of a ring live for an hour: they are renewed several
// times while it serves.
func renewsCertificates() *Scenario {
	return scenario("renew-certificates", "the certificates between nodes, and towards clients, are renewed again and "+
		"again", threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Lifetime: &metav1.Duration{Duration: time.Hour}}}
	}),
		Act{Name: "look at them", Do: func(w *world.World) error {
			before := map[string]bool{}
			for _, p := range jvms(w) {
				for _, serial := range shown(p, w.Line.Now()) {
					before[serial] = true
				}
			}
			w.Kept = before
			if len(before) != 2*len(jvms(w)) {
				return errors.New("not every node shows two certificates")
			}
			return nil
		}},
		Act{Name: "wait for an hour", Do: func(w *world.World) error {
			w.Line.RunFor(time.Hour)
			return nil
		}, Until: func(w *world.World) bool {
			count := 0
			for _, p := range jvms(w) {
				for _, serial := range shown(p, w.Line.Now()) {
					if !w.Kept.(map[string]bool)[serial] {
						count++
					}
				}
			}
			return count == 6
		}, Within: 10 * time.Minute},
		Act{Name: "let them live for the usual time", Do: respec(func(s *v1alpha1.CassandraClusterSpec) {
			s.Security.Encryption = nil
		}), Until: func(w *world.World) bool {
			return !slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool {
				return len(shown(p, w.Line.Now().Add(24*time.Hour))) < 2
			})
		}, Within: 2 * time.Hour})
}

// encryptsLivingRing takes a ring that was made without encryption to all of it, and back, while
// clients write. One of them is connected without until it is named.
func encryptsLivingRing() *Scenario {
	const late = "10.77.0.7"
	encrypt := func(mode v1alpha1.EncryptionMode) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) {
			s.Security.Encryption = &v1alpha1.Encryption{Internode: &v1alpha1.InternodeEncryption{Mode: mode},
				Clients: &v1alpha1.ClientEncryption{Mode: mode}}
		}
	}
	runs := func(mode v1alpha1.EncryptionMode) func(*world.World) bool {
		return func(w *world.World) bool {
			return rolledOut(w) && !slices.ContainsFunc(w.Server.Objects("CassandraNode"), func(o client.Object) bool {
				c := o.(*v1alpha1.CassandraNode).Status.Configuration
				return c == nil || c.Encryption.OrNotEncrypted().Internode != mode ||
					c.Encryption.OrNotEncrypted().Clients != mode
			})
		}
	}
	return scenario("encrypt-living-ring", "a ring without encryption is asked to require it between nodes and of "+
		"clients while one of these does not encrypt, and to leave it again", threeRacks,
		Act{Name: "require it", Do: func(w *world.World) error {
			w.Network.ConnectPlain(late)
			return whileWriting(encrypt(v1alpha1.EncryptionRequired))(w)
		}, Until: blockedWith(v1alpha1.BlockedPlainClients, late), Within: 2 * time.Hour},
		Act{Name: "the client goes", Do: func(w *world.World) error {
			w.Network.ConnectPlain("")
			return nil
		}, Until: runs(v1alpha1.EncryptionRequired), Within: time.Hour},
		Act{Name: "leave it", Do: whileWriting(encrypt(v1alpha1.EncryptionDisabled)),
			Until: runs(v1alpha1.EncryptionDisabled), Within: 2 * time.Hour})
}

// rotatesAuthority replaces both authorities of a ring while a member is down: its stage waits for
// it. Then it has the one of clients replaced again, with the time that these have, and the ledger
// lost meanwhile.
func rotatesAuthority() *Scenario {
	const down = clusterName + "-dc1-r1-0"
	rotate := func(hold time.Duration) func(*world.World) error {
		return func(w *world.World) error {
			at := metav1.NewTime(w.Line.Now())
			return respec(func(s *v1alpha1.CassandraClusterSpec) {
				s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
					Internode: &v1alpha1.InternodeAuthority{RotatedAt: &at},
					Clients:   &v1alpha1.ClientsAuthority{RotatedAt: &at, Hold: &metav1.Duration{Duration: hold}}}}
			})(w)
		}
	}
	replaced := func(w *world.World) bool {
		for use, was := range w.Kept.(map[v1alpha1.CertificateUse]string) {
			now := authorityOf(w, use)
			if len(now) != 1 || pki.Fingerprint(now[0]) == was ||
				slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool {
					c := p.Certificate(use)
					return c == nil || c.CheckSignatureFrom(now[0]) != nil
				}) {
				return false
			}
		}
		return true
	}
	look := Act{Name: "look at them", Do: func(w *world.World) error {
		before := map[v1alpha1.CertificateUse]string{}
		for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
			now := authorityOf(w, use)
			if len(now) != 1 {
				return fmt.Errorf("%d authorities of %s", len(now), use)
			}
			before[use] = pki.Fingerprint(now[0])
		}
		w.Kept = before
		w.Line.RunFor(time.Minute) // they are older than what is asked for
		return nil
	}}
	return scenario("rotate-authority", "both authorities of a ring are replaced while a member is down, and again "+
		"while its ledger is lost", threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{}}
	}),
		look,
		Act{Name: "stop a host, and replace them", Do: func(w *world.World) error {
			return errors.Join(first((*kube.Cluster).Lose)(w), rotate(0)(w))
		}, Until: blockedWith(v1alpha1.BlockedAuthorityStageIncomplete, down), Within: time.Hour},
		Act{Name: "start it", Do: first(func(k *kube.Cluster, name string) { k.Return(name, true) }),
			Until: replaced, Within: time.Hour},
		look,
		Act{Name: "replace them again, end the operator and lose the ledger", Do: func(w *world.World) error {
			if err := rotate(10 * time.Minute)(w); err != nil {
				return err
			}
			w.Line.RunFor(2 * time.Minute)
			return errors.Join(restartOperator(w), deleteLedger(w))
		}, Until: replaced, Within: 2 * time.Hour})
}

// own is a certificate of the user's own, who signs it, and the bundle with that authority.
type own struct {
	signer *pki.Authority
	bundle []byte
	leaf   *x509.Certificate
}

// hasOwnCertificates has nodes show clients a certificate of the user's own, which he spoils,
// renews and takes away again.
func hasOwnCertificates() *Scenario {
	const mine = "mine"
	put := func(w *world.World, change func(*corev1.Secret, *own)) error {
		of := w.Kept.(*own)
		pair, err := of.signer.IssueLeaf(pki.Leaf{Name: mine, Lifetime: 30 * 24 * time.Hour}, w.Line.Now())
		if err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: mine},
			Data: map[string][]byte{pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key,
				pki.KeyBundle: of.bundle}}
		if change != nil {
			change(secret, of)
			return w.User().Update(context.Background(), secret)
		}
		chain, err := pki.ParseCertificates(pair.Certificate)
		if err != nil {
			return err
		}
		of.leaf = chain[0]
		if err := w.User().Create(context.Background(), secret); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return w.User().Update(context.Background(), secret)
	}
	shows := func(w *world.World) bool {
		return !slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool {
			c := p.Certificate(v1alpha1.UseClients)
			return c == nil || !c.Equal(w.Kept.(*own).leaf)
		})
	}
	ask := func(clients *v1alpha1.ClientsAuthority) func(*world.World) error {
		return respec(func(s *v1alpha1.CassandraClusterSpec) {
			s.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{Clients: clients}}
		})
	}
	bad := stalledWith(v1alpha1.ReasonInvalidSpec, "certificates.clients.secretName", "tls.key does not belong")
	return scenario("own-certificates", "nodes show clients a certificate of the user's own, which is spoilt, renewed "+
		"and taken away", threeRacks.with(func(c *v1alpha1.CassandraCluster) {
		c.Spec.Security.Encryption = &v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{}}
	}),
		Act{Name: "name it before it is there", Do: ask(&v1alpha1.ClientsAuthority{SecretName: mine,
			Hold: &metav1.Duration{Duration: 10 * time.Minute}}),
			Until: stalledWith(v1alpha1.ReasonInvalidSpec, "no such Secret"), Within: 30 * time.Minute},
		Act{Name: "give it", Do: func(w *world.World) error {
			pair, err := pki.NewAuthority(mine, w.Line.Now())
			if err != nil {
				return err
			}
			signer, err := pki.ParseAuthority(pair)
			if err != nil {
				return err
			}
			w.Kept = &own{signer: signer, bundle: pair.Certificate}
			return put(w, nil)
		}, Until: shows, Within: time.Hour},
		Act{Name: "spoil it", Do: func(w *world.World) error {
			return put(w, func(s *corev1.Secret, of *own) { s.Data[pki.KeyCertificate] = of.bundle })
		}, Until: func(w *world.World) bool { return bad(w) && shows(w) }, Within: 30 * time.Minute},
		Act{Name: "renew it", Do: func(w *world.World) error { return put(w, nil) }, Until: shows,
			Within: 30 * time.Minute},
		Act{Name: "take it out", Do: ask(&v1alpha1.ClientsAuthority{Hold: &metav1.Duration{}}),
			Until: func(w *world.World) bool {
				of := authorityOf(w, v1alpha1.UseClients)
				return len(of) == 1 && !slices.ContainsFunc(jvms(w), func(p *cassandra.Process) bool {
					c := p.Certificate(v1alpha1.UseClients)
					return c == nil || c.CheckSignatureFrom(of[0]) != nil
				})
			}, Within: 30 * time.Minute})
}

// authorityOf are the certificates of the bundle of an authority.
func authorityOf(w *world.World, use v1alpha1.CertificateUse) []*x509.Certificate {
	s, there := w.Server.Object("Secret", keyOf(v1alpha1.AuthorityName(clusterName, use))).(*corev1.Secret)
	if !there {
		return nil
	}
	out, _ := pki.ParseCertificates(s.Data[pki.KeyBundle])
	return out
}

// shown are the serial numbers of the certificates that a JVM shows, and that are valid.
func shown(p *cassandra.Process, now time.Time) []string {
	var out []string
	for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
		if c := p.Certificate(use); c != nil && now.Before(c.NotAfter) {
			out = append(out, c.SerialNumber.String())
		}
	}
	return out
}
