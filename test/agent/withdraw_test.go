//go:build cassandra

package agent

import (
	"syscall"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// TestAJoinIsTakenBack: a node that cannot join gives its ticket back, one that has joined does
// not, on the word of a real disk.
func TestAJoinIsTakenBack(t *testing.T) {
	w := newWorld(t)
	p := w.newPod(0)
	w.setSeeds(p.address)
	p.start()
	w.await(p.name, "empty and waiting", 30*time.Second, phase(v1alpha1.PhaseWaiting))
	tokens := []string{"-9000000000000000000", "-4000000000000000000", "1000000000000000000", "6000000000000000000"}
	takeBack := func(s *v1alpha1.CassandraNodeSpec) { s.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "test"} }

	w.part("cannot start", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Configuration.JVM.Options = append(s.Configuration.JVM.Options, "-XX:+ThereIsNoSuchOption")
			s.Join = ticket("form/1", tokens...)
		})
		w.await(p.name, "refused by Java", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Restarts != nil && r.Status.Restarts.LastReason == v1alpha1.RestartStartFailed &&
				r.Status.Phase == v1alpha1.PhaseFailed
		})
		w.change(p.name, takeBack)
		r := w.await(p.name, "given back", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Join != nil && r.Status.Join.ID == "form/1" && r.Status.Join.WithdrawnAt != nil
		})
		if r.Status.Join.StartedAt == nil || r.Status.Disk != v1alpha1.DiskEmpty || p.jvm() != 0 {
			t.Errorf("join %+v, disk %s, JVM %d", r.Status.Join, r.Status.Disk, p.jvm())
		}
	})
	w.part("on its way", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			options := s.Configuration.JVM.Options
			s.Configuration.JVM.Options = options[:len(options)-1]
			s.Join = ticket("form/2", tokens...)
		})
		w.await(p.name, "a JVM runs", time.Minute, func(*v1alpha1.CassandraNode) bool { return p.jvm() != 0 })
		w.change(p.name, takeBack)
		r := w.await(p.name, "given back", 2*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Join != nil && r.Status.Join.ID == "form/2" && r.Status.Join.WithdrawnAt != nil
		})
		if p.jvm() != 0 || r.Status.HostID != "" && r.Status.Disk == v1alpha1.DiskMember {
			t.Errorf("JVM %d, status %+v", p.jvm(), r.Status)
		}
	})
	if w.record(p.name).Status.Disk != v1alpha1.DiskEmpty {
		return // Cassandra has written already: no other ticket is taken on this disk
	}
	w.part("has joined", func(t *testing.T) {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.Join = ticket("form/3", tokens...) })
		w.await(p.name, "joined", 2*time.Minute, phase(v1alpha1.PhaseNormal))
		p.kill(p.jvm(), syscall.SIGKILL)
		w.change(p.name, takeBack)
		r := w.await(p.name, "a member again", 2*time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Phase == v1alpha1.PhaseNormal && r.Status.Restarts != nil &&
				r.Status.Restarts.LastReason == v1alpha1.RestartKilled
		})
		if j := r.Status.Join; j.WithdrawnAt != nil || j.FinishedAt == nil {
			t.Errorf("join %+v", j)
		}
	})
}
