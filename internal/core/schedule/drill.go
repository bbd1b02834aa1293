package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/temporary"
	"helenus.io/helenus/internal/core/words"
)

// drillRoom is what the volume of a drill has beside the files of the backup and their rows.
const drillRoom = 1 << 30

// drillDeadline is that of the schema.
const drillDeadline = 24 * time.Hour

// DrillName is the name of the ring that restore drills of a schedule make.
func DrillName(schedule string) string { return schedule + "-drill" }

// Drills says that the schedule wants restore drills.
func Drills(s *v1alpha1.CassandraBackupSchedule) *v1alpha1.RestoreDrill {
	if s.Spec.Verify == nil {
		return nil
	}
	return s.Spec.Verify.RestoreDrill
}

// drillTimes is the time of a drill that follows on another; nil, with why, if there is none.
func drillTimes(s *facts.BackupSchedule, now time.Time) (after func(time.Time) time.Time, problem string) {
	of := Drills(s.Schedule)
	if of == nil || s.Zone == nil {
		return nil, ""
	}
	parsed, err := parse(of.Schedule)
	if err != nil {
		return nil, fmt.Sprintf("spec.verify.restoreDrill.schedule %q: %v: %s", of.Schedule, err, allowed)
	}
	if parsed.Next(now.In(s.Zone)).IsZero() {
		return nil, fmt.Sprintf("spec.verify.restoreDrill.schedule %q has no time in the next five years: name a day "+
			"that its months have", of.Schedule)
	}
	return func(t time.Time) time.Time { return parsed.Next(t.In(s.Zone)) }, ""
}

// drill says what is to be done about the restore drills of a schedule: the ring of one is judged
// and deleted, or another is made if it is time. All that a drill has to be known by is in the
// cluster itself, so that a status that was not written is written by the next pass.
func (p *pass) drill(s *facts.BackupSchedule, backups []*v1alpha1.CassandraBackup,
	after func(time.Time) time.Time, status *v1alpha1.CassandraBackupScheduleStatus) []plan.Write {
	ring := s.Drill
	own := ring != nil && ring.Labels[v1alpha1.LabelScheduleUID] == string(s.Schedule.UID)
	if Drills(s.Schedule) == nil {
		status.RestoreDrill = nil
		if own && ring.DeletionTimestamp == nil {
			return []plan.Write{temporary.Delete(ring, "no restore drill is wanted any more")}
		}
		return nil
	}
	is := status.RestoreDrill
	if is == nil {
		is = &v1alpha1.RestoreDrillStatus{Since: metav1.NewTime(p.now).Rfc3339Copy()}
		status.RestoreDrill = is
	}
	is.Active = nil
	begins := is.NextScheduleTime != nil && !is.NextScheduleTime.After(p.now)
	switch {
	case after == nil || p.spec.Suspend:
		begins, is.NextScheduleTime = false, nil
	default:
		set(&is.NextScheduleTime, after(p.now))
	}
	switch {
	case own && ring.DeletionTimestamp == nil:
		return p.judge(s, is)
	case ring != nil && begins:
		p.skipDrill(fmt.Sprintf("CassandraCluster %s exists, and is not of this schedule or being deleted", ring.Name))
	case begins && s.Source != nil && s.Store:
		var last *v1alpha1.CassandraBackup
		for _, b := range backups {
			if b.Status.Phase == v1alpha1.BackupComplete && (last == nil || takenAt(last).Before(takenAt(b))) {
				last = b
			}
		}
		if last == nil {
			p.skipDrill("no backup of this schedule is complete")
			break
		}
		p.begin(s, is, last)
	}
	return nil
}

// judge the ring of a drill.
func (p *pass) judge(s *facts.BackupSchedule, is *v1alpha1.RestoreDrillStatus) []plan.Write {
	ring := s.Drill
	id := ""
	if of := ring.Spec.Restore(); of != nil {
		id = of.Backup
	}
	outcome := v1alpha1.RestoredBackup{ID: id, StartedAt: ring.CreationTimestamp,
		At: metav1.NewTime(p.now).Rfc3339Copy()}
	for _, judged := range []*v1alpha1.RestoredBackup{is.LastProven, is.LastFailed} {
		if judged != nil && judged.ID == id && judged.StartedAt.Equal(&ring.CreationTimestamp) {
			return []plan.Write{temporary.Delete(ring, "its restore drill is over")}
		}
	}
	deadline := cmp.Or(Drills(s.Schedule).Deadline.Duration, drillDeadline)
	stalled := temporary.Stalled(ring)
	switch {
	case temporary.Serves(ring):
		is.LastProven, is.LastFailed = &outcome, nil
		p.say(corev1.EventTypeNormal, v1alpha1.EventDrillSucceeded, fmt.Sprintf("a ring made from backup %s serves, "+
			"%s after its creation", id, p.now.Sub(ring.CreationTimestamp.Time).Round(time.Second)))
	case stalled != "" || p.now.Sub(ring.CreationTimestamp.Time) > deadline:
		outcome.Message = words.Shorten(cmp.Or(stalled,
			fmt.Sprintf("it does not serve after %s: %s", deadline, temporary.Says(ring))), 1024)
		is.LastFailed = &outcome
		p.say(corev1.EventTypeWarning, v1alpha1.EventDrillFailed,
			fmt.Sprintf("no ring could be made from backup %s: %s", id, outcome.Message))
	default:
		is.Active = &v1alpha1.ActiveDrill{Cluster: ring.Name, ID: id, StartedAt: ring.CreationTimestamp}
		return nil
	}
	return []plan.Write{temporary.Delete(ring, "its restore drill is over")}
}

func (p *pass) skipDrill(why string) {
	p.say(corev1.EventTypeWarning, v1alpha1.EventRunSkipped, "no restore drill is begun: "+why)
}

// begin a drill.
func (p *pass) begin(s *facts.BackupSchedule, is *v1alpha1.RestoreDrillStatus, of *v1alpha1.CassandraBackup) {
	ring := drillFor(s, of.Status.ID, of.Status.Bytes)
	p.draft.Write(plan.Write{Verb: plan.Create, Object: ring, Live: true})
	is.Active = &v1alpha1.ActiveDrill{Cluster: ring.Name, ID: of.Status.ID,
		StartedAt: metav1.NewTime(p.now).Rfc3339Copy()}
	p.say(corev1.EventTypeNormal, v1alpha1.EventDrillStarted, fmt.Sprintf("CassandraCluster %s, from backup %s",
		ring.Name, of.Status.ID))
}

// drillFor is a ring of one node from a backup: with what the nodes of the cluster have, as far as
// that does not reach beyond it.
func drillFor(s *facts.BackupSchedule, id string, bytes int64) *v1alpha1.CassandraCluster {
	source, of := s.Source, Drills(s.Schedule)
	template := render.NodeOf(&source.Spec)
	node := *template.DeepCopy()
	if of.Resources != nil {
		node.Resources = of.Resources.DeepCopy()
	}
	size := of.Size
	if size == nil {
		size = resource.NewQuantity(2*bytes+drillRoom, resource.BinarySI)
	}
	node.Storage = drillStorage(node.Storage, size)
	// Short names leave room for that of the schedule; inside Cassandra they are the same.
	dc := source.Spec.Datacenters[0]
	rack := dc.Racks[0].DeepCopy()
	rack.Name, rack.RackName = "r1", cmp.Or(rack.RackName, rack.Name)
	rack.Nodes, rack.Node, rack.RestartedAt = nil, nil, nil
	return temporary.Ring(source,
		metav1.ObjectMeta{Name: DrillName(s.Schedule.Name), Namespace: s.Schedule.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelSchedule:    s.Schedule.Name,
				v1alpha1.LabelScheduleUID: string(s.Schedule.UID),
				v1alpha1.LabelManagedBy:   v1alpha1.ManagedBy,
			},
			OwnerReferences: temporary.Owner("CassandraBackupSchedule", s.Schedule)},
		v1alpha1.Restore{Store: v1alpha1.StoreReference{Name: s.Schedule.Spec.Store.Name},
			Source: v1alpha1.RestoreSource{UID: source.UID}, Backup: id, Roles: v1alpha1.RolesFresh,
			Keyspaces: slices.Clone(of.Keyspaces), Checks: of.DeepCopy().Checks},
		&node, []v1alpha1.Datacenter{{Name: "dc1", DatacenterName: cmp.Or(dc.DatacenterName, dc.Name),
			NodesPerRack: 1, PlannedReplicationFactor: 1, Racks: []v1alpha1.Rack{*rack}}})
}

// drillStorage is storage of the kind of another one, of a size.
func drillStorage(of *v1alpha1.Storage, size *resource.Quantity) *v1alpha1.Storage {
	out := &v1alpha1.Storage{}
	if of != nil && of.Ephemeral != nil {
		out.Ephemeral = &v1alpha1.EphemeralStorage{SizeLimit: size}
		return out
	}
	out.Claims = &v1alpha1.StorageClaims{Data: &v1alpha1.VolumeClaim{Size: size}}
	if of == nil || of.Claims == nil {
		return out
	}
	if data := of.Claims.Data; data != nil {
		out.Claims.Data.StorageClassName, out.Claims.Data.AccessModes = data.StorageClassName, data.AccessModes
	}
	if log := of.Claims.Commitlog; log != nil {
		out.Claims.Commitlog = log.DeepCopy()
		out.Claims.Commitlog.DataSource, out.Claims.Commitlog.Selector = nil, nil
	}
	return out
}

// DrillDue is when the backups of a schedule have to be proven again: at the second time of its
// drills after the last proof. It is zero where none are wanted.
func DrillDue(s *facts.BackupSchedule, now time.Time) time.Time {
	is := s.Schedule.Status.RestoreDrill
	after, _ := drillTimes(s, now)
	if s.Schedule.DeletionTimestamp != nil || s.Schedule.Spec.Suspend || is == nil || after == nil {
		return time.Time{}
	}
	since := is.Since.Time
	if is.LastProven != nil {
		since = is.LastProven.StartedAt.Time
	}
	return after(after(since))
}
