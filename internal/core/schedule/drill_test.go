package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// drilling is a schedule with restore drills each Sunday at six, on Friday, 6 March 2026.
type drilling struct {
	*testing.T
	*facts.BackupSchedule
	now    time.Time
	events []string
	made   int
	// deleted are the backups that went.
	deleted []types.UID
}

func drills(t *testing.T) *drilling {
	t.Helper()
	d := &drilling{T: t, now: at("2026-03-06T12:00:00Z")}
	class := "fast"
	source := &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "c-1"}}
	source.Spec = v1alpha1.CassandraClusterSpec{Version: "5.0.9", Image: "example.com/cassandra:5.0.9",
		Node: &v1alpha1.NodeTemplate{NodeSettings: v1alpha1.NodeSettings{Storage: &v1alpha1.Storage{
			Claims: &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{StorageClassName: &class}}}}},
		Exceptions:     []v1alpha1.Exception{{Name: "mine"}},
		ServiceAccount: &v1alpha1.Metadata{Annotations: map[string]string{"a-cloud/role": "backups"}},
		Datacenters: []v1alpha1.Datacenter{{Name: "east", NodesPerRack: 3, PlannedReplicationFactor: 3,
			Racks: []v1alpha1.Rack{{Name: "a", Node: &v1alpha1.NodeSettings{TerminationGracePeriodSeconds: ptr(int64(77))}},
				{Name: "b"}, {Name: "c"}}}, {Name: "west"}},
	}
	d.BackupSchedule = &facts.BackupSchedule{Timing: facts.Timing{Zone: time.UTC, Cluster: true}, Store: true,
		Source: source, Schedule: &v1alpha1.CassandraBackupSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "s-1", ResourceVersion: "1",
				Generation: 1, CreationTimestamp: metav1.NewTime(d.now)},
			Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
				Store:  v1alpha1.BackupStoreReference{Name: "main"},
				Timing: v1alpha1.Timing{Schedule: "0 3 1 1 *", TimeZone: "UTC", Missed: v1alpha1.MissedRunOnce},
				Keep:   v1alpha1.BackupRetention{Last: 1},
				Verify: &v1alpha1.BackupVerify{RestoreDrill: &v1alpha1.RestoreDrill{Schedule: "0 6 * * 0",
					Deadline: metav1.Duration{Duration: 2 * time.Hour}}}}}}
	return d
}

func ptr[T any](v T) *T { return &v }

// pass makes one at a time, in which the API server takes every write.
func (d *drilling) pass(text string) *v1alpha1.RestoreDrillStatus {
	d.Helper()
	d.now = at(text)
	for _, w := range NextBackup(d.BackupSchedule, d.now).Writes {
		switch w.Verb {
		case plan.Create:
			if d.Drill != nil || !w.Live {
				d.Fatalf("made while %v is there, confirmed: %v", d.Drill, w.Live)
			}
			d.Drill = w.Object.(*v1alpha1.CassandraCluster)
			d.Drill.UID, d.Drill.CreationTimestamp, d.Drill.Generation = "d-1", metav1.NewTime(d.now), 1
			d.made++
		case plan.ApplyStatus:
			d.Schedule.Status = w.Object.(*v1alpha1.CassandraBackupSchedule).Status
		case plan.Delete:
			if d.Drill != nil && w.UID == d.Drill.UID {
				d.Drill = nil
			} else {
				d.deleted = append(d.deleted, w.UID)
			}
		case plan.Event:
			d.events = append(d.events, w.Reason)
		default:
			d.Errorf("unknown write %s", w)
		}
	}
	return d.Schedule.Status.RestoreDrill
}

func (d *drilling) is(kind string, status metav1.ConditionStatus, message string) {
	d.Drill.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Message: message,
		ObservedGeneration: d.Drill.Generation}}
}

func (d *drilling) wantEvents(want ...string) {
	d.Helper()
	if !slices.Equal(d.events, want) {
		d.Errorf("events %q, want %q", d.events, want)
	}
	d.events = nil
}

// A ring of one node is made from the latest complete backup, and deleted when it serves.
func TestADrillProvesABackup(t *testing.T) {
	d := drills(t)
	backup := kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))
	backup.Status.Bytes = 5 << 30
	d.Schedule.Spec.Verify.RestoreDrill.Checks = []v1alpha1.RowCheck{{Query: "SELECT v FROM shop.t"}}
	d.Backups = []*v1alpha1.CassandraBackup{backup}
	if is := d.pass("2026-03-06T12:00:00Z"); d.Drill != nil || !is.NextScheduleTime.Equal(ptr(metav1.NewTime(
		at("2026-03-08T06:00:00Z")))) {
		t.Fatalf("status %+v", is)
	}
	if due := DrillDue(d.BackupSchedule, d.now); !due.Equal(at("2026-03-15T06:00:00Z")) {
		t.Errorf("a proof is due at %s", due)
	}
	is := d.pass("2026-03-08T06:00:00Z")
	if d.Drill == nil || is.Active == nil || is.Active.ID != backup.Status.ID || is.Active.Cluster != "nightly-drill" {
		t.Fatalf("status %+v", is)
	}
	spec := d.Drill.Spec
	dc := spec.Datacenters[0]
	data := spec.Node.Storage.Claims.Data
	if r := spec.Restore(); r.Backup != backup.Status.ID || r.Source.UID != "c-1" || r.Store.Name != "main" ||
		len(r.Checks) != 1 ||
		r.SourceGone || spec.ClusterName != "" || spec.Version != "5.0.9" || spec.Image != d.Source.Spec.Image ||
		len(spec.Exceptions) > 0 || len(spec.Datacenters) != 1 || dc.DatacenterName != "east" ||
		len(dc.Racks) != 1 || dc.Racks[0].RackName != "a" || dc.NodesPerRack != 1 || dc.Racks[0].Node != nil ||
		*spec.Node.TerminationGracePeriodSeconds != 77 || *data.StorageClassName != "fast" ||
		spec.ServiceAccount.Annotations["a-cloud/role"] != "backups" ||
		data.Size.Value() != 11<<30 || spec.Volumes.OnClusterDeletion != v1alpha1.ClaimDelete ||
		spec.Security.NetworkPolicy.Clients == nil || len(spec.Security.NetworkPolicy.Clients) > 0 {
		t.Errorf("made %+v", spec)
	}
	d.is(v1alpha1.ConditionReady, metav1.ConditionFalse, "1 of 1 nodes is restored")
	d.pass("2026-03-08T07:00:00Z")
	d.is(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	is = d.pass("2026-03-08T07:30:00Z")
	if d.Drill != nil || is.Active != nil || is.LastProven == nil || is.LastProven.ID != backup.Status.ID ||
		!is.LastProven.At.Time.Equal(d.now) || is.LastFailed != nil {
		t.Errorf("status %+v", is)
	}
	if due := DrillDue(d.BackupSchedule, d.now); !due.Equal(at("2026-03-22T06:00:00Z")) {
		t.Errorf("a proof is due at %s", due)
	}
	d.pass("2026-03-08T07:31:00Z")
	if d.made != 1 {
		t.Errorf("%d rings were made", d.made)
	}
	d.wantEvents(v1alpha1.EventDrillStarted, v1alpha1.EventDrillSucceeded)
}

// A ring that does not serve in time, or cannot, is deleted, and the schedule says why.
func TestADrillFails(t *testing.T) {
	for name, c := range map[string]struct {
		condition, says, at string
	}{
		"late":    {v1alpha1.ConditionReconciling, "node nightly-drill-dc1-r1-0 has no room", "2026-03-08T08:00:01Z"},
		"stalled": {v1alpha1.ConditionStalled, "the backup is damaged", "2026-03-08T06:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			d := drills(t)
			d.Backups = []*v1alpha1.CassandraBackup{kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))}
			d.pass("2026-03-06T12:00:00Z")
			d.pass("2026-03-08T06:00:00Z")
			d.is(c.condition, metav1.ConditionTrue, c.says)
			is := d.pass(c.at)
			if d.Drill != nil || is.LastProven != nil || is.LastFailed == nil ||
				!strings.Contains(is.LastFailed.Message, c.says) {
				t.Errorf("status %+v", is)
			}
			d.wantEvents(v1alpha1.EventDrillStarted, v1alpha1.EventDrillFailed)
		})
	}
}

// A deletion that failed is tried again, and nothing is judged twice.
func TestADrillIsJudgedOnce(t *testing.T) {
	d := drills(t)
	d.Backups = []*v1alpha1.CassandraBackup{kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))}
	d.pass("2026-03-06T12:00:00Z")
	d.pass("2026-03-08T06:00:00Z")
	d.is(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	ring := d.Drill.DeepCopy()
	proven := d.pass("2026-03-08T06:10:00Z").LastProven.At
	d.Drill = ring
	if is := d.pass("2026-03-08T06:20:00Z"); d.Drill != nil || !is.LastProven.At.Equal(&proven) {
		t.Errorf("status %+v", is)
	}
	d.wantEvents(v1alpha1.EventDrillStarted, v1alpha1.EventDrillSucceeded)
}

// What a drill restores stays, also when a later backup is complete that is kept in its place.
func TestABackupStaysWhileItIsRestored(t *testing.T) {
	d := drills(t)
	first := kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))
	d.Backups = []*v1alpha1.CassandraBackup{first}
	d.pass("2026-03-06T12:00:00Z")
	d.pass("2026-03-08T06:00:00Z")
	d.Backups = append(d.Backups, kept(v1alpha1.BackupComplete, at("2026-03-08T05:00:00Z")))
	d.pass("2026-03-08T06:30:00Z")
	if len(d.deleted) > 0 {
		t.Errorf("deleted %v", d.deleted)
	}
	d.is(v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	d.pass("2026-03-08T06:40:00Z")
	if !slices.Equal(d.deleted, []types.UID{first.UID}) {
		t.Errorf("deleted %v, want %s", d.deleted, first.UID)
	}
}

// When no drill can begin nothing is made, and the schedule says why.
func TestNoDrillBegins(t *testing.T) {
	complete := []*v1alpha1.CassandraBackup{kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))}
	for name, c := range map[string]struct {
		prepare func(*drilling)
		events  []string
	}{
		"no backup is complete": {func(d *drilling) { d.Backups = nil }, []string{v1alpha1.EventRunSkipped}},
		"another cluster of the name": {func(d *drilling) {
			d.Drill = &v1alpha1.CassandraCluster{ObjectMeta: metav1.ObjectMeta{Name: "nightly-drill", UID: "theirs"}}
		}, []string{v1alpha1.EventRunSkipped}},
		"suspended":         {func(d *drilling) { d.Schedule.Spec.Suspend = true }, nil},
		"no cluster":        {func(d *drilling) { d.Source = nil }, nil},
		"not wanted":        {func(d *drilling) { d.Schedule.Spec.Verify.RestoreDrill = nil }, nil},
		"not a time":        {func(d *drilling) { d.Schedule.Spec.Verify.RestoreDrill.Schedule = "0 6 * * 9" }, nil},
		"never":             {func(d *drilling) { d.Schedule.Spec.Verify.RestoreDrill.Schedule = "0 6 30 2 *" }, nil},
		"the store is gone": {func(d *drilling) { d.Store = false }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := drills(t)
			d.Backups = complete
			d.pass("2026-03-06T12:00:00Z")
			c.prepare(d)
			d.pass("2026-03-08T06:00:00Z")
			if d.made > 0 {
				t.Errorf("made %+v", d.Drill)
			}
			d.wantEvents(c.events...)
		})
	}
}

// A ring of drills that are not wanted any more goes.
func TestADrillIsNotWantedAnyMore(t *testing.T) {
	d := drills(t)
	d.Backups = []*v1alpha1.CassandraBackup{kept(v1alpha1.BackupComplete, at("2026-03-05T03:00:00Z"))}
	d.pass("2026-03-06T12:00:00Z")
	d.pass("2026-03-08T06:00:00Z")
	d.Schedule.Spec.Verify = nil
	if is := d.pass("2026-03-08T06:01:00Z"); d.Drill != nil || is != nil {
		t.Errorf("ring %v, status %+v", d.Drill, is)
	}
}

// The storage of a drill is of the kind of the cluster's, of its own size.
func TestStorageOfADrill(t *testing.T) {
	size := resource.MustParse("7Gi")
	log := &v1alpha1.VolumeClaim{Size: ptr(resource.MustParse("1Gi")), Selector: &metav1.LabelSelector{}}
	for name, c := range map[string]struct {
		of   *v1alpha1.Storage
		want func(*v1alpha1.Storage) bool
	}{
		"nothing is said": {nil, func(s *v1alpha1.Storage) bool { return s.Claims.Data.Size.Equal(size) }},
		"ephemeral": {&v1alpha1.Storage{Ephemeral: &v1alpha1.EphemeralStorage{}},
			func(s *v1alpha1.Storage) bool { return s.Claims == nil && s.Ephemeral.SizeLimit.Equal(size) }},
		"a commit log of its own": {&v1alpha1.Storage{Claims: &v1alpha1.StorageClaims{Commitlog: log}},
			func(s *v1alpha1.Storage) bool {
				return s.Claims.Data.Size.Equal(size) && s.Claims.Commitlog.Size.Equal(*log.Size) &&
					s.Claims.Commitlog.Selector == nil
			}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := drillStorage(c.of, &size); !c.want(got) {
				t.Errorf("%+v", got)
			}
		})
	}
}
