package node

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

const uid types.UID = "cluster-uid"

const (
	self    = "orders-dc1-r1-0"
	address = "10.0.0.1"
	hostA   = "aaaaaaaa-0000-4000-8000-000000000001"
	hostB   = "bbbbbbbb-0000-4000-8000-000000000002"
	hostC   = "cccccccc-0000-4000-8000-000000000003"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time   { return epoch.Add(d) }
func ptr(d time.Duration) *time.Time { t := at(d); return &t }

var marker = &Marker{ClusterUID: uid, Node: self, Volume: v1alpha1.VolumeData}

// fresh is a new pod with an empty disk, whose record has no ticket.
func fresh() Facts {
	return Facts{
		Self: Self{ClusterUID: uid, Node: self, PodUID: "pod-1", Address: address, FactsPort: 7780,
			StartedAt: at(-time.Minute), GracePeriod: 5 * time.Minute},
		Record: &v1alpha1.CassandraNode{
			ObjectMeta: metav1.ObjectMeta{Name: self, UID: "record-1", Generation: 1},
			Spec: v1alpha1.CassandraNodeSpec{
				Cluster: v1alpha1.ClusterReference{Name: "orders", UID: uid}, Datacenter: "dc1", Rack: "r1",
				State:         v1alpha1.StateRunning,
				Disruption:    v1alpha1.NodeDisruption{Consistency: v1alpha1.ConsistencyLocalQuorum},
				ClientTraffic: v1alpha1.TrafficClosed, Configuration: v1alpha1.NodeConfiguration{Revision: 1,
					Version: "5.0.6", ClusterName: "shop.orders", NumTokens: 2},
			},
		},
		Seeds:         []string{address},
		APISeenAt:     at(0),
		Disk:          Disk{Known: true, SeenAt: at(0), Volumes: []Volume{{Name: v1alpha1.VolumeData}}},
		Init:          Init{Answers: true, Incarnation: "i1"},
		Configuration: Configuration{Hash: "hash-1"},
	}
}

func newTicket() *v1alpha1.JoinTicket {
	return &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "form/1"}, Mode: v1alpha1.JoinNew,
		Tokens: []string{"-5", "5"}, SystemAuthReplicationFactor: 3}
}

// claimed is fresh with the disk claimed and everything written down.
func claimed() Facts {
	f := fresh()
	f.Disk.Volumes = []Volume{{Name: v1alpha1.VolumeData, Marker: marker}}
	f.Memory = Memory{ClusterUID: uid, Node: self}
	keep(&f)
	return f
}

// keep writes the record down.
func keep(f *Facts) { f.Memory = Before(f, KeepRecord{}, epoch) }

// member is a member whose JVM does not run.
func member() Facts {
	f := claimed()
	f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID, f.Disk.ClusterName = true, WordCompleted, hostA, "shop.orders"
	f.Memory.Member = &Member{HostID: hostA, Tokens: []string{"-5", "5"}, Since: at(-time.Hour)}
	f.Memory.Join = &JoinMemory{IntentMemory: IntentMemory{ID: "form/1", BegunAt: ptr(-2 * time.Hour),
		FinishedAt: ptr(-time.Hour)}, Mode: v1alpha1.JoinNew, Tokens: []string{"-5", "5"}}
	f.Memory.NormalAt, f.Memory.ContactAt = ptr(-time.Minute), ptr(-time.Minute)
	f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
	f.Record.Spec.ClientTraffic = v1alpha1.TrafficOpen
	keep(&f)
	return f
}

func endpoint(address, hostID, rack string, live bool, tokens ...int64) facts.Endpoint {
	return facts.Endpoint{Address: address, HostID: hostID, Datacenter: "dc1", Rack: rack, Status: facts.StatusNormal,
		Live: live, Tokens: tokens, SchemaVersion: "s"}
}

// view is a ring of three racks.
func view() *facts.Ring {
	return &facts.Ring{
		Mode: facts.ModeNormal, HostID: hostA, ReleaseVersion: "5.0.6", SchemaVersion: "s", GossipRunning: true,
		NativeRunning: true,
		Endpoints: []facts.Endpoint{
			endpoint(address, hostA, "r1", true, -5, 5), endpoint("10.0.0.2", hostB, "r2", true, -15, 15),
			endpoint("10.0.0.3", hostC, "r3", true, -25, 25),
		},
		Keyspaces: map[string]string{"shop": "NetworkTopologyStrategy {dc1=3}"},
	}
}

// serving is a member that serves clients.
func serving() Facts {
	f := member()
	f.Init.Process, f.Init.LastStartID = &Process{StartID: 3, PID: 7, StartedAt: at(-time.Minute)}, 3
	f.Memory.Start = &StartMemory{
		PodUID: "pod-1", Incarnation: "i1", StartID: 3, At: at(-time.Minute),
		Configuration: f.Record.Spec.Configuration, Hash: "hash-1",
		Seeds: []string{address}, NormalAt: ptr(-50 * time.Second),
	}
	f.Memory.TrafficOpenedAt = ptr(-time.Hour)
	f.Memory.NormalAt = ptr(-50 * time.Second)
	f.Memory.Neighbours = []string{"10.0.0.2", "10.0.0.3"}
	f.JVM = JVM{StartID: 3, AskedAt: at(-time.Second), AnsweredAt: at(-time.Second), Ring: view()}
	f.Peers = Peers{AskedAt: epoch, Address: address, HostID: hostA, GoingDown: true} // nobody else goes down
	return f
}

// answered are fresh answers of all peers to what a start asks.
func answered(f *Facts, hostID string, peers ...facts.Peer) {
	var silent []string
	p := pass{Facts: f}
	for _, a := range p.askedAddresses() {
		if !slices.ContainsFunc(peers, func(p facts.Peer) bool { return p.Asked == a }) {
			silent = append(silent, a)
		}
	}
	f.Peers = Peers{AskedAt: epoch, Address: address, HostID: hostID, Answers: peers, Silent: silent}
	if len(peers) > 0 {
		f.Peers.HeardAt = epoch
	}
}

func peer(address, name, hostID string) facts.Peer {
	days := 10 * 24 * time.Hour
	return facts.Peer{Asked: address, Node: name, HostID: hostID, Ring: true, GCGrace: &days}
}

func metaTime(d time.Duration) *metav1.Time { return &metav1.Time{Time: at(d)} }

// as is an action of a type; its zero value for another one.
func as[A Action](a Action) A {
	is, _ := a.(A)
	return is
}
