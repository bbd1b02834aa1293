package safeguard

import (
	"context"
	"slices"
	"strings"
	"testing"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
)

// without starts JVMs without a property, whose name is given to it with its equals sign.
type without struct {
	execute.Init
	property string
}

func (o without) Start(ctx context.Context, seen initapi.State, id uint64, command initclient.Command) (initapi.State,
	error) {
	if i := slices.IndexFunc(command.Argv, func(a string) bool { return strings.HasPrefix(a, o.property) }); i > 0 {
		command.Argv = slices.Delete(slices.Clone(command.Argv), i-1, i+1) // with its -D
	}
	return o.Init.Start(ctx, seen, id, command)
}

// TestARebuildThatWasCutOffIsDoneAgain takes away what the JVM of a member is told of earlier
// streams: then a rebuild succeeds once in its life.
func TestARebuildThatWasCutOffIsDoneAgain(t *testing.T) {
	s := found(t, "grow-rebuilt-again")
	holds(t, trial.Trial{Scenario: s, Seed: 1})
	caught(t, trial.Trial{Scenario: s, Seed: 1, Wrap: host(func(_ *pod.Sandbox, h *execute.Host) {
		h.Init = without{h.Init, "cassandra.reset_bootstrap_progress="}
	})}, "kill the agent, break a stream")
}
