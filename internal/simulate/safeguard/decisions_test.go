package safeguard

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// Scenarios of what the operator holds back inside of its decisions. No test can stand between
// there, so the operator is shown other facts: those by which it would continue.

// decisionCase is the scenario of such a guard.
type decisionCase struct {
	guard    string
	scenario *trial.Scenario
	// doubled are other guards of the operator that refuse the same, and elsewhere are the words in
	// which an agent does, or whoever carries the decision out; empty if there is none.
	doubled   []string
	elsewhere string
	// world is what the scenario takes place in, misled that in which the operator is shown other
	// facts, and away that in which nobody elsewhere refuses either.
	world, misled, away world.Wrap
	// by is what is said without it.
	by string
}

// try wants the guard to refuse, each that doubles it to refuse without it, and the harm to be
// caught without all of them.
func (c decisionCase) try(t *testing.T) {
	t.Helper()
	t.Run(c.guard, func(t *testing.T) {
		refuses(t, holds(t, trial.Trial{Scenario: c.scenario, Seed: 1, Wrap: c.world, Tell: true}), c.guard)
		if c.elsewhere != "" || c.doubled != nil {
			refused := judged(t)
			result := run(t, trial.Trial{Scenario: c.scenario, Seed: 1, Wrap: c.misled, Tell: true})
			if saysAll(result.Violations, c.by) {
				t.Errorf("with what doubles it: %q", result.Violations)
			}
			refuses(t, result, c.elsewhere) // no words are in every line
			for _, by := range c.doubled {
				if refused[by] == 0 {
					t.Errorf("%s has refused nothing: %v", by, refused)
				}
			}
			judged(t, c.doubled...)
		}
		away := c.away
		if c.elsewhere == "" {
			away = c.misled
		}
		caught(t, trial.Trial{Scenario: c.scenario, Seed: 1, Wrap: away}, c.by)
	})
}

// with is a wrap of what operators see, and that of what agents touch.
func with(operators, agents world.Wrap) world.Wrap {
	operators.Host = agents.Host
	return operators
}

// lists are what an operator reads, with lists changed before it sees them.
type lists struct {
	client.Reader
	change func(from client.Reader, list client.ObjectList)
}

func (l lists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := l.Reader.List(ctx, list, options...); err != nil {
		return err
	}
	l.change(l.Reader, list)
	return nil
}

// listing has operators see lists changed, wherever they come from.
func listing(change func(from client.Reader, list client.ObjectList)) world.Wrap {
	return seeing(func(_ *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		return lists{cache, change}, lists{live, change}
	})
}

// retelling changes what operators hear of agents.
func retelling(change func(t observe.Target, answer *facts.Agent)) world.Wrap {
	return world.Wrap{Asker: func(_ *world.Operator, t observe.Target, a observe.Asker) observe.Asker {
		return &retold{Asker: a, target: t, change: change}
	}}
}

type retold struct {
	observe.Asker
	target observe.Target
	change func(observe.Target, *facts.Agent)
	// said and told are the digests of the last answer as it was, and as it was passed on: whoever
	// waits for another one goes by the latter.
	said, told string
}

func (r *retold) Facts(ctx context.Context) (*facts.Agent, error) { return r.or(r.Asker.Facts(ctx)) }

func (r *retold) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	if digest == r.told {
		digest = r.said
	}
	return r.or(r.Asker.WaitFacts(ctx, digest, limit))
}

func (r *retold) or(answer *facts.Agent, err error) (*facts.Agent, error) {
	if err != nil || answer == nil {
		return answer, err
	}
	other := *answer
	if answer.Ring != nil {
		view := *answer.Ring
		view.Endpoints = slices.Clone(view.Endpoints)
		other.Ring = &view
	}
	r.change(r.target, &other)
	r.said, r.told = agentapi.Digest(answer), agentapi.Digest(&other)
	return &other, nil
}

// joins says that the JVM of a node has begun to join, and that another sees it.
func joins(name string) func(*world.World) bool {
	return func(w *world.World) bool {
		s := sandbox(w, name)
		return s != nil && s.JVM() != nil && slices.Contains(sandbox(w, first).JVM().Sight().Changing,
			s.JVM().Sight().Name)
	}
}

// steps says that such a step is open.
func steps(kind ledger.Kind) func(*world.World) bool {
	return func(w *world.World) bool {
		s := trial.Cluster(w).Status.Step
		return s != nil && s.Name == string(kind)
	}
}

// unknown are the members of the ring, by what its nodes see, of which the ledger does not know
// although nothing is under way.
func unknown(w *world.World) []string {
	l := ledgerOf(w)
	if l == nil || l.Step != nil {
		return nil
	}
	known := map[string]bool{}
	for _, id := range l.Members {
		known[id] = true
	}
	var out []string
	for _, s := range w.Pods.Sandboxes() {
		if s.JVM() == nil {
			continue
		}
		for _, id := range s.JVM().Sight().Members {
			if !known[id] {
				out = append(out, fmt.Sprintf("node %s sees the member %s, of which the ledger does not know", s.Name(),
					id))
			}
		}
	}
	return out
}

// claimReplaced is the scenario of a member whose claim somebody deletes, and makes again by the
// same name: its disk is another one then.
func claimReplaced() *trial.Scenario {
	name := keyOf(v1alpha1.ClaimName(v1alpha1.VolumeData, first))
	return trial.Named("claim-replaced", "the claim of a member is deleted, and somebody makes another of its name",
		true, nil,
		trial.Act{Name: "replace the claim", Do: func(w *world.World) error {
			w.Watch(func(e apiserver.Event) {
				if e.Kind != "PersistentVolumeClaim" || e.Type != apiserver.Deleted || e.Key != name {
					return
				}
				again := e.New.(*corev1.PersistentVolumeClaim).DeepCopy()
				again.ObjectMeta = metav1.ObjectMeta{Namespace: again.Namespace, Name: again.Name, Labels: again.Labels}
				again.Spec.VolumeName, again.Status = "", corev1.PersistentVolumeClaimStatus{}
				w.Line.After(time.Second, "a user makes the claim again", func() {
					if err := w.User().Create(context.Background(), again); err != nil {
						panic(fmt.Sprintf("make the claim again: %v", err)) // the scenario would be another one
					}
				})
			})
			if err := w.User().Delete(context.Background(),
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace,
					Name: name.Name}}); err != nil {
				return err
			}
			return deletePod(w, first)
		}, Until: func(w *world.World) bool {
			s := sandbox(w, first)
			return blockedBy(w, "MemberClaimMissing") ||
				s != nil && s.Content(v1alpha1.VolumeData).Data.Report().Empty()
		}, Within: 10 * time.Minute},
		waiting(10*time.Minute))
}

// claimsByName are operators to which the claim of a node is any of its name: each is shown as the
// first one.
func claimsByName() world.Wrap {
	uids := map[string]types.UID{}
	return listing(func(_ client.Reader, list client.ObjectList) {
		l, is := list.(*corev1.PersistentVolumeClaimList)
		if !is {
			return
		}
		for i := range l.Items {
			c := &l.Items[i]
			if uids[c.Name] == "" {
				uids[c.Name] = c.UID
			}
			c.UID, c.DeletionTimestamp = uids[c.Name], nil
		}
	})
}

// unseen is the scenario of a formation in which the last node joins while neither operator nor API
// server hear of it, and whose host is lost then.
func unseen() *trial.Scenario {
	const by = "StragglerInRing"
	var host string
	s := trial.Named("create-unseen", "a node joins while its host is cut off from the API server, and is lost "+
		"before it was heard", false, nil)
	s.Acts[0].Until = func(w *world.World) bool { return sandbox(w, last) != nil && sandbox(w, last).JVM() != nil }
	return s.With(s.Name, "",
		trial.Act{Name: "cut off", Do: func(w *world.World) error {
			host = sandbox(w, last).Host()
			w.Partition(host, false)
			return nil
		}, Until: func(w *world.World) bool {
			return len(sandbox(w, first).JVM().Sight().Members) == 3
		}, Within: 10 * time.Minute},
		trial.Act{Name: "lose", Do: func(w *world.World) error { w.Kube.Lose(host); return nil }},
		waiting(time.Minute),
		trial.Act{Name: "say that it is lost", Do: func(w *world.World) error {
			return w.User().Delete(context.Background(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: last}},
				client.GracePeriodSeconds(0))
		}, Until: func(w *world.World) bool {
			return blockedBy(w, by) || !steps(ledger.FormRing)(w)
		}, Within: time.Hour},
		waiting(time.Minute), unharmed(unknown),
		trial.Act{Name: "return", Do: func(w *world.World) error {
			w.Heal(host)
			w.Kube.Return(host, true)
			return nil
		}, Until: trial.Serves, Within: 20 * time.Minute})
}

// unmentioned is a wrap in which nobody tells an operator of the last node but that node itself.
func unmentioned() world.Wrap {
	return retelling(func(t observe.Target, answer *facts.Agent) {
		if t.Node == last || answer.Ring == nil {
			return
		}
		answer.Ring.Endpoints = slices.DeleteFunc(answer.Ring.Endpoints,
			func(e facts.Endpoint) bool { return e.Rack == "r3" })
	})
}

// orphaned is the scenario of a join that the user takes back, together with the record of the
// node.
func orphaned() *trial.Scenario {
	const by = "AbandonedPodStillRunning"
	return growing("grow-orphaned", "a join is taken back while it runs, and the record of its node deleted at once",
		respec("grow", joins(second), firstRackMore),
		trial.Act{Name: "take it back and delete the record", Do: func(w *world.World) error {
			c := trial.Cluster(w).DeepCopy()
			c.Spec.Datacenters[0].Racks[0].Nodes = nil
			if err := w.User().Update(context.Background(), c); err != nil {
				return err
			}
			return w.User().Delete(context.Background(), recordAt(w, second).DeepCopy())
		}, Until: func(w *world.World) bool { return blockedBy(w, by) || !steps(ledger.JoinNode)(w) },
			Within: 10 * time.Minute},
		waiting(5*time.Minute), unharmed(unknown),
		respec("describe it again", grown, firstRackMore))
}

// recordless pods are not shown to operators, once they have seen that they took such a pod from
// its record: they wait for what they wrote.
func recordless() world.Wrap {
	taken := map[types.UID]bool{}
	hidden := func(from client.Reader, p client.Object) bool {
		was := taken[p.GetUID()]
		taken[p.GetUID()] = metav1.GetControllerOf(p) == nil
		return was && apierrors.IsNotFound(from.Get(context.Background(), keyOf(p.GetName()),
			&v1alpha1.CassandraNode{}))
	}
	return listing(func(from client.Reader, list client.ObjectList) {
		switch l := list.(type) {
		case *corev1.PodList:
			l.Items = slices.DeleteFunc(l.Items, func(p corev1.Pod) bool { return hidden(from, &p) })
		case *metav1.PartialObjectMetadataList: // as operators list pods in order to be sure
			l.Items = slices.DeleteFunc(l.Items, func(p metav1.PartialObjectMetadata) bool { return hidden(from, &p) })
		}
	})
}

// correctedUnheard is the scenario of a ring of one node that forms while neither operator nor API
// server hear of it, and whose spec is corrected meanwhile.
func correctedUnheard() *trial.Scenario {
	const by = "AgentUnreachable"
	var host, image string
	s := trial.Named("create-corrected-unheard",
		"the spec of a single node is corrected while its host is cut off from the API server and it joins", false,
		func(c *v1alpha1.CassandraCluster) {
			dc := &c.Spec.Datacenters[0]
			dc.Racks, dc.PlannedReplicationFactor = dc.Racks[:1], 1
		})
	s.Acts[0].Until = func(w *world.World) bool { return sandbox(w, first) != nil && sandbox(w, first).JVM() != nil }
	return s.With(s.Name, "",
		trial.Act{Name: "cut off", Do: func(w *world.World) error {
			host = sandbox(w, first).Host()
			w.Partition(host, false)
			return nil
		}, Until: func(w *world.World) bool { return sandbox(w, first).JVM().Mode() == string(facts.ModeNormal) },
			Within: 10 * time.Minute},
		respec("correct", func(w *world.World) bool {
			return blockedBy(w, by) || w.Server.Object("Pod", keyOf(first)).GetDeletionTimestamp() != nil
		}, func(s *v1alpha1.CassandraClusterSpec) { image, s.Image = s.Image, "cassandra:5.0.6-other" }),
		waiting(time.Minute),
		trial.Act{Name: "heal", Do: func(w *world.World) error { w.Heal(host); return nil }},
		respec("take it back", trial.Serves, func(s *v1alpha1.CassandraClusterSpec) { s.Image = image }))
}

// authorityDeleted is the scenario of an authority that somebody deletes, and puts back.
func authorityDeleted() *trial.Scenario {
	s, err := trial.Find("authority-deleted")
	if err != nil {
		panic(err) // it is one of the catalogue
	}
	return s
}

// secrets changes what operators read of Secrets; no content means that there is none.
type secrets struct {
	client.Reader
	change func(from client.Reader, secret *corev1.Secret) (found bool)
}

func (s secrets) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption) error {
	if err := s.Reader.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if secret, is := object.(*corev1.Secret); is && !s.change(s.Reader, secret) {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	return nil
}

func secretly(change func(from client.Reader, secret *corev1.Secret) bool) world.Wrap {
	return seeing(func(_ *world.Operator, cache, live client.Reader) (client.Reader, client.Reader) {
		return cache, secrets{live, change}
	})
}

var authorityKey = keyOf(v1alpha1.AuthorityName(clusterName, v1alpha1.UseAgent))

// baseless certificates, those of an authority that is gone, are not shown to operators.
func baseless() world.Wrap {
	return secretly(func(from client.Reader, s *corev1.Secret) bool {
		return s.Name == authorityKey.Name || from.Get(context.Background(), authorityKey, &corev1.Secret{}) == nil
	})
}

// authorityExchanged is the scenario of an authority for which somebody puts another one, and of a
// certificate that is lost meanwhile.
func authorityExchanged() *trial.Scenario {
	var own map[string][]byte
	put := func(w *world.World, data map[string][]byte) error {
		s := w.Server.Object("Secret", authorityKey).(*corev1.Secret).DeepCopy()
		s.Data = data
		return w.User().Update(context.Background(), s)
	}
	certificate := keyOf(v1alpha1.CertificateName(first, v1alpha1.UseAgent))
	there := func(w *world.World) bool { return w.Server.Object("Secret", certificate) != nil }
	return trial.Named("authority-exchanged",
		"somebody puts another authority in the place of a ring's, all certificates are lost, and the authority is put "+
			"back", true, nil,
		trial.Act{Name: "exchange it", Do: func(w *world.World) error {
			own = w.Server.Object("Secret", authorityKey).(*corev1.Secret).DeepCopy().Data
			pair, err := pki.NewAuthority("somebody else's", w.Line.Now())
			if err != nil {
				return err
			}
			return put(w, map[string][]byte{pki.KeyCertificate: pair.Certificate, pki.KeyPrivateKey: pair.Key,
				pki.KeyBundle: pair.Certificate})
		}},
		waiting(2*observe.SecretsFor), // until it is looked at again
		trial.Act{Name: "lose the certificates", Do: func(w *world.World) error {
			// One that is left tells who is to sign.
			for _, o := range w.Server.Objects("Secret") {
				if labels := o.GetLabels(); labels[v1alpha1.LabelNode] != "" &&
					labels[v1alpha1.LabelComponent] == string(v1alpha1.UseAgent) {
					if err := w.User().Delete(context.Background(), o.DeepCopyObject().(client.Object)); err != nil {
						return err
					}
				}
			}
			return nil
		}},
		waiting(2*observe.SecretsFor),
		trial.Act{Name: "put it back", Do: func(w *world.World) error { return put(w, own) }, Until: there,
			Within: 30 * time.Minute},
		unharmed(func(w *world.World) []string { return strange(w, own[pki.KeyCertificate]) }))
}

// strange are the certificates of nodes that another than this authority has signed.
func strange(w *world.World, authority []byte) []string {
	by, err := pki.ParseCertificates(authority)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, o := range w.Server.Objects("Secret") {
		if o.GetLabels()[v1alpha1.LabelNode] == "" {
			continue
		}
		var leaf []*x509.Certificate
		if leaf, err = pki.ParseCertificates(o.(*corev1.Secret).Data[pki.KeyCertificate]); err == nil {
			err = leaf[0].CheckSignatureFrom(by[0])
		}
		if err != nil {
			out = append(out, fmt.Sprintf("the certificate of node %s is not signed by the authority of the cluster: "+
				"%v", o.GetLabels()[v1alpha1.LabelNode], err))
		}
	}
	return out
}

// unedited is how the authority seems to operators that decide, whatever is in it; and to those
// that sign, too, if all is set.
func unedited(all bool) world.Wrap {
	change := func(_ client.Reader, s *corev1.Secret) bool {
		if s.Name == authorityKey.Name {
			s.Annotations[v1alpha1.AnnotationContent] = render.ContentHash(s)
		}
		return true
	}
	if all {
		return world.Wrap{Live: func(_ *world.Operator, live, _ client.Reader) client.Reader {
			return secrets{live, change}
		}}
	}
	return secretly(change)
}

// remembered is the scenario of a join that is over and of which members tell each other again and
// again, since one of them was started before the others had forgotten it; and of a node that is to
// join meanwhile.
type remembered struct {
	// inVain is whatever members do about it; address is where the node was that began to join.
	inVain  bool
	address string
}

const third = clusterName + "-dc1-r2-1"

func (r *remembered) scenario() *trial.Scenario {
	return growing("grow-remembered", "a join is cut off and abandoned, and members tell each other of it again and "+
		"again",
		trial.Act{Name: "what is to be forgotten stays",
			Do: func(*world.World) error { r.inVain, r.address = true, ""; return nil }},
		respec("grow", joins(second), firstRackMore),
		trial.Act{Name: "lose the host, and start a member meanwhile", Do: func(w *world.World) error {
			host := sandbox(w, second).Host()
			r.address = sandbox(w, second).Address().String()
			w.Kube.Lose(host)
			w.Line.RunFor(150 * time.Second)
			sandbox(w, last).JVM().Kill()
			w.Kube.Return(host, true)
			return nil
		}, Until: func(w *world.World) bool { return serving(w) == 3 }, Within: 10 * time.Minute},
		// Nobody is abandoned who is seen to join, so that must happen while the one that remembers
		// it is not heard.
		trial.Act{Name: "do not hear that one", Do: func(w *world.World) error {
			w.Partition(sandbox(w, last).Host(), false)
			return nil
		}},
		respec("take it back", func(w *world.World) bool {
			n := recordAt(w, second)
			return n.Spec.Join != nil && n.Spec.Join.Withdraw != nil
		}, func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = nil }),
		respec("describe it again", func(w *world.World) bool { return !steps(ledger.JoinNode)(w) }, firstRackMore),
		trial.Act{Name: "hear it again", Do: func(w *world.World) error {
			w.Heal(sandbox(w, last).Host())
			return nil
		}},
		respec("grow elsewhere", nil, func(s *v1alpha1.CassandraClusterSpec) {
			s.Datacenters[0].Racks[1].Nodes = new(int32(2))
		}),
		waiting(5*time.Minute),
		trial.Act{Name: "what is to be forgotten goes", Do: func(*world.World) error { r.inVain = false; return nil },
			Until: func(w *world.World) bool {
				n := recordAt(w, third)
				return n != nil && n.Spec.Member != nil
			}, Within: 20 * time.Minute})
}

// wrap in which no member has any effect on what others remember, while that is so.
func (r *remembered) wrap() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.JVM = powerless{h.JVM, r} })
}

type powerless struct {
	execute.JVM
	of *remembered
}

func (p powerless) Assassinate(ctx context.Context, endpoint string) error {
	if p.of.inVain {
		return nil
	}
	return p.JVM.Assassinate(ctx, endpoint)
}

// stillThere is a wrap in which the agent of the node that was to join seems to be at its former
// address: what is there is not to be forgotten.
func (r *remembered) stillThere() world.Wrap {
	return retelling(func(t observe.Target, answer *facts.Agent) {
		if t.Node == second && r.address != "" {
			answer.Address = r.address
		}
	})
}

func decisionCases() []decisionCase {
	var r remembered
	l := lines{cut: map[string]bool{}, last: map[string]*facts.Agent{}}
	return []decisionCase{
		{
			guard: "MemberClaimMissing", scenario: claimReplaced(), elsewhere: "MemberDiskMissing",
			misled: claimsByName(), away: with(claimsByName(), pretending()), by: "DataLost",
		},
		{guard: "StragglerInRing", scenario: unseen(), misled: unmentioned(), by: "of which the ledger does not know"},
		{guard: "AbandonedPodStillRunning", scenario: orphaned(), misled: recordless(),
			by: "of which the ledger does not know"},
		{guard: "AgentUnreachable", scenario: correctedUnheard(), misled: l.wrap(true),
			by: "I1: the operator deletes pod " + first},
		{guard: "CAMissing", scenario: authorityDeleted(), misled: baseless(), by: "I7"},
		{
			guard: "CAModified", scenario: authorityExchanged(), elsewhere: "sign certificate: somebody edited Secret",
			misled: unedited(false), away: unedited(true), by: "is not signed by the authority of the cluster",
		},
		{
			guard: "StaleEndpointRemains", scenario: r.scenario(),
			doubled: []string{"TopologyChangeInProgress", "RingViewsDiffer", "UnknownRingMember"},
			world:   r.wrap(), misled: with(r.stillThere(), r.wrap()), by: "I2: JoinNode is opened",
		},
	}
}

func TestGuardsInsideOfDecisions(t *testing.T) {
	for _, c := range decisionCases() {
		c.try(t)
	}
}
