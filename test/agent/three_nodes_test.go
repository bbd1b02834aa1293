//go:build cassandra

package agent

import (
	"context"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agentapi"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/pki"
)

// ask asks the agent of a pod for its facts, as the operator does.
func (p *pod) ask(t *testing.T) *facts.Agent {
	t.Helper()
	leaf, err := p.w.authority.Issue(pki.OperatorOf(clusterUID), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	material, err := pki.NewMaterial(leaf, p.w.bundle)
	if err != nil {
		t.Fatal(err)
	}
	client := agentapi.NewClient(func() (*pki.Material, error) { return material, nil }, pki.NodeOf(clusterUID, p.name),
		agentapi.FactsAddress(p.address), time.Now)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := client.Facts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestThreeNodes(t *testing.T) {
	w := newWorld(t)
	var pods []*pod
	for i := range 3 {
		pods = append(pods, w.newPod(i))
	}
	w.setSeeds(pods[0].address, pods[1].address)
	for _, p := range pods {
		p.start()
	}
	w.awaitEmpty(pods...)
	w.part("form", func(*testing.T) { w.form(pods...) })
	w.part("every node sees the others", func(t *testing.T) {
		versions := map[string]bool{}
		for _, p := range pods {
			answer := p.ask(t)
			if answer.Ring == nil || len(answer.Ring.Endpoints) != 3 || answer.Ring.Keyspaces["system_auth"] == "" ||
				!answer.TrafficOpened {
				t.Fatalf("%s answers %+v", p.name, answer)
			}
			versions[answer.Ring.SchemaVersion] = true
			for _, e := range answer.Ring.Endpoints {
				if !e.Live || e.Status != facts.StatusNormal || len(e.Tokens) != 4 {
					t.Errorf("%s sees %+v", p.name, e)
				}
			}
		}
		if len(versions) != 1 {
			t.Errorf("schema versions %v", versions)
		}
	})
	w.part("agent crashes", func(t *testing.T) {
		before := pods[0].jvm()
		pods[0].kill(pods[0].agent.Process.Pid, syscall.SIGABRT) // ends a Go program as a panic does
		_ = pods[0].agent.Wait()
		pods[0].startAgent()
		pods[0].probe("/ready", true, time.Minute)
		if after := pods[0].jvm(); after != before || before == 0 {
			t.Errorf("the JVM was pid %d and is %d", before, after)
		}
	})
	w.part("frozen JVM", func(t *testing.T) {
		pods[1].kill(pods[1].jvm(), syscall.SIGSTOP)
		w.await(pods[1].name, "not ready", time.Minute, func(r *v1alpha1.CassandraNode) bool { return !r.Status.Ready })
		// Its peers see it down after about 20 s; from then on no other rack may go down.
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		for seen := true; seen; {
			if ctx.Err() != nil {
				t.Fatal("the peer never saw the frozen node down")
			}
			e, _ := pods[0].ask(t).Ring.ByAddress(pods[1].address)
			seen = e.Live
		}
		w.change(pods[0].name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "restart-1"}}
		})
		r := w.await(pods[0].name, "deferred", time.Minute,
			func(r *v1alpha1.CassandraNode) bool { return r.Status.Phase == v1alpha1.PhaseDeferred })
		if r.Status.Blocked == nil || !r.Status.Ready {
			t.Errorf("deferred: ready %v, blocked %+v", r.Status.Ready, r.Status.Blocked)
		}
		r = w.await(pods[1].name, "killed as frozen", 6*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restarts != nil && r.Status.Restarts.LastReason == v1alpha1.RestartFrozen
		})
		t.Logf("said: %s", r.Status.Message)
		w.await(pods[1].name, "ready again", 3*time.Minute,
			func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
		w.await(pods[0].name, "restarted after all", 5*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restart != nil && r.Status.Restart.FinishedAt != nil && r.Status.Ready
		})
	})
	for _, p := range pods {
		t.Logf("%s: agent resident %d KiB", p.name, residentKiB(t, p.agent.Process.Pid))
	}
}
