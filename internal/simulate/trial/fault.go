package trial

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"

	"helenus.io/helenus/internal/simulate/apiserver"
)

// Fault is one thing that goes wrong at one point.
type Fault struct {
	Kind string
	// View is the kind of objects that an operator sees wrongly, for faults of its views.
	View string
	At   Point
}

// String is the fault in one word, which ParseFault reads.
func (f Fault) String() string {
	if f.View != "" {
		return f.Kind + "=" + f.View + "@" + f.At.String()
	}
	return f.Kind + "@" + f.At.String()
}

// ParseFault reads what String wrote.
func ParseFault(text string) (Fault, error) {
	kind, at, found := strings.Cut(text, "@")
	if !found {
		return Fault{}, fmt.Errorf("fault %q: want <kind>@<point> or <kind>=<view>@<point>", text)
	}
	kind, view, _ := strings.Cut(kind, "=")
	k, known := kinds[kind]
	if !known {
		return Fault{}, fmt.Errorf("fault %q: there is no kind %q; there are %s", text, kind,
			strings.Join(Kinds(), ", "))
	}
	if (k.view > 0) != (view != "") {
		return Fault{}, fmt.Errorf("fault %q: a view is named for faults of views, and for no others", text)
	}
	m, err := ParsePoint(at)
	return Fault{kind, view, m}, err
}

// Kinds of faults by name.
func Kinds() []string {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// kind is what a fault of a name does.
type kind struct {
	// about says it in words.
	about string
	// class groups kinds for counting.
	class Class
	// fits says at which points it can be injected.
	fits func(m Point) bool
	// before and after are injected around a request; what they return is the answer.
	before func(t *run, r *apiserver.Request) error
	after  func(t *run, r *apiserver.Request) error
	// step is injected before a durable step of an agent, stepped after it.
	step, stepped func(t *run, node string)
	// world is injected beside the point, in an event of its own. It says whether anything is
	// otherwise then; a fault of a view is told later, if somebody looks.
	world func(t *run) bool
	// view is how many changes of what an operator sees must follow for the fault to make a
	// difference; 0 for faults that are not of a view.
	view int
	// may says in what the end may differ from that of the run without the fault, and why.
	may allowance
	// instead is another end of any act that is right after this fault, and differs says that the
	// end may be another though every act came to its own; nil for neither.
	instead, differs func(t *run) bool
	// unlike names the objects that may end otherwise after this fault, and stays is what the text
	// of any object is compared without; nil for none.
	unlike func(t *run) []string
	stays  *regexp.Regexp
}

// Class of a fault.
type Class string

// The classes.
const (
	ClassCrash Class = "crash" // a program is killed at a point
	ClassError Class = "error" // a request that writes is answered by an error
	ClassRead  Class = "read"  // one that reads is
	ClassAgent Class = "agent" // an agent is killed at a durable step
	ClassStale Class = "stale" // an operator sees what was
	ClassWorld Class = "world" // pods, JVMs, hosts, disks, objects
	ClassUser  Class = "user"  // a user changes their mind
)

// Classes in the order of a table.
func Classes() []Class {
	return []Class{ClassCrash, ClassError, ClassRead, ClassAgent, ClassStale, ClassWorld, ClassUser}
}

// allowance is what a fault may change in the end, and why.
type allowance struct {
	// jvmStarts more than otherwise, in all, and joins of them where nodes join; 0 is 1. Beside
	// them each node may start so often.
	jvmStarts, joins, each int
	// pods recreated, in all; -1 for any number.
	pods int
	// objects recreated of other kinds.
	objects bool
	// writes that were acknowledged by a quorum, of which a disk is lost.
	writes bool
	// claims that are left of nodes which were wanted in between.
	claims bool
	why    string
}

func (a allowance) because() string {
	if a.why == "" {
		return ""
	}
	return " (" + a.why + ")"
}

// edited is what an edit may change that is taken back: it reaches each node in its join or in its
// turn, and so does what takes it back.
var edited = allowance{each: 2, pods: -1, objects: true, claims: true,
	why: "each node takes the edit, and what takes it back"}

// claimLeft is the notice of claims that are left of nodes which were wanted in between.
var claimLeft = regexp.MustCompile(`"notices":\[\{"message":"claim [^{}]*"reason":"ClaimUnused"[^{}]*\}\],?`)

// remade is what an edit may change that has every pod recreated, twice.
var remade = allowance{jvmStarts: 18, pods: -1, objects: true, claims: true,
	why: "every node starts again with the image that counts then, and once more if it found no seed because the " +
		"seeds' pods were recreated just then"}

const (
	restartPause = 3 * time.Second
	staleFor     = time.Minute
	mergedFor    = 10 * time.Second
	awayFor      = 2 * time.Minute
	// secretsLooked is in how long an operator has looked at a Secret that it does not watch, if it
	// looks every ten minutes and believes what it saw for as long.
	secretsLooked = 25 * time.Minute
	clockStep     = 2 * time.Minute
	// deadline is how long a client waits for an answer.
	deadline = 10 * time.Second
	slowness = 1500 * time.Millisecond
)

func anyRequest(m Point) bool { return m.Who != WhoDisk }
func anyWrite(m Point) bool   { return m.writes() }
func operatorWrite(m Point) bool {
	return m.Who == whoOperator && m.writes()
}
func durableStep(m Point) bool { return m.Who == WhoDisk }
func anyStep(m Point) bool     { return anyWrite(m) || durableStep(m) }

func answer(f func(*apiserver.Request) error) func(*run, *apiserver.Request) error {
	return func(_ *run, r *apiserver.Request) error { return f(r) }
}

// noAnswer has a client wait for as long as it will.
func noAnswer(t *run, r *apiserver.Request) error {
	t.w.Line.Sleep(deadline)
	return apiserver.ClientTimeout(r)
}

var kinds map[string]kind

func init() {
	kinds = map[string]kind{
		"kill-before": {
			about: "the program that makes a request is killed before it has an effect", class: ClassCrash,
			fits:   anyWrite,
			before: func(t *run, r *apiserver.Request) error { t.killCaller(r); return nil },
		},
		"kill-after": {
			about: "the program that makes a request is killed after it had its effect", class: ClassCrash,
			fits:  anyWrite,
			after: func(t *run, r *apiserver.Request) error { t.killCaller(r); return nil },
		},
		"conflict": {about: "a write is answered 409", class: ClassError, fits: anyWrite,
			before: answer(apiserver.Conflict)},
		// No program asks for the code of an answer that is 429, 500 or 503.
		"unavailable": {about: "a request is answered 503", class: ClassError, fits: anyRequest,
			before: answer(apiserver.Unavailable)},
		"forbidden": {about: "a request is answered 403", class: ClassError, fits: anyRequest,
			before: answer(apiserver.Forbidden)},
		"timeout": {about: "a request times out without effect", class: ClassError, fits: anyRequest,
			before: answer(apiserver.ServerTimeout)},
		"timeout-effect": {about: "a write has its effect and times out", class: ClassError, fits: anyWrite,
			after: answer(apiserver.ServerTimeout)},
		"no-answer": {about: "a request is lost, and its client gives up waiting", class: ClassError,
			fits: anyRequest, before: noAnswer},
		"no-answer-effect": {about: "a write has its effect, its answer is lost, and its client gives up waiting",
			class: ClassError, fits: anyWrite, after: noAnswer},

		"agent-killed-before": {
			about: "an agent is killed before a durable step", class: ClassAgent, fits: durableStep,
			step: (*run).killAgent,
		},
		"agent-killed-after": {
			about: "an agent is killed after a durable step", class: ClassAgent, fits: durableStep,
			stepped: (*run).killAgent,
		},

		"second-operator": {
			about: "another operator believes that it leads, for a minute", class: ClassWorld, fits: operatorWrite,
			world: (*run).secondOperator,
		},
		"jvm-killed": {
			about: "a JVM is killed", class: ClassWorld, fits: anyStep,
			world: (*run).killJVM,
			may:   allowance{jvmStarts: 1, why: "the killed JVM starts once more"},
		},
		"pod-deleted": {
			about: "somebody deletes a pod", class: ClassWorld, fits: anyWrite,
			world: (*run).deletePod,
			may:   allowance{jvmStarts: 1, pods: 1, why: "the deleted pod is recreated, and its JVM starts in it"},
		},
		"evicted": {
			about: "a pod is evicted", class: ClassWorld, fits: anyWrite,
			world: (*run).evict,
			may:   allowance{jvmStarts: 1, pods: 1, why: "the evicted pod is recreated, and its JVM starts in it"},
		},
		"host-lost": {
			about: "a host is lost and comes back with its disks after two minutes", class: ClassWorld, fits: anyWrite,
			world: (*run).loseHost,
			may:   allowance{jvmStarts: 3, pods: -1, why: "what was on the host starts again"},
		},
		"partition": {
			about: "a host is cut off from everything for two minutes", class: ClassWorld, fits: anyWrite,
			world: (*run).partition,
			may:   allowance{jvmStarts: 2, pods: -1, why: "what could not start in the meantime is retried"},
		},
		"zone-lost": {
			about: "all hosts of a zone are lost and come back with their disks after two minutes", class: ClassWorld,
			fits:  anyWrite,
			world: (*run).loseZone,
			may:   allowance{jvmStarts: 9, pods: -1, why: "what was in the zone starts again"},
		},
		"disk-lost": {
			about: "a host is lost and comes back without its disks after two minutes", class: ClassWorld,
			fits:  anyWrite,
			world: (*run).loseDisk,
			may: allowance{jvmStarts: 3, joins: 6, pods: -1, writes: true,
				why: "what was on the host starts again, as far as it may, who joins until the ring has forgotten " +
					"the join that was on the disk, and a write can have been on no more than two disks"},
			instead: (*run).tellsOfLostDisk,
			differs: (*run).hasReplaced,
		},
		"slow-node": {
			about: "everything takes one and a half seconds longer on a host, for two minutes", class: ClassWorld,
			fits:  anyWrite,
			world: (*run).slow,
		},
		"clock-forward": {
			about: "the program that makes a request ends, and starts again by a clock that is two minutes fast",
			class: ClassWorld, fits: anyWrite,
			world: func(t *run) bool { return t.skew(clockStep) },
		},
		"clock-back": {
			about: "the program that makes a request ends, and starts again by a clock that is two minutes slow",
			class: ClassWorld, fits: anyWrite,
			world: func(t *run) bool { return t.skew(-clockStep) },
		},
		"agent-blind": {
			about: "the watches of an agent tell it nothing for a minute", class: ClassStale, fits: anyWrite,
			world: (*run).blind,
		},
		"edit-reverted": {
			about: "the user changes a setting, and takes it back a minute later", class: ClassUser, fits: anyWrite,
			world: func(t *run) bool { return t.edit(staleFor, setReads) },
			may:   edited,
			instead: func(t *run) bool {
				// What is recreated then follows the spec.
				return t.refusesBack("concurrent_reads") ||
					t.Scenario.Keeps && t.formedByEdit("concurrent_reads", "needs a restart of its JVM")
			},
			differs: func(t *run) bool {
				return t.formedByEdit("concurrent_reads") ||
					t.Scenario.Forgets && t.formedByEdit("needs a restart of its JVM")
			},
		},
		"edit-kept": {
			about: "the user changes a setting, and leaves it so", class: ClassUser, fits: anyWrite,
			world:  func(t *run) bool { return t.editForGood(setReads) },
			may:    edited,
			unlike: (*run).saysThatItDiffers, stays: reads,
		},
		"edit-at-once": {
			about: "the user changes a setting, and takes it back at once", class: ClassUser, fits: anyWrite,
			world: func(t *run) bool { return t.edit(50*time.Millisecond, setReads) },
			may:   edited,
		},
		"edit-contradicting": {
			about: "the user asks for more nodes, then for a rack less, and takes both back a minute later",
			class: ClassUser, fits: anyWrite,
			world:   func(t *run) bool { return t.edit(staleFor, moreNodes, fewerRacks) },
			may:     edited,
			stays:   claimLeft,
			instead: func(t *run) bool { return t.hasGivenUp() || t.anotherJoined() },
		},
		"edit-image": {
			about: "the user names an image that cannot be pulled, and takes it back two minutes later",
			class: ClassUser, fits: anyWrite,
			world: func(t *run) bool {
				t.w.Kube.Break(brokenImage)
				return t.edit(2*staleFor, wrongImage)
			},
			may:   remade,
			stays: renewal,
		},
		"paused": {
			about: "the user pauses the cluster for a minute", class: ClassUser, fits: anyWrite,
			world: func(t *run) bool { return t.edit(staleFor, pause) },
		},
		"ledger-deleted": {
			about: "somebody deletes the ledger", class: ClassWorld, fits: operatorWrite,
			world:   (*run).deleteLedger,
			may:     allowance{objects: true, why: "the ledger is recreated"},
			instead: (*run).waitsForLostNode, unlike: (*run).cleansUpLater,
		},
		"records-deleted": {
			about: "somebody deletes all records of nodes", class: ClassWorld, fits: operatorWrite,
			world: (*run).deleteRecords,
			may: allowance{objects: true, jvmStarts: 3, pods: -1,
				why: "the records are recreated; a pod that has not joined may be, too"},
			instead: (*run).waitsForLostRecord, unlike: (*run).cleansUpLater,
		},
		"child-deleted": {
			about: "somebody deletes an object that the cluster has beside its pods and claims", class: ClassWorld,
			fits:  operatorWrite,
			world: (*run).deleteChild,
			may: allowance{objects: true, jvmStarts: 1, pods: -1,
				why: "the object is recreated; with a record the pod of a node that has not joined may be, too"},
			instead: (*run).waitsForLostRecord, unlike: (*run).cleansUpLater,
		},
		"child-edited": {
			about: "somebody edits such an object, or the labels of a pod or a claim", class: ClassWorld,
			fits:  operatorWrite,
			world: (*run).editChild,
		},
		"status-lost": {
			about: "the status of all our objects is lost, as a restore does", class: ClassWorld, fits: operatorWrite,
			world: (*run).loseStatus,
		},
	}
	for lag, changes := range map[int]int{1: 1, 2: 2, 5: 3} {
		kinds[fmt.Sprintf("stale-%d", lag)] = kind{
			about: fmt.Sprintf("the operator's view of a kind misses the last changes, up to %d of them, for a minute",
				lag), class: ClassStale, fits: anyWrite, view: changes,
			world: func(t *run) bool { return t.stale(lag, staleFor, false) }, instead: (*run).grewUnaware,
		}
	}
	kinds["stale-restart"] = kind{
		about: "the operator's view of a kind stands still until it is restarted a minute later", class: ClassStale,
		fits: anyWrite, view: 1,
		world: func(t *run) bool { return t.stale(1<<20, staleFor, true) }, instead: (*run).grewUnaware,
	}
	kinds["skipped"] = kind{
		about: "the operator's view gets the next change of a kind without waking anybody", class: ClassStale,
		fits: anyWrite, view: 1,
		world: func(t *run) bool { t.skipping = t.Fault.View; return false },
	}
	kinds["merged"] = kind{
		about: "the operator's watch of a kind breaks, and ten seconds later it sees what has become of each object " +
			"meanwhile", class: ClassStale, fits: anyWrite, view: 2,
		world: func(t *run) bool { return t.merge(mergedFor) }, instead: (*run).grewUnaware,
	}
}
