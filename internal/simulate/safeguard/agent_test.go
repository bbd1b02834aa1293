package safeguard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/agent/execute"
	"helenus.io/helenus/internal/agent/journal"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/simulate/pod"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// host is a wrap of what agents touch.
func host(change func(s *pod.Sandbox, h *execute.Host)) world.Wrap {
	return world.Wrap{Host: func(s *pod.Sandbox, h execute.Host) execute.Host {
		change(s, &h)
		return h
	}}
}

// disk changes what an agent finds on its volumes before it has marked them, which it may whosever
// they are.
type disk struct {
	execute.Disk
	sandbox *pod.Sandbox
	find    func(node.Disk) node.Disk
	marked  bool
	// always has find asked about disks that are marked, too.
	always bool
}

func (d *disk) Inspect(ctx context.Context) node.Disk {
	found := d.Disk.Inspect(ctx)
	if d.marked && !d.always {
		return found
	}
	return d.find(found)
}

func (d *disk) Mark(volumes []string, cluster types.UID, name string, from types.UID) error {
	d.marked = true
	d.sandbox.Content(v1alpha1.VolumeData).Files.Put(journal.MarkerPath, nil)
	return d.Disk.Mark(volumes, cluster, name, from)
}

// finding is a wrap in which agents find something else on their disks than there is.
func finding(find func(node.Disk) node.Disk) world.Wrap {
	return host(func(s *pod.Sandbox, h *execute.Host) { h.Disk = &disk{Disk: h.Disk, sandbox: s, find: find} })
}

// empty disks they all seem to be.
func empty(d node.Disk) node.Disk {
	for i := range d.Volumes {
		d.Volumes[i].Marker, d.Volumes[i].HasData = nil, false
	}
	d.Bootstrapped, d.HasData, d.HostID, d.ClusterName = "", false, "", ""
	return d
}

// pretending disks are a member's that can be read, once they were marked and then lost or damaged.
func pretending() world.Wrap {
	markers, broken := map[string]*node.Marker{}, map[string]bool{}
	return host(func(s *pod.Sandbox, h *execute.Host) {
		h.Disk = &disk{Disk: h.Disk, sandbox: s, always: true, find: func(d node.Disk) node.Disk {
			name := s.Name()
			if d.Problem != "" || markers[name] != nil && d.Volumes[0].Marker == nil {
				broken[name] = true
			}
			if d.Problem == "" && d.Volumes[0].Marker != nil {
				markers[name] = d.Volumes[0].Marker
			}
			if broken[name] {
				d.Problem, d.HasData, d.Bootstrapped = "", true, node.WordCompleted
				d.Volumes = []node.Volume{{Name: v1alpha1.VolumeData, Marker: markers[name], HasData: true}}
			}
			return d
		}}
	})
}

// strangers answers questions to peers without what they know of others.
func strangers() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = ignorant{h.Peers} })
}

type ignorant struct{ execute.Peers }

func (p ignorant) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := p.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		answers[i].Addresses, answers[i].AtAddress, answers[i].OfHostID, answers[i].TrafficOpened = nil, nil, nil, false
	}
	return answers, silent
}

// sightless has peers say nothing of whom they see up.
func sightless() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Peers = unseeing{h.Peers} })
}

type unseeing struct{ execute.Peers }

func (p unseeing) Ask(ctx context.Context, addresses []string, address, hostID string) ([]facts.Peer, []string) {
	answers, silent := p.Peers.Ask(ctx, addresses, address, hostID)
	for i := range answers {
		answers[i].Ring, answers[i].Up = false, nil
	}
	return answers, silent
}

// catalogued is a scenario of the catalogue.
func catalogued(name string) *trial.Scenario {
	s, err := trial.Find(name)
	if err != nil {
		panic(err) // it is one of the catalogue
	}
	return s
}

// deletionsForgotten hides for how long tables keep deletions.
func deletionsForgotten() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.JVM = forgotten{h.JVM} })
}

type forgotten struct{ execute.JVM }

func (forgotten) Tables(context.Context) ([]facts.Table, time.Duration, error) { return nil, 0, nil }

// phase says that a node is in a phase.
func phase(name string, p v1alpha1.NodePhase) func(*world.World) bool {
	return func(w *world.World) bool {
		n, ok := w.Server.Object("CassandraNode",
			types.NamespacedName{Namespace: world.Namespace, Name: name}).(*v1alpha1.CassandraNode)
		return ok && n.Status.Phase == p
	}
}

const first = clusterName + "-dc1-r1-0"

func lose(w *world.World) error {
	w.Kube.Lose(w.Kube.Hosts()[0])
	return nil
}

func notServing(w *world.World) bool { return !trial.Serves(w) }

// diskLost is the scenario of a host that comes back without its disk.
func diskLost() *trial.Scenario {
	return trial.Named("disk-lost", "a host is lost and comes back with an empty disk", true, nil,
		trial.Act{Name: "lose", Do: lose, Until: notServing, Within: 10 * time.Minute},
		trial.Act{Name: "return", Do: func(w *world.World) error {
			w.Kube.Return(w.Kube.Hosts()[0], false)
			return nil
		},
			Until: phase(first, v1alpha1.PhaseDataLost), Within: 15 * time.Minute})
}

// crossed is the scenario of two pods that get each other's addresses.
func crossed() *trial.Scenario {
	starts := map[string]int{}
	inVain := func(*world.World) []string {
		if n := starts[first]; n > 1 {
			return []string{fmt.Sprintf("node %s was started %d times at the address of another member, in vain", first,
				n-1)}
		}
		return nil
	}
	return trial.Named("addresses-crossed", "two pods are deleted, and each comes back at the address of the other",
		true, nil,
		trial.Act{Name: "delete two pods", Do: func(w *world.World) error {
			clear(starts)
			watchStarts(w, func(s *pod.Sandbox) { starts[s.Name()]++ })
			all := w.Pods.Sandboxes()
			w.Kube.HandAddress(all[0].Name(), all[1].Address())
			w.Kube.HandAddress(all[1].Name(), all[0].Address())
			for len(w.Operators()) > 0 { // so that both addresses are free when others are made
				w.Operators()[0].Kill()
			}
			for _, s := range all[:2] {
				if err := deletePod(w, s.Name()); err != nil {
					return err
				}
			}
			return nil
		}, Until: func(w *world.World) bool { return len(w.Pods.Sandboxes()) == 1 }, Within: 5 * time.Minute},
		trial.Act{Name: "an operator starts", Do: func(w *world.World) error {
			w.StartOperator(world.Install)
			return nil
		}, Until: func(w *world.World) bool { return phase(first, v1alpha1.PhaseAddressTaken)(w) || starts[first] > 3 },
			Within: 15 * time.Minute},
		trial.Act{Name: "a user deletes one again", Do: func(w *world.World) error { return deletePod(w, first) },
			Until: trial.Serves, Within: 15 * time.Minute},
		unharmed(inVain))
}

// longAway is the scenario of a node that is down when rows are deleted, until the others have
// forgotten the deletions.
func longAway() *trial.Scenario {
	s := catalogued("down-too-long").With("down-while-deleting", "an hour passes", waiting(time.Minute),
		trial.Act{Name: "delete rows", Do: deleteRows})
	back := &s.Acts[len(s.Acts)-1]
	held := back.Until
	back.Until = func(w *world.World) bool { return held(w) || trial.Serves(w) }
	return s
}

// deleteRows has a client delete the rows that it wrote, from the table that keeps deletions for
// half an hour, through a node that is there.
func deleteRows(w *world.World) error {
	for i := range 20 {
		if err := sandbox(w, last).JVM().Delete(world.Keyspace, "short", fmt.Sprintf("row-%d", i),
			ring.Quorum); err != nil {
			return err
		}
	}
	return nil
}

// allRestored is the scenario of a restore of the API server's objects from before the ring formed,
// while a host has lost its disk.
func allRestored() *trial.Scenario {
	return trial.Named("all-restored", "the records are deleted and the ledger is put back to its beginning, while a "+
		"host comes back with an empty disk", true, nil,
		trial.Act{Name: "lose", Do: lose, Until: notServing, Within: 10 * time.Minute},
		trial.Act{Name: "restore", Do: func(w *world.World) error {
			if err := putBack(w); err != nil {
				return err
			}
			for _, o := range w.Server.Objects("CassandraNode") {
				if err := w.User().Delete(context.Background(),
					&v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(),
						Name: o.GetName()}}); err != nil {
					return err
				}
			}
			w.Kube.Return(w.Kube.Hosts()[0], false)
			w.Line.RunFor(2 * time.Minute)
			return nil
		}})
}

// damaged is the scenario of a disk that cannot be read.
func damaged() *trial.Scenario {
	return trial.Named("disk-damaged", "the disk of a node is damaged, and mended by a user", true, nil,
		trial.Act{Name: "damage", Do: func(w *world.World) error {
			s := w.Pods.Sandboxes()[0]
			s.Content(v1alpha1.VolumeData).Data.Corrupt("a table of system.local is damaged")
			s.JVM().Kill()
			return nil
		}, Until: phase(first, v1alpha1.PhaseFailed), Within: 15 * time.Minute})
}

// behind is the scenario of a node of a new datacenter that is cut off while keyspaces are extended
// to that, and is told to copy them before it has heard of it.
func behind() *trial.Scenario {
	const newest = clusterName + "-dc2-r3-0"
	var idle []string
	return growing("grow-behind", "a host is cut off while keyspaces are extended to the datacenter that is added",
		trial.Act{Name: "watch rebuilds", Do: func(w *world.World) error {
			idle = nil
			ended(w, v1alpha1.OperationSucceeded, func(node string, o v1alpha1.OperationStatus) {
				if strings.Contains(o.ID, "/rebuild") && !strings.Contains(o.Message, world.Keyspace) {
					idle = append(idle, fmt.Sprintf("node %s counts as rebuilt without keyspace %s: %s", node,
						world.Keyspace, o.Message))
				}
			})
			return nil
		}},
		respec("grow", trial.Operates(v1alpha1.OperationAlterSystemKeyspaces), extended()),
		trial.Act{Name: "cut off", Do: func(w *world.World) error {
			w.Partition(sandbox(w, newest).Host(), true)
			return nil
		}, Until: func(w *world.World) bool {
			return slices.ContainsFunc(recordAt(w, newest).Spec.Operations,
				func(o v1alpha1.OperationIntent) bool { return o.Type == v1alpha1.OperationRebuild })
		}, Within: 10 * time.Minute},
		trial.Act{Name: "heal", Do: func(w *world.World) error {
			w.Heal(sandbox(w, newest).Host())
			return nil
		}, Until: trial.Serves, Within: 30 * time.Minute},
		unharmed(func(*world.World) []string { return idle }))
}

// unconditional operations are begun whatever the schema of their node is.
func unconditional() world.Wrap {
	return host(func(_ *pod.Sandbox, h *execute.Host) { h.Record = unasked{h.Record} })
}

type unasked struct{ recordOf }

func (u unasked) Record() (*v1alpha1.CassandraNode, bool) {
	record, known := u.recordOf.Record()
	if record == nil {
		return nil, known
	}
	record = record.DeepCopy()
	for _, o := range record.Spec.Operations {
		if o.Type != v1alpha1.OperationAlterKeyspaces && o.Arguments != nil {
			o.Arguments.KeyspaceReplication = nil
		}
		if o.Type == v1alpha1.OperationRebuild { // one that is named, and has no replicas, fails it
			o.Arguments.Keyspaces = nil
		}
	}
	return record, known
}

// agentCase is the scenario of a guard of the agents.
type agentCase struct {
	guard    string
	scenario *trial.Scenario
	// doubled are guards of the operator that refuse the same.
	doubled []string
	// world is what the scenario takes place in; away is that without the guard.
	world, away world.Wrap
	// by is what is said without it.
	by string
}

// try wants the guard to refuse, and the harm to be caught without it.
func (c agentCase) try(t *testing.T) {
	t.Helper()
	t.Run(c.guard, func(t *testing.T) {
		judged(t, c.doubled...)
		result := run(t, trial.Trial{Scenario: c.scenario, Seed: 1, Wrap: c.world, Tell: true})
		refuses(t, result, c.guard)
		if saysAll(result.Violations, c.by) || c.doubled == nil && len(result.Violations) > 0 {
			t.Errorf("with it: %q", result.Violations)
		}
		caught(t, trial.Trial{Scenario: c.scenario, Seed: 1, Wrap: c.away}, c.by)
	})
}

func agentCases() []agentCase {
	const back = "and the row is back"
	return []agentCase{
		{
			"DiskOfOtherNode", dirty(func(w *world.World) bool {
				return trial.Cluster(w) != nil && w.Line.Now().Sub(world.Began) > 5*time.Minute
			}),
			[]string{"DiskNotEmpty"}, world.Wrap{}, finding(empty), "starts on the disk of a member of another cluster",
		},
		{"MemberDiskMissing", diskLost(), nil, world.Wrap{}, pretending(), "DataLost"},
		{"DownLongerThanGCGrace", longAway(), nil, world.Wrap{}, deletionsForgotten(), back},
		{"AddressTaken", crossed(), nil, world.Wrap{}, strangers(), "at the address of another member, in vain"},
		{"ClientTrafficAlreadyOpened", allRestored(), []string{"DiskNotEmpty", "ClientTrafficAlreadyOpened"},
			world.Wrap{}, strangers(), "DataLost"},
		{"ReplicationUnknown", behind(), nil, world.Wrap{}, unconditional(), "counts as rebuilt without keyspace"},
		{"PeersNotSeen", catalogued("seen-late"), nil, world.Wrap{}, sightless(), "sight: a node is opened to clients"},
		{"DiskUnreadable", damaged(), nil, world.Wrap{}, pretending(), "I10"},
	}
}

func TestGuardsOfAgents(t *testing.T) {
	for _, c := range agentCases() {
		c.try(t)
	}
}
