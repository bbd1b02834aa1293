package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// expectation of one decision. Empty fields are not looked at, except Action: empty means none.
type expectation struct {
	action ActionKind
	phase  v1alpha1.NodePhase
	guard  v1alpha1.Reason
	// words that the status message or the blocked message must have.
	words string
	check func(*testing.T, Decision)
}

func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  expectation
	}{
		// Who am I.
		"no record yet": {with1(fresh(), func(f *Facts) { f.Record = nil }),
			expectation{phase: v1alpha1.PhaseWaiting, words: "CassandraNode"}},
		"record of another cluster": {with1(fresh(), func(f *Facts) { f.Record.Spec.Cluster.UID = "x" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "RecordOfOtherCluster"}},
		"no container yet": {with1(fresh(), func(f *Facts) { f.Init = Init{} }),
			expectation{phase: v1alpha1.PhaseWaiting, words: "helenus-init"}},
		"disk unknown before the container": {with1(fresh(), func(f *Facts) { f.Init, f.Disk = Init{}, Disk{} }),
			expectation{action: "InspectDisk"}},

		// Disks.
		"empty and without a ticket": {fresh(), expectation{phase: v1alpha1.PhaseWaiting, words: "waits for its ticket",
			check: func(t *testing.T, d Decision) {
				if d.Status.Disk != v1alpha1.DiskEmpty {
					t.Errorf("disk %s", d.Status.Disk)
				}
			}}},
		"a disk that was unreadable a minute ago": {with1(member(),
			func(f *Facts) { f.Disk.Problem, f.Disk.SeenAt = "I/O error", at(-time.Minute) }),
			expectation{action: "InspectDisk", phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable",
				words: "I/O error"}},
		"the same, and it is looked at": {with1(member(),
			func(f *Facts) { f.Disk.Problem, f.Doing = "I/O error", &Doing{Action: InspectDisk{}} }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable", words: "I/O error"}},
		"unreadable disk": {with1(member(), func(f *Facts) { f.Disk.Problem = "I/O error" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable", words: "I/O error"}},
		"unreadable journal": {with1(member(), func(f *Facts) { f.MemoryProblem = "checksum" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable", words: "checksum"}},
		"data without a marker": {with1(fresh(),
			func(f *Facts) { f.Disk.HasData = true; f.Record.Spec.Join = newTicket() }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfOtherNode", words: "no marker"}},
		"disk of another cluster": {with1(member(), func(f *Facts) { mark(f, "other", self); f.Memory = Memory{} }),
			expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing", words: "other"}},
		"disk of another node": {with1(fresh(), func(f *Facts) {
			mark(f, uid, "orders-dc1-r2-0")
			f.Disk.HasData = true
		}),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfOtherNode", words: "orders-dc1-r2-0"}},
		"member by its record on an empty disk": {with1(fresh(), func(f *Facts) {
			f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
			f.Record.Spec.Join = newTicket()
		}),
			expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing"}},
		"member by its last status on an empty disk": {with1(fresh(), func(f *Facts) {
			f.Record.Status.Disk, f.Record.Status.HostID = v1alpha1.DiskMember, hostA
			f.Record.Spec.Join = newTicket()
		}),
			expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing", words: hostA,
				check: func(t *testing.T, d Decision) {
					// What is reported is what the next decision goes by.
					if d.Status.Disk != v1alpha1.DiskEmpty || d.Status.HostID != hostA {
						t.Errorf("disk %s, host id %q", d.Status.Disk, d.Status.HostID)
					}
				}}},
		"lost member some time later": {with1(fresh(), func(f *Facts) {
			f.Record.Status.Disk, f.Record.Status.HostID = v1alpha1.DiskEmpty, hostA
			f.Record.Spec.Join = newTicket()
		}),
			expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing", words: hostA}},
		"lost member before the disk was looked at": {with1(fresh(), func(f *Facts) {
			f.Record.Status.Disk, f.Record.Status.HostID, f.Disk = v1alpha1.DiskMember, hostA, Disk{}
		}), expectation{action: "InspectDisk", check: func(t *testing.T, d Decision) {
			if d.Status.Disk != v1alpha1.DiskMember || d.Status.HostID != hostA {
				t.Errorf("disk %s, host id %q", d.Status.Disk, d.Status.HostID)
			}
		}}},
		"member on the disk of another member": {with1(member(),
			func(f *Facts) { f.Record.Spec.Member.HostID = hostB }),
			expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing"}},
		"journal and disk of two members": {with1(member(), func(f *Facts) { f.Disk.HostID = hostB }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable"}},
		"markers of a member without its data": {with1(member(),
			func(f *Facts) { f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID = false, "", "" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable", words: "files are gone"}},
		"decommissioned": {with1(member(), func(f *Facts) { f.Disk.Bootstrapped = WordDecommissioned }),
			expectation{phase: v1alpha1.PhaseLeft, guard: "NodeHasLeft"}},
		"killed while leaving, after streaming": {with1(member(),
			func(f *Facts) { f.Disk.Bootstrapped = WordNeedsBootstrap }),
			expectation{phase: v1alpha1.PhaseLeft, guard: "NodeHasLeft", words: "other tokens"}},
		"commit log of another node": {with1(member(), func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "commitlog",
				Marker: &Marker{uid, "orders-dc1-r2-0", "commitlog"}})
		}), expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing"}},
		"commit log of nobody knows whom": {with1(fresh(),
			func(f *Facts) { f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "commitlog", HasData: true}) }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfOtherNode", words: "no marker says whose"}},
		"own commit log beside an empty data volume": {with1(fresh(), func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "commitlog", HasData: true,
				Marker: &Marker{uid, self, "commitlog"}})
		}), expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfOtherNode", words: "not the one that the node had"}},
		"additional volume of another node": {with1(member(), func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "scratch",
				Marker: &Marker{uid, "orders-dc1-r2-0", "scratch"}})
		}), expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing"}},
		"volumes exchanged": {with1(member(), func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "scratch", Marker: &Marker{uid, self, "commitlog"}})
		}), expectation{phase: v1alpha1.PhaseDataLost, guard: "MemberDiskMissing", words: "scratch"}},
		"new additional volume of a member": {with1(member(),
			func(f *Facts) { f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "scratch"}) }),
			expectation{action: "ClaimDisk", check: func(t *testing.T, d Decision) {
				if !slices.Contains(as[ClaimDisk](d.Action).Volumes, "scratch") {
					t.Errorf("marks %v", as[ClaimDisk](d.Action).Volumes)
				}
			}}},
		"new commit log volume of a member": {with1(member(),
			func(f *Facts) { f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "commitlog"}) }),
			expectation{action: "ClaimDisk"}},

		// Adoption.
		"disk to be adopted, not yet pinned": {adopting(false),
			expectation{phase: v1alpha1.PhaseWaiting, words: "adopted", check: func(t *testing.T, d Decision) {
				if d.Status.Disk != v1alpha1.DiskMember || d.Status.DiskOwner.ClusterUID != "earlier" {
					t.Errorf("disk %s of %v", d.Status.Disk, d.Status.DiskOwner)
				}
			}}},
		"disk to be adopted, pinned": {adopting(true), expectation{action: "ClaimDisk"}},
		"disk to be adopted, of another cluster name": {with1(adopting(true),
			func(f *Facts) { f.Disk.ClusterName = "x" }),
			expectation{phase: v1alpha1.PhaseWaiting, guard: "ClusterNameDiffers"}},

		// Tickets.
		"ticket on a new disk": {with1(fresh(), func(f *Facts) { f.Record.Spec.Join = newTicket() }),
			expectation{action: "ClaimDisk"}},
		"ticket on a claimed disk": {ticketed(),
			expectation{action: "StartJVM", phase: v1alpha1.PhaseStarting, check: func(t *testing.T, d Decision) {
				if s := as[StartJVM](d.Action).Start; s.Ticket == nil || s.Ticket.Mode != v1alpha1.JoinNew ||
					s.StartID != 1 || len(s.Seeds) != 1 {
					t.Errorf("start %+v", s)
				}
			}}},
		"ticket after clients were served": {with1(ticketed(),
			func(f *Facts) { f.Memory.TrafficOpenedAt = ptr(-time.Hour) }),
			expectation{phase: v1alpha1.PhaseWaiting, guard: "ClientTrafficAlreadyOpened"}},
		"ticket while a peer serves clients": {with1(ticketed(), func(f *Facts) {
			f.Seeds = []string{"10.0.0.2"}
			keep(f)
			p := peer("10.0.0.2", "orders-dc1-r2-0", "")
			p.TrafficOpened = true
			answered(f, "", p)
		}), expectation{phase: v1alpha1.PhaseWaiting, guard: "ClientTrafficAlreadyOpened", words: "orders-dc1-r2-0"}},
		"ticket while a peer of another datacenter serves clients": {with1(ticketed(), func(f *Facts) {
			f.Seeds = []string{"10.0.0.2"}
			keep(f)
			p := peer("10.0.0.2", "orders-dc2-r2-0", "")
			p.TrafficOpened, p.Datacenter = true, "dc2"
			answered(f, "", p)
		}), expectation{action: "StartJVM", phase: v1alpha1.PhaseStarting}},
		"ticket while a seed is silent": {with1(ticketed(), func(f *Facts) {
			f.Seeds, f.Self.StartedAt = []string{address, "10.0.0.2", "10.0.0.3"}, epoch
			keep(f)
			answered(f, "", peer("10.0.0.2", "orders-dc1-r2-0", ""))
		}), expectation{phase: v1alpha1.PhaseWaiting, words: "10.0.0.3"}},
		"ticket with a seed silent for long": {with1(ticketed(), func(f *Facts) {
			f.Seeds = []string{address, "10.0.0.2", "10.0.0.3"}
			keep(f)
			answered(f, "", peer("10.0.0.2", "orders-dc1-r2-0", ""))
		}), expectation{action: "StartJVM", check: func(t *testing.T, d Decision) {
			if got := strings.Join(as[StartJVM](d.Action).Start.Seeds, ","); got != "10.0.0.1,10.0.0.2" {
				t.Errorf("seeds %s", got)
			}
		}}},
		"ticket when every other seed is silent": {with1(ticketed(), func(f *Facts) {
			f.Seeds = []string{address, "10.0.0.2"}
			keep(f)
			answered(f, "")
		}), expectation{phase: v1alpha1.PhaseWaiting, words: "10.0.0.2"}},
		"ticket of a later release": {with1(ticketed(), func(f *Facts) { f.Record.Spec.Join.Mode = "Clone" }),
			expectation{phase: v1alpha1.PhaseWaiting, guard: "TicketModeUnsupported", words: "Clone"}},
		"ticket taken back before it began": {with1(ticketed(),
			func(f *Facts) { f.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "too late"} }),
			expectation{action: "WithdrawJoin"}},
		"ticket out of date": {with1(ticketed(),
			func(f *Facts) { f.Record.Spec.Join.NotAfter = &metav1.Time{Time: at(-time.Second)} }),
			expectation{action: "WithdrawJoin"}},
		"ticket that was given back": {with1(ticketed(), func(f *Facts) {
			f.Record.Spec.Join.Withdraw = &v1alpha1.Withdrawal{Reason: "too late"}
			f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "form/1", WithdrawnAt: ptr(0)}}
		}), expectation{phase: v1alpha1.PhaseWaiting, words: "given back", check: func(t *testing.T, d Decision) {
			if d.Status.Join == nil || d.Status.Join.WithdrawnAt == nil {
				t.Errorf("join %+v", d.Status.Join)
			}
		}}},
		"ticket without a word of the API server": {with1(ticketed(), func(f *Facts) { f.APISeenAt = time.Time{} }),
			expectation{phase: v1alpha1.PhaseWaiting, words: "still stands"}},

		// A ticket that began and is taken back.
		"taken back, and the disk says nothing of a join": {takenBack(joining()), expectation{action: "WithdrawJoin"}},
		"taken back, and the JVM wrote nothing": {takenBack(with1(joining(),
			func(f *Facts) { f.Disk.HasData = false })), expectation{action: "WithdrawJoin"}},
		"taken back while it waits for the next start": {takenBack(with1(joining(),
			func(f *Facts) { died(f, at(time.Minute)) })), expectation{action: "WithdrawJoin"}},
		"taken back in the middle of a bootstrap": {takenBack(with1(joining(),
			func(f *Facts) { f.Disk.Bootstrapped = WordInProgress })), expectation{action: "WithdrawJoin"}},
		"taken back after the disk says that it joined": {takenBack(with1(joining(),
			func(f *Facts) { f.Disk.Bootstrapped = WordCompleted })),
			expectation{action: "StartJVM", check: func(t *testing.T, d Decision) {
				wantTicket("form/1")(t, d)
				if j := d.Status.Join; j.WithdrawnAt != nil || !strings.Contains(j.Message, "too late") {
					t.Errorf("join %+v", j)
				}
			}}},
		"taken back, and the disk cannot be read": {takenBack(with1(joining(),
			func(f *Facts) { f.Disk.Problem = "two rows" })),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskUnreadable"}},
		"taken back, and the disk was not looked at": {takenBack(with1(joining(), func(f *Facts) { f.Disk = Disk{} })),
			expectation{action: "InspectDisk"}},
		"taken back, and the commit log is another's": {takenBack(with1(joining(), func(f *Facts) {
			f.Disk.Volumes = append(f.Disk.Volumes, Volume{Name: "commitlog",
				Marker: &Marker{uid, "orders-dc1-r2-0", "commitlog"}})
		})), expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfOtherNode"}},
		"taken back, and the container does not run": {takenBack(with1(joining(), func(f *Facts) { f.Init = Init{} })),
			expectation{phase: v1alpha1.PhaseWaiting, words: "helenus-init"}},
		"taken back, and the journal knows better than the disk": {takenBack(with1(joining(),
			func(f *Facts) { f.Memory.NormalAt = ptr(-time.Minute) })),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskContradictsJournal"}},
		"taken back while the JVM joins": {takenBack(onItsWay(facts.ModeJoining)),
			expectation{action: "BeginStop"}},
		"taken back while the JVM is silent": {takenBack(with1(onItsWay(""), func(f *Facts) { f.JVM = JVM{} })),
			expectation{action: "BeginStop"}},
		"taken back while the JVM is NORMAL": {takenBack(joined()), expectation{action: "FinishJoin"}},
		"taken back while it is NORMAL, with other tokens": {takenBack(with1(joined(),
			func(f *Facts) { f.JVM.Ring.Endpoints[0].Tokens = []int64{-5, 6} })),
			expectation{action: "NoteNormal", phase: v1alpha1.PhaseJoining, guard: "TokensDifferFromTicket"}},
		"taken back while a JVM starts that had joined": {takenBack(with1(onItsWay(facts.ModeStarting),
			func(f *Facts) { f.Memory.Start.Joined = true })),
			expectation{phase: v1alpha1.PhaseJoining, check: func(t *testing.T, d Decision) {
				if j := d.Status.Join; !strings.Contains(j.Message, "too late") {
					t.Errorf("join %+v", j)
				}
			}}},
		"taken back by a former agent": {withdrawnJoin(joining()),
			expectation{phase: v1alpha1.PhaseWaiting, words: "given back", check: func(t *testing.T, d Decision) {
				if j := d.Status.Join; j.StartedAt == nil || j.WithdrawnAt == nil || j.FinishedAt != nil {
					t.Errorf("join %+v", j)
				}
			}}},
		"taken back, and the disk says otherwise later": {withdrawnJoin(with1(joining(),
			func(f *Facts) { f.Disk.Bootstrapped = WordCompleted })),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskContradictsJournal"}},

		// A configuration that is corrected before the node has joined.
		"corrected while the JVM joins": {with1(onItsWay(facts.ModeJoining),
			func(f *Facts) { f.Configuration.RestartNeeded = true }), expectation{action: "BeginStop"}},
		"corrected while it is NORMAL": {with1(joined(), func(f *Facts) { f.Configuration.RestartNeeded = true }),
			expectation{action: "FinishJoin"}},
		"corrected while a member starts": {with1(serving(),
			func(f *Facts) { f.Configuration.RestartNeeded, f.JVM.Ring.Mode = true, facts.ModeStarting }),
			expectation{phase: v1alpha1.PhaseStarting}},

		"unfinished join by the same ticket": {joining(), expectation{action: "StartJVM", check: wantTicket("form/1")}},
		"unfinished join by another ticket": {with1(joining(),
			func(f *Facts) { f.Record.Spec.Join.ID = "form/2"; f.Record.Generation = 2; keep(f) }),
			expectation{phase: v1alpha1.PhaseWaiting, guard: "DiskOfOtherTicket"}},
		"member on disk that was not seen NORMAL": {with1(joining(),
			func(f *Facts) { f.Disk.Bootstrapped = WordCompleted }),
			expectation{action: "StartJVM", check: wantTicket("form/1")}},

		// A member's start.
		"member restarts": {with1(member(), nil),
			expectation{action: "StartJVM", check: wantTicket("")}},
		"member asks its neighbours first": {neighboured(), expectation{action: "AskPeers"}},
		"member with answers": {with1(neighboured(),
			func(f *Facts) { answered(f, hostA, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC)) }),
			expectation{action: "StartJVM"}},
		"member without the API server, with peers": {with1(neighboured(), func(f *Facts) {
			f.APISeenAt, f.Memory.ContactAt = time.Time{}, ptr(-24*time.Hour)
			answered(f, hostA, peer("10.0.0.2", "b", hostB))
		}), expectation{action: "StartJVM"}},
		"member cut off from all": {with1(neighboured(),
			func(f *Facts) { f.APISeenAt, f.Memory.ContactAt = time.Time{}, ptr(-24*time.Hour); answered(f, hostA) }),
			expectation{phase: v1alpha1.PhaseWaiting, guard: "NoContactWithCluster"}},
		"member cut off for a short time": {with1(neighboured(),
			func(f *Facts) { f.APISeenAt, f.Memory.ContactAt = time.Time{}, ptr(-time.Minute); answered(f, hostA) }),
			expectation{action: "StartJVM"}},
		"replaced by its record": {with1(member(),
			func(f *Facts) { f.Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: hostA}} }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "HostIDReplaced"}},
		"replaced by the word of a peer": {with1(neighboured(), func(f *Facts) {
			p := peer("10.0.0.2", "b", hostB)
			p.Replaced = []string{hostA}
			answered(f, hostA, p)
		}), expectation{phase: v1alpha1.PhaseFailed, guard: "HostIDReplaced", words: "node b"}},
		"address of another member": {with1(neighboured(), func(f *Facts) {
			p := peer("10.0.0.2", "b", hostB)
			e := endpoint(address, hostC, "r3", false, 25)
			p.AtAddress = &e
			answered(f, hostA, p)
		}), expectation{phase: v1alpha1.PhaseAddressTaken, guard: "AddressTaken", words: hostC}},
		"own address in the view of a peer": {with1(neighboured(), func(f *Facts) {
			p := peer("10.0.0.2", "b", hostB)
			e := endpoint(address, hostA, "r1", false, -5, 5)
			p.AtAddress = &e
			answered(f, hostA, p)
		}), expectation{action: "StartJVM"}},
		"address that a peer had two minutes ago": {with1(neighboured(), func(f *Facts) {
			p := peer("10.0.0.2", "b", hostB)
			p.Addresses = []facts.AddressUse{{Address: address, LastUsed: at(-2 * time.Minute)}}
			answered(f, hostA, p)
		}), expectation{phase: v1alpha1.PhaseAddressTaken, guard: "AddressTaken"}},
		"address that a peer had long ago": {with1(neighboured(), func(f *Facts) {
			p := peer("10.0.0.2", "b", hostB)
			p.Addresses = []facts.AddressUse{{Address: address, LastUsed: at(-3 * time.Minute)}}
			answered(f, hostA, p)
		}), expectation{action: "StartJVM"}},
		"away for too long": {with1(member(), func(f *Facts) {
			f.Memory.GCGrace, f.Memory.NormalAt = 240*time.Hour, ptr(-250*time.Hour)
		}),
			expectation{phase: v1alpha1.PhaseDownTooLong, guard: "DownLongerThanGCGrace"}},
		"record of an earlier line of releases": {with1(member(), func(f *Facts) { f.Memory.Release = "5.1.0" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "DiskOfLaterRelease", words: "5.1.0 → 5.0.6"}},
		"image of another line of releases": {with1(member(), func(f *Facts) { f.Init.Release = "5.1.0" }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "ImageOfOtherRelease", words: "5.1.0"}},
		"image of another release": {with1(neighboured(), func(f *Facts) { f.Init.Release = "5.0.9" }),
			expectation{action: "AskPeers"}},
		"record of an earlier release": {with1(neighboured(), func(f *Facts) { f.Memory.Release = "5.0.9" }),
			expectation{action: "AskPeers"}},
		"configuration that cannot be rendered": {with1(member(),
			func(f *Facts) { f.Configuration = Configuration{Problem: "no heap"} }),
			expectation{phase: v1alpha1.PhaseFailed, guard: "ConfigurationRenderingFailed"}},
		"in the back-off": {with1(member(), func(f *Facts) { died(f, at(time.Minute)) }),
			expectation{phase: v1alpha1.PhaseFailed, words: "12:01:00", check: func(t *testing.T, d Decision) {
				if !d.Again.Equal(at(time.Minute)) || d.Status.Restarts.BackOffUntil == nil {
					t.Errorf("again at %s, %+v", d.Again, d.Status.Restarts)
				}
			}}},
		"in the back-off with a corrected configuration": {with1(member(),
			func(f *Facts) { died(f, at(time.Minute)); f.Configuration.Hash = "hash-2" }),
			expectation{action: "StartJVM"}},
		"in the back-off of a JVM that nobody remembers": {with1(member(),
			func(f *Facts) { died(f, at(time.Minute)); f.Memory.Start = nil }),
			expectation{phase: v1alpha1.PhaseFailed, words: "12:01:00"}},
		"in the back-off with a configuration that is wrong now": {with1(member(),
			func(f *Facts) { died(f, at(time.Minute)); f.Configuration = Configuration{Problem: "no heap"} }),
			expectation{phase: v1alpha1.PhaseFailed, words: "12:01:00"}},
		"an action is under way in the back-off": {with1(member(),
			func(f *Facts) { died(f, at(time.Minute)); f.Doing = &Doing{Action: WithdrawJoin{}} }),
			expectation{phase: v1alpha1.PhaseWaiting, words: "WithdrawJoin is under way"}},
		"a question is under way in the back-off": {with1(member(),
			func(f *Facts) { died(f, at(time.Minute)); f.Doing = &Doing{Action: InspectDisk{}} }),
			expectation{phase: v1alpha1.PhaseFailed, words: "12:01:00"}},
		"after the back-off": {with1(member(), func(f *Facts) { died(f, at(-time.Second)) }),
			expectation{action: "StartJVM"}},

		// A JVM that runs.
		"serving": {serving(), expectation{phase: v1alpha1.PhaseNormal, check: func(t *testing.T, d Decision) {
			if !d.Ready || d.Status.ClientTraffic != v1alpha1.TrafficOpen || d.Poll != pollSteady ||
				d.Status.Blocked != nil {
				t.Errorf("ready %v, traffic %s, poll %s, blocked %v", d.Ready, d.Status.ClientTraffic, d.Poll,
					d.Status.Blocked)
			}
		}}},
		"serving while the ring changes": {with1(serving(), func(f *Facts) { f.JVM.Ring.Pending = 128 }),
			expectation{phase: v1alpha1.PhaseNormal, check: polls(pollChanging + 3*pollNode)}},
		"serving while a large ring changes": {with1(serving(), func(f *Facts) {
			f.JVM.Ring.Pending = 128
			f.JVM.Ring.Endpoints = append(f.JVM.Ring.Endpoints, make([]facts.Endpoint, 1000)...)
		}), expectation{phase: v1alpha1.PhaseNormal, check: polls(pollSteady)}},
		"serving after the ring has changed": {
			with1(serving(), func(f *Facts) { f.JVM.ChangedAt = at(-changing / 2) }),
			expectation{phase: v1alpha1.PhaseNormal, check: polls(pollChanging + 3*pollNode)}},
		"serving long after the ring has changed": {
			with1(serving(), func(f *Facts) { f.JVM.ChangedAt = at(-changing) }),
			expectation{phase: v1alpha1.PhaseNormal, check: polls(pollSteady)}},
		"open for administration": {with1(serving(),
			func(f *Facts) { f.Record.Spec.ClientTraffic = v1alpha1.TrafficAdministrative }),
			expectation{phase: v1alpha1.PhaseNormal, check: func(t *testing.T, d Decision) {
				if d.Ready || d.Status.ClientTraffic != v1alpha1.TrafficAdministrative {
					t.Errorf("ready %v, traffic %s", d.Ready, d.Status.ClientTraffic)
				}
			}}},
		"traffic to be closed": {with1(serving(),
			func(f *Facts) { f.Record.Spec.ClientTraffic = v1alpha1.TrafficClosed }),
			expectation{action: "CloseTraffic"}},
		"traffic to be opened": {with1(serving(), func(f *Facts) { f.JVM.Ring.NativeRunning = false; seesAll(f) }),
			expectation{action: "OpenTraffic"}},
		"traffic of a JVM that joins": {with1(serving(),
			func(f *Facts) { f.JVM.Ring.NativeRunning, f.JVM.Ring.Mode = false, facts.ModeJoining }),
			expectation{phase: v1alpha1.PhaseJoining}},
		"one question missed": {with1(serving(), func(f *Facts) { f.JVM.AskedAt = at(0) }),
			expectation{phase: v1alpha1.PhaseNormal, check: func(t *testing.T, d Decision) {
				if !d.Ready {
					t.Error("not ready after one missed question")
				}
			}}},
		"silent for long": {with1(serving(), func(f *Facts) {
			f.JVM.AskedAt, f.JVM.AnsweredAt = at(0), at(-20*time.Second)
		}), expectation{phase: v1alpha1.PhaseNormal, words: "not answered", check: func(t *testing.T, d Decision) {
			if d.Ready {
				t.Error("ready while the JVM is silent")
			}
		}}},
		"NORMAL for the first time": {joined(), expectation{action: "FinishJoin",
			check: func(t *testing.T, d Decision) {
				if a := as[FinishJoin](d.Action); a.HostID != hostA || strings.Join(a.Tokens, ",") != "-5,5" {
					t.Errorf("action %+v", d.Action)
				}
			}}},
		"NORMAL with other tokens": {with1(joined(),
			func(f *Facts) { f.JVM.Ring.Endpoints[0].Tokens = []int64{-5, 6} }),
			expectation{action: "NoteNormal", phase: v1alpha1.PhaseJoining, guard: "TokensDifferFromTicket"}},
		"NORMAL after a long time": {with1(serving(), func(f *Facts) { f.Memory.NormalAt = ptr(-time.Hour) }),
			expectation{action: "NoteNormal"}},
		"deletions kept for another time": {with1(serving(), func(f *Facts) { g := time.Hour; f.JVM.GCGrace = &g }),
			expectation{action: "NoteNormal"}},
		"deletions kept as before": {with1(serving(),
			func(f *Facts) { g := time.Hour; f.JVM.GCGrace, f.Memory.GCGrace = &g, g }),
			expectation{phase: v1alpha1.PhaseNormal}},
		"new neighbour": {with1(serving(), func(f *Facts) { f.Memory.Neighbours = []string{"10.0.0.2"} }),
			expectation{action: "NoteNormal"}},
		"other seeds": {with1(serving(), func(f *Facts) { f.Seeds = []string{"10.0.0.1", "10.0.0.2"}; keep(f) }),
			expectation{action: "SetSeeds"}},
		"other seeds that Cassandra refuses": {with1(serving(), func(f *Facts) {
			f.Seeds = []string{"10.0.0.1", "10.0.0.2"}
			keep(f)
			f.Failures = map[ActionKind]Failure{"SetSeeds": {Message: "no", Until: at(time.Second)}}
		}), expectation{phase: v1alpha1.PhaseNormal, guard: "ActionFailing", check: func(t *testing.T, d Decision) {
			if !d.Ready {
				t.Error("not ready because of the seeds")
			}
		}}},
		"hot settings": {with1(serving(), func(f *Facts) { f.Configuration.Hot = []string{"compaction_throughput"} }),
			expectation{action: "ApplySettings"}},
		"settings that need a restart": {with1(serving(), func(f *Facts) { f.Configuration.RestartNeeded = true }),
			expectation{phase: v1alpha1.PhaseNormal, check: func(t *testing.T, d Decision) {
				if !d.Status.Configuration.RestartNeeded {
					t.Errorf("configuration %+v", d.Status.Configuration)
				}
			}}},
		"it has left, and its JVM runs on": {with1(serving(), func(f *Facts) {
			f.Record.Spec.State, f.JVM.Ring.Mode = v1alpha1.StateDecommissioned, facts.ModeDecommissioned
			f.Memory.LeftAt = ptr(0)
		}), expectation{phase: v1alpha1.PhaseLeft}},
		"it has left, and no JVM runs": {with1(member(), func(f *Facts) {
			f.Record.Spec.State = v1alpha1.StateDecommissioned
		}), expectation{phase: v1alpha1.PhaseLeft}},

		// Restart and stop.
		"restart": {with1(serving(), restart), expectation{action: "BeginRestart"}},
		"restart with an old view": {with1(serving(),
			func(f *Facts) { restart(f); f.JVM.AskedAt, f.JVM.AnsweredAt = at(-4*time.Second), at(-4*time.Second) }),
			expectation{action: "LookAtRing"}},
		"restart while another rack is down": {with1(serving(),
			func(f *Facts) { restart(f); f.JVM.Ring.Endpoints[1].Live = false }),
			expectation{phase: v1alpha1.PhaseDeferred, guard: "ConsistencyWouldBeLost", words: hostB}},
		"restart while another node joins": {with1(serving(),
			func(f *Facts) { restart(f); f.JVM.Ring.Endpoints[1].Status = facts.StatusBootstrap }),
			expectation{phase: v1alpha1.PhaseDeferred, guard: "TopologyChangeInProgress"}},
		"restart out of date": {with1(serving(),
			func(f *Facts) { restart(f); f.Record.Spec.Restart.NotAfter = &metav1.Time{Time: at(-time.Second)} }),
			expectation{action: "WithdrawRestart"}},
		"restart that is done": {with1(serving(), func(f *Facts) {
			restart(f)
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "restart-1", BegunAt: ptr(-time.Minute),
				FinishedAt: ptr(0)}}
		}), expectation{phase: v1alpha1.PhaseNormal}},
		"restart under way": {with1(serving(), func(f *Facts) {
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "restart-1", BegunAt: ptr(-time.Minute)},
				Incarnation: "i1", StartID: 3}
		}), expectation{action: "BeginStop"}},
		"restarted": {with1(serving(), func(f *Facts) {
			f.Memory.Restart = &RestartMemory{IntentMemory: IntentMemory{ID: "restart-1", BegunAt: ptr(-time.Minute)},
				Incarnation: "i1", StartID: 2}
		}), expectation{action: "FinishRestart"}},
		"to be stopped": {with1(serving(), func(f *Facts) { f.Record.Spec.State = v1alpha1.StateStopped }),
			expectation{action: "BeginStop"}},
		"to be stopped while another rack is down": {with1(serving(),
			func(f *Facts) { f.Record.Spec.State = v1alpha1.StateStopped; f.JVM.Ring.Endpoints[2].Live = false }),
			expectation{phase: v1alpha1.PhaseDeferred, guard: "ConsistencyWouldBeLost",
				check: func(t *testing.T, d Decision) {
					if !d.Ready {
						t.Error("a deferred node serves on")
					}
				}}},
		"to be stopped with the whole cluster": {with1(serving(), func(f *Facts) {
			f.Record.Spec.State, f.Record.Spec.ClientTraffic = v1alpha1.StateStopped, v1alpha1.TrafficClosed
			f.JVM.Ring.Endpoints[2].Live = false
		}), expectation{action: "BeginStop"}},
		"to be looked into": {with1(serving(), looked(time.Hour)), expectation{action: "BeginStop"}},
		"to be looked into while another rack is down": {with1(serving(),
			func(f *Facts) { looked(time.Hour)(f); f.JVM.Ring.Endpoints[2].Live = false }),
			expectation{phase: v1alpha1.PhaseDeferred, guard: "ConsistencyWouldBeLost"}},
		"to be looked into too late": {with1(serving(), looked(0)), expectation{phase: v1alpha1.PhaseNormal}},
		"looked into": {with1(member(), looked(time.Hour)),
			expectation{phase: v1alpha1.PhaseStopped, check: func(t *testing.T, d Decision) {
				if !strings.Contains(d.Status.Message, "for a person to look into it: corrupt file") {
					t.Errorf("message %q", d.Status.Message)
				}
			}}},
		"looked into until now": {with1(member(), looked(0)), expectation{action: "StartJVM"}},
		"no member to look into": {with1(serving(),
			func(f *Facts) { looked(time.Hour)(f); f.Record.Spec.Member = nil }),
			expectation{phase: v1alpha1.PhaseNormal}},
		"stopped": {with1(member(), func(f *Facts) { f.Record.Spec.State = v1alpha1.StateStopped }),
			expectation{phase: v1alpha1.PhaseStopped}},
		"stop: close CQL": {stopping(StopMemory{}), expectation{action: "CloseTraffic", check: notReady}},
		"stop: drain": {with1(stopping(StopMemory{ClosedAt: ptr(0)}),
			func(f *Facts) { f.JVM.Ring.NativeRunning = false }), expectation{action: "Drain"}},
		"stop: TERM": {stopping(StopMemory{ClosedAt: ptr(0), DrainAt: ptr(0)}),
			expectation{action: "Terminate"}},
		"stop: wait": {stopping(StopMemory{ClosedAt: ptr(0), DrainAt: ptr(0), TermAt: ptr(0)}),
			expectation{phase: v1alpha1.PhaseStopping}},
		"stop: KILL": {stopping(StopMemory{BegunAt: at(-5 * time.Minute), ClosedAt: ptr(0), DrainAt: ptr(0),
			TermAt: ptr(-time.Minute)}), expectation{action: "Kill"}},
		"stop: KILL again": {stopping(StopMemory{BegunAt: at(-5 * time.Minute), TermAt: ptr(-time.Minute),
			KillAt: ptr(-time.Minute)}), expectation{action: "Kill"}},
		"stop: no time left": {stopping(StopMemory{BegunAt: at(-290 * time.Second), ClosedAt: ptr(-280 * time.Second)}),
			expectation{action: "Terminate"}},
		"stop goes on after the record changed its mind": {with1(stopping(StopMemory{ClosedAt: ptr(0),
			DrainAt: ptr(0)}), func(f *Facts) { f.Record.Spec.State = v1alpha1.StateRunning }),
			expectation{action: "Terminate"}},
		"container ends": {with1(serving(), func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch} }),
			expectation{action: "BeginStop", check: func(t *testing.T, d Decision) {
				if !d.HoldStop || d.Ready {
					t.Errorf("hold %v, ready %v", d.HoldStop, d.Ready)
				}
			}}},
		"container ends without the record": {with1(serving(),
			func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch}; f.Record = nil }),
			expectation{action: "BeginStop"}},
		"container ends, too late": {with1(serving(),
			func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch, Alone: true} }),
			expectation{phase: v1alpha1.PhaseStopping}},
		"container ends during a drain": {with1(serving(), func(f *Facts) {
			f.Init.Stopping, f.Doing = &Stopping{Since: epoch}, &Doing{Action: Drain{}}
		}), expectation{check: func(t *testing.T, d Decision) {
			if !d.HoldStop {
				t.Error("the lease is not held during a drain")
			}
		}}},
		"container ended": {with1(member(), func(f *Facts) { f.Init.Stopping = &Stopping{Since: epoch} }),
			expectation{phase: v1alpha1.PhaseStopped}},

		// Frozen.
		"frozen, peers unasked": {frozen(), expectation{action: "AskPeers"}},
		"frozen, but up for a peer": {with1(frozen(), func(f *Facts) { answered(f, hostA, sees(true)) }),
			expectation{phase: v1alpha1.PhaseNormal, guard: "PeerSeesNodeUp"}},
		"frozen and down for its peers": {with1(frozen(), func(f *Facts) { answered(f, hostA, sees(false)) }),
			expectation{action: "Kill", check: func(t *testing.T, d Decision) {
				if a := as[Kill](d.Action); !a.Dump || a.Reason != v1alpha1.RestartFrozen {
					t.Errorf("action %+v", d.Action)
				}
			}}},
		"silent and busy": {with1(frozen(), func(f *Facts) { f.JVM.ProgressAt = at(-time.Second) }),
			expectation{phase: v1alpha1.PhaseNormal}},
		"silent, processor time unknown": {with1(frozen(), func(f *Facts) { f.JVM.ProgressAt = time.Time{} }),
			expectation{phase: v1alpha1.PhaseNormal}},

		// Operations.
		"operation": {with1(serving(), wantsOperation), expectation{action: "RunOperation"}},
		"operation that ran": {with1(serving(), func(f *Facts) {
			wantsOperation(f)
			f.Memory.Operations = []OperationMemory{{ID: "op-1", Phase: v1alpha1.OperationSucceeded}}
		}), expectation{phase: v1alpha1.PhaseNormal}},
		"operation that was cut": {with1(serving(), func(f *Facts) {
			wantsOperation(f)
			f.Memory.Operations = []OperationMemory{{ID: "op-1", Phase: v1alpha1.OperationRunning, StartID: 2}}
		}), expectation{action: "InterruptOperation"}},
		"operation without CQL": {with1(serving(), func(f *Facts) {
			wantsOperation(f)
			f.Record.Spec.ClientTraffic = v1alpha1.TrafficClosed
			f.JVM.Ring.NativeRunning = false
		}), expectation{phase: v1alpha1.PhaseNormal, guard: "NativeTransportClosed", words: "CQL"}},
		"operation out of date": {with1(serving(), func(f *Facts) {
			wantsOperation(f)
			f.Record.Spec.Operations[0].NotAfter = &metav1.Time{Time: at(-time.Second)}
		}), expectation{action: "WithdrawOperation"}},
		"operation nobody knows": {with1(serving(),
			func(f *Facts) { wantsOperation(f); f.Record.Spec.Operations[0].Type = "Dance" }),
			expectation{phase: v1alpha1.PhaseNormal, guard: "UnknownOperation"}},
		"an action is under way": {with1(serving(), func(f *Facts) { f.Doing = &Doing{Action: SetSeeds{}} }),
			expectation{phase: v1alpha1.PhaseNormal}},
		"a later agent is wanted": {with1(serving(), startedAfter(time.Second)), expectation{action: "EndAgent"}},
		"a later agent is wanted where no JVM runs": {with1(fresh(), startedAfter(time.Second)),
			expectation{action: "EndAgent"}},
		"a later agent is wanted, by a clock that was ahead": {with1(serving(), startedAfter(2*time.Minute)),
			expectation{phase: v1alpha1.PhaseNormal}},
		"the later agent": {with1(serving(), startedAfter(0)), expectation{phase: v1alpha1.PhaseNormal}},
		"a later agent is wanted during an action": {with1(serving(),
			func(f *Facts) { startedAfter(time.Second)(f); f.Doing = &Doing{Action: SetSeeds{}} }),
			expectation{phase: v1alpha1.PhaseNormal}},
		"a later agent is wanted while the container ends": {with1(serving(),
			func(f *Facts) { startedAfter(time.Second)(f); f.Init.Stopping = &Stopping{Since: epoch} }),
			expectation{action: "BeginStop"}},
		"the record was not kept": {with1(serving(), func(f *Facts) { f.Record.Generation = 7 }),
			expectation{action: "KeepRecord"}},
		"CQL not ready to be open": {with1(serving(), func(f *Facts) {
			f.JVM.Ring.NativeRunning = false
			seesAll(f)
			f.Failures = map[ActionKind]Failure{"OpenTraffic": {Until: at(time.Second), NotYet: true}}
		}), expectation{phase: v1alpha1.PhaseNormal}},
	} {
		t.Run(name, func(t *testing.T) { expect(t, Next(c.facts, epoch), c.want) })
	}
}

// startedAfter asks for an agent that started later than this one by more than d.
func startedAfter(d time.Duration) func(*Facts) {
	return func(f *Facts) { f.Record.Spec.AgentStartedAfter = &metav1.Time{Time: f.Self.StartedAt.Add(d)} }
}

func expect(t *testing.T, d Decision, want expectation) {
	t.Helper()
	var kind ActionKind
	if d.Action != nil {
		kind = KindOf(d.Action)
	}
	if kind != want.action {
		t.Errorf("action %q, want %q; steps %v", kind, want.action, d.Steps[len(d.Steps)-1])
	}
	if want.phase != "" && d.Status.Phase != want.phase {
		t.Errorf("phase %s (%s), want %s", d.Status.Phase, d.Status.Message, want.phase)
	}
	guard, words := v1alpha1.Reason(""), d.Status.Message
	if b := d.Status.Blocked; b != nil {
		guard, words = b.Reason, words+" "+b.Message
	}
	if guard != want.guard {
		t.Errorf("blocked by %q (%s), want %q", guard, words, want.guard)
	}
	if !strings.Contains(words, want.words) {
		t.Errorf("says %q, want %q in it", words, want.words)
	}
	if want.check != nil {
		want.check(t, d)
	}
	if !d.Again.IsZero() && !d.Again.After(epoch) {
		t.Errorf("to be asked again at %s, which is past", d.Again)
	}
	if text, err := json.Marshal(d.Status); err != nil || len(text) == 0 {
		t.Errorf("status cannot be written: %v", err)
	}
}

func TestSameFactsSameStatus(t *testing.T) {
	f := serving()
	first := Next(f, epoch)
	f.Record.Status = first.Status
	for _, later := range []time.Duration{time.Second, 5 * time.Second, 14 * time.Second} {
		f.JVM.AskedAt, f.JVM.AnsweredAt = at(later), at(later)
		x, _ := json.Marshal(first.Status)
		y, _ := json.Marshal(Next(f, at(later)).Status)
		if string(x) != string(y) {
			t.Errorf("after %s the status is another one:\n%s\n%s", later, x, y)
		}
	}
}

// looked has a member stopped for a person to look into it, for so long from now.
func looked(length time.Duration) func(*Facts) {
	return func(f *Facts) {
		f.Record.Spec.Debug = &v1alpha1.Debug{Reason: "corrupt file", Until: metav1.NewTime(at(length))}
	}
}

// polls expects the JVM to be asked so often.
func polls(want time.Duration) func(*testing.T, Decision) {
	return func(t *testing.T, d Decision) {
		if d.Poll != want {
			t.Errorf("polled every %s, want %s", d.Poll, want)
		}
	}
}
