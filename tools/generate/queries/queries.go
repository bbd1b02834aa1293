package queries

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"helenus.io/helenus/tools/generate/alerts"
	"helenus.io/helenus/tools/generate/dashboards"
)

// Query is an expression, and where it stands: an alert, or a dashboard and one of its panels.
type Query struct{ Where, Expression string }

const notVerified = "no backup of the recorded ring was verified"

// Silent are the queries that give no number of a ring that is well, and why. That the alert fires
// has a test of its own.
var Silent = map[string]string{
	"node: Waiting for the commit log, 99th percentile": "with commitlog_sync: periodic, the default, no write waits",
	"operator: Actions of agents that fail":             "no action fails",
	"HelenusAgentFails":                                 "no action fails",
	"HelenusBackupDamaged":                              notVerified,
	"HelenusBackupNotProven":                            "the recorded schedule wants no restore drills",
	"HelenusCommitLogBehind":                            "the recorded ring keeps no commit logs in a store",
	"backup-and-repair: Age of the verified backup":     notVerified,
}

// All queries, with values in place of the variables of dashboards.
func All(v dashboards.Values) ([]Query, error) {
	var all []Query
	for _, d := range dashboards.All() {
		for _, p := range d.Panels {
			all = append(all, Query{d.Name + ": " + p.Title, v.Substitute(p.Expression)})
		}
		for _, c := range d.Variables() {
			all = append(all, Query{d.Name + ": variable " + c.Name,
				fmt.Sprintf(`count by (%s) (%s)`, c.Label, v.Substitute(c.Selector))})
		}
	}
	for _, a := range alerts.All() {
		all = append(all, Query{a.Name, a.Expression})
	}
	for i := range all {
		var err error
		if all[i].Expression, err = unconditional(all[i].Expression); err != nil {
			return nil, fmt.Errorf("parse %s: %w", all[i].Where, err)
		}
	}
	return all, nil
}

// unconditional is what an expression compares with a number, or of which it says that it is
// absent: all is well while that itself gives nothing. That alerts fire has tests of its own.
func unconditional(expression string) (string, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller says of what
	}
	switch n := e.(type) {
	case *parser.BinaryExpr:
		if _, number := n.RHS.(*parser.NumberLiteral); number && n.Op.IsComparisonOperator() {
			return n.LHS.String(), nil
		}
	case *parser.Call:
		if n.Func.Name == "absent" {
			return n.Args[0].String(), nil
		}
	}
	return expression, nil
}

// Families are the names of the metrics that an expression selects, without the endings of a
// histogram's.
func Families(expression string) (map[string]bool, error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	found := map[string]bool{}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			found[strings.TrimSuffix(strings.TrimSuffix(s.Name, "_bucket"), "_count")] = true
		}
		return nil
	})
	return found, nil
}
