package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/layout"
)

// show prints the ring, the status, and what to try next.
func (u *up) show(ctx context.Context) error {
	first := nodeNames(u.sample)[0]
	ring, err := u.cluster.Exec(ctx, u.namespace, first, layout.CassandraContainer, "nodetool", "status", "demo")
	if err != nil {
		return err
	}
	u.steps.Say("\nThe ring, as nodetool status of %s shows it:\n\n%s", first, indent(strings.TrimSpace(ring)))
	status, err := u.status(ctx)
	if err != nil {
		return err
	}
	u.steps.Say("\nThe nodes, as Helenus shows them:\n\n%s", indent(status))
	u.steps.Say("\nAll of it took %s, the ring %s.", round(u.steps.Elapsed()), round(u.formed))
	u.steps.Say("\nTry next:\n\n%s", indent(u.next()))
	return nil
}

// status is a table of the nodes.
func (u *up) status(ctx context.Context) (string, error) {
	nodes := &v1alpha1.CassandraNodeList{}
	err := u.cluster.Client.List(ctx, nodes, client.InNamespace(u.namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: u.sample.Name})
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tRACK\tPHASE\tCQL\tVERSION\tADDRESS\tHOST ID")
	for _, n := range nodes.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, n.Spec.Rack, n.Status.Phase, n.Status.ClientTraffic,
			n.Status.Version, n.Status.Address, n.Status.HostID)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return strings.TrimSpace(b.String()), nil
}

// kubectl is the command by which the user reaches the same cluster.
func (u *up) kubectl() string {
	if u.onThisMachine {
		return "bin/localkube kubectl"
	}
	return "kubectl --kubeconfig " + u.kubeconfig
}

// next are commands that can be pasted.
func (u *up) next() string {
	nodes := nodeNames(u.sample)
	end := "make demo-down"
	if !u.onThisMachine {
		end += " KUBECONFIG=" + u.kubeconfig
	}
	return strings.Join([]string{
		fmt.Sprintf("alias k='%s --namespace %s'", u.kubectl(), u.namespace),
		"# ask the ring in CQL",
		fmt.Sprintf(`password=$(k get secret %s -o jsonpath='{.data.password}' | base64 -d)`,
			v1alpha1.SuperuserName(u.sample.Name)),
		fmt.Sprintf(`k exec -it %s -c %s -- cqlsh -u %s -p "$password" -e "SELECT * FROM demo.greetings"`, nodes[0],
			layout.CassandraContainer, v1alpha1.RoleSuperuser),
		"# see what Helenus does, and why",
		fmt.Sprintf("k describe cassandracluster %s", u.sample.Name),
		"# lose a pod, and watch its node come back with the same data at another address",
		fmt.Sprintf("k delete pod %s --wait=false; k get cassandranodes --watch", nodes[len(nodes)-1]),
		"# remove everything again",
		end,
	}, "\n")
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
