package safeguard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// next is what an operator of the next release is installed with.
var next = facts.Install{Version: "next", AgentImage: "helenus/agent:next"}

// ruleTwo marks what is made by the second revision of the rules.
const ruleTwo = "RULE_TWO"

// upgrade replaces the operator by one whose rules of pods and of configuration have a second
// revision, under which everything looks otherwise.
func upgrade(w *world.World) error {
	one := render.PodRules[1]
	render.PodRules[2] = func(owner render.Owner, record *v1alpha1.CassandraNode, install facts.Install) (*corev1.Pod,
		error) {
		pod, err := one(owner, record, install)
		if err != nil {
			return nil, err
		}
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, corev1.EnvVar{Name: ruleTwo, Value: "2"})
		}
		return pod, nil
	}
	config.Rules[2] = func(base config.Files, node *config.Node) (config.Files, error) {
		files, err := config.Rules[1](base, node)
		if err != nil {
			return nil, err
		}
		files[config.ServerOptions] = append(files[config.ServerOptions], []byte("\n-D"+ruleTwo+"=2\n")...)
		return files, nil
	}
	w.Operators()[0].Kill()
	w.StartOperator(next)
	return nil
}

// forgetRules has a test leave the rules as they are.
func forgetRules(t *testing.T) {
	t.Helper()
	pods, files := maps.Clone(render.PodRules), maps.Clone(config.Rules)
	t.Cleanup(func() { render.PodRules, config.Rules = pods, files })
}

// upgraded replaces the operator, and gives the new one time to do what it must not.
var upgraded = trial.Act{Name: "upgrade", Do: func(w *world.World) error {
	if err := upgrade(w); err != nil {
		return err
	}
	w.Line.RunFor(time.Hour)
	return nil
}, Until: trial.Serves, Within: time.Minute}

// rested lets what the clients' first tables set going come to its end: the nodes agree on the
// schema some seconds later, and the status says so.
var rested = trial.Act{Name: "rest", Do: func(w *world.World) error {
	w.Line.RunFor(time.Minute)
	return nil
}}

// silent says that the new operator has written nothing but the image of its agents and the status.
var silent = trial.Act{Name: "silent", Do: func(w *world.World) error {
	for _, write := range w.Server.Writes() {
		allowed := write.Verb == "patch" && (write.Event.Kind == "Pod" || write.Subresource == "status")
		if write.User == w.Operators()[0].Name() && !allowed {
			return fmt.Errorf("the new operator writes: %s", write)
		}
	}
	return nil
}}

// revisionOf reads the revisions of the rules of pod and configuration from a record.
func revisionOf(t *testing.T, record string) int32 {
	t.Helper()
	var n struct{ Spec v1alpha1.CassandraNodeSpec }
	if err := json.Unmarshal([]byte(record), &n); err != nil {
		t.Fatal(err)
	}
	if n.Spec.Pod.Revision != n.Spec.Configuration.Revision {
		t.Errorf("the revisions of %s differ", record)
	}
	return n.Spec.Pod.Revision
}

// revisions of the rules by which the nodes are made, by their records.
func revisions(t *testing.T, end trial.End, want int32) {
	t.Helper()
	for _, name := range []string{"orders-dc1-r1-0", "orders-dc1-r2-0", "orders-dc1-r3-0"} {
		if got := revisionOf(t, end.Objects["CassandraNode/"+name]); got != want {
			t.Errorf("record of %s is of the revision %d, not %d", name, got, want)
		}
	}
}

// marked are the pods that were made by the second revision.
func marked(end trial.End) []string {
	var out []string
	for name, object := range end.Objects {
		if strings.HasPrefix(name, "Pod/") && strings.Contains(object, ruleTwo) {
			out = append(out, name)
		}
	}
	return out
}

// TestI12WithoutRevisions changes the rules that records carry, instead of making others: a pod
// that is recreated is another one then.
func TestI12WithoutRevisions(t *testing.T) {
	forgetRules(t)
	s := trial.Named("upgrade-in-place", "the operator is replaced by one with other rules under the same revision",
		true, nil,
		trial.Act{Name: "upgrade", Do: func(w *world.World) error {
			if err := upgrade(w); err != nil {
				return err
			}
			render.PodRules[1] = render.PodRules[2]
			delete(render.PodRules, 2)
			delete(config.Rules, 2)
			return nil
		}},
		trial.Act{Name: "delete a pod", Do: func(w *world.World) error { return deletePod(w, first) },
			Until: notServing, Within: 5 * time.Minute},
		trial.Act{Name: "it comes back", Until: trial.Serves, Within: 15 * time.Minute})
	if made := marked(run(t, trial.Trial{Scenario: s, Seed: 1}).End); len(made) != 1 {
		t.Errorf("pods made by the new rules: %v", made)
	}
}

// TestI12 replaces the operator by one with other rules, at several points: what exists stays as it
// is.
func TestI12(t *testing.T) {
	one := map[string]int{"orders-dc1-r1-0": 1, "orders-dc1-r2-0": 1, "orders-dc1-r3-0": 1}
	twice := maps.Clone(one)
	twice[first] = 2
	create := trial.Named("upgrade", "the operator is replaced by one with other rules", true, nil)
	forming := trial.Named("upgrade-forming", "the operator is replaced while the ring forms", false, nil)
	forming.Acts[0].Until = func(w *world.World) bool { l := ledgerOf(w); return l != nil && l.Step != nil }
	for _, c := range []struct {
		name string
		from *trial.Scenario
		acts []trial.Act
		// revision of the records in the end; jvms are the starts of each node.
		revision int32
		jvms     map[string]int
	}{
		{"of a ring that serves", create, []trial.Act{rested, upgraded, silent}, 1, one},
		{"and a pod is deleted", create, []trial.Act{upgraded,
			{Name: "delete a pod", Do: func(w *world.World) error { return deletePod(w, first) }, Until: notServing,
				Within: 5 * time.Minute},
			{Name: "it comes back", Until: trial.Serves, Within: 15 * time.Minute}}, 1, twice},
		{"and the ledger is lost", create, []trial.Act{upgraded,
			{Name: "delete the ledger", Do: func(w *world.World) error {
				if err := w.User().Delete(context.Background(),
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledgerKey.Namespace,
						Name: ledgerKey.Name}}); err != nil {
					return err
				}
				w.Line.RunFor(time.Hour)
				return nil
			}, Until: trial.Serves, Within: time.Minute}}, 1, one},
		{"while the ring forms", forming, []trial.Act{upgraded}, 1, one},
		// With the records goes what was pinned in them. It is told by what runs.
		{"and the records are lost", create, []trial.Act{upgraded,
			{Name: "delete the records", Do: func(w *world.World) error {
				for name := range one {
					if err := w.User().Delete(context.Background(),
						&v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace,
							Name: name}}); err != nil {
						return err
					}
				}
				w.Line.RunFor(time.Hour)
				return nil
			}, Until: trial.Serves, Within: time.Minute}}, 1, one},
	} {
		t.Run(c.name, func(t *testing.T) {
			forgetRules(t)
			result := holds(t, trial.Trial{Scenario: c.from.With(c.from.Name, "", c.acts...), Seed: 1})
			if made := marked(result.End); len(made) > 0 {
				t.Errorf("made by the new rules: %v", made)
			}
			revisions(t, result.End, c.revision)
			for name, object := range result.End.Objects {
				if strings.HasPrefix(name, "Pod/") && !strings.Contains(object, next.AgentImage) {
					t.Errorf("%s has an agent of the operator before", name)
				}
			}
			if !maps.Equal(result.End.JVMs, c.jvms) {
				t.Errorf("JVMs were started %v times, not %v", result.End.JVMs, c.jvms)
			}
			pods := 0
			for name := range one {
				pods += result.End.Deleted["Pod/"+name]
			}
			if want := c.jvms[first] - 1; pods != want {
				t.Errorf("%d pods were deleted, not %d", pods, want)
			}
		})
	}
}
