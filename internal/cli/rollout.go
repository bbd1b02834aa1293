package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// newRollOut are the commands by which a person steers roll-outs. Each changes the spec of a
// CassandraCluster, with the rights of that person.
func newRollOut(s *settings) []*cobra.Command {
	var datacenter, rack string
	restart := s.changing("restart", "Restart every JVM of a cluster, a datacenter or a rack, one after the other",
		func(c *v1alpha1.CassandraCluster) (string, error) {
			return restartAt(c, datacenter, rack, metav1.NewTime(s.now()).Rfc3339Copy())
		})
	restart.Flags().StringVar(&datacenter, "datacenter", "", "only this `datacenter`")
	restart.Flags().StringVar(&rack, "rack", "", "only this `rack` of the datacenter")
	return []*cobra.Command{
		restart,
		s.changing("pause", "Begin nothing new on a cluster", func(c *v1alpha1.CassandraCluster) (string, error) {
			c.Spec.Paused = true
			return "is paused; a wave that is under way goes on to its end", nil
		}),
		s.changing("resume", "End a pause, and the hold of a roll-out", resume),
	}
}

// changing is a command that changes the spec of one cluster, and says what follows.
func (s *settings) changing(verb, short string,
	change func(*v1alpha1.CassandraCluster) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " CLUSTER", Short: short, Args: oneCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.change(cmd.Context(), c, args[0], change)
		},
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
	const said = "restarts; kubectl helenus status shows how far it is"
	switch {
	case rack != "" && datacenter == "":
		return "", errors.New("--rack needs --datacenter: racks of two datacenters may have the same name")
	case datacenter == "":
		c.Spec.RestartedAt = &at
		return said, nil
	}
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
		}
		return "", fmt.Errorf("datacenter %s has no rack %q", datacenter, rack)
	}
	return "", fmt.Errorf("CassandraCluster %s has no datacenter %q", c.Name, datacenter)
}

// resume ends the pause of a cluster, and the hold that its roll-out is in.
func resume(c *v1alpha1.CassandraCluster) (string, error) {
	held := ""
	if c.Status.Step != nil {
		held = c.Status.Step.Hold
	}
	if !c.Spec.Paused && (held == "" || held == c.Spec.Disruption.Resume) {
		return "", fmt.Errorf("CassandraCluster %s is neither paused nor held", c.Name)
	}
	c.Spec.Paused = false
	if held != "" {
		c.Spec.Disruption.Resume = held
	}
	return "goes on", nil
}
