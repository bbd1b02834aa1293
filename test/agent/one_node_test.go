//go:build cassandra

package agent

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// ticket lets a node form a ring alone.
func ticket(id string, tokens ...string) *v1alpha1.JoinTicket {
	return &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: id}, Mode: v1alpha1.JoinNew, Tokens: tokens,
		SystemAuthReplicationFactor: 1}
}

func phase(want v1alpha1.NodePhase) func(*v1alpha1.CassandraNode) bool {
	return func(r *v1alpha1.CassandraNode) bool { return r.Status.Phase == want }
}

func TestOneNode(t *testing.T) {
	w := newWorld(t)
	p := w.newPod(0)
	w.setSeeds(p.address)
	p.start()
	r := w.await(p.name, "empty and waiting", 30*time.Second, func(r *v1alpha1.CassandraNode) bool {
		return r.Status.Phase == v1alpha1.PhaseWaiting && r.Status.Disk == v1alpha1.DiskEmpty
	})
	if r.Status.PodUID != p.uid || r.Status.Address != p.address {
		t.Errorf("status of pod %s at %s", r.Status.PodUID, r.Status.Address)
	}

	tokens := []string{"-9000000000000000000", "-4000000000000000000", "1000000000000000000", "6000000000000000000"}
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket("form/"+p.name, tokens...) })
	r = w.await(p.name, "joined", 2*time.Minute, func(r *v1alpha1.CassandraNode) bool {
		return r.Status.Phase == v1alpha1.PhaseNormal && r.Status.Join != nil && r.Status.Join.FinishedAt != nil
	})
	if r.Status.ClientTraffic != v1alpha1.TrafficClosed || r.Status.Ready || len(r.Status.Tokens) != 4 ||
		r.Status.HostID == "" {
		t.Errorf("after the join: %+v", r.Status)
	}
	hostID := r.Status.HostID
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Join, s.Member, s.ClientTraffic = nil, &v1alpha1.Member{HostID: hostID}, v1alpha1.TrafficOpen
	})
	ready := func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready }
	w.await(p.name, "ready", 30*time.Second, ready)

	w.part("agent killed", func(t *testing.T) {
		before := p.jvm()
		p.kill(p.agent.Process.Pid, syscall.SIGKILL)
		_ = p.agent.Wait()
		p.startAgent()
		p.probe("/ready", true, 30*time.Second)
		if after := p.jvm(); after != before || before == 0 {
			t.Errorf("the JVM was pid %d and is %d", before, after)
		}
	})
	w.part("JVM killed", func(t *testing.T) {
		p.kill(p.jvm(), syscall.SIGKILL)
		r := w.await(p.name, "death noted", 20*time.Second, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restarts != nil && r.Status.Restarts.Count == 1 && !r.Status.Ready
		})
		if r.Status.Restarts.LastReason != v1alpha1.RestartKilled {
			t.Errorf("reason %s, want %s", r.Status.Restarts.LastReason, v1alpha1.RestartKilled)
		}
		w.await(p.name, "ready again", 2*time.Minute, ready)
	})
	w.part("restart intent", func(t *testing.T) {
		before := p.jvm()
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Restart = &v1alpha1.RestartIntent{Intent: v1alpha1.Intent{ID: "restart-1"}}
		})
		w.await(p.name, "restarted", 2*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restart != nil && r.Status.Restart.ID == "restart-1" &&
				r.Status.Restart.FinishedAt != nil && r.Status.Ready
		})
		if after := p.jvm(); after == before {
			t.Error("the same JVM still runs")
		}
		if r := w.record(p.name); r.Status.Restarts.Count != 1 {
			t.Errorf("%d unasked restarts, want the 1 of before", r.Status.Restarts.Count)
		}
	})
	w.part("what Jolokia refuses", func(t *testing.T) {
		if answer := p.jolokia(`{"type":"read","mbean":"java.lang:type=Runtime","attribute":"StartTime"}`); !strings.Contains(
			answer, `"status":200`) {
			t.Errorf("a read is refused: %s", answer)
		}
		for _, request := range []string{
			`{"type":"exec","mbean":"java.lang:type=Memory","operation":"gc"}`,
			`{"type":"exec","mbean":"com.sun.management:type=DiagnosticCommand","operation":"vmVersion"}`,
			`{"type":"exec","mbean":"org.apache.cassandra.db:type=StorageService","operation":"truncate","arguments":["k","t"]}`,
			`{"type":"write","mbean":"java.lang:type=Memory","attribute":"Verbose","value":true}`,
			`{"type":"list"}`,
		} {
			if answer := p.jolokia(request); !strings.Contains(answer, `"status":403`) {
				t.Errorf("%s is not refused: %s", request, answer)
			}
		}
	})
	w.part("operation", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Operations = []v1alpha1.OperationIntent{{
				Intent: v1alpha1.Intent{ID: "alter-1"}, Type: v1alpha1.OperationAlterSystemKeyspaces,
				Arguments: &v1alpha1.OperationArguments{Replication: map[string]int32{"dc1": 1}},
			}}
		})
		w.await(p.name, "operation done", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			o := r.Status.Operation("alter-1")
			return o != nil && o.Phase == v1alpha1.OperationSucceeded
		})
	})
	w.part("idle", func(t *testing.T) {
		p.probe("/ready", true, 30*time.Second)
		// What does not happen has no event to wait for: the agent looks at its node and its ring
		// many times in this.
		const long = 20 * time.Second
		before, changed := w.api.Writes(), w.api.Changed()
		select {
		case <-changed:
		case <-time.After(long):
		}
		if after := w.api.Writes(); after != before {
			t.Errorf("%d writes while nothing happened", after-before)
		}
		t.Logf("agent resident: %d KiB", residentKiB(t, p.agent.Process.Pid))
	})
	w.part("stopped and started", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateStopped })
		w.await(p.name, "stopped", time.Minute, phase(v1alpha1.PhaseStopped))
		if p.jvm() != 0 {
			t.Error("the JVM runs on")
		}
		p.kill(p.agent.Process.Pid, syscall.SIGKILL)
		_ = p.agent.Wait()
		p.startAgent()
		p.probe("/live", true, 30*time.Second)
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.State = v1alpha1.StateRunning })
		w.await(p.name, "ready once more", 2*time.Minute, ready)
	})
	w.part("API server away", func(t *testing.T) {
		w.api.SetDown(true)
		p.kill(p.agent.Process.Pid, syscall.SIGKILL)
		_ = p.agent.Wait()
		p.kill(p.jvm(), syscall.SIGKILL)
		p.startAgent()
		p.probe("/ready", true, 2*time.Minute)
		w.api.SetDown(false)
		w.await(p.name, "death reported afterwards", time.Minute,
			func(r *v1alpha1.CassandraNode) bool { return r.Status.Restarts.Count == 2 })
	})
	w.part("SIGTERM", func(t *testing.T) {
		began := time.Now()
		p.kill(p.helenusInit(), syscall.SIGTERM)
		w.await(p.name, "not ready", 20*time.Second, func(r *v1alpha1.CassandraNode) bool { return !r.Status.Ready })
		select {
		case <-p.ended:
			t.Logf("the container ended after %.1f s", time.Since(began).Seconds())
		case <-time.After(60 * time.Second):
			t.Fatal("the container did not end within its grace period")
		}
	})
}
