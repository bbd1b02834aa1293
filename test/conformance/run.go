package conformance

import (
	"context"
	"testing"
	"time"

	"helenus.io/helenus/test/nodeview"

	"helenus.io/helenus/internal/jolokia"
)

// Target is the node to check. It is NORMAL, and nothing joins, leaves or moves in its ring
// meanwhile.
type Target struct {
	Client *jolokia.Client
	// Traffic allows checks that close CQL for a moment.
	Traffic bool
	// Drain allows the checks after which the node is not as it was: only a restart of the JVM
	// brings it back, and the ring remembers somebody who has left for three days. They come last.
	Drain bool
	// Pause lets time pass between two questions for something that takes its time, or returns when
	// the context ends; nil: 100 ms of real time.
	Pause func(context.Context)
}

// Check is one entry of the list.
type Check struct {
	Name string
	// Traffic and Drain say that the check needs what Target allows by the same name.
	Traffic, Drain bool
	Run            func(t *testing.T, s *Subject)
}

// Subject is what a check works with.
type Subject struct {
	Context context.Context
	JMX     *jolokia.Client
	Node    *nodeview.Node
	// View is the node's view before the first check.
	View nodeview.View

	pause func(context.Context)
}

// Checks is the list, in the order in which Run takes it.
func Checks() []Check {
	var all []Check
	for _, part := range [][]Check{protocolChecks, ringChecks, schemaChecks, settingChecks, refusalChecks,
		operationChecks, trafficChecks, drainChecks} {
		all = append(all, part...)
	}
	return all
}

// limit bounds the whole list; a real node needs seconds.
const limit = 5 * time.Minute

// Run takes the target through the list, one subtest for each check.
func Run(t *testing.T, target Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := &Subject{Context: ctx, JMX: target.Client, Node: nodeview.New(target.Client), pause: target.Pause}
	if s.pause == nil {
		s.pause = realPause
	}
	view, err := s.Node.View(ctx)
	if err != nil {
		t.Fatalf("view of the node: %v", err)
	}
	if view.Mode != nodeview.ModeNormal {
		t.Fatalf("the node is %s; the checks are for a node that is %s", view.Mode, nodeview.ModeNormal)
	}
	s.View = view
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) {
			if check.Traffic && !target.Traffic || check.Drain && !target.Drain {
				t.Skip("the target does not allow it")
			}
			check.Run(t, s)
		})
	}
}

// realPause passes time on a real node, which tells nobody when a repair ends or a heartbeat comes.
func realPause(ctx context.Context) {
	const interval = 100 * time.Millisecond
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// await asks until the answer is yes, or the context of the list ends.
func (s *Subject) await(t *testing.T, what string, ask func() (bool, error)) {
	t.Helper()
	for {
		yes, err := ask()
		if err != nil {
			t.Fatalf("await %s: %v", what, err)
		}
		if yes {
			return
		}
		if s.Context.Err() != nil {
			t.Fatalf("await %s: %v", what, s.Context.Err())
		}
		s.pause(s.Context)
	}
}

// view reads the node's view again.
func (s *Subject) view(t *testing.T) nodeview.View {
	t.Helper()
	view, err := s.Node.View(s.Context)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// do sends requests whose exchange must succeed, whatever the single answers are.
func (s *Subject) do(t *testing.T, requests ...jolokia.Request) []jolokia.Answer {
	t.Helper()
	answers, err := s.JMX.Do(s.Context, requests...)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}
