package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

// What a person asks for a node is written once, beside the words of others, and only where it can
// have an effect.
func TestStartAnywayAndRepair(t *testing.T) {
	const name, hostID = "orders-dc1-r1-0", "0b2c7d1e-0000-4000-8000-000000000001"
	theirs := v1alpha1.Exception{
		Name: "theirs", Type: v1alpha1.ExceptionDebug, Node: name, Reason: "x", Until: metav1.NewTime(now),
	}
	member := func(n *v1alpha1.CassandraNode) { n.Spec.Member = &v1alpha1.Member{HostID: hostID} }
	for title, c := range map[string]struct {
		ask     word
		reason  string
		length  time.Duration
		node    func(*v1alpha1.CassandraNode)
		cluster func(*v1alpha1.CassandraCluster)
		want    v1alpha1.Exception
		refused string
	}{
		"starts": {
			ask: startAnyway, reason: "no deletes", length: time.Hour,
			node: func(n *v1alpha1.CassandraNode) { member(n); n.Status.Phase = v1alpha1.PhaseDownTooLong },
			want: v1alpha1.Exception{Name: "startanyway-" + name, Type: v1alpha1.ExceptionStartAnyway, HostID: hostID},
		},
		"starts again, for longer": {
			ask: startAnyway, reason: "no deletes", length: time.Hour,
			node: func(n *v1alpha1.CassandraNode) { member(n); n.Status.Phase = v1alpha1.PhaseDownTooLong },
			cluster: func(c *v1alpha1.CassandraCluster) {
				c.Spec.Exceptions = append(c.Spec.Exceptions, v1alpha1.Exception{
					Name: "startanyway-" + name, Type: v1alpha1.ExceptionStartAnyway, Node: name, HostID: hostID,
				})
			},
			want: v1alpha1.Exception{Name: "startanyway-" + name, Type: v1alpha1.ExceptionStartAnyway, HostID: hostID},
		},
		"starts by itself": {
			ask: startAnyway, reason: "x", length: time.Hour,
			node:    func(n *v1alpha1.CassandraNode) { member(n); n.Status.Phase = v1alpha1.PhaseNormal },
			refused: "is in phase Normal",
		},
		"is no member": {
			ask: startAnyway, reason: "x", length: time.Hour,
			node:    func(n *v1alpha1.CassandraNode) { n.Status.Phase = v1alpha1.PhaseWaiting },
			refused: "is no member",
		},
		"is recommended": {
			ask: repair, reason: "away", length: time.Hour, node: member,
			cluster: func(c *v1alpha1.CassandraCluster) {
				c.Status.Recommended = []v1alpha1.Recommendation{{Operation: "Repair", Nodes: []string{name}}}
			},
			want: v1alpha1.Exception{Name: "repair-" + name, Type: v1alpha1.ExceptionRepair},
		},
		"says itself that it is due": {
			ask: repair, reason: "away", length: time.Hour,
			node: func(n *v1alpha1.CassandraNode) {
				n.Status.RepairDue = []v1alpha1.RepairDue{{}}
			},
			want: v1alpha1.Exception{Name: "repair-" + name, Type: v1alpha1.ExceptionRepair},
		},
		"another is recommended": {
			ask: repair, reason: "away", length: time.Hour, node: member,
			cluster: func(c *v1alpha1.CassandraCluster) {
				c.Status.Recommended = []v1alpha1.Recommendation{
					{Operation: "Repair", Nodes: []string{"orders-dc1-r2-0"}},
					{Operation: "Cleanup", Nodes: []string{name}},
				}
			},
			refused: "no repair of node " + name + " is due",
		},
		"is recommended to be replaced": {
			ask: replace, reason: "its disk is gone", length: time.Hour, node: member,
			cluster: func(c *v1alpha1.CassandraCluster) {
				c.Status.Recommended = []v1alpha1.Recommendation{{Operation: "Replace", Nodes: []string{name}}}
			},
			want: v1alpha1.Exception{Name: "replace-" + name, Type: v1alpha1.ExceptionReplace},
		},
		"is not lost": {
			ask: replace, reason: "its disk is gone", length: time.Hour, node: member,
			refused: "no replacement of node " + name + " is recommended",
		},
		"leaves first": {
			ask: removeFirst, reason: "its host goes", length: time.Hour, node: member,
			want: v1alpha1.Exception{Name: "removefirst-" + name, Type: v1alpha1.ExceptionRemoveFirst},
		},
		"cannot leave": {ask: removeFirst, reason: "x", length: time.Hour, refused: "is no member of the ring"},
		"no reason":    {ask: repair, length: time.Hour, refused: "say why by --reason"},
		"for no time":  {ask: repair, reason: "x", refused: "want a time of at most 168h"},
		"for too long": {
			ask: startAnyway, reason: "x", length: 169 * time.Hour, refused: "want a time of at most 168h",
		},
	} {
		t.Run(title, func(t *testing.T) {
			node := &v1alpha1.CassandraNode{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec:       v1alpha1.CassandraNodeSpec{Cluster: v1alpha1.ClusterReference{Name: "orders"}},
			}
			orders := cluster("shop", "orders")
			orders.Spec.Exceptions = []v1alpha1.Exception{theirs}
			if c.node != nil {
				c.node(node)
			}
			if c.cluster != nil {
				c.cluster(orders)
			}
			conn, d := to(t, interceptor.Funcs{}, orders, node), newDesk()
			c.ask.reason, c.ask.length = c.reason, c.length
			err := d.give(t.Context(), conn, name, c.ask)
			stored := &v1alpha1.CassandraCluster{}
			if err := conn.client.Get(t.Context(), client.ObjectKeyFromObject(orders), stored); err != nil {
				t.Fatal(err)
			}
			all := stored.Spec.Exceptions
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || len(all) != 1 {
					t.Errorf("got %v, want %s; exceptions %+v", err, c.refused, all)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.Node, c.want.Reason = name, c.reason
			c.want.Until = metav1.NewTime(now.Add(c.length))
			if len(all) != 2 || all[0].Name != "theirs" || !all[1].Until.Equal(&c.want.Until) {
				t.Fatalf("exceptions %+v", all)
			}
			if all[1].Until = c.want.Until; all[1] != c.want {
				t.Errorf("got %+v, want %+v", all[1], c.want)
			}
			if said := d.out.String(); !strings.Contains(said, "kubectl helenus status orders") {
				t.Errorf("printed %s", said)
			}
		})
	}
}

// The disk of a node that is not lost is given up by a task for that node alone.
func TestADiskIsGivenUpByATask(t *testing.T) {
	node := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dc1-r1-0"},
		Spec: v1alpha1.CassandraNodeSpec{Cluster: v1alpha1.ClusterReference{Name: "orders"}}}
	c := to(t, interceptor.Funcs{}, cluster("shop", "orders"), node)
	if err := newDesk().giveUpDisk(t.Context(), c, node.Name, false); err != nil {
		t.Fatal(err)
	}
	all := &v1alpha1.CassandraTaskList{}
	if err := c.client.List(t.Context(), all); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d tasks, %v", len(all.Items), err)
	}
	if s := all.Items[0].Spec; s.Type != v1alpha1.TaskReplace || s.Cluster.Name != "orders" ||
		!slices.Equal(s.Nodes, []string{node.Name}) {
		t.Errorf("created %+v", s)
	}
	err := newDesk().giveUpDisk(t.Context(), c, "orders-dc1-r9-0", false)
	if err == nil || !strings.Contains(err.Error(), "there is no CassandraNode") {
		t.Errorf("of a node that is not there: %v", err)
	}
}

// Each command says in words what it does, with an example that calls it.
func TestEachCommandIsExplained(t *testing.T) {
	root := New("v0", newDesk().streams)
	var commands []*cobra.Command
	for _, c := range root.Commands() {
		if commands = append(commands, c); c.HasSubCommands() {
			commands = append(commands[:len(commands)-1], c.Commands()...)
		}
	}
	for _, c := range commands {
		if c.Name() == "help" {
			continue
		}
		called := c.CommandPath()
		named := strings.Contains(c.Use, " CLUSTER") || strings.Contains(c.Use, " NODE")
		if named {
			called += " orders"
		}
		if len(c.Long) <= len(c.Short) || !strings.Contains(c.Example, called) {
			t.Errorf("%s: long %q, example %q", c.Name(), c.Long, c.Example)
		}
		if !strings.Contains(root.Long, "\n  "+strings.TrimPrefix(c.CommandPath(), "kubectl helenus ")+" ") {
			t.Errorf("kubectl helenus --help does not name %s", c.Name())
		}
		err := c.Args(&cobra.Command{Use: c.Use}, nil)
		if named && (err == nil || !strings.Contains(err.Error(), "name one")) {
			t.Errorf("%s without a name: %v", c.Name(), err)
		}
	}
}
