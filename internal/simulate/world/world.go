package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/kube"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/timeline"
)

// Namespace that the clusters of a world are in.
const Namespace = "shop"

// Users of the API server.
const (
	// UserPerson is who writes clusters.
	UserPerson = "person"
	// UserKubernetes are kubelet, scheduler and controllers.
	UserKubernetes = "kubernetes"
	// UserOperator begins the name of every operator.
	UserOperator = "operator"
)

// Began is when every world begins.
var Began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options of a world.
type Options struct {
	// Kinds that its API server serves: see Kinds.
	Kinds *apiserver.Kinds
	// Seed decides every choice.
	Seed uint64
	// Zones and hosts in each.
	Zones        []string
	HostsPerZone int
	// Wrap is for tests of the product's safeguards.
	Wrap Wrap
}

// Faults are what goes wrong. A nil function is a fault that does not happen.
type Faults struct {
	// Before and After stand around every request of an operator or agent; see
	// apiserver.Interceptor.
	Before func(r *apiserver.Request) error
	After  func(r *apiserver.Request, err error) error
	// Lag says how many of the latest changes of a kind an operator's cache does not show yet.
	Lag func(o *Operator, kind string) int
	// Skip says that a change, which would wake somebody, is shown without waking anybody.
	Skip func(o *Operator, kind string) bool
	// Merge says that the changes of a kind which an operator has not been shown yet are shown as
	// one for each object, as after a watch that broke. It is asked if there is one object at least
	// of which several are left.
	Merge func(o *Operator, kind string) bool
	// Misled is told when an operator reads a kind of which changes are held back; stale says
	// whether what it reads would be otherwise without that.
	Misled func(kind string, stale func() bool)
	// Blinded is told when an agent is not told of a change.
	Blinded func()
}

// World is one.
type World struct {
	Line    *timeline.Timeline
	Server  *apiserver.Server
	Kube    *kube.Cluster
	Network *cassandra.Network
	Pods    *pod.Runtime
	Faults  Faults
	// Installed is what operators are installed with now.
	Installed facts.Install
	// OperatorClock is how far the clocks of operators are off that start from now on.
	OperatorClock time.Duration
	// Notes are what a scenario remembers from one act to the next.
	Notes map[string]string
	// Kept is what a scenario compares with later.
	Kept any

	wrap Wrap
	// tabled says that the client has made its keyspace and table.
	tabled    bool
	operators []*Operator
	started   int
	collector *apiserver.Collector
	uids      *rand.Rand
	// parted are hosts that are cut off from the API server and the operator; isolated those whose
	// pods reach no others.
	parted, isolated map[string]bool
	// away says that the API server answers nobody.
	away bool
	// slow are hosts on which everything takes longer, blind pods whose agents' watches tell
	// nothing.
	slow  map[string]time.Duration
	blind map[types.UID]bool
	// clocks are hosts whose clocks are off.
	clocks   map[string]time.Duration
	watchers []func(apiserver.Event)
	// Trace takes what programs say, one line each; nil for nothing.
	Trace func(who, line string)
}

// New makes a world without operators.
func New(o Options) (*World, error) {
	w := &World{
		wrap: o.Wrap, Installed: Install,
		Line: timeline.New(Began, o.Seed), Notes: map[string]string{}, parted: map[string]bool{},
		isolated: map[string]bool{}, slow: map[string]time.Duration{}, blind: map[types.UID]bool{},
		clocks: map[string]time.Duration{},
		uids:   rand.New(rand.NewPCG(o.Seed, 1)), //nolint:gosec // reproducible, not secret
	}
	w.Server = apiserver.New(o.Kinds, apiserver.Options{Now: w.Line.Now, NewUID: w.uid})
	w.Network = cassandra.New(w.Line, cassandra.Options{})
	kubernetes := w.Server.As(UserKubernetes)
	w.Pods = &pod.Runtime{
		Line: w.Line, Network: w.Network, Bucket: &pod.Bucket{Line: w.Line, Objects: map[string][]byte{}},
		Client: w.Server.As, Observer: kubernetes, Base: base,
		APIReachable: func(host string) bool { return !w.parted[host] && !w.away },
		Reachable: func(from, to string) bool {
			return from == to || !w.isolated[from] && !w.isolated[to] && (from != "" || !w.parted[to])
		},
		Delay: func(host string) time.Duration { return w.slow[host] },
		Blind: func(pod types.UID) bool {
			if f := w.Faults.Blinded; f != nil && w.blind[pod] {
				f()
			}
			return w.blind[pod]
		},
		Clock:  func(host string) time.Duration { return w.clocks[host] },
		Probed: func(uid types.UID) { w.Kube.ReadyMayHaveChanged(uid) },
		Logf:   func(format string, args ...any) { w.say("agent", format, args...) },
		Host:   o.Wrap.Host, Lockless: o.Wrap.Lockless,
	}
	if err := kubernetes.Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	var err error
	if w.Kube, err = kube.New(w.Line, kubernetes, w.Pods,
		kube.Options{Zones: o.Zones, HostsPerZone: o.HostsPerZone}); err != nil {
		return nil, err
	}
	w.collector = apiserver.NewCollector(w.Server)
	w.Server.Intercept(interceptor{w})
	w.Server.Watch(w.changed)
	return w, nil
}

func (w *World) uid() types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", w.uids.Uint32(), w.uids.Uint32N(1<<16),
		w.uids.Uint32N(1<<12), w.uids.Uint32N(1<<12), w.uids.Uint64N(1<<48)))
}

func (w *World) say(who, format string, args ...any) {
	if w.Trace != nil {
		w.Trace(who, fmt.Sprintf(format, args...))
	}
}

// Watch has every change of an object told.
func (w *World) Watch(see func(apiserver.Event)) { w.watchers = append(w.watchers, see) }

// changed spreads a change of an object to all who watch: each hears of it a moment later.
func (w *World) changed(e apiserver.Event) {
	deleted := e.Type == apiserver.Deleted
	switch e.Kind {
	case "Pod", "PersistentVolumeClaim", "PodDisruptionBudget":
		w.Line.After(time.Millisecond, "informers of Kubernetes", func() { w.Kube.Changed(e.New, deleted) })
	case "CassandraNode", "ConfigMap":
		w.Pods.Changed(e.New, deleted)
	}
	if deleted || len(e.New.GetFinalizers()) > 0 && e.New.GetDeletionTimestamp() != nil {
		w.Line.After(w.Line.Between(10*time.Millisecond, 500*time.Millisecond), "garbage collector",
			w.collector.Collect)
	}
	for _, o := range w.operators {
		o.changed(e)
	}
	for _, see := range w.watchers {
		see(e)
	}
}

// End ends all programs, so that nothing of the world stays in memory.
func (w *World) End() {
	for len(w.operators) > 0 {
		w.operators[0].Kill()
	}
	for _, s := range w.Pods.Sandboxes() {
		s.Kill(layout.CassandraContainer)
		s.Kill(layout.AgentContainer)
	}
}

// User writes as the user does.
func (w *World) User() client.Client { return w.Server.As(UserPerson) }

// Partition cuts a host off from the API server and the operator; with its pods' own traffic too if
// all is set.
func (w *World) Partition(host string, all bool) {
	w.parted[host], w.isolated[host] = true, all
	w.Kube.Partition(host)
	if all {
		w.Network.Isolate(w.Pods.Addresses(host)...)
	}
}

// Isolated says that the pods of a host reach nobody elsewhere, and nobody them.
func (w *World) Isolated(host string) bool { return w.isolated[host] }

// Heal ends a partition.
func (w *World) Heal(host string) {
	w.Network.Heal(w.Pods.Addresses(host)...)
	delete(w.parted, host)
	delete(w.isolated, host)
	w.Kube.Heal(host)
	for _, s := range w.Pods.Sandboxes() {
		if s.Host() == host {
			s.Reconnect()
		}
	}
}

// Outage has the API server answer nobody, until away is false: neither operators nor agents nor
// kubelets.
func (w *World) Outage(away bool) {
	w.away = away
	w.Kube.Outage(away)
	if away {
		return
	}
	for _, s := range w.Pods.Sandboxes() {
		s.Reconnect()
	}
}

// Slow has everything that an agent does with others on a host take longer: requests, answers,
// questions to its JVM. Zero ends that.
func (w *World) Slow(host string, d time.Duration) { w.slow[host] = d }

// SetClock has the clock of a host be off by d, for programs that start on it from now on.
func (w *World) SetClock(host string, d time.Duration) { w.clocks[host] = d }

// ClocksAreTrue says that no clock of a host was ever set.
func (w *World) ClocksAreTrue() bool { return len(w.clocks) == 0 }

// slowness is what a request takes longer because of the host that it comes from. Agents write
// their own node's record alone.
func (w *World) slowness(r *apiserver.Request) time.Duration {
	if len(w.slow) == 0 || strings.HasPrefix(r.User, UserOperator) {
		return 0
	}
	for _, s := range w.Pods.Sandboxes() {
		if s.Name() == r.Name {
			return w.slow[s.Host()]
		}
	}
	return 0
}

// Blind ends the watches of a pod's agent without its noticing; they start over when blind is
// false.
func (w *World) Blind(s *pod.Sandbox, blind bool) {
	w.blind[s.PodUID()] = blind
	if !blind {
		s.Reconnect()
	}
}

// interceptor lets requests of the product's programs take time, and the faults have them.
type interceptor struct{ w *World }

func (i interceptor) Before(r *apiserver.Request) error {
	if r.User == UserPerson || r.User == UserKubernetes {
		return nil
	}
	if i.w.away {
		return apiserver.Unavailable(r)
	}
	if r.Verb.Writes() {
		i.w.Line.Sleep(i.w.Line.Between(2*time.Millisecond, 20*time.Millisecond) + i.w.slowness(r))
	}
	if f := i.w.Faults.Before; f != nil {
		return f(r)
	}
	return nil
}

func (i interceptor) After(r *apiserver.Request, err error) error {
	if r.User == UserPerson || r.User == UserKubernetes {
		return nil
	}
	if f := i.w.Faults.After; f != nil {
		return f(r, err)
	}
	return nil
}
