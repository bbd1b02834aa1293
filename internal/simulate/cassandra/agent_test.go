package cassandra

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/pod"
	"helenus.io/helenus/internal/core/config"
	table "helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
)

// agentJVM is the agent's own way to a node, over the simulated Jolokia.
func (l *lab) agentJVM(p *Process) *pod.JVM {
	l.t.Helper()
	jvm, err := pod.NewJVM(layout.JolokiaPort, jolokiaPassword, netip.AddrPort{}, p)
	if err != nil {
		l.t.Fatal(err)
	}
	return jvm
}

// TestTheAgentsOwnCodeStartsServesAndStopsANode takes a node through its life by the calls that the
// real agent makes.
func TestTheAgentsOwnCodeStartsServesAndStopsANode(t *testing.T) {
	for _, release := range []string{"4.1.10", "5.0.6"} {
		l := newLab(t, 1)
		l.setRelease(release)
		p := l.start(member(1), append(l.fresh(1, 1), "cassandra.start_native_transport=false")...)
		jvm := l.agentJVM(p)
		ctx := context.Background()
		waits, notYet, starting := 0, 0, false
		l.do("agent", func() {
			for {
				ring, err := jvm.Look(ctx)
				if ring != nil && ring.Mode == facts.ModeNormal {
					break
				}
				starting = starting || err == nil && ring == nil
				l.line.Sleep(100 * time.Millisecond)
				waits++
			}
			for {
				err := jvm.OpenNative(ctx)
				if err == nil {
					break
				}
				if !errors.Is(err, execute.ErrNotYet) {
					t.Errorf("open: %v", err)
					return
				}
				notYet++
				l.line.Sleep(100 * time.Millisecond)
			}
			ring, err := jvm.Look(ctx)
			if err != nil || !ring.NativeRunning || len(ring.Endpoints) != 1 || len(ring.Endpoints[0].Tokens) != 4 ||
				len(ring.Keyspaces) != 3 {
				t.Errorf("ring is %+v, error %v", ring, err)
			}
			if altered, err := p.AlterKeyspaces(ctx,
				map[string]map[string]int{"system_auth": {"dc1": 1}}); err != nil ||
				!slices.Equal(altered, []string{"system_auth"}) {
				t.Errorf("%q, error %v", altered, err)
			}
			if _, grace, err := p.Tables(ctx); err != nil || grace != 0 {
				t.Errorf("grace %s, error %v", grace, err)
			}
			if err := errors.Join(jvm.ReloadSeeds(ctx), jvm.CloseNative(ctx), jvm.Drain(ctx)); err != nil {
				t.Error(err)
			}
			p.Terminate()
		})
		l.await("its end", 10*time.Second, p.Ended)
		if waits < 40 || notYet < 10 || !starting || p.Exit().Code != 143 {
			t.Errorf("%d waits, %d times not yet, starting %v, exit %+v", waits, notYet, starting, p.Exit())
		}
	}
}

// TestEverySettingThatTheAgentChangesIsTaken applies all of them at once, with the values that the
// file has.
func TestEverySettingThatTheAgentChangesIsTaken(t *testing.T) {
	for _, release := range []string{"4.1.10", "5.0.6"} {
		l := newLab(t, 1)
		l.setRelease(release)
		nodes, p := l.form(1)
		known, err := table.For(release)
		if err != nil {
			t.Fatal(err)
		}
		applied := 0
		for _, setting := range known.Settings {
			if setting.ReplacedBy != "" {
				continue
			}
			writes, err := config.HotWrites(release, []string{setting.Name}, l.files(nodes[0])[config.CassandraYAML])
			if err != nil {
				continue // not a hot one, or not without a value
			}
			applied++
			l.do("apply", func() {
				if err := l.agentJVM(p[0]).Apply(context.Background(), writes); err != nil {
					t.Errorf("%s: %v", release, err)
				}
			})
		}
		if applied < 50 {
			t.Errorf("%s: only %d settings were applied", release, applied)
		}
	}
}
