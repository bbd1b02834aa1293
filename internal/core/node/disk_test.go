package node

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
)

func TestWhatADiskIsToANode(t *testing.T) {
	volume := func(name string, data bool, cluster types.UID, node string) Volume {
		v := Volume{Name: name, HasData: data}
		if cluster != "" {
			v.Marker = &Marker{ClusterUID: cluster, Node: node, Volume: name}
		}
		return v
	}
	data := volume(v1alpha1.VolumeData, true, uid, self)
	noData := volume(v1alpha1.VolumeData, false, uid, self)
	unmarked := volume(v1alpha1.VolumeData, false, "", "")
	disk := func(word BootstrapWord, volumes ...Volume) Disk {
		return Disk{Known: true, Volumes: volumes, HasData: volumes[0].HasData, Bootstrapped: word}
	}
	journal := Memory{ClusterUID: uid, Node: self}
	ofMember := Memory{ClusterUID: uid, Node: self, Member: &Member{HostID: hostA}}
	record := func(member bool, adopts types.UID) *v1alpha1.CassandraNode {
		r := fresh().Record
		r.Spec.Cluster.AdoptedUID = adopts
		if member {
			r.Spec.Member = &v1alpha1.Member{HostID: hostA}
		}
		return r
	}
	but := func(d Disk, change func(*Disk)) Disk { change(&d); return d }
	for name, c := range map[string]struct {
		disk   Disk
		memory Memory
		record *v1alpha1.CassandraNode
		state  v1alpha1.DiskState
		words  string
	}{
		"new":     {disk("", unmarked), Memory{}, nil, v1alpha1.DiskEmpty, ""},
		"claimed": {disk("", noData), journal, nil, v1alpha1.DiskEmpty, ""},
		"joining": {disk(WordInProgress, data), journal, nil, v1alpha1.DiskJoining,
			"never NORMAL"},
		"joined":                    {disk(WordCompleted, data), journal, nil, v1alpha1.DiskMember, ""},
		"a member's by its journal": {disk(WordInProgress, data), ofMember, nil, v1alpha1.DiskMember, ""},
		"decommissioned": {disk(WordDecommissioned, data), ofMember, nil, v1alpha1.DiskLeft,
			"decommissioned"},
		"decommissioned by its journal": {disk(WordCompleted, data),
			Memory{ClusterUID: uid, Node: self, LeftAt: ptr(0)}, nil, v1alpha1.DiskLeft, "decommissioned"},
		"given away, a member's by its journal": {disk(WordNeedsBootstrap, data), ofMember, record(false, ""),
			v1alpha1.DiskLeft, "given its data away"},
		"given away, a member's by its record": {disk(WordNeedsBootstrap, data), journal, record(true, ""),
			v1alpha1.DiskLeft, "given its data away"},
		"about to join for the first time": {disk(WordNeedsBootstrap, data), journal, record(false, ""),
			v1alpha1.DiskJoining, ""},
		"files gone, a member's by its journal": {disk("", noData), ofMember, nil, v1alpha1.DiskUnreadable,
			"files are gone"},
		"files gone, a member's by its record": {disk("", noData), journal, record(true, ""),
			v1alpha1.DiskUnreadable, "files are gone"},
		"another host id than in the journal": {but(disk(WordCompleted, data), func(d *Disk) { d.HostID = hostB }),
			ofMember, nil, v1alpha1.DiskUnreadable, hostB},
		"the host id of the journal": {but(disk(WordCompleted, data), func(d *Disk) { d.HostID = hostA }),
			ofMember, nil, v1alpha1.DiskMember, ""},
		"of another cluster": {disk(WordCompleted, volume("data", true, "other", self)), Memory{},
			nil, v1alpha1.DiskForeign, "the cluster with uid other"},
		"of another cluster, with a record": {disk(WordCompleted, volume("data", true, "other", self)), Memory{},
			record(false, ""), v1alpha1.DiskForeign, "the cluster with uid other"},
		"of the adopted cluster": {disk(WordCompleted, volume("data", true, "other", self)), Memory{},
			record(false, "other"), v1alpha1.DiskMember, ""},
		"of another node of the adopted cluster": {disk(WordCompleted, volume("data", true, "other", "x")), Memory{},
			record(false, "other"), v1alpha1.DiskForeign, "node x"},
		"without a marker, with data": {disk(WordCompleted, volume("data", true, "", "")), Memory{}, nil,
			v1alpha1.DiskForeign, "no marker says whose"},
		"beside a volume that is marked as data": {disk(WordCompleted, data,
			Volume{Name: "scratch", Marker: data.Marker}), journal, nil, v1alpha1.DiskForeign,
			"scratch is marked as data"},
		"beside a commit log of nobody": {disk(WordCompleted, data, volume("commitlog", true, "", "")),
			journal, nil, v1alpha1.DiskForeign, "commitlog volume holds data of Cassandra"},
		"beside a new commit log": {disk(WordCompleted, data, volume("commitlog", false, "", "")),
			journal, nil, v1alpha1.DiskMember, ""},
		"beside a volume of another node": {disk(WordCompleted, data, volume("scratch", false, uid, "x")),
			journal, nil, v1alpha1.DiskForeign, "scratch volume belongs to node x"},
		"beside a volume of another cluster": {disk(WordCompleted, data, volume("scratch", false, "other", self)),
			journal, nil, v1alpha1.DiskForeign, "of cluster other"},
		"new, beside a volume of its own": {disk("", unmarked, volume("scratch", false, uid, self)), Memory{},
			nil, v1alpha1.DiskEmpty, ""},
		"new, beside a volume of another node": {disk("", unmarked, volume("scratch", false, uid, "x")), Memory{},
			nil, v1alpha1.DiskForeign, "scratch volume belongs to node x"},
		"new, beside a volume of another cluster": {disk("", unmarked, volume("scratch", false, "other", self)),
			Memory{}, nil, v1alpha1.DiskForeign, "the cluster with uid other"},
		"new, beside a commit log of its own": {disk("", unmarked, volume("commitlog", true, uid, self)), Memory{}, nil,
			v1alpha1.DiskForeign, "not the one that the node had"},
		"with a journal that cannot be read": {disk(WordCompleted, data), journal, nil, v1alpha1.DiskUnreadable,
			"checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fresh()
			f.Disk, f.Memory, f.Record = c.disk, c.memory, c.record
			if c.words == "checksum" {
				f.MemoryProblem = c.words
			}
			got := examine(&f)
			if got.State != c.state || !strings.Contains(got.Message, c.words) ||
				c.words == "" && got.Message != "" && c.state != v1alpha1.DiskJoining {
				t.Errorf("%s: %q; want %s: %q", got.State, got.Message, c.state, c.words)
			}
			if adoptable := c.state == v1alpha1.DiskMember && c.record != nil &&
				c.record.Spec.Cluster.AdoptedUID != ""; got.Adoptable != adoptable {
				t.Errorf("adoptable %v, want %v", got.Adoptable, adoptable)
			}
		})
	}
}

func TestVolumesWithoutAMarkerAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		volumes []Volume
		want    []string
	}{
		"a new disk":   {[]Volume{{Name: "data"}, {Name: "scratch"}}, []string{"data", "scratch"}},
		"a new volume": {[]Volume{{Name: "data", Marker: marker}, {Name: "scratch"}}, []string{"scratch"}},
		"a new disk, half done": {[]Volume{{Name: "data"}, {Name: "scratch", Marker: &Marker{uid, self, "scratch"}}},
			[]string{"data"}},
	} {
		f := fresh()
		f.Disk.Volumes = c.volumes
		if got := examine(&f).Unmarked; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The status outlives a disk. It is asked only where nothing that lies on a disk can know better.
func TestAMemberIsLostByTheLastWordOfItsAgent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"its disk is empty": {nil, hostA},
		"its disk is empty for long": {func(f *Facts) { f.Record.Status.Disk = v1alpha1.DiskEmpty },
			hostA},
		"its disk is not known": {func(f *Facts) { f.Disk = Disk{} }, hostA},
		"its disk is another's": {func(f *Facts) { f.Disk.HasData = true }, ""},
		"its journal has it": {func(f *Facts) { f.Memory.Member = &Member{HostID: hostA} },
			""},
		"its journal has it, and its disk is not known": {func(f *Facts) {
			f.Memory.Member, f.Disk = &Member{HostID: hostA}, Disk{}
		}, ""},
		"its JVM runs":           {func(f *Facts) { f.Init.Process = &Process{} }, ""},
		"it has no record":       {func(f *Facts) { f.Record = nil }, ""},
		"it had not joined":      {func(f *Facts) { f.Record.Status.Disk = v1alpha1.DiskJoining }, ""},
		"it never had a host id": {func(f *Facts) { f.Record.Status.HostID = "" }, ""},
	} {
		f := fresh()
		f.Record.Status.Disk, f.Record.Status.HostID = v1alpha1.DiskMember, hostA
		f = with1(f, c.change)
		p := &pass{Facts: &f}
		if f.Disk.Known {
			p.finding = examine(&f)
		}
		if got := p.lost(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
