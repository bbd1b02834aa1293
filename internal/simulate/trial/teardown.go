package trial

import (
	"context"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/pod"
)

// host is what an agent touches, as a test may wrap it.
type host func(*pod.Sandbox, execute.Host) execute.Host

// below has the checker see what really comes to a JVM, whatever a test has put around that.
func (o *checker) below(wrap host) host {
	return func(s *pod.Sandbox, h execute.Host) execute.Host {
		h.Init, h.JVM = watchedInit{h.Init, o, s}, watchedJVM{h.JVM, o, s}
		if wrap == nil {
			return h
		}
		return wrap(s, h)
	}
}

// takenDown judges an agent that takes a node from its clients, once they were let into its
// datacenter: nobody asks for that but a roll-out, kubelet, when the container is to end, who
// deletes the cluster, and who has the datacenter lose all replicas.
func (o *checker) takenDown(s *pod.Sandbox, how string) {
	c := get(o.w)
	if c == nil || c.DeletionTimestamp != nil || c.UID != s.ClusterUID() ||
		!o.served[string(c.UID)+"/"+s.Datacenter()] || o.lastLedger.Traffic(s.Datacenter()) == v1alpha1.TrafficClosed {
		return
	}
	if jvm := s.JVM(); jvm != nil && jvm.NativeOpen() && !s.Ending() && !o.turn.takesDown(s) {
		o.violated("I1: the agent of node %s %s, which serves clients", s.Name(), how)
	}
}

type watchedInit struct {
	execute.Init
	o *checker
	s *pod.Sandbox
}

func (i watchedInit) Signal(ctx context.Context, seen initapi.State, p initapi.Process,
	signal initclient.Signal) (initapi.State, error) {
	if signal != initclient.SignalThreadDump {
		i.o.takenDown(i.s, "ends the JVM")
	}
	return i.Init.Signal(ctx, seen, p, signal)
}

type watchedJVM struct {
	execute.JVM
	o *checker
	s *pod.Sandbox
}

func (j watchedJVM) CloseNative(ctx context.Context) error {
	j.o.takenDown(j.s, "closes the JVM to clients")
	return j.JVM.CloseNative(ctx)
}

func (j watchedJVM) Drain(ctx context.Context) error {
	j.o.takenDown(j.s, "drains the JVM")
	return j.JVM.Drain(ctx)
}
