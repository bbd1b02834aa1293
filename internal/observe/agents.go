package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/pki"
	"helenus.io/helenus/internal/threads"
)

const (
	// askPatience bounds one question to an agent, with connecting.
	askPatience = 2 * time.Second
	// firstPause and lastPause bound the time between two tries to reach an agent that does not
	// answer.
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
	// askedAtOnce bounds the agents that one confirmation asks at the same time.
	askedAtOnce = 16
)

// Agents keeps in touch with the agents of all clusters: one long poll for each pod, whose last
// answer is what a pass sees, and which wakes the cluster when it changes. It outlives passes and
// decides nothing.
type Agents struct {
	// Wake is called when an answer changes.
	Wake func(cluster types.NamespacedName)
	// Dial begins to ask an agent: Over in a real cluster.
	Dial func(Target) Asker
	// Reach says whether CQL of the pod of an address accepts a connection; nil if that is not to
	// be tried.
	Reach func(ctx context.Context, address string) bool
	// Threads run and wait.
	Threads threads.Threads

	mutex    sync.Mutex
	contacts map[Target]*contact
	reaches  map[types.NamespacedName]*reach
}

// Target is one agent: of a node, in a pod, at an address.
type Target struct {
	Cluster types.NamespacedName
	UID     types.UID
	Node    string
	Pod     types.UID
	Address string
}

// Asker asks one agent: agentapi.Client.
type Asker interface {
	Facts(ctx context.Context) (*facts.Agent, error)
	WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error)
	Close()
}

// Over asks agents over mutual TLS, with the operator's certificate towards each cluster.
func Over(material func(cluster types.NamespacedName, uid types.UID) pki.Source,
	now func() time.Time) func(Target) Asker {
	return func(t Target) Asker {
		return agentapi.NewClient(material(t.Cluster, t.UID), pki.NodeOf(t.UID, t.Node),
			agentapi.FactsAddress(t.Address), now)
	}
}

// contact is the long poll of one agent.
type contact struct {
	cancel context.CancelFunc
	client Asker

	mutex  sync.Mutex
	answer *facts.Agent
	reason string
	// asked says that the first question has come to something.
	asked bool
}

func (c *contact) set(answer *facts.Agent, reason string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.answer, c.reason, c.asked = answer, reason, true
}

func (c *contact) get() (answer *facts.Agent, reason string, asking bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.answer, c.reason, !c.asked
}

// Fill puts the last answer of each agent into a snapshot, keeps in touch with pods that are new,
// and lets go of pods that are gone.
func (a *Agents) Fill(s *facts.Snapshot) {
	key := types.NamespacedName{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name}
	present := map[Target]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		n := s.Nodes[name]
		t, ok := targetOf(key, s, n)
		if !ok {
			continue
		}
		present[t] = true
		n.Agent, n.Unreachable, n.Asking = a.contact(t).get()
	}
	a.keepOnly(key, present)
	a.reach(key, s)
}

// Forget ends all contacts of a cluster.
func (a *Agents) Forget(cluster types.NamespacedName) {
	a.keepOnly(cluster, nil)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.reaches, cluster)
}

func targetOf(key types.NamespacedName, s *facts.Snapshot, n *facts.Node) (Target, bool) {
	if n.Pod == nil || n.Pod.Status.PodIP == "" {
		return Target{}, false
	}
	return Target{Cluster: key, UID: s.Cluster.UID, Node: n.Name, Pod: n.Pod.UID, Address: n.Pod.Status.PodIP}, true
}

func (a *Agents) contact(t Target) *contact {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if c, ok := a.contacts[t]; ok {
		return c
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &contact{
		cancel: cancel,
		client: a.Dial(t),
		reason: "it was not asked yet",
	}
	if a.contacts == nil {
		a.contacts = map[Target]*contact{}
	}
	a.contacts[t] = c
	a.Threads.Go(func() { a.follow(ctx, t, c) })
	return c
}

func (a *Agents) keepOnly(cluster types.NamespacedName, present map[Target]bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for t, c := range a.contacts {
		if t.Cluster == cluster && !present[t] {
			c.cancel()
			delete(a.contacts, t)
		}
	}
}

// follow asks an agent again and again, each time for facts that differ from the last ones.
func (a *Agents) follow(ctx context.Context, t Target, c *contact) {
	defer c.client.Close()
	digest, pause := "", firstPause
	for ctx.Err() == nil {
		answer, err := a.ask(ctx, t, c.client, digest)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			_, before, asking := c.get()
			c.set(nil, err.Error())
			if digest != "" || before == "" || asking {
				a.Wake(t.Cluster) // it answered before, or nothing was known
			}
			digest = ""
			a.Threads.Wait(ctx, pause, nil)
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		now := agentapi.Digest(answer)
		a.keep(t.Cluster, answer)
		c.set(answer, "")
		if now != digest {
			digest = now
			a.Wake(t.Cluster)
		}
	}
}

func (a *Agents) ask(ctx context.Context, t Target, client Asker, digest string) (*facts.Agent, error) {
	wait := agentapi.MaxWait / 2
	if digest == "" {
		wait = 0
	}
	ctx, cancel := a.Threads.WithTimeout(ctx, wait+askPatience)
	defer cancel()
	var answer *facts.Agent
	var err error
	sent := a.Threads.Now()
	if digest == "" {
		answer, err = client.Facts(ctx)
	} else {
		answer, err = client.WaitFacts(ctx, digest, wait)
	}
	if err != nil {
		return nil, err
	}
	if answer.Clock != nil {
		answer.Clock.Compare(sent, a.Threads.Now())
	}
	return answer, agentapi.Of(answer, t.UID, t.Node, t.Pod)
}

// Confirm asks every agent that a snapshot has an answer of, now, and returns ErrChanged if one of
// them says something else than it said.
func (a *Agents) Confirm(ctx context.Context, s *facts.Snapshot) error {
	key := types.NamespacedName{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name}
	var ask []func()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		n := s.Nodes[name]
		t, ok := targetOf(key, s, n)
		if !ok || n.Agent == nil {
			continue
		}
		i := len(errs)
		errs = append(errs, nil)
		ask = append(ask, func() { errs[i] = a.confirm(ctx, t, n) })
	}
	a.Threads.Together(askedAtOnce, ask...)
	return errors.Join(errs...)
}

func (a *Agents) confirm(ctx context.Context, t Target, n *facts.Node) error {
	answer, err := a.ask(ctx, t, a.contact(t).client, "")
	switch {
	case err != nil:
		return fmt.Errorf("%w: node %s: %w", ErrChanged, n.Name, err)
	case !agentapi.Same(answer, n.Agent):
		return fmt.Errorf("%w: node %s", ErrChanged, n.Name)
	}
	return nil
}
