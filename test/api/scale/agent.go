package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/serve"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
)

// release that all nodes say they run.
const release = "5.0.6"

// ring is what the nodes of one cluster see of each other: all the same, and at once.
type ring struct {
	mu      sync.Mutex
	members map[string]facts.Endpoint
	agents  map[string]*agent
}

func newRing() *ring { return &ring{members: map[string]facts.Endpoint{}, agents: map[string]*agent{}} }

// enter makes a node a member that everybody sees.
func (r *ring) enter(name string, e facts.Endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[name] = e
	seen := slices.SortedFunc(maps.Values(r.members),
		func(a, b facts.Endpoint) int { return strings.Compare(a.Address, b.Address) })
	for _, a := range r.agents {
		a.change(func(answer *facts.Agent) {
			if answer.Ring != nil {
				ring := *answer.Ring
				ring.Endpoints = seen
				answer.Ring = &ring
			}
		})
	}
}

// agent is that of one pod: it does at once what its record says, and answers by the server of the
// real one.
type agent struct {
	ring *ring
	pod  *corev1.Pod
	stop context.CancelFunc
	// listens until the agent falls silent.
	listener net.Listener

	mu      sync.Mutex
	answer  *facts.Agent
	digest  string
	changed chan struct{}
}

// start serves for a pod with the certificate of its node.
func start(ctx context.Context, r *ring, cluster types.UID, pod *corev1.Pod, secret *corev1.Secret) (*agent, error) {
	material, err := pki.NewMaterial(pki.Pair{Certificate: secret.Data[pki.KeyCertificate],
		Key: secret.Data[pki.KeyPrivateKey]}, secret.Data[pki.KeyBundle])
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", pod.Name, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp",
		net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(layout.FactsPort)))
	if err != nil {
		return nil, fmt.Errorf("serve for %s: %w", pod.Name, err)
	}
	ctx, stop := context.WithCancel(ctx)
	a := &agent{ring: r, pod: pod, stop: stop, listener: listener, changed: make(chan struct{})}
	a.change(func(answer *facts.Agent) {
		*answer = facts.Agent{
			ClusterUID: cluster, Node: pod.Name, PodUID: pod.UID, Address: pod.Status.PodIP, Disk: v1alpha1.DiskEmpty,
			Phase:   v1alpha1.PhaseWaiting,
			Process: facts.ProcessAbsent, Traffic: v1alpha1.TrafficClosed,
		}
	})
	go func() {
		_ = serve.Facts(ctx, listener, a, func() (*pki.Material, error) { return material, nil }, time.Now)
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[pod.Name] = a
	return a, nil
}

// fallSilent takes connections from now on and never answers one.
func (a *agent) fallSilent(ctx context.Context) error {
	a.stop()
	address := a.listener.Addr().String()
	// until the server has let go of the address
	err := wait.PollUntilContextTimeout(ctx, look, toChange, true, func(ctx context.Context) (bool, error) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return false, nil //nolint:nilerr // it is tried again
		}
		a.listener = listener
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("fall silent at %s: %w", address, err)
	}
	return nil
}

func (a *agent) change(change func(*facts.Agent)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := facts.Agent{}
	if a.answer != nil {
		next = *a.answer
	}
	change(&next)
	next.ObservedAt = time.Now()
	a.answer, a.digest = &next, agentapi.Digest(&next)
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *agent) now() (answer *facts.Agent, digest string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer, a.digest, a.changed
}

// Fresh implements serve.Source.
func (a *agent) Fresh(context.Context) (*facts.Agent, string) {
	answer, digest, _ := a.now()
	return answer, digest
}

// Wait implements serve.Source.
func (a *agent) Wait(ctx context.Context, known string) (*facts.Agent, string) {
	for {
		answer, digest, changed := a.now()
		if digest != known {
			return answer, digest
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return answer, digest
		}
	}
}

// Identity implements serve.Source.
func (a *agent) Identity(string, string) facts.Peer {
	answer, _, _ := a.now()
	return facts.Peer{ClusterUID: answer.ClusterUID, Node: answer.Node, PodUID: answer.PodUID,
		HostID: answer.HostID, TrafficOpened: answer.TrafficOpened}
}

// follow does what a record says, and returns the status that it has then.
func (a *agent) follow(record *v1alpha1.CassandraNode) (*v1alpha1.CassandraNodeStatus, error) {
	spec, status := record.Spec, record.Status.DeepCopy()
	when := metav1.Now().Rfc3339Copy()
	for _, o := range spec.Operations {
		if status.Operation(o.ID) == nil {
			status.Operations = []v1alpha1.OperationStatus{{ID: o.ID, Phase: v1alpha1.OperationSucceeded,
				StartedAt: &when, FinishedAt: &when}}
		}
	}
	answer, _, _ := a.now()
	joins := spec.Join != nil && (status.Join == nil || status.Join.ID != spec.Join.ID)
	if joins {
		status.Join, status.Tokens = &v1alpha1.IntentStatus{ID: spec.Join.ID, StartedAt: &when, FinishedAt: &when},
			spec.Join.Tokens
		status.HostID = string(a.pod.UID)
	}
	status.PodUID, status.Address, status.ObservedGeneration = a.pod.UID, a.pod.Status.PodIP, record.Generation
	status.ClientTraffic, status.Disk, status.Phase = spec.ClientTraffic, v1alpha1.DiskEmpty, v1alpha1.PhaseWaiting
	if status.HostID != "" {
		status.Disk, status.Phase, status.Ready = v1alpha1.DiskMember, v1alpha1.PhaseNormal,
			spec.ClientTraffic == v1alpha1.TrafficOpen
	}
	a.change(func(answer *facts.Agent) {
		answer.RecordGeneration, answer.Traffic = record.Generation, spec.ClientTraffic
		answer.TrafficOpened = answer.TrafficOpened || spec.ClientTraffic != v1alpha1.TrafficClosed
		answer.Disk, answer.Phase, answer.Ready, answer.HostID, answer.Join = status.Disk, status.Phase, status.Ready,
			status.HostID, status.Join
		if status.HostID == "" {
			return
		}
		ring := facts.Ring{Mode: facts.ModeNormal, ReleaseVersion: release, SchemaVersion: "one", GossipRunning: true,
			HostID: status.HostID, Keyspaces: keyspaces}
		if answer.Ring != nil {
			ring.Endpoints = answer.Ring.Endpoints
		}
		ring.NativeRunning = spec.ClientTraffic != v1alpha1.TrafficClosed
		answer.Process, answer.Ring = facts.ProcessRunning, &ring
	})
	if answer.Ring == nil && status.HostID != "" {
		tokens, err := numbers(status.Tokens)
		if err != nil {
			return nil, fmt.Errorf("read tokens of %s: %w", record.Name, err)
		}
		a.ring.enter(record.Name, facts.Endpoint{
			Address: a.pod.Status.PodIP, HostID: status.HostID, Datacenter: spec.Configuration.DatacenterName,
			Rack:   spec.Configuration.RackName,
			Status: facts.StatusNormal, Live: true, Release: release, SchemaVersion: "one", Tokens: tokens,
			Load: 1 << 20,
		})
	}
	return status, nil
}

// keyspaces of every ring: those of the system, and some of users.
var keyspaces = func() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"system_auth", "system_distributed", "system_traces"} {
		out[name] = "NetworkTopologyStrategy {dc1=3}"
	}
	for i := range 17 {
		out[fmt.Sprintf("users_%d", i)] = "NetworkTopologyStrategy {dc1=3}"
	}
	return out
}()

// numbers are tokens, ascending.
func numbers(tokens []string) ([]int64, error) {
	out := make([]int64, len(tokens))
	for i, t := range tokens {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	slices.Sort(out)
	return out, nil
}
