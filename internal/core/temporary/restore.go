package temporary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

const (
	// lookAgain is when it is looked again whether the deadline is over.
	lookAgain = time.Minute
	// storeGrace is how long after a restore its store may be created: who applies both does not
	// order them.
	storeGrace = time.Minute
	// longestMessage is a bound of the schema.
	longestMessage = 2048
)

// Name is that of the ring that is made for a restore, and of its backup.
func Name(restore string) string { return restore + "-then" }

// pass is one look at a restore with a point in time.
type pass struct {
	*facts.PointRestore
	now    time.Time
	draft  plan.Draft
	status *v1alpha1.CassandraRestoreStatus
}

// Next is what is to be done now about the ring of a restore with a point in time. Until the status
// names a backup of that ring the restore is no task of the cluster that gets the rows. All that
// has to be known before is in the ring and its backup themselves, so that a status that was not
// written is written by the next pass.
func Next(s *facts.PointRestore, now time.Time) plan.Plan {
	p := &pass{PointRestore: s, now: now, status: s.Object.Status.DeepCopy()}
	switch of := s.Object; {
	case of.Spec.PointInTime == nil || of.DeletionTimestamp != nil: // all goes with its owner
	case of.Status.Finished():
		p.remove("its restore has finished", s.Backup, s.Ring)
	case of.Status.Source != nil:
		p.remove("its backup is complete", nil, s.Ring)
	default:
		p.draft.Wake = lookAgain
		p.status.ObservedGeneration = of.Generation
		p.prepare()
	}
	return p.draft.Plan
}

// prepare decides on what is there. What a user deletes is recreated, and so is the backup of a
// ring that is gone.
func (p *pass) prepare() {
	of, ring, backup := p.Object, p.Ring, p.Backup
	name, at := Name(of.Name), of.Spec.PointInTime.UTC().Format(time.RFC3339)
	ended := backup != nil && p.own(backup) && backup.DeletionTimestamp == nil && backup.Status.Phase.Final()
	switch theirs, goes := p.others(); {
	case ended && backup.Status.Phase == v1alpha1.BackupComplete && backup.Temporary():
		p.status.Source = &v1alpha1.RestoredFrom{UID: backup.Status.ClusterUID, Backup: backup.Status.ID}
		p.wait("", "backup %s has what the tables had at %s: waits for its turn", backup.Status.ID, at)
		p.event(corev1.EventTypeNormal, v1alpha1.EventRestorePrepared, p.status.Message)
	case theirs != "":
		p.fail(v1alpha1.ReasonTaskInvalidTarget, fmt.Sprintf("%s exists, and is not of this restore: delete it, or "+
			"create the restore by another name", theirs))
	case ended:
		p.fail(v1alpha1.ReasonNotPrepared, fmt.Sprintf("CassandraBackup %s of the cluster with uid %q is %s: %s", name,
			backup.Status.ClusterUID, backup.Status.Phase, backup.Status.Message))
	case !p.now.Before(of.CreationTimestamp.Add(p.deadline())):
		p.fail(v1alpha1.ReasonTaskDeadlineExceeded, "not prepared before the deadline: "+
			cmp.Or(of.Status.Message, "it has not begun"))
	case goes != "":
		p.wait("", "waits until %s is deleted, which is of an earlier attempt", goes)
	case backup != nil && (ring == nil || string(ring.UID) != backup.Labels[v1alpha1.LabelClusterUID]):
		p.draft.Write(Delete(backup, "its ring is gone"))
		p.wait("", "CassandraCluster %s was deleted, and is recreated", name)
	case backup != nil:
		p.wait(backup.Status.Progress, "backs up CassandraCluster %s, which is as it was at %s: %s", name, at,
			backup.Status.Message)
	case ring == nil:
		p.begin(at)
	case Serves(ring):
		p.draft.Write(plan.Write{Verb: plan.Create, Object: p.backup(), Live: true})
		p.wait("", "backs up CassandraCluster %s, which is as it was at %s", name, at)
	case Stalled(ring) != "":
		p.fail(v1alpha1.ReasonNotPrepared, fmt.Sprintf("no ring can be made as it was at %s: %s", at, Stalled(ring)))
	default:
		p.wait(fmt.Sprintf("%d/%d", ring.Status.ReadyNodes, ring.Status.Nodes),
			"makes CassandraCluster %s as it was at %s: %s", name, at, Says(ring))
	}
}

// begin by making the ring.
func (p *pass) begin(at string) {
	of := p.Object
	switch store := of.Spec.Store.Name; {
	case !p.Store && p.now.Sub(of.CreationTimestamp.Time) >= storeGrace:
		p.fail(v1alpha1.ReasonTaskInvalidTarget, "there is no CassandraBackupStore "+store)
	case !p.Store:
		p.wait("", "there is no CassandraBackupStore %s", store)
	case p.Cluster == nil:
		p.wait("", "there is no CassandraCluster %s", of.Spec.Cluster.Name)
	default:
		ring := p.ring()
		p.draft.Write(plan.Write{Verb: plan.Create, Object: ring, Live: true})
		p.wait("", "makes CassandraCluster %s as it was at %s", ring.Name, at)
		p.event(corev1.EventTypeNormal, v1alpha1.EventRestorePreparing, p.status.Message)
	}
}

// remove what was made, the backup first: its deletion waits for nodes that still write to it.
func (p *pass) remove(why string, backup *v1alpha1.CassandraBackup, ring *v1alpha1.CassandraCluster) {
	for _, o := range there(backup, ring) {
		if p.own(o) && o.GetDeletionTimestamp() == nil {
			p.draft.Write(Delete(o, why))
		}
	}
}

func there(backup *v1alpha1.CassandraBackup, ring *v1alpha1.CassandraCluster) (out []plan.Object) {
	if backup != nil {
		out = append(out, backup)
	}
	if ring != nil {
		out = append(out, ring)
	}
	return out
}

func (p *pass) own(o plan.Object) bool {
	return o.GetLabels()[v1alpha1.LabelRestoreUID] == string(p.Object.UID)
}

// others is what has a name that is needed: theirs is somebody else's, and stays; what goes was
// made for this restore, or for an earlier one of its name. Both are empty for nothing.
func (p *pass) others() (theirs, goes string) {
	for _, o := range there(p.Backup, p.Ring) {
		switch what := plan.KindOf(o) + " " + o.GetName(); {
		case o.GetDeletionTimestamp() != nil, !p.own(o) && o.GetLabels()[v1alpha1.LabelRestoreUID] != "":
			goes = what
		case !p.own(o):
			theirs = what
		}
	}
	return theirs, goes
}

// deadline is that of the schema where none is set.
func (p *pass) deadline() time.Duration {
	if of := p.Object.Spec.Deadline; of != nil {
		return of.Duration
	}
	return 24 * time.Hour
}

// ring has the shape of the cluster, and the nodes that it has. Its names of datacenters and racks
// are short, so that there is room for that of the restore; inside Cassandra they are the same.
func (p *pass) ring() *v1alpha1.CassandraCluster {
	of, spec := p.Object, p.Cluster.Spec.DeepCopy()
	node := cmp.Or(spec.Node, &v1alpha1.NodeTemplate{})
	p.like(&node.NodeSettings)
	for i := range spec.Datacenters {
		dc := &spec.Datacenters[i]
		dc.DatacenterName, dc.Name = render.DatacenterName(dc), fmt.Sprintf("d%d", i+1)
		dc.Extend, dc.Withdraw, dc.Stopped, dc.RestartedAt = nil, nil, false, nil
		if dc.Node != nil {
			p.like(&dc.Node.NodeSettings)
		}
		for j := range dc.Racks {
			rack := &dc.Racks[j]
			rack.RackName, rack.Name = cmp.Or(rack.RackName, rack.Name), fmt.Sprintf("r%d", j+1)
			rack.RestartedAt = nil
			if rack.Node != nil {
				p.like(rack.Node)
			}
		}
	}
	if node.Placement == nil {
		node.Placement = &v1alpha1.Placement{}
	}
	node.Placement.HostAntiAffinity = v1alpha1.HostAntiAffinityNone
	if t := of.Spec.Temporary; t != nil && t.Resources != nil {
		node.Resources = t.Resources.DeepCopy()
	}
	from := v1alpha1.Restore{Store: v1alpha1.StoreReference{Name: of.Spec.Store.Name},
		Source:      v1alpha1.RestoreSource{UID: of.SourceOf(p.Cluster.UID)},
		PointInTime: of.Spec.PointInTime.DeepCopy(), Roles: v1alpha1.RolesFresh, Keyspaces: p.keyspaces()}
	return Ring(p.Cluster, p.made(nil), from, node, spec.Datacenters)
}

// like has nodes be as those of the cluster, but for what finds hosts, volumes and pods that these
// have.
func (p *pass) like(s *v1alpha1.NodeSettings) {
	if t := p.Object.Spec.Temporary; t != nil && t.Resources != nil {
		s.Resources = nil
		if s.JVM != nil {
			s.JVM.Heap = nil
		}
	}
	if s.Placement != nil {
		s.Placement.HostAntiAffinity = ""
	}
	if s.Metadata != nil {
		s.Metadata.Labels = nil // clients may find pods by them
	}
	if s.Storage == nil || s.Storage.Claims == nil {
		return
	}
	claims := s.Storage.Claims
	of := []*v1alpha1.VolumeClaim{claims.Data, claims.Commitlog}
	for i := range claims.Additional {
		of = append(of, &claims.Additional[i].VolumeClaim)
	}
	for _, claim := range of {
		if claim != nil {
			claim.Selector, claim.DataSource = nil, nil
		}
	}
}

// backup of the ring: of the keyspaces that it has. Its label says of which ring it is, so that
// no other one of the name is taken for it.
func (p *pass) backup() *v1alpha1.CassandraBackup {
	of := p.Object
	b := &v1alpha1.CassandraBackup{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CassandraBackup"},
		ObjectMeta: p.made(map[string]string{
			v1alpha1.LabelClusterUID: string(p.Ring.UID),
			v1alpha1.LabelComponent:  v1alpha1.ComponentBackup,
			v1alpha1.LabelName:       "cassandra",
			v1alpha1.LabelInstance:   p.Ring.Name,
		}),
		Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: p.Ring.Name}, Store: of.Spec.Store,
			BackupTemplate: v1alpha1.BackupTemplate{Keyspaces: p.keyspaces(), Deadline: of.Spec.Deadline.DeepCopy()},
			DeletionPolicy: v1alpha1.BackupDelete},
	}
	b.Finalizers = []string{v1alpha1.FinalizerBackup}
	return b
}

// keyspaces of what comes back.
func (p *pass) keyspaces() []string {
	out := slices.Clone(p.Object.Spec.Keyspaces)
	for _, t := range p.Object.Spec.Tables {
		keyspace, _, _ := strings.Cut(t.From, ".")
		out = append(out, keyspace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// made is the metadata of what is made for the restore.
func (p *pass) made(labels map[string]string) metav1.ObjectMeta {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelRestoreUID], labels[v1alpha1.LabelManagedBy] = string(p.Object.UID), v1alpha1.ManagedBy
	return metav1.ObjectMeta{Namespace: p.Object.Namespace, Name: Name(p.Object.Name), Labels: labels,
		OwnerReferences: Owner("CassandraRestore", p.Object)}
}

// wait says what is waited for.
func (p *pass) wait(progress, format string, args ...any) {
	p.status.Phase, p.status.Progress = v1alpha1.TaskPending, progress
	p.status.Message = words.Shorten(fmt.Sprintf(format, args...), longestMessage)
	p.condition(v1alpha1.ConditionReconciling, v1alpha1.ReasonWaiting, p.Object.CreationTimestamp)
	p.write()
}

// fail ends the restore.
func (p *pass) fail(reason, why string) {
	now := metav1.NewTime(p.now).Rfc3339Copy()
	p.status.Phase, p.status.Progress, p.status.FinishedAt = v1alpha1.TaskFailed, "", &now
	p.status.Message = words.Shorten("no row has come back: "+why, longestMessage)
	meta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.ConditionReconciling)
	p.condition(v1alpha1.ConditionFailed, reason, now)
	p.condition(v1alpha1.ConditionStalled, reason, now) // kstatus takes it for the failure
	p.write()
	p.event(corev1.EventTypeWarning, "RestoreFailed", p.status.Message)
}

func (p *pass) condition(kind, reason string, since metav1.Time) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
		Reason: reason, Message: p.status.Message, ObservedGeneration: p.Object.Generation, LastTransitionTime: since})
}

// write the status, if it has changed.
func (p *pass) write() {
	if equality.Semantic.DeepEqual(*p.status, p.Object.Status) {
		return
	}
	named := plan.Named(p.Object).(*v1alpha1.CassandraRestore)
	named.Status = *p.status
	p.draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: named, UID: p.Object.UID,
		ResourceVersion: p.Object.ResourceVersion})
}

func (p *pass) event(kind, reason, why string) {
	p.draft.Write(plan.Write{Verb: plan.Event, Object: p.Object, EventType: kind, Reason: reason, Why: why})
}
