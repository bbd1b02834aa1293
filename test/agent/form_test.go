//go:build cassandra

package agent

import (
	"fmt"
	"time"

	"helenus.io/helenus/api/v1alpha1"
)

// tokens are those of the i-th of three nodes.
func tokens(i int) []string {
	var out []string
	for j := range 4 {
		out = append(out, fmt.Sprint(-9000000000000000000+int64(3*j+i)*1500000000000000000))
	}
	return out
}

// awaitEmpty waits until the agents of pods have found nothing on their disks.
func (w *world) awaitEmpty(pods ...*pod) {
	w.t.Helper()
	for _, p := range pods {
		w.await(p.name, "empty and waiting", time.Minute, func(r *v1alpha1.CassandraNode) bool {
			return r.Status.Phase == v1alpha1.PhaseWaiting && r.Status.Disk == v1alpha1.DiskEmpty
		})
	}
}

// form has pods whose agents wait form a ring, in which clients are served.
func (w *world) form(pods ...*pod) {
	w.t.Helper()
	w.tickets(pods...)
	for _, p := range pods {
		w.member(p, 5*time.Minute)
	}
}

// tickets lets pods form a ring.
func (w *world) tickets(pods ...*pod) {
	w.t.Helper()
	for i, p := range pods {
		w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
			s.Join = ticket("form/"+p.name, tokens(i)...)
			s.Join.SystemAuthReplicationFactor = int32(len(pods))
		})
	}
}

// member waits until a node has joined, and makes it a member that serves clients.
func (w *world) member(p *pod, limit time.Duration) {
	w.t.Helper()
	w.joined(p, limit)
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) { s.ClientTraffic = v1alpha1.TrafficOpen })
	w.await(p.name, "ready", time.Minute, func(r *v1alpha1.CassandraNode) bool { return r.Status.Ready })
}

// joined waits until a node has joined, and makes it a member.
func (w *world) joined(p *pod, limit time.Duration) {
	w.t.Helper()
	r := w.await(p.name, "joined", limit, func(r *v1alpha1.CassandraNode) bool {
		return r.Status.Join != nil && r.Status.Join.FinishedAt != nil && r.Status.Phase == v1alpha1.PhaseNormal
	})
	w.change(p.name, func(s *v1alpha1.CassandraNodeSpec) {
		s.Join, s.Member = nil, &v1alpha1.Member{HostID: r.Status.HostID}
	})
}
