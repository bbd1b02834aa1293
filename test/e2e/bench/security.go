package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

const (
	// applications load a ring at the same time, for so long, after they did so unmeasured.
	applications       = 16
	warming, measuring = 30 * time.Second, time.Minute
	// replacing bounds the replacement of a password or a certificate.
	replacing = 5 * time.Minute
)

// protection is what passwords and encryption cost.
type protection struct {
	// plain is a ring of three without them, and ours one with them.
	plain, ours struct {
		formed time.Duration
		load   throughput
	}
	// superuser is the part of a formation in which it gets its superuser.
	superuser time.Duration
	// nodes have got a password and certificates: from the change of the Secret until each let it
	// in, and from the loss of the Secrets until each had shown others. Slowest is the agent that
	// took longest from a new certificate until Cassandra showed it, and alone the same where one
	// node had lost its own.
	nodes                                           int
	rotated, rotatedBeside, renewed, slowest, alone time.Duration
	service                                         scene.Service
}

// throughput is what applications got out of a ring.
type throughput struct {
	requests, failed int
	took, p99        time.Duration
}

// protects measures what passwords and encryption cost a ring of three when it forms and when it
// serves, and how long it takes to replace them in the largest ring.
func (b *bench) protects(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	p := &protection{}
	for _, ring := range []struct {
		security *v1alpha1.Security
		formed   *time.Duration
		load     *throughput
		again    func(*scene.Ring) error
	}{
		{unprotected(), &p.plain.formed, &p.plain.load, nil},
		{nil, &p.ours.formed, &p.ours.load, func(r *scene.Ring) (err error) {
			p.superuser, err = becomesSuperuser(ctx, r)
			return err
		}},
	} {
		c := shaped(sample, 3)
		c.Spec.Security = ring.security
		var times []time.Duration
		for i := range b.repeat {
			took, err := b.form(ctx, c, func(r *scene.Ring) error {
				if i < b.repeat-1 {
					return nil
				}
				if ring.again != nil {
					if err := ring.again(r); err != nil {
						return err
					}
				}
				return b.loads(ctx, r, ring.load)
			})
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		*ring.formed = middle(times)
	}
	p.nodes = b.sizes[len(b.sizes)-1]
	_, err := b.form(ctx, shaped(sample, p.nodes), func(r *scene.Ring) error { return b.replaces(ctx, r, p) })
	f.protection = p
	return err
}

// unprotected is a ring that everybody may speak to, and in which everything is read on the wire.
func unprotected() *v1alpha1.Security {
	return &v1alpha1.Security{
		Authentication: &v1alpha1.Authentication{Mode: v1alpha1.AuthenticationNone},
		Encryption: &v1alpha1.Encryption{
			Internode: &v1alpha1.InternodeEncryption{Mode: v1alpha1.EncryptionDisabled},
			Clients:   &v1alpha1.ClientEncryption{Mode: v1alpha1.EncryptionDisabled}},
	}
}

// becomesSuperuser is the time from the first import of a role until the last node let the
// superuser in, by what the agents have said.
func becomesSuperuser(ctx context.Context, ring *scene.Ring) (time.Duration, error) {
	var from, to time.Time
	for _, node := range ring.NodeNames(ctx) {
		lines, err := ring.ReadLog(ctx, node, layout.AgentContainer, time.Time{})
		if err != nil {
			return 0, err
		}
		for _, l := range lines {
			if strings.Contains(l.Text, "RunOperation: ImportSuperuser") && (from.IsZero() || l.At.Before(from)) {
				from = l.At
			}
			if strings.Contains(l.Text, "helenus_operator log in") && l.At.After(to) {
				to = l.At
			}
		}
	}
	if from.IsZero() || to.IsZero() {
		return 0, errors.New("no agent has said that it imported a superuser, and that it logs in")
	}
	return to.Sub(from), nil
}

// loads has applications write and read rows of half a kilobyte by turns at LOCAL_QUORUM.
func (b *bench) loads(ctx context.Context, ring *scene.Ring, into *throughput) error {
	if err := ring.Fill(ctx, gocql.Quorum); err != nil {
		return err
	}
	session, err := ring.Near(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := loaded(ctx, session, warming); err != nil {
		return err
	}
	*into, err = loaded(ctx, session, measuring)
	b.say("%s: %d requests, %d failed, 99 %% within %s", ring.Name, into.requests, into.failed, into.p99)
	return err
}

func loaded(ctx context.Context, session *gocql.Session, d time.Duration) (throughput, error) {
	var l throughput
	var all []time.Duration
	var held sync.Mutex
	var wait sync.WaitGroup
	value := strings.Repeat("x", 512)
	began := time.Now()
	for application := range applications {
		wait.Go(func() {
			for n := application; time.Since(began) < d && ctx.Err() == nil; n += applications {
				start := time.Now()
				var err error
				if n/applications%2 == 0 {
					err = session.Query("INSERT INTO "+scene.Keyspace+".rows (id, value) VALUES (?, ?)", n, value).
						ExecContext(ctx)
				} else {
					err = session.Query("SELECT value FROM "+scene.Keyspace+".rows WHERE id = ?", n-applications).
						ScanContext(ctx, new(string))
				}
				held.Lock()
				all = append(all, time.Since(start))
				if err != nil {
					l.failed++
				}
				held.Unlock()
			}
		})
	}
	wait.Wait()
	if len(all) == 0 {
		return l, errors.New("no request was made")
	}
	slices.Sort(all)
	l.requests, l.took, l.p99 = len(all), time.Since(began), all[len(all)*99/100]
	return l, ctx.Err()
}

// rotates the superuser's password, and says how long it took.
func (b *bench) rotates(ctx context.Context, ring *scene.Ring) (time.Duration, error) {
	began := time.Now()
	version, err := ring.Rotate(ctx, rand.Text())
	if err != nil {
		return 0, err
	}
	err = ring.Rotated(ctx, version, replacing)
	b.say("a password was replaced on %d nodes: %.1fs", len(ring.NodeNames(ctx)), time.Since(began).Seconds())
	return time.Since(began), err
}

// replaces the superuser's password, and the certificates of all nodes while a client is there.
func (b *bench) replaces(ctx context.Context, ring *scene.Ring, p *protection) (err error) {
	if p.rotated, err = b.rotates(ctx, ring); err != nil {
		return err
	}
	if err := ring.Fill(ctx, gocql.Quorum); err != nil {
		return err
	}
	var r rollOut
	err = b.served(ctx, ring, &r, func() error {
		if err := pass(ctx, beside); err != nil {
			return err
		}
		var err error
		if p.rotatedBeside, err = b.rotates(ctx, ring); err != nil {
			return err
		}
		nodes := ring.NodeNames(ctx)
		if p.alone, err = renews(ctx, ring, nodes[:1]); err != nil {
			return err
		}
		b.say("certificates of one node were replaced, by its agent within %.1fs", p.alone.Seconds())
		began := time.Now()
		p.slowest, err = renews(ctx, ring, nodes)
		p.renewed = time.Since(began)
		b.say("certificates of %d nodes were replaced: %.1fs", p.nodes, p.renewed.Seconds())
		return err
	})
	p.service = r.service
	return err
}

// renews the certificates of nodes, by the loss of their Secrets, and says how long the slowest
// agent took from a new certificate until Cassandra showed it.
func renews(ctx context.Context, ring *scene.Ring, nodes []string) (slowest time.Duration, err error) {
	began, before := time.Now(), serials(ring.Nodes(ctx))
	maps.DeleteFunc(before, func(of shown, _ string) bool { return !slices.Contains(nodes, of.node) })
	for of := range before {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = ring.Namespace, v1alpha1.CertificateName(of.node, of.use)
		if err := ring.Kubernetes.Client.Delete(ctx, secret); err != nil {
			return 0, fmt.Errorf("delete Secret %s: %w", secret.Name, err)
		}
	}
	if _, err := ring.KillLeader(ctx, "", 0); err != nil { // the next one has not read them
		return 0, err
	}
	what := fmt.Sprintf("other certificates are shown by %d", len(nodes))
	if err := ring.Until(ctx, replacing, what, func(now follow.Sight) error {
		for of, serial := range serials(now.Nodes(ring.Name)) {
			if is, asked := before[of]; asked && serial == is {
				return fmt.Errorf("node %s shows the former one to %s", of.node, of.use)
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	for _, node := range nodes {
		lines, err := ring.ReadLog(ctx, node, layout.AgentContainer, began)
		if err != nil {
			return 0, err
		}
		for i, l := range lines[:max(0, len(lines)-1)] {
			if strings.Contains(l.Text, "Act ProveCertificates") {
				slowest = max(slowest, lines[i+1].At.Sub(l.At))
			}
		}
	}
	return slowest, nil
}

// shown is a certificate of a node.
type shown struct {
	node string
	use  v1alpha1.CertificateUse
}

// serials of the certificates that Cassandra shows.
func serials(nodes []v1alpha1.CassandraNode) map[shown]string {
	out := map[shown]string{}
	for _, n := range nodes {
		for _, c := range n.Status.Certificates {
			if c.Use != v1alpha1.UseAgent {
				out[shown{n.Name, c.Use}] = c.SerialNumber
			}
		}
	}
	return out
}

// protected prints what passwords and encryption cost.
func (f *figures) protected(b *strings.Builder) {
	p := f.protection
	if p == nil {
		return
	}
	perSecond := func(l throughput) string { return fmt.Sprintf("%.0f", float64(l.requests)/l.took.Seconds()) }
	b.WriteString("\n| three nodes | without passwords and encryption | by default | |\n|---|---:|---:|---:|\n")
	fmt.Fprintf(b, "| formed | %s | %s | %s |\n", seconds(p.plain.formed), seconds(p.ours.formed),
		ratio(p.ours.formed, p.plain.formed))
	fmt.Fprintf(b, "| of it, the superuser | | %s | |\n", seconds(p.superuser))
	for _, row := range []struct {
		what        string
		plain, ours string
		factor      string
	}{
		{"requests a second", perSecond(p.plain.load), perSecond(p.ours.load), ""},
		{"99 % of them within", p.plain.load.p99.String(), p.ours.load.p99.String(),
			ratio(p.ours.load.p99, p.plain.load.p99)},
		{"failed", fmt.Sprint(p.plain.load.failed), fmt.Sprint(p.ours.load.failed), ""},
	} {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.what, row.plain, row.ours, row.factor)
	}
	fmt.Fprintf(b, "\n| %d nodes | |\n|---|---:|\n", p.nodes)
	for _, row := range [][2]string{
		{"a password, until each node let it in", seconds(p.rotated)},
		{"the same with a client beside, as all below", seconds(p.rotatedBeside)},
		{"certificates of all nodes lost, until each showed others", seconds(p.renewed)},
		{"of it, the slowest agent", seconds(p.slowest)},
		{"the agent of one node whose certificates are replaced alone", seconds(p.alone)},
		{"requests", fmt.Sprint(p.service.Requests)},
		{"failed", fmt.Sprint(p.service.Requests - p.service.Served)},
	} {
		fmt.Fprintf(b, "| %s | %s |\n", row[0], row[1])
	}
}
