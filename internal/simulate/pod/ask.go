package pod

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	agentpod "helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/agentapi"
	product "helenus.io/helenus/internal/cassandra"
	"helenus.io/helenus/internal/cassandra/cql"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/cassandra"
	"helenus.io/helenus/internal/simulate/process"
)

const (
	// answerDelay is what a question to an agent takes, silence what it takes to give one up that
	// does not answer.
	answerDelay = 5 * time.Millisecond
	silence     = 2 * time.Second
)

// peers is execute.Peers.
type peers struct{ s *Sandbox }

// Ask asks the agents at some addresses.
func (p peers) Ask(ctx context.Context, addresses []string, address, hostID string) (answers []facts.Peer,
	silent []string) {
	wait := answerDelay
	for _, a := range addresses {
		other := p.s.rt.at(a)
		if other == nil || other.agent == nil || other.uid != p.s.uid || !p.s.rt.Reachable(p.s.host, other.host) {
			silent = append(silent, a)
			wait = silence
			continue
		}
		id := other.agent.Identity(address, hostID)
		if d := p.s.rt.Delay(other.host); d >= silence {
			silent = append(silent, a)
			wait = silence
			continue
		} else if d > wait {
			wait = d
		}
		id.Asked = a
		answers = append(answers, id)
	}
	_ = process.Sleep(ctx, p.s.rt.Line, wait)
	return answers, silent
}

// Asker asks one agent for the operator: observe.Asker.
type Asker struct {
	rt      *Runtime
	uid     types.UID
	node    string
	pod     types.UID
	address string
	threads *process.Process
}

// Dial begins to ask the agent of a node at an address.
func (r *Runtime) Dial(threads *process.Process, uid types.UID, nodeName string, pod types.UID, address string) *Asker {
	return &Asker{r, uid, nodeName, pod, address, threads}
}

// reach is the pod, if its agent answers and proves to be the one that is meant.
func (a *Asker) reach(ctx context.Context) (*Sandbox, error) {
	s := a.rt.at(a.address)
	if s == nil || s.agent == nil || s.uid != a.uid || s.pod.Name != a.node || !a.rt.Reachable("", s.host) {
		_ = process.Sleep(ctx, a.rt.Line, answerDelay)
		return nil, fmt.Errorf("ask agent at %s: %w", a.address, agentapi.ErrUnreachable)
	}
	return s, process.Sleep(ctx, a.rt.Line, answerDelay+a.rt.Delay(s.host))
}

// Facts asks for the facts as they are now.
func (a *Asker) Facts(ctx context.Context) (*facts.Agent, error) {
	return a.ask(ctx, func(ctx context.Context, s *Sandbox) *facts.Agent {
		answer, _ := s.agent.Fresh(ctx)
		return answer
	})
}

// WaitFacts asks for the facts as soon as they have another digest.
func (a *Asker) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	return a.ask(ctx, func(ctx context.Context, s *Sandbox) *facts.Agent {
		bounded, cancel := a.threads.WithTimeout(ctx, min(limit, agentapi.MaxWait))
		defer cancel()
		s.asked++
		i := s.asked - 1
		s.asking[i] = cancel
		defer delete(s.asking, i)
		answer, _ := s.agent.Wait(bounded, digest)
		return answer
	})
}

func (a *Asker) ask(ctx context.Context, question func(context.Context, *Sandbox) *facts.Agent) (*facts.Agent, error) {
	s, err := a.reach(ctx)
	if err != nil {
		return nil, err
	}
	if s.agent == nil {
		return nil, fmt.Errorf("ask agent at %s: %w", a.address, agentapi.ErrUnreachable)
	}
	asked, at := s.agent, s.hostClock()
	answer := question(ctx, s)
	switch {
	case s.agent != asked:
		return nil, fmt.Errorf("ask agent at %s: %w", a.address, agentapi.ErrUnreachable)
	case !a.rt.Reachable("", s.host):
		return nil, fmt.Errorf("ask agent at %s: %w", a.address, agentapi.ErrUnreachable)
	case answer == nil:
		return nil, fmt.Errorf("ask agent at %s: the agent has only just started", a.address)
	}
	return agentapi.Timed(answer, at, s.hostClock()), nil
}

// hostClock is what the clock of its host shows.
func (s *Sandbox) hostClock() time.Time { return s.rt.Line.Now().Add(s.rt.Clock(s.host)) }

// Close ends nothing that would be kept.
func (a *Asker) Close() {}

// jvmHost is execute.JVM: the real one over the simulated Jolokia, and CQL without a driver.
type jvmHost struct {
	*agentpod.JVM
	s *Sandbox
	// last is what was seen of a process at a glance.
	last    *facts.Ring
	process *cassandra.Process
	glance  cassandra.Glance
}

func newJVM(s *Sandbox) *jvmHost {
	overJolokia, err := agentpod.NewJVM(layout.JolokiaPort, "simulated",
		netip.AddrPortFrom(s.address, layout.NativePort), s)
	if err != nil {
		panic(fmt.Sprintf("make the client of Jolokia: %v", err)) // the address is always the same
	}
	return &jvmHost{JVM: overJolokia, s: s}
}

// Look reads how the ring looks from there, by the real client, unless nothing has changed since it
// did so the last time.
func (j *jvmHost) Look(ctx context.Context) (*facts.Ring, error) {
	p := j.s.jvm
	if p == nil || j.last == nil || j.process != p || j.glance != p.Glance() {
		var before cassandra.Glance
		if p != nil {
			before = p.Glance() // a look can take a while
		}
		ring, err := j.JVM.Look(ctx)
		j.process, j.last = p, nil
		if err == nil && ring != nil && j.s.jvm == p && p != nil {
			j.last, j.glance = ring, before
		}
		return ring, err
	}
	return j.last, nil
}

// Streams asks by the real client, where there is anything to ask for.
func (j *jvmHost) Streams(ctx context.Context) (facts.Transfer, error) {
	if p := j.s.jvm; p == nil || !p.Streams() {
		return facts.Transfer{}, nil
	}
	return j.JVM.Streams(ctx)
}

// Tables reads them from the schema.
func (j *jvmHost) Tables(ctx context.Context) ([]facts.Table, time.Duration, error) {
	if j.s.jvm == nil {
		return nil, 0, errUnreachable
	}
	return j.s.jvm.Tables(ctx)
}

// Describe has the statements that create the tables of a keyspace.
func (j *jvmHost) Describe(_ context.Context, keyspace string) (string, error) {
	if j.s.jvm == nil {
		return "", errUnreachable
	}
	return j.s.jvm.Describe(keyspace)
}

// ForgetStreamedRanges has the next rebuild of a keyspace stream all of its ranges.
func (j *jvmHost) ForgetStreamedRanges(ctx context.Context, keyspace string) error {
	if j.s.jvm == nil {
		return errUnreachable
	}
	return j.s.jvm.ForgetStreamedRanges(ctx, keyspace)
}

// AlterSystemKeyspaces gives the system keyspaces at least so many replicas in each datacenter.
func (j *jvmHost) AlterSystemKeyspaces(ctx context.Context, least map[string]int32) (string, error) {
	keyspaces := map[string]map[string]int32{}
	for _, name := range ring.SystemKeyspaces() {
		keyspaces[name] = least
	}
	return j.AlterKeyspaces(ctx, keyspaces)
}

// SetSystemKeyspaces gives the system keyspaces exactly so many replicas in each datacenter.
func (j *jvmHost) SetSystemKeyspaces(ctx context.Context, exact map[string]int32) (string, error) {
	keyspaces := map[string]map[string]int32{}
	for _, name := range ring.SystemKeyspaces() {
		keyspaces[name] = exact
	}
	return j.SetKeyspaces(ctx, keyspaces)
}

// SetKeyspaces gives keyspaces exactly so many replicas in each datacenter.
func (j *jvmHost) SetKeyspaces(ctx context.Context, exact map[string]map[string]int32) (string, error) {
	if j.s.jvm == nil {
		return "", errUnreachable
	}
	altered, err := j.s.jvm.SetKeyspaces(ctx, agentpod.Counts(exact))
	return agentpod.AlteredText(altered), err
}

// AlterKeyspaces gives keyspaces at least so many replicas in each datacenter.
func (j *jvmHost) AlterKeyspaces(ctx context.Context, least map[string]map[string]int32) (string, error) {
	if j.s.jvm == nil {
		return "", errUnreachable
	}
	altered, err := j.s.jvm.AlterKeyspaces(ctx, agentpod.Counts(least))
	return agentpod.AlteredText(altered), err
}

// SetRoles is what the real one does, at the node of this pod.
func (j *jvmHost) SetRoles(ctx context.Context, logins product.Logins, least map[string]int32) (string, error) {
	return cql.SetRoles(ctx, roleNode{j}, logins, func(ctx context.Context, s cql.Schema) (string, error) {
		keyspaces := map[string]map[string]int32{}
		for _, name := range ring.SystemKeyspaces() {
			keyspaces[name] = least
		}
		altered, err := cql.RaiseReplication(ctx, s, agentpod.Counts(keyspaces), s.(*cassandra.Session).AwaitAgreement)
		return agentpod.AlteredText(altered), err
	})
}

// ProveLogin is what the real one does, at the node of this pod.
func (j *jvmHost) ProveLogin(ctx context.Context, logins product.Logins) error {
	return cql.ProveLogin(ctx, roleNode{j}, logins)
}

// ProvePassword is what the real one does, at the node of this pod.
func (j *jvmHost) ProvePassword(ctx context.Context, superuser product.Login, old string) error {
	return cql.ProvePassword(ctx, roleNode{j}, superuser, old)
}

// SetPassword is what the real one does, at the node of this pod.
func (j *jvmHost) SetPassword(ctx context.Context, logins product.Logins) (string, error) {
	return cql.SetPassword(ctx, roleNode{j}, logins)
}

// KeepRoles is what the real one does, at the node of this pod.
func (j *jvmHost) KeepRoles(ctx context.Context, superuser product.Login, roles []product.KeptRole) (string, error) {
	return cql.KeepRoles(ctx, roleNode{j}, superuser, roles)
}

// CheckRows is what the real one does, at the node of this pod.
func (j *jvmHost) CheckRows(ctx context.Context, superuser product.Login, checks []v1alpha1.RowCheck) (string, error) {
	if j.s.jvm == nil {
		return "", errUnreachable
	}
	s, err := j.s.jvm.LogIn(ctx, superuser)
	if err != nil {
		return "", err
	}
	return cql.CheckRows(ctx, s, checks)
}

// roleNode is cql.RoleNode.
type roleNode struct{ *jvmHost }

// LogIn implements cql.RoleNode.
func (n roleNode) LogIn(ctx context.Context, login product.Login) (cql.RoleSession, error) {
	if n.s.jvm == nil {
		return nil, errUnreachable
	}
	s, err := n.s.jvm.LogIn(ctx, login)
	if err != nil {
		return nil, err
	}
	return s, nil
}
