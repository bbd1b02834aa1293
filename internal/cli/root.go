package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"helenus.io/helenus/internal/inspectapi"
)

// Streams are where a command writes: its answer, and what is beside it.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// settings are what all commands share.
type settings struct {
	streams   Streams
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// operatorNamespace is where the operator runs.
	operatorNamespace string
	now               func() time.Time
}

const rootLong = `kubectl helenus shows Cassandra clusters that Helenus runs.

  status           what a cluster is like: conditions, the step that is open, every node
  plan             what the operator would do next, and what keeps it from doing so
  console          both, kept up to date, in your browser
  replicas         which nodes hold a keyspace, or a key of it
  backups          the backups of a cluster
  report           all that is known of a cluster, in a file to pass on
  doctor           what is wrong with the installation and with clusters
  uninstall        what is left, and what would hang, if Helenus is removed
  nodetool         run nodetool in the pod of a node

and, with your rights, changes what they are asked to do:

  restart          restart every JVM of a cluster, a datacenter or a rack
  pause            begin nothing new on a cluster
  resume           end a pause, and the hold of a roll-out
  stop             stop all nodes of a cluster, or of a datacenter
  start            start all nodes of a cluster, or of a datacenter, that is stopped
  task             have nodes run an operation, such as cleanup, repair or restart
  backup           put what all nodes of a cluster hold into a store
  verify           look for the files of a backup in its store, and read them
  restore          bring tables of a backup back into a cluster
  debug            stop Cassandra on a node, and keep its pod to look into
  replace          have a lost node replaced for which that is recommended, or give up a disk
  repair           have a node repaired for which that is recommended
  remove-first     have a node leave before others of its rack
  start-anyway     let a node start that was down for longer than deletions are kept
  roles-ready      say that the roles of your applications are made
  override-guard   have what a guard finds hold nothing back for a time
  superuser reset  give the superuser the password of his Secret, whatever he has
  rotate-authority replace a certificate authority of a ring
  clear-leftovers  remove what a cluster that is gone has left

Clusters are CassandraClusters, CassandraNodes are their nodes; kubectl get, describe and
edit work on both. The connection is that of kubectl: --kubeconfig, --context,
--namespace, and also --server, --token, --user, --cluster and the like.`

// New is the command with its subcommands. Version is that of the build.
func New(version string, streams Streams) *cobra.Command {
	s := &settings{streams: streams, rules: clientcmd.NewDefaultClientConfigLoadingRules(), now: time.Now}
	root := &cobra.Command{
		Use:           "helenus",
		Short:         "Show Cassandra clusters that Helenus runs, and steer them",
		Long:          rootLong,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// As a plugin it is called by two words.
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl helenus"},
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.CompletionOptions.DisableDefaultCmd = true
	bind(s, root.PersistentFlags())
	root.AddCommand(newStatus(s), newPlan(s), newConsole(s), newReplicas(s), newDebug(s), newTask(s), newNodetool(s),
		newClearLeftovers(s), newReport(s, version), newUninstall(s), newDoctor(s, version), newSuperuser(s),
		newBackup(s), newBackups(s), newVerify(s), newRestore(s), newRotateAuthority(s))
	root.AddCommand(s.command(startAnyway), newReplace(s), s.command(repair), s.command(removeFirst),
		s.command(rolesReady), newOverride(s))
	root.AddCommand(newRollOut(s)...)
	return root
}

// bind adds the flags of the connection, named as kubectl names them. Only those that are used
// every day are listed by --help.
func bind(s *settings, flags *pflag.FlagSet) {
	clientcmd.BindOverrideFlags(&s.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "context" && f.Name != "namespace" })
	flags.Lookup("context").Usage = "the `context` of the kubeconfig to use"
	flags.Lookup("namespace").Usage = "the `namespace` of the cluster; that of the context if not given"
	flags.StringVar(&s.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "",
		"the kubeconfig `file`; $KUBECONFIG or ~/.kube/config if not given")
	flags.StringVar(&s.operatorNamespace, "operator-namespace", inspectapi.DefaultNamespace,
		"the `namespace` that the operator runs in")
}
