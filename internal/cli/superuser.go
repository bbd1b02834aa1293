package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"helenus.io/helenus/api/v1alpha1"
)

const resetSuperuserLong = `Gives the superuser of a cluster the password of his Secret, whatever password he has: the
way out when nobody knows it (SuperuserPasswordUnknown). Nothing restarts, and nobody else is
let in meanwhile. Whoever logs in as the superuser by another password is refused from then
on; open sessions stay.

It asks twice, and creates a CassandraTask of the type ResetSuperuser, with your rights. With
--wait it says how far that is, and ends with it.`

func newSuperuser(s *settings) *cobra.Command {
	cmd := &cobra.Command{Use: "superuser", Short: "Reset the superuser of a cluster, whose password nobody knows"}
	yes, wait := false, false
	reset := &cobra.Command{
		Use: "reset CLUSTER", Short: "Give the superuser the password of his Secret, whatever he has", Args: oneCluster,
		Long:    resetSuperuserLong,
		Example: "  kubectl helenus superuser reset orders --wait",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.resetSuperuser(ctx, c, args[0], yes, wait)
		}),
	}
	reset.Flags().BoolVar(&yes, "yes", false, "do not ask")
	reset.Flags().BoolVar(&wait, "wait", false, "wait until it has finished")
	cmd.AddCommand(reset)
	return cmd
}

func (s *settings) resetSuperuser(ctx context.Context, c *connection, name string, yes, wait bool) error {
	cluster, err := c.cluster(ctx, name)
	if err != nil {
		return err
	}
	var of *v1alpha1.SuperuserStatus
	if security := cluster.Status.Security; security != nil && security.Authentication != nil {
		of = security.Authentication.Superuser
	}
	if of == nil {
		return fmt.Errorf("CassandraCluster %s has no superuser: nobody is asked for a password", name)
	}
	secret := cmp.Or(of.SecretName, v1alpha1.SuperuserName(name))
	if !yes {
		in := bufio.NewScanner(s.streams.In)
		for _, q := range []struct{ question, answer string }{
			{fmt.Sprintf("The superuser of %s gets the password of Secret %s, and loses the one that he has.\n"+
				"Type yes: ", name, secret), "yes"},
			{"Type the name of the cluster to have it done: ", name},
		} {
			if _, err := fmt.Fprint(s.streams.Out, q.question); err != nil {
				return err
			}
			if !in.Scan() || strings.TrimSpace(in.Text()) != q.answer {
				return errors.Join(errors.New("it was not confirmed, and nothing is done"), in.Err())
			}
		}
	}
	return s.createTask(ctx, c, name, tasking{wait: wait, deadline: time.Hour, ttl: 24 * time.Hour,
		spec: v1alpha1.TaskTemplate{Type: v1alpha1.TaskResetSuperuser}})
}
