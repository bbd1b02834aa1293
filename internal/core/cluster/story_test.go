package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A story is what the operator does pass by pass, and what it says on the way: every write with what it rests on, and what the status shows.
func TestStories(t *testing.T) {
	for name, tell := range map[string]func(*testing.T, *story){
		"forms-three-racks":                tellFormation,
		"forms-two-datacenters":            tellTwoDatacenters,
		"leaves-a-latecomer-out":           tellLatecomer,
		"leaves-out-one-whose-pod-is-gone": tellLatecomerWithoutPod,
		"tries-the-keyspaces-again":        tellFailingKeyspaces,
		"adopts":                           tellAdoption,
		"goes-away-with-its-claims":        tellDeletion,
		"makes-a-deleted-record-anew":      tellDeletedRecord,
		"rebuilds-a-lost-ledger":           tellLostLedger,
		"follows-a-correction":             tellCorrection,
		"grows":                            tellGrowth,
		"follows-the-spec-before-tickets":  tellFollowing,
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{}
			tell(t, s)
			file := filepath.Join("testdata", "stories", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(s.String(), "\n")
			for i := range min(len(wantLines), len(gotLines)) {
				if wantLines[i] != gotLines[i] {
					t.Fatalf("%s:%d: the story goes on in another way (-update tells it anew):\nwas: %s\nnow: %s", file, i+1, wantLines[i], gotLines[i])
				}
			}
			if len(wantLines) != len(gotLines) {
				t.Fatalf("%s: the story has %d lines, had %d", file, len(gotLines), len(wantLines))
			}
		})
	}
}

// story is written down as it happens.
type story struct{ strings.Builder }

func (s *story) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// goesOn makes passes until nothing is written any more, or until stop says so.
func (s *story) goesOn(w *world, stop func() bool) {
	w.t.Helper()
	for range 60 {
		made := w.pass()
		s.pass(w, made)
		if made.Idle() || stop != nil && stop() {
			return
		}
	}
	w.t.Fatal("the story has no end")
}

func (s *story) pass(w *world, made plan.Plan) {
	s.say("--- %s", w.now.Add(-time.Second).Format("15:04:05"))
	for _, r := range made.Steps {
		if r.Outcome != plan.Done || r.Message != "" {
			s.say("%s: %s: %s", r.Step, r.Outcome, r.Message)
		}
	}
	for _, write := range made.Writes {
		s.write(write)
	}
	if c := made.Current; c != nil {
		s.say("  now: %s: %s%s", c.Name, c.Message, progress(c))
	}
	if p := made.Stalled; p != nil {
		s.say("  stalled: %s: %s", p.Reason, p.Message)
	}
	for _, b := range made.Blocked {
		s.say("  blocked: %s by %s (%s): %s", b.Step, b.Reason, strings.Join(b.Nodes, ", "), b.Message)
	}
	for _, n := range made.Notices {
		s.say("  notice: %s (%s): %s", n.Reason, strings.Join(n.Nodes, ", "), n.Message)
	}
	for _, f := range made.Finished {
		s.say("  finished: %s %s with %s, %s to %s", f.Step, f.Result, f.Message, f.StartedAt.UTC().Format("15:04:05"), f.FinishedAt.UTC().Format("15:04:05"))
	}
	s.say("  seeds %v, wakes in %s", made.Seeds, made.Wake)
}

func progress(c *v1alpha1.StepStatus) string {
	if c.Progress == nil {
		return ""
	}
	return fmt.Sprintf(" (%d %% of %s since %s)", *c.Progress, strings.Join(c.Nodes, ", "), c.Since.UTC().Format("15:04:05"))
}

func (s *story) write(w plan.Write) {
	var marks []string
	if w.Live {
		marks = append(marks, "live")
	}
	if w.UID != "" {
		marks = append(marks, "uid")
	}
	if w.ResourceVersion != "" {
		marks = append(marks, "version")
	}
	s.say("  → %s [%s]", w, strings.Join(marks, " "))
	switch o := w.Object.(type) {
	case *v1alpha1.CassandraNode:
		if w.Verb == plan.Create || w.Verb == plan.Apply {
			s.say("      %s", recordInWords(o))
		}
	case *corev1.ConfigMap:
		if seeds, ok := o.Data["seeds"]; ok {
			s.say("      %s", seeds)
		}
	}
	if w.Ledger != nil {
		s.say("      %s", ledgerInWords(w.Ledger))
	}
}

func recordInWords(r *v1alpha1.CassandraNode) string {
	words := []string{string(r.Spec.State), "traffic " + string(r.Spec.ClientTraffic), fmt.Sprintf("%d claims pinned", len(r.Spec.Claims))}
	if j := r.Spec.Join; j != nil {
		words = append(words, fmt.Sprintf("ticket %s %s of %d tokens, system_auth %d", j.ID, j.Mode, len(j.Tokens), j.SystemAuthReplicationFactor))
		if j.Withdraw != nil {
			words = append(words, fmt.Sprintf("withdrawn (%s, pod gone %q)", j.Withdraw.Reason, j.Withdraw.PodGone))
		}
	}
	if r.Spec.Member != nil {
		words = append(words, "member "+r.Spec.Member.HostID)
	}
	for _, o := range r.Spec.Operations {
		arguments := ""
		if o.Arguments != nil {
			arguments = fmt.Sprintf(" %v", o.Arguments.Replication)
		}
		words = append(words, fmt.Sprintf("operation %s %s%s", o.ID, o.Type, arguments))
	}
	if r.Spec.Cluster.AdoptedUID != "" {
		words = append(words, "adopted from "+string(r.Spec.Cluster.AdoptedUID))
	}
	return strings.Join(words, "; ")
}

func ledgerInWords(l *ledger.Ledger) string {
	words := []string{fmt.Sprintf("%d steps", l.Steps), fmt.Sprintf("formed %v", l.Formed), fmt.Sprintf("members %v", l.Members)}
	if l.TrafficAllowed {
		words = append(words, "traffic allowed")
	}
	if l.Adopted != "" {
		words = append(words, "adopted "+string(l.Adopted))
	}
	if len(l.Replication) > 0 {
		words = append(words, fmt.Sprintf("replication %v", l.Replication))
	}
	if len(l.Replaced) > 0 {
		words = append(words, fmt.Sprintf("replaced %v", l.Replaced))
	}
	if s := l.Step; s != nil {
		words = append(words, fmt.Sprintf("step %s %s in %s of generation %d since %s (opened %s), datacenters %v, seeds %v, withdrawn %v, attempt %d", s.ID, s.Kind, s.Stage, s.Generation,
			s.StageSince.Format("15:04:05"), s.OpenedAt.Format("15:04:05"), s.Datacenters, s.Seeds, s.Withdrawn, s.Attempt))
		for _, name := range sortedKeys(s.Tickets) {
			words = append(words, name+": "+orElse(s.Tickets[name].HostID, fmt.Sprintf("%d tokens", len(s.Tickets[name].Tokens))))
		}
	}
	return strings.Join(words, "; ")
}

func tellFormation(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	s.goesOn(w, nil)
}

func tellTwoDatacenters(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 2, 1), datacenter("dc2", 1, 1))
	s.goesOn(w, nil)
}

func tellLatecomer(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.late["orders-dc1-r2-0"] = true
	w.settle()
	s.goesOn(w, nil)
	s.say("\nThe patience is over.")
	w.now = w.now.Add(10 * time.Minute)
	s.goesOn(w, nil)
}

func tellLatecomerWithoutPod(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	late := "orders-dc1-r2-0"
	w.late[late] = true
	w.settle()
	n := w.snapshot.Nodes[late]
	w.now = w.now.Add(10 * time.Minute)
	n.Pod.UID, n.Pod.Spec.NodeName, n.Agent, n.Pod.Status.Phase = "another", "", nil, corev1.PodPending
	w.absent[late] = true
	w.agents()
	s.say("The pod that had the ticket is gone, another waits for a host.")
	s.goesOn(w, nil)
}

func tellFailingKeyspaces(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	n := "orders-dc1-r1-0"
	s.goesOn(w, func() bool {
		r := w.snapshot.Nodes[n]
		return r != nil && r.Record != nil && len(r.Record.Spec.Operations) > 0
	})
	o := &w.snapshot.Nodes[n].Record.Status.Operations[0]
	o.Phase, o.Message, o.FinishedAt = v1alpha1.OperationRunning, "", nil
	s.say("\nIt takes its time.")
	s.pass(w, w.pass())
	at := metav1.NewTime(w.now)
	o.Phase, o.Message, o.FinishedAt = v1alpha1.OperationFailed, "no quorum", &at
	s.say("\nIt fails.")
	s.pass(w, w.pass())
	s.say("\nThe pause is over.")
	w.now = at.Add(5 * time.Second)
	s.goesOn(w, nil)
}

func tellAdoption(t *testing.T, s *story) {
	w := asSuccessor(t, retained(t), "cluster-uid")
	for range 20 {
		made := w.pass()
		s.pass(w, made)
		w.disks()
		if made.Idle() {
			return
		}
	}
}

func tellDeletion(t *testing.T, s *story) {
	w := formed(t)
	w.snapshot.Cluster.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	w.absent["orders-dc1-r3-0"] = true
	w.agents()
	w.deleteCluster()
	s.say("One agent does not answer.")
	s.goesOn(w, func() bool { return w.snapshot.Nodes["orders-dc1-r1-0"].Pod == nil })
	s.pass(w, w.pass())
	s.say("\nThe patience is over.")
	w.now = w.snapshot.Cluster.DeletionTimestamp.Add(5 * time.Minute)
	s.goesOn(w, func() bool { return len(w.snapshot.Cluster.Finalizers) == 0 })
	s.pass(w, w.pass())
}

func tellDeletedRecord(t *testing.T, s *story) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	when := metav1.NewTime(w.now)
	n.Record.DeletionTimestamp = &when
	s.goesOn(w, nil)
	s.say("\nThe same while the spec is refused.")
	n.Record.DeletionTimestamp = &when
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" })
	s.goesOn(w, nil)
	n.Record = nil
	s.goesOn(w, nil)
}

func tellLostLedger(t *testing.T, s *story) {
	w := forming(t, v1alpha1.DiskJoining, "orders-dc1-r2-0")
	w.snapshot.Ledger = nil
	w.absent["orders-dc1-r3-0"] = true
	w.agents()
	w.snapshot.Nodes["orders-dc1-r3-0"].Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: "replaced"}}
	s.say("While tickets are out; one agent does not answer.")
	s.goesOn(w, nil)
	s.say("\nIt answers.")
	delete(w.absent, "orders-dc1-r3-0")
	w.agents()
	s.goesOn(w, nil)
	s.say("\nThe others have joined.")
	clear(w.late)
	for range 100 {
		if s := w.snapshot.Ledger.Step; s != nil && s.Stage == ledger.StageFormed {
			break
		}
		w.pass()
	}
	w.snapshot.Ledger = nil
	s.pass(w, w.pass())
	s.say("\nThe ring serves.")
	w.settle()
	w.snapshot.Ledger = nil
	s.goesOn(w, nil)
}

func tellGrowth(t *testing.T, s *story) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}", "system_auth": "NetworkTopologyStrategy {dc1=3}"})
	s.say("A node more in the first two racks.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes, s.Datacenters[0].Racks[1].Nodes = ptr(int32(2)), ptr(int32(2))
	})
	s.goesOn(w, nil)
}

func tellCorrection(t *testing.T, s *story) {
	w := forming(t, v1alpha1.DiskJoining, three...)
	w.change(setting("concurrent_reads", "16"))
	s.goesOn(w, nil)
	s.say("\nThe image is another one.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" })
	s.goesOn(w, nil)
}

func tellFollowing(t *testing.T, s *story) {
	w := newWorld(t, datacenter("dc1", 1, 1))
	w.absent["orders-dc1-r2-0"] = true
	w.settle()
	s.goesOn(w, nil)
	s.say("\nA smaller cluster with another release.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Version = "5.0.9"
		s.Datacenters[0].Racks = slices.Delete(s.Datacenters[0].Racks, 1, 2)
	})
	s.goesOn(w, nil)
}
