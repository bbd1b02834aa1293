package cluster

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A trace is what the operator does pass by pass, and what it says on the way: every write with
// what it rests on, and what the status shows.
func TestTraces(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *trace){
		"forms-three-racks":                      traceFormation,
		"forms-two-datacenters":                  traceTwoDatacenters,
		"forms-with-passwords":                   tracePasswords,
		"rotates-the-superuser":                  traceRotation,
		"rotates-an-authority":                   traceRotateAuthority,
		"resets-the-superuser":                   traceReset,
		"excludes-a-straggler":                   traceStraggler,
		"excludes-a-straggler-whose-pod-is-gone": traceStragglerWithoutPod,
		"retries-the-keyspaces":                  traceFailingKeyspaces,
		"adopts":                                 traceAdoption,
		"is-deleted-with-its-claims":             traceDeletion,
		"recreates-a-deleted-record":             traceDeletedRecord,
		"rebuilds-a-lost-ledger":                 traceLostLedger,
		"follows-a-correction":                   traceCorrection,
		"grows":                                  traceGrowth,
		"shrinks":                                traceLeaving,
		"gives-up-a-datacenter":                  traceDatacenterLeaves,
		"rolls-out-a-setting":                    traceRollOut,
		"rolls-out-new-pods":                     traceNewPods,
		"follows-the-spec-before-tickets":        traceFollowing,
		"stops-and-starts":                       traceStop,
		"stops-and-starts-a-datacenter":          traceDatacenterStops,
		"flushes-for-a-task":                     traceTask,
		"repairs-a-table":                        traceRepair,
	} {
		t.Run(name, func(t *testing.T) {
			s := &trace{}
			run(t, s)
			file := filepath.Join("testdata", "traces", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(s.String(), "\n")); diff != "" {
				t.Errorf("trace %s differs (-update writes it anew):\n%s", file, diff)
			}
		})
	}
}

// trace is written down as it happens.
type trace struct {
	strings.Builder
	// ledger and seeds are the last ones: what changed is said.
	ledger *ledger.Ledger
	seeds  string
}

func (s *trace) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// runUntilIdle makes passes until nothing is written any more, or until stop says so.
func (s *trace) runUntilIdle(w *world, stop func() bool) {
	w.t.Helper()
	for range 60 {
		made := w.pass()
		s.pass(w, made)
		if len(made.Writes) == 0 || stop != nil && stop() {
			return
		}
	}
	w.t.Fatal("the trace has no end")
}

func (s *trace) pass(w *world, made plan.Plan) {
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
		s.say("  finished: %s %s with %s, %s to %s", f.Step, f.Result, f.Message, f.StartedAt.UTC().Format("15:04:05"),
			f.FinishedAt.UTC().Format("15:04:05"))
	}
	if seeds := fmt.Sprint(made.Seeds); seeds != s.seeds {
		s.say("  seeds %s", seeds)
		s.seeds = seeds
	}
	if made.Wake != interval {
		s.say("  wakes in %s", made.Wake)
	}
}

func progress(c *v1alpha1.StepStatus) string {
	if c.Progress == nil {
		return ""
	}
	return fmt.Sprintf(" (%d %% of %s since %s)", *c.Progress, strings.Join(c.Nodes, ", "),
		c.Since.UTC().Format("15:04:05"))
}

func (s *trace) write(w plan.Write) {
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
	case *v1alpha1.CassandraTask:
		if w.Verb == plan.ApplyStatus {
			s.say("      %s %s: %s", o.Status.Phase, o.Status.Progress, o.Status.Message)
			for _, n := range o.Status.Nodes {
				s.say("      %s %s after %d attempts %s", n.Node, n.Phase, n.Attempts, n.Message)
			}
		}
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
		for _, change := range s.changes(w.Ledger) {
			s.say("      %s", change)
		}
	}
}

func recordInWords(r *v1alpha1.CassandraNode) string {
	words := []string{string(r.Spec.State), "traffic " + string(r.Spec.ClientTraffic),
		fmt.Sprintf("%d claims pinned", len(r.Spec.Claims))}
	if j := r.Spec.Join; j != nil {
		words = append(words, fmt.Sprintf("ticket %s %s of %d tokens, system_auth %d", j.ID, j.Mode, len(j.Tokens),
			j.SystemAuthReplicationFactor))
		if j.Withdraw != nil {
			words = append(words, fmt.Sprintf("withdrawn (%s, pod gone %q)", j.Withdraw.Reason, j.Withdraw.PodGone))
		}
	}
	if i := r.Spec.Restart; i != nil {
		words = append(words, fmt.Sprintf("restart %s until %s", i.ID, i.NotAfter.UTC().Format("15:04:05")))
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

// changes of a ledger since the last one, a line each: "formed: [dc1]", or "step: gone".
func (s *trace) changes(l *ledger.Ledger) []string {
	was, is := fieldsOf(s.ledger), fieldsOf(l)
	s.ledger = l
	var out []string
	for _, path := range slices.Sorted(maps.Keys(is)) {
		if was[path] != is[path] {
			out = append(out, path+": "+is[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(was)) {
		if _, kept := is[path]; !kept {
			out = append(out, path+": gone")
		}
	}
	return out
}

// fieldsOf a ledger, by path. Tokens are counted; lists are whole.
func fieldsOf(l *ledger.Ledger) map[string]string {
	out := map[string]string{}
	if l == nil {
		return out
	}
	text, err := json.Marshal(l)
	if err != nil {
		panic(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	flatten(out, "", all)
	delete(out, "clusterUID")
	return out
}

// ledgerInWords is for messages of tests.
func ledgerInWords(l *ledger.Ledger) string { return strings.Join((&trace{}).changes(l), "; ") }

func flatten(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			flatten(out, strings.TrimPrefix(path+"."+key, "."), inner)
		}
	case []any:
		if len(v) > 0 {
			if _, objects := v[0].(map[string]any); objects {
				for i, inner := range v {
					flatten(out, fmt.Sprintf("%s[%d]", path, i), inner)
				}
				return
			}
		}
		if strings.Contains(path, ".state.tokens.") {
			out[path] = fmt.Sprintf("%d tokens", len(v))
			return
		}
		out[path] = fmt.Sprint(v)
	default:
		out[path] = fmt.Sprint(v)
	}
}

func traceFormation(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	s.runUntilIdle(w, nil)
}

func traceTwoDatacenters(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 2, 1), datacenter("dc2", 1, 1))
	s.runUntilIdle(w, nil)
}

func tracePasswords(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Cluster.Spec.Security = nil
	s.runUntilIdle(w, nil)
}

func traceStraggler(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.late["orders-dc1-r2-0"] = true
	w.settle()
	s.runUntilIdle(w, nil)
	s.say("\nThe patience is over.")
	w.now = w.now.Add(10 * time.Minute)
	s.runUntilIdle(w, nil)
}

func traceStragglerWithoutPod(t *testing.T, s *trace) {
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
	s.runUntilIdle(w, nil)
}

func traceFailingKeyspaces(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	n := "orders-dc1-r1-0"
	s.runUntilIdle(w, func() bool {
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
	s.runUntilIdle(w, nil)
}

func traceAdoption(t *testing.T, s *trace) {
	w := asSuccessor(t, retained(t), "cluster-uid")
	for range 20 {
		made := w.pass()
		s.pass(w, made)
		w.disks()
		if len(made.Writes) == 0 {
			return
		}
	}
}

func traceDeletion(t *testing.T, s *trace) {
	w := formed(t)
	w.snapshot.Cluster.Spec.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	w.absent["orders-dc1-r3-0"] = true
	w.agents()
	w.deleteCluster()
	s.say("One agent does not answer.")
	s.runUntilIdle(w, func() bool { return w.snapshot.Nodes["orders-dc1-r1-0"].Pod == nil })
	s.pass(w, w.pass())
	s.say("\nThe patience is over.")
	w.now = w.snapshot.Cluster.DeletionTimestamp.Add(5 * time.Minute)
	s.runUntilIdle(w, func() bool { return len(w.snapshot.Cluster.Finalizers) == 0 })
	s.pass(w, w.pass())
}

func traceDeletedRecord(t *testing.T, s *trace) {
	w := formed(t)
	n := w.snapshot.Nodes["orders-dc1-r2-0"]
	when := metav1.NewTime(w.now)
	n.Record.DeletionTimestamp = &when
	s.runUntilIdle(w, nil)
	s.say("\nThe same while the spec is refused.")
	n.Record.DeletionTimestamp = &when
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Version = "4.1.10" })
	s.runUntilIdle(w, nil)
	n.Record = nil
	s.runUntilIdle(w, nil)
}

func traceLostLedger(t *testing.T, s *trace) {
	w := forming(t, v1alpha1.DiskJoining, "orders-dc1-r2-0")
	w.snapshot.Ledger = nil
	w.absent["orders-dc1-r3-0"] = true
	w.agents()
	w.snapshot.Nodes["orders-dc1-r3-0"].Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: "replaced"}}
	s.say("While tickets are out; one agent does not answer.")
	s.runUntilIdle(w, nil)
	s.say("\nIt answers.")
	delete(w.absent, "orders-dc1-r3-0")
	w.agents()
	s.runUntilIdle(w, nil)
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
	s.runUntilIdle(w, nil)
}

func traceGrowth(t *testing.T, s *trace) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	s.say("A node more in the first two racks.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes, s.Datacenters[0].Racks[1].Nodes = ptr(int32(2)), ptr(int32(2))
	})
	s.runUntilIdle(w, nil)
}

func traceLeaving(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 2, 1))
	w.settle()
	s.say("From three nodes to two: the system keyspaces get fewer replicas first.")
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=2}",
		"system_auth": "NetworkTopologyStrategy {dc1=3}"})
	w.change(nodesPerRack(1))
	s.runUntilIdle(w, nil)
}

func traceRollOut(t *testing.T, s *trace) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	s.say("A setting that a JVM takes over when it starts.")
	w.change(setting("concurrent_reads", "16"))
	s.runUntilIdle(w, nil)
	s.say("\nThe first node has served for the soak.")
	w.now = w.now.Add(30 * time.Second)
	s.runUntilIdle(w, nil)
}

func traceNewPods(t *testing.T, s *trace) {
	w := formed(t)
	w.replicated(map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"})
	s.say("More memory, of which only the first node's pod is made before it is to be less again.")
	memory := func(size string) func(*v1alpha1.CassandraClusterSpec) {
		return func(s *v1alpha1.CassandraClusterSpec) {
			s.Node.Resources = &v1alpha1.Resources{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)},
			}
		}
	}
	w.change(memory("6Gi"))
	s.runUntilIdle(w, nil)
	w.change(memory("5Gi"))
	s.runUntilIdle(w, nil)
	s.say("\nThe first node has served for the soak.")
	w.now = w.now.Add(30 * time.Second)
	s.runUntilIdle(w, nil)
}

func traceCorrection(t *testing.T, s *trace) {
	w := forming(t, v1alpha1.DiskJoining, three...)
	w.change(setting("concurrent_reads", "16"))
	s.runUntilIdle(w, nil)
	s.say("\nThe image is another one.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Image = "elsewhere/cassandra:5.0.6" })
	s.runUntilIdle(w, nil)
}

func traceStop(t *testing.T, s *trace) {
	w := formed(t)
	keeps := w.snapshot.Nodes[first].Agent.Ring
	keeps.Hints = map[string]int{hostID(second): 1}
	w.change(stopped(true))
	s.runUntilIdle(w, nil)
	s.say("\nHints that were in memory are counted.")
	w.now = w.now.Add(12 * time.Second)
	s.pass(w, w.pass())
	s.say("\nThey are delivered.")
	keeps.Hints = map[string]int{}
	s.runUntilIdle(w, nil)
	s.say("\nA day later it starts. One node does not come up.")
	w.now = w.now.Add(24 * time.Hour)
	w.absent[second] = true
	w.change(stopped(false))
	s.runUntilIdle(w, nil)
	s.say("\nThe others start without it.")
	w.now = w.now.Add(2 * time.Minute)
	s.runUntilIdle(w, nil)
	s.say("\nIt is missing for long.")
	w.now = w.now.Add(10 * time.Minute)
	s.runUntilIdle(w, nil)
}

func traceTask(t *testing.T, s *trace) {
	w := formed(t)
	w.give("flush", v1alpha1.TaskTemplate{Type: v1alpha1.TaskFlush, Keyspaces: []string{"shop"}, Concurrency: 2,
		TTLAfterFinished: &metav1.Duration{Duration: time.Minute}})
	s.runUntilIdle(w, nil)
	s.say("\nIts time is over.")
	w.now = w.now.Add(time.Minute)
	s.runUntilIdle(w, nil)
}

func traceRepair(t *testing.T, s *trace) {
	w := withTable(t)
	s.runUntilIdle(w, nil)
}

func traceFollowing(t *testing.T, s *trace) {
	w := newWorld(t, datacenter("dc1", 1, 1))
	w.absent["orders-dc1-r2-0"] = true
	w.settle()
	s.runUntilIdle(w, nil)
	s.say("\nA smaller cluster with another release.")
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Version = "5.0.9"
		s.Datacenters[0].Racks = slices.Delete(s.Datacenters[0].Racks, 1, 2)
	})
	s.runUntilIdle(w, nil)
}
