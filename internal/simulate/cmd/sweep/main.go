// Command sweep breaks Helenus in a simulated world, at every point and in every way it knows, and
// says what did not hold.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"helenus.io/helenus/internal/simulate/apiserver"
	"helenus.io/helenus/internal/simulate/sweep"
	"helenus.io/helenus/internal/simulate/trial"
)

func main() {
	log.SetLogger(logr.Discard())
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var crds string
	c := &cobra.Command{
		Use:   "sweep",
		Short: "break Helenus in a simulated world, at every point and in every way",
		Long: `Break Helenus in a simulated world.

The real operator and the real agents run against an API server, hosts and a
Cassandra ring in memory, in virtual time. Every scenario is run once without a
fault; then once for each point of it and each fault that can be injected there. What
must hold is looked at with every write. A trial is named by one line and runs the
same whenever it is run:

  create-3/1/kill-after@operator:create:Pod/orders-dc1-r1-0:1

It is run where this command is, in internal/simulate: go run ./cmd/sweep …`,
		SilenceUsage: true, SilenceErrors: true,
	}
	c.PersistentFlags().StringVar(&crds, "crds", "../../config/crd", "`directory` of the custom resource definitions")
	c.AddCommand(runCommand(&crds), trialCommand(&crds), specCommand(&crds), listCommand())
	return c
}

func runCommand(crds *string) *cobra.Command {
	o := sweep.Options{}
	var names []string
	var part string
	var quotas, least map[string]int
	c := &cobra.Command{
		Use:   "run",
		Short: "run a sweep and print what was tried",
		Example: `  sweep run
  sweep run --scenarios create-3,adopt --faults kill-before,kill-after
  sweep run --part 3/20`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Kinds, err = compile(*crds); err != nil {
				return err
			}
			if o.Scenarios, err = scenarios(names); err != nil {
				return err
			}
			if o.Part, o.Parts, err = parsePart(part); err != nil {
				return err
			}
			if o.Quotas, err = parseCounts("--quota", quotas); err != nil {
				return err
			}
			atLeast, err := parseCounts("--least", least)
			if err != nil {
				return err
			}
			o.Progress = progress(cmd.ErrOrStderr())
			report := sweep.Run(o)
			return errors.Join(show(cmd.OutOrStdout(), o.Kinds, report), enough(report, atLeast))
		},
	}
	f := c.Flags()
	f.StringSliceVar(&names, "scenarios", nil, "`names` of the scenarios (default: all; see sweep list)")
	f.StringSliceVar(&o.Faults, "faults", nil, "`kinds` of faults (default: all; see sweep list)")
	f.Uint64Var(&o.Seed, "seed", 1, "the seed of every choice; of a share, the first of three")
	f.StringVar(&part, "part", "", "share of the points, as `i/n` with i from 1; it has each scenario with one of "+
		"three seeds (default: all of them)")
	f.StringToIntVar(&quotas, "quota", nil, "at most so many points of a class, as `class=n,…` (default: all of them)")
	f.StringToIntVar(&least, "least", nil, "fail unless so many points of a class injected, and, but for stale, one "+
		"at each verb on each kind of thing, as `class=n,…`")
	f.IntVar(&o.Workers, "workers", 0, "trials at the same time (default: one for each processor)")
	return c
}

func trialCommand(crds *string) *cobra.Command {
	quiet := false
	c := &cobra.Command{
		Use:   "trial NAME",
		Short: "run one trial and tell its scenario",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := compile(*crds)
			if err != nil {
				return err
			}
			t, err := trial.Parse(args[0])
			if err != nil {
				return err
			}
			t.Tell = !quiet
			result := sweep.Again(kinds, t)
			for _, line := range result.Trace {
				fmt.Fprintln(cmd.OutOrStdout(), line)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %s of virtual time, %d events, fault injected: %v\n", t,
				result.Took.Round(time.Millisecond), result.Events, result.Fired)
			if len(result.Violations) > 0 {
				return fmt.Errorf("%d violations:\n  %s", len(result.Violations),
					strings.Join(result.Violations, "\n  "))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&quiet, "quiet", false, "only the result, without the scenario")
	return c
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list scenarios and faults",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			out := cmd.OutOrStdout()
			fmt.Fprintln(out, "Scenarios:")
			for _, s := range trial.Catalogue() {
				fmt.Fprintf(out, "  %-20s %s\n", s.Name, s.About)
			}
			fmt.Fprintln(out, "Faults:")
			for _, kind := range trial.Kinds() {
				fmt.Fprintf(out, "  %-20s %s\n", kind, trial.About(kind))
			}
		},
	}
}

func compile(directory string) (*apiserver.Kinds, error) {
	kinds, err := trial.CompileKinds(directory)
	if err != nil {
		return nil, fmt.Errorf("--crds %s: %w", directory, err)
	}
	return kinds, nil
}

func scenarios(names []string) ([]*trial.Scenario, error) {
	if len(names) == 0 {
		return trial.Catalogue(), nil
	}
	var out []*trial.Scenario
	for _, name := range names {
		s, err := trial.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--scenarios: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
}

func parsePart(text string) (part, parts int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	a, b, _ := strings.Cut(text, "/")
	i, errI := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	if errI != nil || errN != nil || i < 1 || n < i {
		return 0, 0, fmt.Errorf("--part %s: want i/n with i from 1 to n, such as 3/20", text)
	}
	return i - 1, n, nil
}

func parseCounts(flag string, of map[string]int) (map[trial.Class]int, error) {
	out := map[trial.Class]int{}
	for name, n := range of {
		class := trial.Class(name)
		if !slices.Contains(trial.Classes(), class) || n < 0 {
			return nil, fmt.Errorf("%s %s=%d: want a class of %v and a number of 0 or more", flag, name, n,
				trial.Classes())
		}
		out[class] = n
	}
	return out, nil
}

// progress shows how far it is: twice a second on a terminal, twice a minute elsewhere.
func progress(out io.Writer) func(sweep.Report) {
	pause, begin, end := 30*time.Second, "", "\n"
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor
		pause, begin, end = 500*time.Millisecond, "\r", "   "
	}
	last, failed := time.Now(), 0
	return func(r sweep.Report) {
		for ; failed < len(r.Failures); failed++ {
			fmt.Fprintf(out, "%sfailed: %s\n", begin, command(r.Failures[failed]))
		}
		if time.Since(last) < pause {
			return
		}
		last = time.Now()
		if r.Planned == 0 {
			fmt.Fprintf(out, "%sthe scenarios are run without a fault%s", begin, end)
			return
		}
		fmt.Fprintf(out, "%s%d of %d points, %d failed, %s%s", begin, r.Run, r.Planned, len(r.Failures), r.Rate(), end)
	}
}

// command runs a trial that failed once more.
func command(f sweep.Failure) string {
	return fmt.Sprintf("cd internal/simulate && go run ./cmd/sweep trial '%s'", f.Trial)
}

func show(out io.Writer, kinds *apiserver.Kinds, r sweep.Report) error {
	fmt.Fprintln(out)
	r.Table(out)
	effective := 0
	for _, injected := range r.Injected {
		effective += injected
	}
	fmt.Fprintf(out, "\n%d of %d points in %s (%s), %s of virtual time; %d without effect, %d run twice, %d scenarios "+
		"without faults\n", r.Run, r.Planned, time.Since(r.Began).Round(time.Second), r.Rate(),
		r.Virtual.Round(time.Minute), r.Run-effective, r.Again, r.Alone)
	switch {
	case r.Planned == 0 && r.Alone == 0:
		return errors.New("there is no such point: nothing was tried")
	case len(r.Failures) == 0 && r.Run >= 300 && 2*effective < r.Run:
		return fmt.Errorf("%d of %d points had an effect, fewer than half", effective, r.Run)
	case len(r.Failures) == 0:
		return nil
	}
	const most = 30
	for i, f := range r.Failures {
		if i == most {
			fmt.Fprintf(out, "… and %d more\n", len(r.Failures)-most)
			break
		}
		fmt.Fprintf(out, "\n%s\n", command(f))
		for _, v := range f.Violations {
			fmt.Fprintf(out, "  %s\n", v)
		}
	}
	tell(out, kinds, r.Failures[0].Trial)
	return fmt.Errorf("%d trials failed", len(r.Failures))
}

// tell shows the scenario of a trial around what it violated first.
func tell(out io.Writer, kinds *apiserver.Kinds, t trial.Trial) {
	t.Tell = true
	scenario, before, after := excerpt(sweep.Again(kinds, t).Trace)
	fmt.Fprintf(out, "\nThe scenario of the first:\n")
	if before > 0 {
		fmt.Fprintf(out, "  … %d lines before these\n", before)
	}
	for _, line := range scenario {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if after > 0 {
		fmt.Fprintf(out, "  … %d lines after these\n", after)
	}
}

// excerpt of a scenario ends soon after the first violation, or where the scenario does, and says
// how many lines it leaves out on either side.
func excerpt(scenario []string) (lines []string, before, after int) {
	const most, behind = 100, 10
	end := len(scenario)
	if i := slices.IndexFunc(scenario, func(line string) bool {
		return strings.Contains(line, " "+trial.Violation+" ")
	}); i >= 0 {
		end = min(end, i+behind)
	}
	begin := max(0, end-most)
	return scenario[begin:end], begin, len(scenario) - end
}

// enough says whether as much has injected as is asked for, and something at each verb of each
// program on each kind of thing; but for views, which at some of them hide nothing.
func enough(r sweep.Report, least map[trial.Class]int) error {
	var missing []string
	for _, class := range trial.Classes() {
		n, asked := least[class]
		if !asked {
			continue
		}
		if injected := r.Of(class); injected < n {
			missing = append(missing, fmt.Sprintf("%d points of the class %s injected, fewer than %d", injected, class,
				n))
		}
		if spared := r.Spared(class); class != trial.ClassStale && len(spared) > 0 {
			missing = append(missing, fmt.Sprintf("no point of the class %s was injected at: %s", class,
				strings.Join(spared, ", ")))
		}
	}
	if len(missing) > 0 {
		return errors.New(strings.Join(missing, "; "))
	}
	return nil
}
