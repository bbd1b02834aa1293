package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
	"helenus.io/helenus/internal/inspectapi"
)

// printPlan prints an inspection for people: what is done next, or what would come of the spec of a
// file.
func printPlan(w io.Writer, i *inspectapi.Inspection, from string) {
	planHead(w, i)
	if from != "" {
		if i.Plan.Stalled == nil && i.RollOut == nil {
			fmt.Fprintf(w, "\nWith the spec of %s no node changes.\n", from)
		}
		planRollOut(w, i.RollOut)
		return
	}
	rows := [][]string{{"STEP", "OUTCOME", "MESSAGE"}}
	for _, s := range i.Plan.Steps {
		rows = append(rows, []string{s.Step, string(s.Outcome), oneLine(s.Message)})
	}
	section(w, rows)
	if stalled := i.Plan.Stalled; stalled != nil {
		fmt.Fprintf(w, "\nStalled, you have to act: %s: %s\n", stalled.Reason, oneLine(stalled.Message))
	}
	planRollOut(w, i.RollOut)
	rows = [][]string{{"BLOCKED", "REASON", "NODES", "MESSAGE"}}
	for _, b := range i.Plan.Blocked {
		rows = append(rows, []string{b.Step, string(b.Reason), orDash(strings.Join(b.Nodes, ",")), oneLine(b.Message)})
	}
	section(w, rows)
	section(w, noticeRows(i.Plan.Notices))
	planWrites(w, i.Plan)
	planUnheard(w, i.Snapshot.Nodes)
}

// planRollOut shows which fields change, what that takes, and in which waves the nodes follow.
func planRollOut(w io.Writer, r *plan.RollOut) {
	if r == nil {
		return
	}
	rows := [][]string{{"CHANGE", "TAKES", "NODES"}}
	for _, c := range r.Changes {
		rows = append(rows, []string{oneLine(fmt.Sprintf("%s: %s → %s", c.Field, c.Have, c.Want)), string(c.Takes),
			words.List(c.Nodes, 3)})
	}
	section(w, rows)
	if len(r.NewNodes) > 0 {
		fmt.Fprintf(w, "\nNot in the ring yet: %s\n", words.List(r.NewNodes, 10))
	}
	rows = [][]string{{"WAVE", "NODES"}}
	for i, wave := range r.Waves {
		rows = append(rows, []string{fmt.Sprint(i + 1), words.List(wave, 10)})
	}
	section(w, rows)
	if estimate := r.Estimate.Duration; estimate > 0 {
		fmt.Fprintf(w, "The waves take about %s, by the last restarts.\n", duration.HumanDuration(estimate))
	}
	for _, pass := range r.Passes {
		fmt.Fprintf(w, "Then, once every node runs that, in waves again: %s\n", pass)
	}
	if r.Held != "" {
		fmt.Fprintf(w, "No further wave is foreseen: %s\n", oneLine(r.Held))
	}
}

func planHead(w io.Writer, i *inspectapi.Inspection) {
	s := i.Snapshot
	rows := [][]string{
		{"Cluster:", fmt.Sprintf("%s/%s, generation %d", s.Namespace, s.Cluster, s.Generation)},
		{"Seen by:", fmt.Sprintf("%s (Helenus %s) at %s", i.Operator.Pod, i.Operator.Version,
			i.ObservedAt.UTC().Format(time.RFC3339))},
		{"Ledger:", ledgerLine(s)},
	}
	if s.Deleting {
		rows = append(rows, []string{"Deletion:", "asked for"})
	}
	for _, objects := range []struct {
		title string
		names []string
	}{{"Name taken:", s.Foreign}, {"To go first:", s.Predecessor}} {
		if len(objects.names) > 0 {
			rows = append(rows, []string{objects.title, strings.Join(objects.names, ", ")})
		}
	}
	table(w, rows)
}

func ledgerLine(s inspectapi.Snapshot) string {
	l := s.Ledger
	switch {
	case s.LedgerProblem != "":
		return "cannot be read: " + oneLine(s.LedgerProblem)
	case l == nil:
		return "none yet"
	}
	text := fmt.Sprintf("%s, formed: %s", words.Plural(l.Members, "member"), orDash(strings.Join(l.Formed, ", ")))
	for _, s := range l.Steps {
		state := "open"
		if s.Suspended {
			state = "suspended"
		}
		text += fmt.Sprintf("; %s: %s %s, stage %s since %s, %s", state, s.Kind, s.ID, s.Stage,
			s.StageSince.UTC().Format(time.RFC3339), words.Plural(len(s.Nodes), "node"))
	}
	return text
}

func planWrites(w io.Writer, p inspectapi.Plan) {
	if len(p.Writes) == 0 {
		fmt.Fprintln(w, "\nNothing would be written now.")
	} else {
		fmt.Fprintln(w, "\nWould be written now, in this order; the first write that fails ends the pass:")
		for _, write := range p.Writes {
			line := "  " + oneLine(write.Text)
			if write.Live {
				line += " (after all was looked at once more)"
			}
			fmt.Fprintln(w, line)
		}
	}
	if p.WakeSeconds > 0 {
		fmt.Fprintf(w, "The operator looks again in %s at the latest.\n",
			duration.HumanDuration(time.Duration(p.WakeSeconds*float64(time.Second))))
		return
	}
	fmt.Fprintln(w, "The operator looks again when something changes.")
}

// planUnheard names the nodes whose agents did not answer the operator: what is not known is what
// most plans wait for.
func planUnheard(w io.Writer, nodes []inspectapi.Node) {
	rows := [][]string{{"NO ANSWER FROM", "RACK", "HOST", "BECAUSE"}}
	for _, n := range nodes {
		var because string
		switch {
		case n.Agent != nil:
			continue
		case !n.Record:
			because = fmt.Sprintf("it has no record, only %s", leftOver(n))
		case !n.Pod:
			because = "there is no pod"
		default:
			because = oneLine(n.Unreachable)
		}
		rack := strings.Trim(n.Datacenter+"/"+n.Rack, "/")
		rows = append(rows, []string{n.Name, orDash(rack), orDash(n.Host), because})
	}
	section(w, rows)
}

func leftOver(n inspectapi.Node) string {
	var what []string
	if n.Pod {
		what = append(what, "a pod")
	}
	if n.Claims > 0 {
		what = append(what, words.Plural(n.Claims, "claim"))
	}
	return strings.Join(what, " and ")
}
