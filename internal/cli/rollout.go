package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

const restartLong = `Restarts every JVM of a cluster, of a datacenter or of a rack: the first node alone, then
waves of one rack, each when the ring can do without it. Pods and records stay.

It sets restartedAt in the spec of the CassandraCluster to now, with your rights.`

const pauseLong = `Has the operator begin nothing new on a cluster: no join, no roll-out, no cleanup and no
repair. A step that is open continues to its end, a roll-out to the end of its wave. Nodes
serve on, and pods that are lost are recreated.

It sets spec.paused of the CassandraCluster, with your rights.`

const resumeLong = `Ends the pause of a cluster. A roll-out that spec.disruption.holdAfter has wait for you is
resumed, until it is held the next time.

It takes spec.paused of the CassandraCluster away and sets spec.disruption.resume, with your
rights.`

const stopLong = `Stops all nodes of a cluster, or of a datacenter while the others serve: client traffic is
closed, hints and batches are delivered, all nodes are drained together, and their pods are
deleted. Volumes, records and services stay. What has begun, such as a join, comes to its end
first.

It sets spec.stopped of the CassandraCluster, or stopped of the datacenter, with your rights.`

const startLong = `Starts the nodes of a cluster that is stopped, or of a datacenter, all together. Those whose
data must not be used any more, and those that do not come, hold nobody up.

It takes spec.stopped of the CassandraCluster, or stopped of the datacenter, away, with your
rights.`

// newRollOut are the commands by which a person steers roll-outs. Each changes the spec of a
// CassandraCluster, with the rights of that person.
func newRollOut(s *settings) []*cobra.Command {
	var datacenter, rack string
	restart := s.changing("restart", "Restart every JVM of a cluster, a datacenter or a rack, one after the other",
		restartLong, func(c *v1alpha1.CassandraCluster) (string, error) {
			return restartAt(c, datacenter, rack, metav1.NewTime(s.now()).Rfc3339Copy())
		})
	restart.Example += "\n  kubectl helenus restart orders --datacenter dc1 --rack r2"
	restart.Flags().StringVar(&datacenter, "datacenter", "", "only this `datacenter`")
	restart.Flags().StringVar(&rack, "rack", "", "only this `rack` of the datacenter")
	stops := func(verb, short, long string, yes bool) *cobra.Command {
		var datacenter string
		c := s.changing(verb, short, long, func(c *v1alpha1.CassandraCluster) (string, error) {
			return setStopped(c, datacenter, yes)
		})
		c.Example += "\n  kubectl helenus " + verb + " orders --datacenter dc2"
		c.Flags().StringVar(&datacenter, "datacenter", "", "only this `datacenter`")
		return c
	}
	return []*cobra.Command{
		restart,
		s.changing("pause", "Begin nothing new on a cluster", pauseLong, setPaused),
		stops("stop", "Stop all nodes of a cluster, or of a datacenter", stopLong, true),
		stops("start", "Start all nodes of a cluster, or of a datacenter, that is stopped", startLong, false),
		s.changing("resume", "End a pause, and the hold of a roll-out", resumeLong, resume),
	}
}

// changing is a command that changes the spec of one cluster, and says what follows.
func (s *settings) changing(verb, short, long string,
	change func(*v1alpha1.CassandraCluster) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " CLUSTER", Short: short, Long: long, Args: oneCluster,
		Example: "  kubectl helenus " + verb + " orders",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.change(ctx, c, args[0], change)
		}),
	}
}

func (s *settings) change(ctx context.Context, c *connection, name string,
	change func(*v1alpha1.CassandraCluster) (string, error)) error {
	cluster, err := c.cluster(ctx, name)
	if err != nil {
		return err
	}
	before := cluster.DeepCopy()
	said, err := change(cluster)
	if err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.client.Patch(ctx, cluster, patch); err != nil {
		return fmt.Errorf("change CassandraCluster %s: %w", name, err)
	}
	_, err = fmt.Fprintf(s.streams.Out, "CassandraCluster %s %s\n", name, said)
	return err
}

func restartAt(c *v1alpha1.CassandraCluster, datacenter, rack string, at metav1.Time) (string, error) {
	said := "restarts; kubectl helenus status " + c.Name + " shows how far it is"
	if c.Spec.Paused {
		said = "restarts when it is no longer paused: kubectl helenus resume " + c.Name
	}
	switch {
	case rack != "" && datacenter == "":
		return "", errors.New("--rack needs --datacenter: racks of two datacenters may have the same name")
	case datacenter == "":
		c.Spec.RestartedAt = &at
		return said, nil
	}
	var racks []string
	for i := range c.Spec.Datacenters {
		dc := &c.Spec.Datacenters[i]
		if dc.Name != datacenter {
			continue
		}
		if rack == "" {
			dc.RestartedAt = &at
			return said, nil
		}
		for j := range dc.Racks {
			if dc.Racks[j].Name == rack {
				dc.Racks[j].RestartedAt = &at
				return said, nil
			}
			racks = append(racks, dc.Racks[j].Name)
		}
		return "", fmt.Errorf("datacenter %s has no rack %q; it has %s", datacenter, rack, strings.Join(racks, ", "))
	}
	return "", noDatacenter(c, datacenter)
}

func setPaused(c *v1alpha1.CassandraCluster) (string, error) {
	c.Spec.Paused = true
	return "is paused: nothing new begins, what has begun continues to its end; kubectl helenus resume " + c.Name +
		" ends it", nil
}

// setStopped has a cluster stopped or started, or one of its datacenters.
func setStopped(c *v1alpha1.CassandraCluster, datacenter string, yes bool) (string, error) {
	stopped, what, suffix := &c.Spec.Stopped, "", ""
	if datacenter != "" {
		i := slices.IndexFunc(c.Spec.Datacenters, func(dc v1alpha1.Datacenter) bool { return dc.Name == datacenter })
		if i < 0 {
			return "", noDatacenter(c, datacenter)
		}
		stopped = &c.Spec.Datacenters[i].Stopped
		what, suffix = "datacenter "+datacenter+" ", " --datacenter "+datacenter
	}
	status := "kubectl helenus status " + c.Name + " shows "
	switch {
	case *stopped && yes:
		return "", fmt.Errorf("CassandraCluster %s: %sis asked to stop already; %show far it is", c.Name, what, status)
	case !*stopped && !yes:
		return "", fmt.Errorf("CassandraCluster %s: %sis not asked to stop; %swhat it waits for", c.Name, what, status)
	}
	*stopped = yes
	switch {
	case !yes:
		return what + "starts; " + status + "how far it is", nil
	case c.Spec.Paused:
		return what + "stops when it is no longer paused: kubectl helenus resume " + c.Name, nil
	}
	return what + "stops; " + status + "how far it is, kubectl helenus start " + c.Name + suffix +
		" starts it again", nil
}

func noDatacenter(c *v1alpha1.CassandraCluster, name string) error {
	var have []string
	for i := range c.Spec.Datacenters {
		have = append(have, c.Spec.Datacenters[i].Name)
	}
	return fmt.Errorf("CassandraCluster %s has no datacenter %q; it has %s", c.Name, name, strings.Join(have, ", "))
}

// resume ends the pause of a cluster, and the hold that its roll-out is in.
func resume(c *v1alpha1.CassandraCluster) (string, error) {
	held := ""
	if c.Status.Step != nil {
		held = c.Status.Step.Hold
	}
	if !c.Spec.Paused && (held == "" || held == c.Spec.Disruption.Resume) {
		return "", fmt.Errorf("CassandraCluster %s is neither paused nor held; kubectl helenus status %s shows what "+
			"it waits for", c.Name, c.Name)
	}
	c.Spec.Paused = false
	if held != "" {
		c.Spec.Disruption.Resume = held
	}
	return "is resumed; kubectl helenus status " + c.Name + " shows how far it is", nil
}
