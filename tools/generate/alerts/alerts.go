package alerts

import (
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"helenus.io/helenus/internal/core/metrics"
)

// Severity is how soon somebody has to look.
type Severity string

// The severities.
const (
	// Critical: clients are refused, or nobody would learn if they were.
	Critical Severity = "critical"
	// Warning: something waits for a person, or will.
	Warning Severity = "warning"
)

// Alert is a rule of Prometheus, and what a person does about it.
type Alert struct {
	Name     string
	Severity Severity
	// Expression is PromQL, and For how long it must hold.
	Expression string
	For        time.Duration
	// Summary is a sentence with the labels of the series; Means and Look are prose of the guide.
	Summary, Means, Look string
	// Commands can be pasted, for a cluster orders.
	Commands []string
}

const (
	ofCluster = "{{ $labels.namespace }}/{{ $labels.cluster }}"
	ofPod     = "{{ $labels.namespace }}/{{ $labels.pod }}"
)

// All alerts: those of clusters, of the operator, of agents.
func All() []Alert {
	return []Alert{
		{Name: "HelenusRangesUnserved", Severity: Critical, For: 2 * time.Minute,
			Expression: metrics.Unserved.Name + " > 0",
			Summary: "{{ $value }} ranges of datacenter {{ $labels.datacenter }} of " + ofCluster +
				" have too few replicas up",
			Means: "Requests for these ranges fail at `spec.disruption.consistency`. The number is that of " +
				"`Available`.",
			Look: "Which nodes are down, and why: the condition `Available` names the range, `status.unhealthy` the " +
				"nodes, and each CassandraNode what its agent waits for.",
			Commands: []string{"kubectl helenus status orders", "kubectl get cassandranodes"}},
		{Name: "HelenusNodeNotServing", Severity: Warning, For: 15 * time.Minute,
			Expression: metrics.Nodes.Name + " - " + metrics.Ready.Name + " > 0",
			Summary: "{{ $value }} nodes of datacenter {{ $labels.datacenter }} of " + ofCluster + " do not " +
				"serve clients",
			Means: "Nodes have a record and do not serve, for longer than a restart takes. A ring that is " +
				"stopped, or " +
				"that grows by much data, is told, too: silence the alert meanwhile.",
			Look:     "What each of them waits for, and whether it is to be replaced.",
			Commands: []string{"kubectl get cassandranodes", "kubectl logs orders-dc1-r1-0 -c cassandra --tail 100"}},
		{Name: "HelenusNodeNotAnswering", Severity: Warning, For: 15 * time.Minute,
			Expression: metrics.Nodes.Name + " - " + metrics.Answering.Name + " > 0",
			Summary: "{{ $value }} agents of datacenter {{ $labels.datacenter }} of " + ofCluster + " do not " +
				"answer the operator",
			Means: "The pod does not run, its host is gone, or the operator cannot reach it. What the operator " +
				"does not " +
				"see it does not change.",
			Look:     "The pods and their hosts, and network policies between the operator and port 7780.",
			Commands: []string{"kubectl get pods -l helenus.io/cluster=orders -o wide"}},
		{Name: "HelenusClusterStalled", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.Condition.Name + `{condition="Stalled"} == 1`,
			Summary:    ofCluster + " waits for a person",
			Means:      "The spec cannot be carried out as it is. What runs goes on as it was.",
			Look:       "The condition `Stalled` names the field, the value and what is allowed.",
			Commands:   []string{`kubectl get cassandracluster orders -o jsonpath='{.status.conditions[?(@.type=="Stalled")].message}'`}},
		{Name: "HelenusStepBlocked", Severity: Warning, For: time.Hour,
			Expression: metrics.Blocked.Name + " > 0",
			Summary:    "{{ $value }} steps of " + ofCluster + " are held back",
			Means:      "A step waits for something that has not come for an hour.",
			Look: "`status.blocked` says for what, and what would help; the " +
				"[table of reasons](status.md#blocked-steps-and-notices) says it of each.",
			Commands: []string{"kubectl helenus status orders"}},
		{Name: "HelenusStepTakesLong", Severity: Warning, For: 5 * time.Minute,
			Expression: "time() - " + metrics.StepOpened.Name + " > 86400",
			Summary:    "{{ $labels.step }} of " + ofCluster + " has been open for {{ humanizeDuration $value }}",
			Means:      "A step has been open for a day: it streams much, or does not come to its end.",
			Look: "`status.step` says what it waits for and how far it is. Streams show in the " +
				"CassandraNode of their node.",
			Commands: []string{"kubectl helenus status orders", "kubectl get cassandranodes"}},

		{Name: "HelenusOperatorAbsent", Severity: Critical, For: 10 * time.Minute,
			Expression: "absent(" + metrics.Passes.Name + "_count)",
			Summary:    "no operator of Helenus is scraped",
			Means: "Nobody looks after the rings: they go on serving, and nodes start again by themselves, but " +
				"nothing " +
				"is changed, replaced or told.",
			Look: "The Deployment, its events, and whether Prometheus may reach port 8080 of its pods.",
			Commands: []string{"kubectl -n helenus-system get pods",
				"kubectl -n helenus-system logs deployment/helenus"}},
		{Name: "HelenusPassesFail", Severity: Warning, For: 10 * time.Minute,
			Expression: "rate(" + metrics.FailedPasses.Name + "[10m]) > 0",
			Summary:    "passes over " + ofCluster + " fail",
			Means:      "The API server refuses what the operator reads or writes, or does not answer.",
			Look:       "The log of the operator has the error of each.",
			Commands:   []string{"kubectl -n helenus-system logs deployment/helenus | grep -i error"}},

		{Name: "HelenusJVMRestarts", Severity: Warning,
			Expression: "increase(" + metrics.AgentRestarts.Name + "[1h]) > 2",
			Summary:    "the JVM of " + ofPod + " was restarted {{ $value }} times in an hour",
			Means: "Cassandra ends again and again, and nobody asked for that: of memory, of its disk, or by " +
				"its settings.",
			Look: "`status.restarts` of the CassandraNode says why, and the log of the JVM before.",
			Commands: []string{"kubectl get cassandranode orders-dc1-r1-0 -o yaml",
				"kubectl logs orders-dc1-r1-0 -c cassandra --tail 100"}},
		{Name: "HelenusJVMSilent", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.AgentJVMSilence.Name + " > 300",
			Summary:    "the JVM of " + ofPod + " has not answered for {{ humanizeDuration $value }}",
			Means:      "It does not run, collects garbage all the time, or is frozen.",
			Look:       "The phase of the node, and the memory of its container.",
			Commands: []string{"kubectl get cassandranode orders-dc1-r1-0",
				"kubectl top pod orders-dc1-r1-0 --containers"}},
		{Name: "HelenusAgentCutOff", Severity: Warning, For: 5 * time.Minute,
			Expression: metrics.AgentAPISilence.Name + " > 600",
			Summary:    "the agent of " + ofPod + " has not heard the API server for {{ humanizeDuration $value }}",
			Means:      "The node serves, and starts again by what its disk remembers; it learns of no change.",
			Look:       "The network of its host, and the rights of the agents' ServiceAccount.",
			Commands:   []string{"kubectl get events --field-selector involvedObject.name=orders-dc1-r1-0"}},
		{Name: "HelenusAgentFails", Severity: Warning, For: 10 * time.Minute,
			Expression: metrics.AgentFailing.Name + " > 5",
			Summary:    "{{ $labels.action }} has failed {{ $value }} times in a row on " + ofPod,
			Means:      "An agent tries the same thing again and again.",
			Look:       "`status.message` of the CassandraNode has the error.",
			Commands:   []string{"kubectl get cassandranode orders-dc1-r1-0 -o jsonpath='{.status.message}'"}},
	}
}

// runbooks is where the guide is.
const runbooks = "https://helenus.io/docs/guide/alerts.md#"

// Rules are the alerts as a file of rules, which Prometheus reads and a PrometheusRule has as its
// spec.
func Rules() ([]byte, error) {
	type rule struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for,omitempty"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	var rules []rule
	for _, a := range All() {
		r := rule{Alert: a.Name, Expr: a.Expression, Labels: map[string]string{"severity": string(a.Severity)},
			Annotations: map[string]string{"summary": a.Summary, "runbook_url": runbooks + strings.ToLower(a.Name)}}
		r.For = held(a)
		rules = append(rules, r)
	}
	out, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "helenus", "rules": rules}}})
	if err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return append([]byte("# Made by \"make generate\" from tools/generate/alerts; change that.\n"), out...), nil
}

// Guide is the page of the guide about the alerts.
func Guide() []byte {
	var out strings.Builder
	out.WriteString(`<!-- Made by "make generate" from tools/generate/alerts; change that. -->
# Alerts

What to do when an alert of Helenus fires. The rules are in [charts/helenus/rules](../../charts/helenus/rules), in a
form that Prometheus reads; the chart makes a PrometheusRule of them with ` + "`metrics.rules.enabled`" + `
([installing](installing.md)). The operator's metrics must be scraped for those of clusters, and the agents' for those
of nodes ([metrics](status.md#metrics)).

| alert | severity | fires when |
|---|---|---|
`)
	for _, a := range All() {
		when := "`" + a.Expression + "`"
		if a.For > 0 {
			when += " for " + held(a)
		}
		fmt.Fprintf(&out, "| [%s](#%s) | %s | %s |\n", a.Name, strings.ToLower(a.Name), a.Severity, when)
	}
	for _, a := range All() {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n%s\n\n```sh\n%s\n```\n", a.Name, wrapped(a.Means), wrapped(a.Look),
			strings.Join(a.Commands, "\n"))
	}
	return []byte(out.String())
}

// held is how long an alert must hold until it fires, for Prometheus; empty for at once.
func held(a Alert) string {
	if a.For == 0 {
		return ""
	}
	return fmt.Sprintf("%dm", int(a.For.Minutes()))
}

// wrapped is prose in lines of at most 120 columns.
func wrapped(prose string) string {
	const most = 120
	var out strings.Builder
	column := 0
	for word := range strings.FieldsSeq(prose) {
		switch {
		case column == 0:
		case column+1+len(word) > most:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}
