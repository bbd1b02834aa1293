package world

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/observe"
	"helenus.io/helenus/internal/operator"
	"helenus.io/helenus/internal/simulate/pod"
)

// Wrap stands between the product's programs and what they touch: a test takes one of the product's
// safeguards away with it, or counts how often one refuses. A nil function leaves things as they
// are.
type Wrap struct {
	// Client is what an operator writes with.
	Client func(o *Operator, c client.Client) client.Client
	// Live is what an operator reads to be sure: the API server itself, past its cache.
	Live func(o *Operator, live, cache client.Reader) client.Reader
	// Asker is an operator's line to an agent.
	Asker func(o *Operator, t observe.Target, a observe.Asker) observe.Asker
	// Pass returns what makes the next pass of an operator, whose reconciler is r.
	Pass func(o *Operator, r *operator.Reconciler) *operator.Reconciler
	// Lockless inits start JVMs without the lock of the data volume.
	Lockless bool
	// Host is everything that an agent touches.
	Host func(s *pod.Sandbox, h execute.Host) execute.Host
}

func (w *Wrap) client(o *Operator, c client.Client) client.Client {
	if w.Client == nil {
		return c
	}
	return w.Client(o, c)
}

func (w *Wrap) live(o *Operator, live, cache client.Reader) client.Reader {
	if w.Live == nil {
		return live
	}
	return w.Live(o, live, cache)
}

func (w *Wrap) asker(o *Operator, t observe.Target, a observe.Asker) observe.Asker {
	if w.Asker == nil {
		return a
	}
	return w.Asker(o, t, a)
}

func (w *Wrap) pass(o *Operator, r *operator.Reconciler) *operator.Reconciler {
	if w.Pass == nil {
		return r
	}
	return w.Pass(o, r)
}
