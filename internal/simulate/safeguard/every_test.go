package safeguard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// excuse is why guards have no scenario here.
type excuse struct {
	why    string
	guards []string
}

// excused guards, by the package that declares them.
var excused = map[string][]excuse{
	"guard": {
		{"what such a node lacks it lacks whoever leaves; core/cluster's TestWhatKeepsANodeFromLeaving has it refuse",
			[]string{"RepairDue"}},
		{"it is for the sake of who drains a host: without it the scenario grow-drained of the sweep does not end",
			[]string{"HostCordoned"}},
		{"it spares work: a stream that is cut off begins again; core/cluster's TestWhatHoldsAWaveUp has it refuse",
			[]string{"StreamInProgress"}},
		{"core/cluster's TestWhatCannotBeRestored has them refuse each of these backups; without a description there " +
			"is nothing to make tickets of", []string{"BackupUnreadable", "BackupDoesNotFit"}},
		{"without it a node gives its snapshot up as soon as it has it; core/cluster's TestNoSnapshotIsTakenOnAFullVolume " +
			"has it refuse", []string{"DataVolumeFull"}},
		{"whoever is seen up is not lost: it is asked again before the ticket, when nobody has looked for long",
			[]string{"ReplacedMemberSeenUp"}},
	},
	"node": {
		{"the agent asks the same again as the operator's guards on a roll-out, of which TestTheGateOfARollOut takes " +
			"some away; core/node's tests have it refuse",
			[]string{"JVMNotAnswering", "TopologyChangeInProgress"}},
		{"MemberDiskMissing refuses the disk of a member that was replaced, too, where there is a record; " +
			"core/node's TestInWhosePlaceANodeStarts has it refuse", []string{"HostIDReplaced", "NoContactWithCluster"}},
		{"Cassandra refuses to start on such a disk, or joins with other tokens: the checker of leave-killed would " +
			"say it, and core/node's tests have it refuse", []string{"NodeHasLeft"}},
		{"nobody writes what a later release may: it comes with the operations of that",
			[]string{"TicketModeUnsupported", "UnknownOperation"}},
		{"internal/simulate/pod has it refuse, in TestOperationsOfARingThatHasGrown; the operator's guards on a " +
			"cleanup, whose scenarios are told, and Cassandra refuse the same", []string{"PendingRanges"}},
		{"the operator's guard of that name, and core/node's tests, have a cleanup refused by the same facts",
			[]string{"SchemaVersionsDiffer"}},
		{"it is what is left when JVMNotAbsent is taken away, whose scenario shows the ticket that it refuses",
			[]string{"DiskOfOtherTicket"}},
		{"the operator refuses such a spec, and Cassandra such a disk; core/node's tests have it refuse",
			[]string{"DiskOfLaterRelease"}},
		{"the operator replaces such a pod at once; version-reverted meets it where it is late, and core/node's tests",
			[]string{"ImageOfOtherRelease"}},
		{"the adoption's guard, and Cassandra itself, refuse the same: DiskNotAdoptable",
			[]string{"ClusterNameDiffers"}},
		{"without it there is nobody who could be asked, or nothing to start with: what it holds back fails by itself",
			[]string{
				"NodeNotNormal", "NativeTransportClosed", "ConfigurationRenderingFailed", "PodIncomplete",
			}},
		{"it says that something has failed and will be retried", []string{"ActionFailing"}},
		{"a node cannot remove a member that it does not see: Cassandra refuses the same",
			[]string{"RingViewsDiffer"}},
		{"the operator asks a node for one operation at a time; core/node's tests have it refuse",
			[]string{"ConflictingOperation"}},
		{"the operator asks for an import before it lets anybody in; core/node's tests have it refused",
			[]string{"ClientTrafficOpen"}},
		{"it keeps a JVM that is drained again and again from being restarted as often: scenario jvm-drained",
			[]string{"DrainedAgain"}},
		{"pod and record are those of one cluster by their owner, which the operator's preconditions see to: " +
			"TestRecordsByUIDAndVersion", []string{"RecordOfOtherCluster"}},
	},
	"cluster": {
		{"it names the Secrets that are missing, and what needs them fails by itself; core/cluster's " +
			"TestLostPasswordsAreNotMadeAgain", []string{"PasswordsMissing"}},
		{"it names the records that are missing while the spec is refused; what holds them back is that refusal, " +
			"without which there is nothing to say", []string{"RecordMissing"}},
		{"it names the node that a wave waits for, which is waited for without it: rollout-reverted",
			[]string{"ChangedNodeDown"}},
		{"it names the operation that is waited for without it; core/cluster's TestAJoinSuspendsACleanup",
			[]string{"MaintenanceRunning"}},
		{"it names the host that a wave waits for, which is waited for without it: rollout-deferred",
			[]string{"PodNotResized"}},
		{"it names the step that is waited for without it; core/cluster's TestWhatIsNotStopped",
			[]string{"OtherStepOpen"}},
		{"it carries out what a person wishes; core/cluster's TestAHoldIsResumedByItsName has it hold",
			[]string{"RollOutHeld"}},
		{"the agent asks the same of its own view; core/cluster's TestWhatHoldsAWaveUp has it refuse",
			[]string{"ConsistencyWouldBeLost"}},
	},
}

// told are the guards that have a scenario, by the package that declares them.
func told(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{"guard": {}, "node": {}, "cluster": {}}
	for _, c := range slices.Concat(growthCases(), formationCases(), adoptionCases(), replacementCases(), leaveCases()) {
		out["guard"][c.guard] = true
	}
	for _, c := range slices.Concat(agentCases(), rareCases(), twiceCases()) {
		out["node"][c.guard] = true
	}
	for _, c := range decisionCases() {
		out["cluster"][c.guard] = true
	}
	catches := catching(t)
	for name, alone := range map[string]struct{ of, test string }{
		"EncryptionStageIncomplete": {"guard", "TestAStageOfEncryptionIsCompleteFirst"},
		"AuthorityStageIncomplete":  {"guard", "TestAnAuthorityIsDroppedWhenNoNodeShowsIt"},
		"JoiningNodeNotReady":       {"guard", "TestWhoJoinsHasToAnswer"},
		"InitialNodeNotReady":       {"guard", "TestWhoIsAdoptedHasToAnswer"},
		"MemberSeenDown":            {"guard", "TestTheGateOfARollOut"},
		"ReleasesDiffer":            {"guard", "TestNothingJoinsBetweenReleases"},
		"HintsNotDelivered":         {"guard", "TestHintsAreAwaited"},
		"IncrementalRepairRunning":  {"guard", "TestIncrementalRepairsEndFirst"},
		"ClientTrafficOpen":         {"guard", "TestAStopIsInOrder"},
		"OnlyReplicas":              {"guard", "TestADatacenterIsNotStoppedWithTheOnlyReplicas"},
		"PlainClients":              {"guard", "TestPlainClientsAreNamedFirst"},
		"NoHostHasRoom":             {"guard", "TestNoPodIsMadeForWhichNoHostHasRoom"},
		"RemovedHostStillAnswers":   {"cluster", "TestAHostFromWhichAnAgentAnswersIsNotGone"},
		"RolesNotReady":             {"cluster", "TestPasswordsAreAskedInTurn"},
		"HostUnreachable":           {"cluster", "TestHostsAreLookedAtLiveBeforeForce"},
		"DisksUnknown":              {"cluster", "TestALostLedgerIsRebuiltFromAllDisks"},
	} {
		out[alone.of][name] = catches[alone.test]
	}
	return out
}

// catching are the tests of this package that have a trial caught without its guard, by their
// source.
func catching(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if test, is := d.(*ast.FuncDecl); is {
				ast.Inspect(test, func(n ast.Node) bool {
					call, is := n.(*ast.CallExpr)
					out[test.Name.Name] = out[test.Name.Name] || is && called(call) == "caught"
					return true
				})
			}
		}
	}
	return out
}

// calls that name a reason, with its place among their arguments. Notices hold nothing back, so
// they are none of them.
var calls = map[string]map[string]int{
	"node":    {"blocked": 1, "report": 0, "refuse": 0},
	"cluster": {"Block": 1}, // of a plan; of a step it is the first
}

// declared are the guards that a package of internal/core has, and the packages below it, by their
// source.
func declared(t *testing.T, name string) map[string]bool {
	t.Helper()
	files := token.NewFileSet()
	d := declarations{t: t, files: files, calls: calls[name], found: map[string]bool{}}
	err := filepath.WalkDir("../../core/"+name, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err == nil {
			d.look(f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.found) == 0 {
		t.Fatalf("no guard of core/%s was found in its source", name)
	}
	return d.found
}

type declarations struct {
	t     *testing.T
	files *token.FileSet
	calls map[string]int
	found map[string]bool
	// constants of a file by their names, those inside functions among them.
	constants map[string]ast.Expr
	// passed are the names of parameters: who calls with them names the guard.
	passed map[string]bool
}

func (d *declarations) look(f *ast.File) {
	d.constants, d.passed = map[string]ast.Expr{}, map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, v := range n.Values {
				d.constants[n.Names[i].Name] = v
			}
		case *ast.FuncType:
			for _, field := range n.Params.List {
				for _, p := range field.Names {
					d.passed[p.Name] = true
				}
			}
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if at, names := d.calls[called(n)]; names {
				if e, constant := n.Args[0].(*ast.SelectorExpr); constant && strings.HasPrefix(e.Sel.Name, "Blocked") {
					at = 0
				}
				d.name(n.Args[at])
			}
		case *ast.CompositeLit:
			if listOfGuards(n.Type) {
				for _, e := range n.Elts {
					d.name(e.(*ast.CompositeLit).Elts[0])
				}
			}
		}
		return true
	})
}

// called is the name of a function or method.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

// listOfGuards says that a type is []Guard[T].
func listOfGuards(e ast.Expr) bool {
	list, ok := e.(*ast.ArrayType)
	if !ok {
		return false
	}
	of, ok := list.Elt.(*ast.IndexExpr)
	if !ok {
		return false
	}
	name, ok := of.X.(*ast.Ident)
	return ok && name.Name == "Guard"
}

// name takes a reason in: a constant of the API, one of this file that stands for it, or what was
// named before it got here.
func (d *declarations) name(e ast.Expr) {
	switch e := e.(type) {
	case *ast.Ident:
		if value, constant := d.constants[e.Name].(*ast.SelectorExpr); constant {
			d.name(value)
			return
		}
		if d.passed[e.Name] {
			return
		}
	case *ast.SelectorExpr:
		if name, constant := strings.CutPrefix(e.Sel.Name, "Blocked"); constant {
			d.found[name] = true // a test of api/v1alpha1 holds constants to their values
			return
		}
		if e.Sel.Name == "Reason" || e.Sel.Name == "reason" {
			return
		}
	}
	d.t.Errorf("%s: a reason is neither a constant of the API nor one of this file", d.files.Position(e.Pos()))
}

// TestEveryGuardHasAScenario holds what the sources declare against what is told here, so that no
// guard can be forgotten.
func TestEveryGuardHasAScenario(t *testing.T) {
	scenarios := told(t)
	for _, of := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(of, func(t *testing.T) {
			guards, why := declared(t, of), map[string]string{}
			for _, e := range excused[of] {
				for _, name := range e.guards {
					why[name] = e.why
				}
			}
			for _, name := range slices.Sorted(maps.Keys(guards)) {
				switch {
				case !scenarios[of][name] && why[name] == "":
					t.Errorf("%s is neither taken away by a test of this package nor excused", name)
				case scenarios[of][name] && why[name] != "":
					t.Errorf("%s is excused (%s) and has a scenario", name, why[name])
				}
			}
			for _, name := range slices.Sorted(maps.Keys(why)) {
				if !guards[name] {
					t.Errorf("%s is excused and declared nowhere", name)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(scenarios[of])) {
				if !guards[name] {
					t.Errorf("%s has a scenario and is declared nowhere", name)
				}
			}
		})
	}
}
