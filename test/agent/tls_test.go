//go:build cassandra

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
)

// trust is an authority, as the operator keeps it.
type trust struct {
	signer *pki.Authority
	bundle []byte
}

func newTrust(t *testing.T) trust {
	t.Helper()
	pair, err := pki.NewAuthority(clusterName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	signer, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	return trust{signer, pair.Certificate}
}

func (a trust) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.bundle)
	return pool
}

// give puts a certificate into the pod as the kubelet does.
func (a trust) give(p *pod, use v1alpha1.CertificateUse) *x509.Certificate {
	t := p.w.t
	t.Helper()
	leaf, err := a.signer.IssueLeaf(pki.Leaf{Name: p.name, DNSNames: []string{p.name},
		Addresses: []netip.Addr{netip.MustParseAddr(p.address)}, Lifetime: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.put(use, map[string][]byte{pki.KeyCertificate: leaf.Certificate, pki.KeyPrivateKey: leaf.Key,
		pki.KeyBundle: a.bundle})
	certificates, err := pki.ParseCertificates(leaf.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return certificates[0]
}

func fingerprintOf(t *testing.T, a trust) string {
	t.Helper()
	certificates, err := pki.ParseCertificates(a.bundle)
	if err != nil {
		t.Fatal(err)
	}
	return pki.Fingerprint(certificates[0])
}

func (p *pod) put(use v1alpha1.CertificateUse, files map[string][]byte) {
	p.w.t.Helper()
	directory := filepath.Join(p.root, layout.CassandraCertificateDir, string(use))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		p.w.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o644); err != nil {
			p.w.t.Fatal(err)
		}
	}
}

// served is the certificate that a port shows.
func (p *pod) served(port int, config *tls.Config) (*x509.Certificate, error) {
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp",
		fmt.Sprintf("%s:%d", p.address, port), config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.ConnectionState().PeerCertificates[0], nil
}

// refusesPlain says that Cassandra ends a connection between nodes that begins in clear: with less
// than a whole first message, it would else wait for the rest.
func (p *pod) refusesPlain(t *testing.T) bool {
	t.Helper()
	connection, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", p.address, layout.StoragePort), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := connection.Write([]byte{0xca, 0x55, 0x2d, 0xfa, 0, 0, 0}); err != nil { // the magic, and a beginning
		t.Fatal(err)
	}
	_ = connection.SetReadDeadline(time.Now().Add(5 * time.Second))
	const alert = 0x15 // of TLS
	answer := make([]byte, 1)
	n, err := connection.Read(answer)
	return n == 1 && answer[0] == alert || n == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
}

func encrypts(clients v1alpha1.EncryptionMode, certificates v1alpha1.ClientCertificates) func(
	*v1alpha1.CassandraNodeSpec) {
	return func(s *v1alpha1.CassandraNodeSpec) {
		s.Configuration.Encryption = &v1alpha1.NodeEncryption{Internode: v1alpha1.EncryptionRequired, Clients: clients,
			ClientCertificates: certificates}
	}
}

// shows waits until the agent has seen that Cassandra shows a certificate.
func (w *world) shows(p *pod, use v1alpha1.CertificateUse, want *x509.Certificate) {
	w.t.Helper()
	w.await(p.name, fmt.Sprintf("certificate for %s shown", use), time.Minute, func(r *v1alpha1.CassandraNode) bool {
		for _, c := range r.Status.Certificates {
			if c.Use == use && c.SerialNumber == want.SerialNumber.Text(16) && c.Problem == "" {
				return c.NotAfter.Time.Equal(want.NotAfter)
			}
		}
		return false
	})
}

// TestTLS has two nodes form a ring over TLS, renews their certificates while it runs, and gives
// one a certificate that cannot be used.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address)
	internode, clients := newTrust(t), newTrust(t)
	given := map[string]*x509.Certificate{}
	for _, p := range pods {
		w.change(p.name, encrypts(v1alpha1.EncryptionOptional, v1alpha1.ClientCertificatesNone))
		given[p.name] = internode.give(p, v1alpha1.UseInternode)
		given[p.name+"/clients"] = clients.give(p, v1alpha1.UseClients)
		p.start()
	}
	w.awaitEmpty(pods...)
	w.part("form", func(t *testing.T) {
		w.form(pods...)
		for _, p := range pods {
			w.shows(p, v1alpha1.UseInternode, given[p.name])
			w.shows(p, v1alpha1.UseClients, given[p.name+"/clients"])
			if !p.refusesPlain(t) {
				t.Errorf("node %s takes what is in clear on %d", p.name, layout.StoragePort)
			}
		}
	})
	asClient := &tls.Config{RootCAs: clients.pool()}
	speaks := func(t *testing.T, p *pod, config *tls.Config) error {
		t.Helper()
		address := netip.AddrPortFrom(netip.MustParseAddr(p.address), layout.NativePort)
		none := func(context.Context) (cassandra.Login, error) { return cassandra.Login{}, nil }
		session, err := cql.ConnectTLS(t.Context(), address, none, config, cql.StatementTimeout)
		if err == nil {
			session.Close()
		}
		return err
	}
	w.part("clients", func(t *testing.T) {
		for _, p := range pods {
			for _, config := range []*tls.Config{asClient, nil} {
				if err := speaks(t, p, config); err != nil {
					t.Errorf("node %s, TLS %v: %v", p.name, config != nil, err)
				}
			}
			if err := speaks(t, p, &tls.Config{RootCAs: internode.pool()}); err == nil {
				t.Errorf("node %s shows clients what the authority between nodes has signed", p.name)
			}
			if _, err := p.served(layout.NativePort, &tls.Config{RootCAs: clients.pool(), ServerName: "another"}); err == nil {
				t.Error("another name was verified")
			}
		}
	})
	w.part("renew", func(t *testing.T) {
		for _, p := range pods {
			before := p.jvm()
			began := time.Now()
			node, client := internode.give(p, v1alpha1.UseInternode), clients.give(p, v1alpha1.UseClients)
			w.shows(p, v1alpha1.UseInternode, node)
			w.shows(p, v1alpha1.UseClients, client)
			t.Logf("shown after %.1f s", time.Since(began).Seconds())
			if got, err := p.served(layout.NativePort, asClient); err != nil || !got.Equal(client) {
				t.Errorf("another certificate is shown than was given, error %v", err)
			}
			if after := p.jvm(); before == 0 || after != before {
				t.Errorf("the JVM was pid %d and is %d", before, after)
			}
			given[p.name], given[p.name+"/clients"] = node, client
		}
	})
	w.part("rotate", func(t *testing.T) {
		old := map[v1alpha1.CertificateUse]trust{v1alpha1.UseInternode: internode, v1alpha1.UseClients: clients}
		next := map[v1alpha1.CertificateUse]trust{v1alpha1.UseInternode: newTrust(t), v1alpha1.UseClients: newTrust(t)}
		trusts := func(p *pod, use v1alpha1.CertificateUse, by trust, trusted ...trust) {
			t.Helper()
			var want []string
			for _, a := range trusted {
				want = append(want, fingerprintOf(t, a))
			}
			w.await(p.name, fmt.Sprintf("trust for %s proven", use), time.Minute, func(r *v1alpha1.CassandraNode) bool {
				return slices.ContainsFunc(r.Status.Certificates, func(c v1alpha1.CertificateStatus) bool {
					return c.Use == use && c.Authority == fingerprintOf(t, by) && slices.Equal(c.Trusted, want)
				})
			})
		}
		prove := func(p *pod, use v1alpha1.CertificateUse, by trust, trusted ...trust) *x509.Certificate {
			t.Helper()
			now := trust{signer: by.signer}
			for _, a := range trusted {
				now.bundle = append(now.bundle, a.bundle...)
			}
			leaf := now.give(p, use)
			w.shows(p, use, leaf)
			trusts(p, use, by, trusted...)
			return leaf
		}
		uses := []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients}
		restart := func(p *pod, id string) {
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
				s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: id}}
			})
			w.await(p.name, "restarted", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
				return r.Status.Restart != nil && r.Status.Restart.ID == id && r.Status.Restart.FinishedAt != nil && r.Status.Ready
			})
			for began := time.Now(); ; {
				a, _ := pods[0].ask(t).Ring.ByAddress(pods[1].address)
				b, _ := pods[1].ask(t).Ring.ByAddress(pods[0].address)
				if a.Live && b.Live {
					return
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("after %s they see each other up: %v, %v", id, a.Live, b.Live)
				}
			}
		}
		for i, p := range pods {
			for _, use := range uses {
				if i == 1 && use == v1alpha1.UseInternode { // of an issuer the certificate stays, and the bundle changes
					p.put(use, map[string][]byte{pki.KeyBundle: slices.Concat(internode.bundle, next[use].bundle)})
					trusts(p, use, internode, internode, next[use])
					continue
				}
				prove(p, use, old[use], old[use], next[use])
			}
			pair, err := internode.signer.IssueLeaf(pki.Leaf{Name: "any", Lifetime: time.Hour}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			own, err := tls.X509KeyPair(pair.Certificate, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			if _, err := p.served(layout.StoragePort, &tls.Config{InsecureSkipVerify: true,
				GetClientCertificate: func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
					asked = len(i.AcceptableCAs)
					return &own, nil
				}}); err != nil || asked != 2 {
				t.Errorf("node %s names %d authorities, error %v", p.name, asked, err)
			}
		}
		// One shows the new one, and the other that of before: also where they connect anew.
		prove(pods[0], v1alpha1.UseInternode, next[v1alpha1.UseInternode], next[v1alpha1.UseInternode], internode)
		restart(pods[1], "of-two-authorities")
		prove(pods[0], v1alpha1.UseClients, next[v1alpha1.UseClients], next[v1alpha1.UseClients], clients)
		for _, use := range uses {
			prove(pods[1], use, next[use], next[use], old[use])
		}
		for _, p := range pods {
			for _, use := range uses {
				if leaf := prove(p, use, next[use], next[use]); use == v1alpha1.UseInternode {
					given[p.name] = leaf
				}
			}
		}
		restart(pods[0], "of-the-new-authority")
		if err := speaks(t, pods[0], asClient); err == nil {
			t.Error("one who trusts the authority of before alone trusts the new one")
		}
		internode, clients = next[v1alpha1.UseInternode], next[v1alpha1.UseClients]
		asClient.RootCAs = clients.pool()
		if err := speaks(t, pods[0], asClient); err != nil {
			t.Error(err)
		}
	})
	w.part("garbage", func(t *testing.T) {
		p := pods[0]
		refused := func(want string) {
			t.Helper()
			w.await(p.name, "refused: "+want, time.Minute, func(r *v1alpha1.CassandraNode) bool {
				for _, c := range r.Status.Certificates {
					if c.Use == v1alpha1.UseInternode && strings.Contains(c.Problem, want) {
						return c.SerialNumber == given[p.name].SerialNumber.Text(16)
					}
				}
				return false
			})
		}
		p.put(v1alpha1.UseInternode, map[string][]byte{pki.KeyCertificate: []byte("garbage")})
		refused("no PEM certificate")
		newTrust(t).give(p, v1alpha1.UseInternode)
		p.put(v1alpha1.UseInternode, map[string][]byte{pki.KeyBundle: internode.bundle})
		refused("signed by none of ca.crt")
		// A restart has what there was before.
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "with-garbage"}}
		})
		w.await(p.name, "restarted", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restart != nil && r.Status.Restart.ID == "with-garbage" &&
				r.Status.Restart.FinishedAt != nil && r.Status.Ready
		})
		leaf := given[p.name]
		got, err := p.served(layout.StoragePort, &tls.Config{InsecureSkipVerify: true})
		if err != nil || !got.Equal(leaf) {
			t.Errorf("another certificate is shown than was given last, error %v", err)
		}
		w.shows(p, v1alpha1.UseInternode, internode.give(p, v1alpha1.UseInternode))
	})
	w.part("clients must", func(t *testing.T) {
		p := pods[1]
		w.change(p.name, encrypts(v1alpha1.EncryptionRequired, v1alpha1.ClientCertificatesRequired))
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "required"}}
		})
		w.await(p.name, "restarted", 3*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restart != nil && r.Status.Restart.ID == "required" && r.Status.Restart.FinishedAt != nil &&
				r.Status.Ready
		})
		for name, config := range map[string]*tls.Config{"plain": nil, "without a certificate": asClient} {
			if err := speaks(t, p, config); err == nil {
				t.Errorf("a client %s is let in", name)
			}
		}
		own, err := clients.signer.IssueLeaf(pki.Leaf{Name: "shop", Lifetime: time.Hour}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(own.Certificate, own.Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := speaks(t, p, &tls.Config{RootCAs: clients.pool(), Certificates: []tls.Certificate{pair}}); err != nil {
			t.Error(err)
		}
		// The agent is a client, too.
		if s := w.operate(t, p, "alter", v1alpha1.OperationAlterSystemKeyspaces, &v1alpha1.OperationArguments{
			Replication: map[string]int32{"dc1": 2}}); s.Phase != v1alpha1.OperationSucceeded {
			t.Errorf("%+v", s)
		}
	})
}

// TestEncryptALivingRing takes two nodes from no encryption to all of it and back, by the stages
// that the operator goes through, one node after the other. While neither restarts they see each
// other up.
func TestEncryptALivingRing(t *testing.T) {
	w := newWorld(t)
	pods := []*pod{w.newPod(0), w.newPod(1)}
	w.setSeeds(pods[0].address, pods[1].address)
	internode, clients := newTrust(t), newTrust(t)
	for _, p := range pods {
		internode.give(p, v1alpha1.UseInternode)
		clients.give(p, v1alpha1.UseClients)
		p.start()
	}
	w.awaitEmpty(pods...)
	w.part("form", func(*testing.T) { w.form(pods...) })
	see := func(t *testing.T) (down string) {
		t.Helper()
		for i, p := range pods {
			if e, _ := p.ask(t).Ring.ByAddress(pods[1-i].address); !e.Live {
				return p.name + " sees " + pods[1-i].name + " down"
			}
		}
		return ""
	}
	stage, count := v1alpha1.NotEncrypted(), 0
	reach := func(t *testing.T, next v1alpha1.NodeEncryption) {
		t.Helper()
		for _, p := range pods {
			began := time.Now()
			count++
			id := fmt.Sprintf("stage-%d", count)
			w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
				s.Configuration.Encryption = &next
				s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: id}}
			})
			w.await(p.name, "restarted", 4*time.Minute, func(r *v1alpha1.CassandraNode) bool {
				done, runs := r.Status.Restart, r.Status.Configuration
				return done != nil && done.ID == id && done.FinishedAt != nil && r.Status.Ready && runs != nil &&
					runs.Encryption.OrNotEncrypted() == next
			})
			for down := see(t); down != ""; down = see(t) {
				if time.Since(began) > 5*time.Minute {
					t.Fatalf("at %+v: %s", next, down)
				}
			}
			for settled := time.Now(); time.Since(settled) < 30*time.Second; { // longer than a conviction takes
				if down := see(t); down != "" {
					t.Fatalf("at %+v, while neither restarts: %s", next, down)
				}
			}
		}
		stage = next
		for _, p := range pods {
			if got, want := p.refusesPlain(t), next.Internode == v1alpha1.EncryptionRequired; got != want {
				t.Errorf("at %+v node %s refuses what is in clear: %v", next, p.name, got)
			}
		}
	}
	walk := func(t *testing.T, mode v1alpha1.EncryptionMode) {
		t.Helper()
		to := v1alpha1.NodeEncryption{Internode: mode, Clients: mode,
			ClientCertificates: v1alpha1.ClientCertificatesNone}
		for stage != to {
			reach(t, facts.EncryptionAfter(stage, to))
		}
	}
	none := func(context.Context) (cassandra.Login, error) { return cassandra.Login{}, nil }
	connect := func(t *testing.T, config *tls.Config) (*cql.Session, error) {
		t.Helper()
		return cql.ConnectTLS(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(pods[0].address), layout.NativePort),
			none, config, cql.StatementTimeout)
	}
	w.part("optional", func(t *testing.T) {
		walk(t, v1alpha1.EncryptionOptional)
		plain, err := connect(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		for began := time.Now(); len(pods[0].ask(t).Ring.PlainClients) == 0; {
			if time.Since(began) > 2*time.Minute {
				t.Fatalf("a plain client is not seen: %+v", pods[0].ask(t).Ring)
			}
		}
		t.Logf("plain clients: %q", pods[0].ask(t).Ring.PlainClients)
	})
	w.part("required", func(t *testing.T) {
		walk(t, v1alpha1.EncryptionRequired)
		if _, err := connect(t, nil); err == nil {
			t.Error("a plain client is let in")
		}
		if s, err := connect(t, &tls.Config{RootCAs: clients.pool()}); err != nil {
			t.Error(err)
		} else {
			s.Close()
		}
	})
	w.part("and back", func(t *testing.T) { walk(t, v1alpha1.EncryptionDisabled) })
}
