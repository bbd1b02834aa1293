package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/pki"
)

const (
	// askPatience bounds one question to an agent, with connecting.
	askPatience = 2 * time.Second
	// firstPause and lastPause bound the time between two tries to reach an agent that does not answer.
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
	// askedAtOnce bounds the agents that one confirmation asks at the same time.
	askedAtOnce = 16
)

// Agents keeps in touch with the agents of all clusters: one long poll for each pod, whose last answer is what a pass sees, and which wakes the cluster
// when it changes. It outlives passes and decides nothing.
type Agents struct {
	// Material gives the operator's certificate towards one cluster.
	Material func(cluster types.NamespacedName, uid types.UID) pki.Source
	// Wake is called when an answer changes.
	Wake func(cluster types.NamespacedName)
	// Now is the clock.
	Now func() time.Time

	mutex    sync.Mutex
	contacts map[target]*contact
}

// target is one agent: of a node, in a pod, at an address.
type target struct {
	cluster types.NamespacedName
	uid     types.UID
	node    string
	pod     types.UID
	address string
}

// contact is the long poll of one agent.
type contact struct {
	cancel context.CancelFunc
	client *agentapi.Client

	mutex  sync.Mutex
	answer *facts.Agent
	reason string
}

func (c *contact) set(answer *facts.Agent, reason string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.answer, c.reason = answer, reason
}

func (c *contact) get() (*facts.Agent, string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.answer, c.reason
}

// Fill puts the last answer of each agent into a snapshot, keeps in touch with pods that are new, and lets go of pods that are gone.
func (a *Agents) Fill(s *facts.Snapshot) {
	key := types.NamespacedName{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name}
	present := map[target]bool{}
	for _, n := range s.Nodes {
		t, ok := targetOf(key, s, n)
		if !ok {
			continue
		}
		present[t] = true
		n.Agent, n.Unreachable = a.contact(t).get()
	}
	a.keepOnly(key, present)
}

// Forget ends all contacts of a cluster.
func (a *Agents) Forget(cluster types.NamespacedName) { a.keepOnly(cluster, nil) }

func targetOf(key types.NamespacedName, s *facts.Snapshot, n *facts.Node) (target, bool) {
	if n.Pod == nil || n.Pod.Status.PodIP == "" {
		return target{}, false
	}
	return target{cluster: key, uid: s.Cluster.UID, node: n.Name, pod: n.Pod.UID, address: n.Pod.Status.PodIP}, true
}

func (a *Agents) contact(t target) *contact {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if c, ok := a.contacts[t]; ok {
		return c
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &contact{
		cancel: cancel,
		client: agentapi.NewClient(a.Material(t.cluster, t.uid), pki.NodeOf(t.uid, t.node), agentapi.FactsAddress(t.address), a.Now),
		reason: "it was not asked yet",
	}
	if a.contacts == nil {
		a.contacts = map[target]*contact{}
	}
	a.contacts[t] = c
	go a.follow(ctx, t, c)
	return c
}

func (a *Agents) keepOnly(cluster types.NamespacedName, present map[target]bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for t, c := range a.contacts {
		if t.cluster == cluster && !present[t] {
			c.cancel()
			delete(a.contacts, t)
		}
	}
}

// follow asks an agent again and again, each time for facts that differ from the last ones.
func (a *Agents) follow(ctx context.Context, t target, c *contact) {
	defer c.client.Close()
	digest, pause := "", firstPause
	for ctx.Err() == nil {
		answer, err := a.ask(ctx, t, c.client, digest)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			_, before := c.get()
			c.set(nil, err.Error())
			if digest != "" || before == "" {
				a.Wake(t.cluster) // it answered before
			}
			digest = ""
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, lastPause)
			continue
		}
		pause = firstPause
		now := agentapi.Digest(answer)
		c.set(answer, "")
		if now != digest {
			digest = now
			a.Wake(t.cluster)
		}
	}
}

func (a *Agents) ask(ctx context.Context, t target, client *agentapi.Client, digest string) (*facts.Agent, error) {
	wait := agentapi.MaxWait / 2
	if digest == "" {
		wait = 0
	}
	ctx, cancel := context.WithTimeout(ctx, wait+askPatience)
	defer cancel()
	var answer *facts.Agent
	var err error
	if digest == "" {
		answer, err = client.Facts(ctx)
	} else {
		answer, err = client.WaitFacts(ctx, digest, wait)
	}
	if err != nil {
		return nil, err
	}
	return answer, agentapi.Of(answer, t.uid, t.node, t.pod)
}

// Confirm asks every agent that a snapshot has an answer of, now, and returns ErrChanged if one of them says something else than it said.
func (a *Agents) Confirm(ctx context.Context, s *facts.Snapshot) error {
	key := types.NamespacedName{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name}
	var wait sync.WaitGroup
	slots := make(chan struct{}, askedAtOnce)
	errs := make(chan error, len(s.Nodes))
	for _, n := range s.Nodes {
		t, ok := targetOf(key, s, n)
		if !ok || n.Agent == nil {
			continue
		}
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs <- a.confirm(ctx, t, n)
		})
	}
	wait.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (a *Agents) confirm(ctx context.Context, t target, n *facts.Node) error {
	answer, err := a.ask(ctx, t, a.contact(t).client, "")
	switch {
	case err != nil:
		return fmt.Errorf("%w: node %s: %w", ErrChanged, n.Name, err)
	case agentapi.Digest(answer) != agentapi.Digest(n.Agent):
		return fmt.Errorf("%w: node %s", ErrChanged, n.Name)
	}
	return nil
}
