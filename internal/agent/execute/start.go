package execute

import (
	"context"
	"fmt"
	"net/netip"
	"path"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/archive"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
	"helenus.io/helenus/internal/initclient"
)

// startJVM renders the configuration and asks init to start the JVM under the id that the journal
// has.
func (a *Agent) startJVM(f *node.Facts, action node.StartJVM) effect {
	seen, limit := a.init, f.MemoryLimit(a.memoryLimit)
	return func(ctx context.Context) result {
		rendered, files, err := a.render(action.Start, seen, limit)
		if err != nil {
			return result{err: err}
		}
		if err := a.addCertificates(action.Start.Configuration.Encryption, files); err != nil {
			return result{err: err}
		}
		start, err := config.StartOf(rendered, action.Start.Ticket)
		if err != nil {
			return result{err: err}
		}
		if err := a.replay(action.Start.Ticket, files, &start); err != nil {
			return result{err: err}
		}
		if err := a.host.Files.Install(seen.Image.Base, files); err != nil {
			return result{err: err}
		}
		home := seen.Image.CassandraHome
		command := initclient.Command{
			Argv: append([]string{path.Join(home, "bin", "cassandra")}, start.Arguments...), Dir: home,
		}
		for _, v := range start.Environment {
			command.Env = append(command.Env, v.Name+"="+v.Value)
		}
		state, err := a.host.Init.Start(ctx, seen, action.Start.StartID, command)
		if err != nil {
			return result{err: fmt.Errorf("start JVM: %w", err)}
		}
		return result{apply: func(a *Agent) { a.seeInit(state) }}
	}
}

// replay has the JVM replay the commit log up to a point in time, at each start until the node was
// NORMAL: later ones are without a ticket.
func (a *Agent) replay(t *v1alpha1.JoinTicket, files config.Files, start *config.Start) error {
	if t == nil || t.Restore == nil || t.Restore.PointInTime == nil {
		return nil
	}
	tables, err := archive.Replayed(a.host.LogVolume)
	if err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	return start.Replay(files, tables, t.Restore.PointInTime.Time) //nolint:wrapcheck // so does this
}

// render makes the files of a start. The native transport is always closed at the start; the agent
// opens it.
func (a *Agent) render(s *node.StartArguments, seen initapi.State, limit int64) (config.Node, config.Files, error) {
	n := config.Node{Configuration: s.Configuration, MemoryLimit: limit}
	var err error
	if n.Address, err = netip.ParseAddr(a.self.Address); err != nil {
		return n, nil, fmt.Errorf("address of the pod: %w", err)
	}
	if n.Seeds, err = parseAddresses(s.Seeds); err != nil {
		return n, nil, err
	}
	if err := a.host.Files.Complete(&n); err != nil {
		return n, nil, err
	}
	base, err := a.host.Files.Base(seen.Image.Base)
	if err != nil {
		return n, nil, err
	}
	files, err := config.Render(base, n)
	return n, files, err
}

func parseAddresses(texts []string) ([]netip.Addr, error) {
	out := make([]netip.Addr, 0, len(texts))
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("seed: %w", err)
		}
		out = append(out, address)
	}
	return out, nil
}
