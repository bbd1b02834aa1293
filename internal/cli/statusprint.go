package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// statusView is all that the status of a cluster is printed from.
type statusView struct {
	cluster *v1alpha1.CassandraCluster
	nodes   []v1alpha1.CassandraNode
	// pods by name; nil if they are not known.
	pods     map[string]corev1.Pod
	operator operatorHealth
	now      time.Time
}

// shownHistory is how many finished steps are shown; the object has more.
const shownHistory = 3

func (v statusView) print(w io.Writer) {
	v.head(w)
	v.conditions(w)
	v.step(w)
	v.blocked(w)
	v.notices(w)
	v.exceptions(w)
	v.recommended(w)
	v.repairs(w)
	v.nodeTable(w)
	v.history(w)
}

func (v statusView) head(w io.Writer) {
	c := v.cluster
	runs := "nothing runs yet"
	if r := c.Status.Version; r != nil {
		runs = r.Lowest + " runs"
		if r.Highest != r.Lowest {
			runs = fmt.Sprintf("%s to %s run", r.Lowest, r.Highest)
		}
	}
	spec := fmt.Sprintf("generation %d, the operator has seen it", c.Generation)
	switch c.Status.ObservedGeneration {
	case c.Generation:
	case 0:
		spec = fmt.Sprintf("generation %d, the operator has not looked at this cluster yet", c.Generation)
	default:
		spec = fmt.Sprintf("generation %d, the operator has NOT seen it yet (it saw %d): what follows is about the "+
			"older one", c.Generation, c.Status.ObservedGeneration)
	}
	rows := [][]string{
		{"Cluster:", c.Namespace + "/" + c.Name},
		{"Cassandra:", fmt.Sprintf("%s wanted, %s", c.Spec.Version, runs)},
		{"Nodes:", v.counts()},
		{"Spec:", spec},
		{"Operator:", v.operator.String()},
	}
	if c.DeletionTimestamp != nil {
		rows = append(rows, []string{"Deletion:",
			fmt.Sprintf("asked for %s ago", age(v.now, c.DeletionTimestamp.Time))})
	}
	if c.Spec.Paused {
		rows = append(rows, []string{"Paused:", "no step is begun until spec.paused is false"})
	}
	if c.Spec.Stopped {
		rows = append(rows, []string{"Stopped:", "no node runs until spec.stopped is false"})
	}
	table(w, rows)
}

// counts are those of the operator, by datacenter.
func (v statusView) counts() string {
	s := v.cluster.Status
	text := fmt.Sprintf("%d of %d serve clients", s.ReadyNodes, s.Nodes)
	var by []string
	for _, dc := range s.Datacenters {
		one := fmt.Sprintf("%s %d/%d", dc.Name, dc.Ready, dc.Nodes)
		if !dc.Formed {
			one += " not formed"
		}
		by = append(by, one)
	}
	if len(by) > 0 {
		text += " (" + strings.Join(by, ", ") + ")"
	}
	return text
}

// conditionOrder is the order in which conditions are told: first those the user must act on.
var conditionOrder = []string{
	v1alpha1.ConditionStalled, v1alpha1.ConditionReady, v1alpha1.ConditionAvailable, v1alpha1.ConditionHealthy,
	v1alpha1.ConditionUpToDate, v1alpha1.ConditionReconciling,
}

func (v statusView) conditions(w io.Writer) {
	conditions := slices.Clone(v.cluster.Status.Conditions)
	place := func(c metav1.Condition) int {
		if i := slices.Index(conditionOrder, c.Type); i >= 0 {
			return i
		}
		return len(conditionOrder)
	}
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return place(a) - place(b) })
	rows := [][]string{{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}}
	for _, c := range conditions {
		rows = append(rows, []string{c.Type, string(c.Status), age(v.now, c.LastTransitionTime.Time), c.Reason,
			oneLine(c.Message)})
	}
	section(w, rows)
}

// section prints a table with a heading row, after an empty line, if it has more than the heading.
func section(w io.Writer, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintln(w)
	table(w, rows)
}

func (v statusView) step(w io.Writer) {
	step := v.cluster.Status.Step
	if step == nil {
		return
	}
	since, progress := "-", "-"
	if step.Since != nil {
		since = age(v.now, step.Since.Time)
	}
	if step.Progress != nil {
		progress = fmt.Sprintf("%d %%", *step.Progress)
	}
	section(w, [][]string{
		{"STEP", "SINCE", "PROGRESS", "NODES", "MESSAGE"},
		{step.Name, since, progress, orDash(strings.Join(step.Nodes, ",")), oneLine(step.Message)},
	})
}

func (v statusView) blocked(w io.Writer) {
	rows := [][]string{{"BLOCKED", "REASON", "NODES", "MESSAGE"}}
	for _, b := range v.cluster.Status.Blocked {
		rows = append(rows, []string{b.Step, string(b.Reason), orDash(strings.Join(b.Nodes, ",")), oneLine(b.Message)})
	}
	for _, n := range v.nodes {
		if b := n.Status.Blocked; b != nil {
			rows = append(rows, []string{"(agent)", string(b.Reason), n.Name, oneLine(b.Message)})
		}
	}
	section(w, rows)
}

func (v statusView) notices(w io.Writer) {
	section(w, noticeRows(v.cluster.Status.Notices))
}

func noticeRows(notices []v1alpha1.Notice) [][]string {
	rows := [][]string{{"NOTICE", "NODES", "MESSAGE"}}
	for _, n := range notices {
		rows = append(rows, []string{string(n.Reason), orDash(strings.Join(n.Nodes, ",")), oneLine(n.Message)})
	}
	return rows
}

func (v statusView) exceptions(w io.Writer) {
	rows := [][]string{{"EXCEPTION", "STATE", "NODE", "MESSAGE"}}
	for _, e := range v.cluster.Status.Exceptions {
		rows = append(rows, []string{e.Name, string(e.State), orDash(e.Node), oneLine(e.Message)})
	}
	section(w, rows)
}

func (v statusView) recommended(w io.Writer) {
	rows := [][]string{{"RECOMMENDED", "NODES", "MESSAGE"}}
	for _, r := range v.cluster.Status.Recommended {
		rows = append(rows, []string{r.Operation, orDash(strings.Join(r.Nodes, ",")), oneLine(r.Message)})
	}
	section(w, rows)
}

// repairs are the tables with their last repairs, those with the earliest deadlines first.
func (v statusView) repairs(w io.Writer) {
	r := v.cluster.Status.Repair
	if r == nil || len(r.Tables) == 0 {
		return
	}
	tables := slices.Clone(r.Tables)
	slices.SortStableFunc(tables, func(a, b v1alpha1.TableRepair) int { return a.Deadline.Compare(b.Deadline.Time) })
	rows := [][]string{{"TABLE", "LAST REPAIRED", "DEADLINE", "COMPACTION"}}
	for _, t := range tables {
		last := "-"
		if t.LastRepaired != nil {
			last = t.LastRepaired.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{t.Name, last, t.Deadline.UTC().Format(time.RFC3339), orDash(t.Compaction)})
	}
	section(w, rows)
	if r.Rate != nil {
		fmt.Fprintf(w, "Repairs ran at %sB/s lately, without the pauses between them.\n", r.Rate)
	}
}

func (v statusView) nodeTable(w io.Writer) {
	rows := [][]string{{"NODE", "RACK", "PHASE", "READY", "TRAFFIC", "VERSION", "HOST ID", "ADDRESS", "RESTARTS",
		"MESSAGE"}}
	for _, n := range v.nodes {
		s := n.Status
		ready, doubt := v.ready(n)
		message := oneLine(s.Message)
		if doubt != "" {
			message = strings.TrimSuffix(doubt+"; "+message, "; ")
		}
		rows = append(rows, []string{
			n.Name, n.Spec.Datacenter + "/" + n.Spec.Rack, orDash(string(s.Phase)), yesNo(ready),
			orDash(string(s.ClientTraffic)), orDash(s.Version),
			orDash(hostID(n)), orDash(s.Address), restarts(s.Restarts, v.now), message,
		})
	}
	if len(rows) == 1 {
		fmt.Fprintln(w, "\nThe cluster has no nodes yet.")
		return
	}
	section(w, rows)
}

// ready says that a node serves clients, and what speaks against what its agent last wrote.
func (v statusView) ready(n v1alpha1.CassandraNode) (ready bool, doubt string) {
	if v.pods == nil {
		return n.Status.Ready, ""
	}
	pod, exists := v.pods[n.Name]
	switch {
	case !exists:
		return false, "there is no pod"
	case pod.DeletionTimestamp != nil:
		return false, "the pod is being deleted"
	case n.Status.PodUID == "":
		return false, podTrouble(pod, "the agent has not reported yet")
	case n.Status.PodUID != pod.UID:
		return false, podTrouble(pod, "what is shown was reported from an earlier pod")
	case n.Status.Ready && !facts.PodReady(&pod):
		return false, podTrouble(pod, "Kubernetes says that the pod is not ready")
	}
	return n.Status.Ready, ""
}

// podTrouble is why a pod does not get on, if Kubernetes says it; else the text given.
func podTrouble(pod corev1.Pod, otherwise string) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "the pod waits for a host: " + oneLine(c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if wait := c.State.Waiting; wait != nil && wait.Message != "" {
			return fmt.Sprintf("container %s: %s: %s", c.Name, wait.Reason, oneLine(wait.Message))
		}
	}
	return otherwise
}

// hostID is what the agent saw, or else what the record remembers.
func hostID(n v1alpha1.CassandraNode) string {
	if n.Status.HostID == "" && n.Spec.Member != nil {
		return n.Spec.Member.HostID
	}
	return n.Status.HostID
}

func restarts(r *v1alpha1.RestartsStatus, now time.Time) string {
	if r == nil || r.Count == 0 {
		return "0"
	}
	text := strconv.Itoa(int(r.Count))
	switch {
	case r.LastAt != nil && r.LastReason != "":
		text += fmt.Sprintf(" (%s, %s ago)", r.LastReason, age(now, r.LastAt.Time))
	case r.LastReason != "":
		text += fmt.Sprintf(" (%s)", r.LastReason)
	}
	return text
}

func (v statusView) history(w io.Writer) {
	rows := [][]string{{"FINISHED", "RESULT", "AGO", "TOOK", "MESSAGE"}}
	history := v.cluster.Status.History
	for _, r := range history[:min(len(history), shownHistory)] {
		rows = append(rows, []string{
			r.Step, string(r.Result), age(v.now, r.FinishedAt.Time), age(r.FinishedAt.Time, r.StartedAt.Time),
			oneLine(r.Message),
		})
	}
	section(w, rows)
}
