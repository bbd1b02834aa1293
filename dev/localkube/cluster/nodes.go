package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/dev/localkube/apiclient"
	"helenus.io/helenus/dev/localkube/node"
	"helenus.io/helenus/dev/localkube/process"
	"helenus.io/helenus/dev/localkube/state"
	"helenus.io/helenus/dev/localkube/step"
)

// nodePatience is how long a node may take until it is ready. Seconds are
// usual.
const nodePatience = 3 * time.Minute

func (c *Cluster) node(n *state.Node) node.Node {
	return node.Node{Dir: c.dir, Cluster: c.state, Node: n, Bin: c.nodeFolder()}
}

// change runs an action on one node under the cluster's lock and records what it
// changed.
func (c *Cluster) change(name string, do func(*state.Node) error) error {
	unlock, err := c.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// Another command may have changed it since we opened the cluster.
	if c.state, err = c.dir.Load(); err != nil {
		return err
	}
	n, err := c.state.Node(name)
	if err != nil {
		return err
	}
	if err := do(n); err != nil {
		return err
	}
	return c.dir.Save(c.state)
}

// KillNode loses a node as one loses a machine: its link goes away, then
// kubelet, containerd and all containers are gone at once. Its disk stays,
// unless loseDisk is set. Up does not bring it back; StartNode does.
func (c *Cluster) KillNode(_ context.Context, name string, loseDisk bool) error {
	return c.change(name, func(n *state.Node) error {
		if err := c.node(n).Kill(); err != nil {
			return err
		}
		n.Killed, n.Partitioned = true, false
		if loseDisk {
			return c.node(n).LoseDisk()
		}
		return nil
	})
}

// StartNode brings a killed node back, with its disk as it was or, with
// loseDisk, an empty one, and waits until it is ready.
func (c *Cluster) StartNode(ctx context.Context, name string, loseDisk bool) error {
	since := time.Now()
	err := c.change(name, func(n *state.Node) error {
		if loseDisk {
			if err := c.node(n).LoseDisk(); err != nil {
				return err
			}
		}
		if err := c.node(n).Start(ctx); err != nil {
			return err
		}
		n.Killed = false
		return nil
	})
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	if n, err := c.state.Node(name); err != nil || n.Partitioned {
		return err
	}
	return c.awaitNodes(ctx, client, &step.Progress{}, []string{name}, since)
}

// PartitionNode cuts a node off from the API server. Its containers run on, and
// pods, DNS and clients on the host reach them as before.
func (c *Cluster) PartitionNode(ctx context.Context, name string) error {
	return c.change(name, func(n *state.Node) error {
		if err := c.node(n).Partition(ctx); err != nil {
			return err
		}
		n.Partitioned = true
		return nil
	})
}

// HealNode takes PartitionNode back. The node becomes ready by itself.
func (c *Cluster) HealNode(ctx context.Context, name string) error {
	return c.change(name, func(n *state.Node) error {
		if err := c.node(n).Heal(ctx); err != nil {
			return err
		}
		n.Partitioned = false
		return nil
	})
}

// NodePid is the process of a node's init, by which its namespaces are entered.
func (c *Cluster) NodePid(name string) (int, error) {
	n, err := c.state.Node(name)
	if err != nil {
		return 0, err
	}
	pid, ok := c.node(n).Pid()
	if !ok {
		return 0, fmt.Errorf("node %s does not run: start it with `localkube node start %s`", name, name)
	}
	return pid, nil
}

// nodeList is what we read of a list of nodes.
type nodeList struct{ Items []nodeItem }

type nodeItem struct {
	Metadata struct{ Name string }
	Status   struct {
		Conditions []struct{ Type, Status, Reason, Message string }
	}
}

// notReady tells for each node that is not ready why.
func (l nodeList) notReady() map[string]string {
	why := make(map[string]string)
	for _, n := range l.Items {
		why[n.Metadata.Name] = "it has no condition Ready yet"
		for _, condition := range n.Status.Conditions {
			if condition.Type != "Ready" {
				continue
			}
			if condition.Status == "True" {
				delete(why, n.Metadata.Name)
			} else {
				why[n.Metadata.Name] = condition.Reason + ": " + condition.Message
			}
		}
	}
	return why
}

// leaseList is what we read of the nodes' leases.
type leaseList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct{ RenewTime time.Time }
	}
}

// awaitNodes waits until all of the nodes are ready and have renewed their lease
// after the given time: the condition Ready alone may be that of an earlier life.
func (c *Cluster) awaitNodes(ctx context.Context, client *apiclient.Client, p *step.Progress, names []string,
	since time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, nodePatience)
	defer cancel()
	started := make(map[string]bool)
	err := process.WaitFor(ctx, 200*time.Millisecond, func(ctx context.Context) error {
		var nodes nodeList
		if err := client.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
			return err
		}
		var leases leaseList
		if err := client.Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
			&leases); err != nil {
			return err
		}
		for _, l := range leases.Items {
			started[l.Metadata.Name] = !l.Spec.RenewTime.Before(since.Add(-leaseInterval))
		}
		waiting := waitingFor(names, nodes, started)
		p.Note("%d of %d nodes ready", len(names)-len(waiting), len(names))
		if waiting != nil {
			return fmt.Errorf("not ready: %s", strings.Join(waiting, "; "))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w; see `localkube logs kubelet NODE`", err)
	}
	return nil
}

// leaseInterval is how often a kubelet renews its lease: one that ran before
// `since` has done it at most that long before.
const leaseInterval = 10 * time.Second

func waitingFor(names []string, nodes nodeList, started map[string]bool) []string {
	why := nodes.notReady()
	var waiting []string
	for _, name := range names {
		registered := slices.ContainsFunc(nodes.Items, func(n nodeItem) bool { return n.Metadata.Name == name })
		switch {
		case !registered:
			waiting = append(waiting, name+" (it has not registered)")
		case why[name] != "":
			waiting = append(waiting, name+" ("+why[name]+")")
		case !started[name]:
			waiting = append(waiting, name+" (its kubelet has not renewed the lease)")
		}
	}
	return waiting
}
