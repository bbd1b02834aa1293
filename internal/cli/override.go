package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

const overrideLong = `Has what a guard of the operator finds hold nothing back for a time. GUARD is a reason of
status.blocked: HostCordoned, StreamInProgress, TooLittleDisk, CleanupDue, NoHostHasRoom or
PlainClients. Others protect writes, disks, or that a node is one process, and cannot be
overruled.

It writes an exception into the spec of the CassandraCluster, with your rights.`

// newOverride overrules a guard for a time.
func newOverride(s *settings) *cobra.Command {
	reason, length := "", time.Duration(0)
	cmd := &cobra.Command{
		Use: "override-guard CLUSTER GUARD", Short: "Have what a guard finds hold nothing back for a time",
		Long: overrideLong, Args: clusterAnd("a guard"),
		Example: "  kubectl helenus override-guard orders HostCordoned --for 1h --reason 'it is drained next week'",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.override(ctx, c, args[0], v1alpha1.OverridableGuard(args[1]), reason, length)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read")
	cmd.Flags().DurationVar(&length, "for", time.Hour, "how long it holds, at most 168h")
	return cmd
}

// override writes the exception, in place of an earlier one for the guard. The API server refuses a
// guard that cannot be overruled.
func (s *settings) override(ctx context.Context, c *connection, name string, overruled v1alpha1.OverridableGuard,
	reason string, length time.Duration) error {
	if reason == "" {
		return errors.New("say why by --reason: others see what was decided, and wonder")
	}
	if err := checkLength(length); err != nil {
		return err
	}
	cluster, err := c.cluster(ctx, name)
	if err != nil {
		return err
	}
	e := v1alpha1.Exception{Name: "override-" + strings.ToLower(string(overruled)), Reason: reason,
		Type: v1alpha1.ExceptionOverrideGuard, Guard: overruled,
		Until: metav1.NewTime(s.now().Add(length)).Rfc3339Copy()}
	of := func(other v1alpha1.Exception) bool { return other.Type == e.Type && other.Guard == overruled }
	if err := c.setExceptions(ctx, cluster, of, e); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.streams.Out, "guard %s is overruled until %s; kubectl helenus status %s shows what it has "+
		"found\n", overruled, e.Until.UTC().Format(time.RFC3339), name)
	return err
}
