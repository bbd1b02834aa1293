package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// Bounds of the schema.
const (
	keptHistory  = 10
	mostBlocked  = 32
	mostNodes    = 100
	longestText  = 2048
	longestField = 1024
)

// Of is the status of a cluster after a pass. The writes of the plan are those that were carried
// out, failure is the write that failed, if one did, and rejected is why the API server does not
// want pods or claims as they are. A status that equals the
// present one is not written, so nothing in it may change by itself.
func Of(s *facts.Snapshot, decided plan.Plan, failure, rejected error, now time.Time) v1alpha1.CassandraClusterStatus {
	if rejected != nil && decided.Stalled == nil {
		decided.Stalled = &plan.Stall{Reason: v1alpha1.ReasonPodRejected, Message: rejected.Error()}
	}
	previous := s.Cluster.Status
	out := v1alpha1.CassandraClusterStatus{
		ObservedGeneration: s.Cluster.Generation,
		Conditions:         slices.Clone(previous.Conditions),
		Blocked: bounded(decided.Blocked, mostBlocked,
			func(b *v1alpha1.BlockedStep) (*[]string, *string) { return &b.Nodes, &b.Message }),
		Notices: bounded(decided.Notices, mostBlocked,
			func(n *v1alpha1.Notice) (*[]string, *string) { return &n.Nodes, &n.Message }),
		History:     history(previous.History, decided.Finished, failure),
		OpenSteps:   openSteps(s, decided.Writes),
		Unhealthy:   unhealthy(s),
		JVMRestarts: jvmRestarts(s),
		Datacenters: datacenters(s),
		Version:     versions(s),
		Seeds:       decided.Seeds,
		Repair:      repairStatus(s, decided.Repair),
		Security:    security(s, now),
		Recommended: bounded(decided.Recommended, len(decided.Recommended),
			func(r *v1alpha1.Recommendation) (*[]string, *string) { return &r.Nodes, &r.Message }),
		Exceptions: bounded(decided.Exceptions, len(decided.Exceptions),
			func(e *v1alpha1.ExceptionStatus) (*[]string, *string) { return nil, &e.Message }),
	}
	for _, dc := range out.Datacenters {
		out.Nodes += dc.Nodes
		out.ReadyNodes += dc.Ready
	}
	out.Step = step(decided, previous.Step, now)
	setConditions(&out, s, decided, failure, now)
	return out
}

// repairStatus is what is known of repairs now, else what was known last: while no agent tells
// which tables there are.
func repairStatus(s *facts.Snapshot, now *v1alpha1.RepairStatus) *v1alpha1.RepairStatus {
	if now == nil && s.Ledger.HasRing() {
		return s.Cluster.Status.Repair
	}
	return now
}

// security is how the ring is protected. One that was made by an earlier release of Helenus asks
// for no password.
func security(s *facts.Snapshot, now time.Time) *v1alpha1.SecurityStatus {
	out := &v1alpha1.AuthenticationStatus{Mode: cmp.Or(s.Authentication(), v1alpha1.AuthenticationNone)}
	if next := cmp.Or(s.NextAuthentication(), out.Mode); next != out.Mode {
		out.Next = next
	}
	if out.Mode == v1alpha1.AuthenticationPassword || out.Next == v1alpha1.AuthenticationPassword {
		out.Superuser = &v1alpha1.SuperuserStatus{SecretName: s.SuperuserSecret()}
		if applied := s.Passwords.Applied; applied != nil {
			if at, err := time.Parse(time.RFC3339, applied.Annotations[v1alpha1.AnnotationAppliedAt]); err == nil {
				out.Superuser.AppliedAt = &metav1.Time{Time: at}
				out.Superuser.SecretVersion = applied.Annotations[v1alpha1.AnnotationSecretVersion]
			}
		}
	}
	if s.Ledger != nil {
		for _, r := range s.Ledger.Roles {
			if r.RemovedAt.IsZero() {
				out.Roles = append(out.Roles, v1alpha1.RoleStatus{Name: r.Name, SecretVersion: r.SecretVersion})
			}
		}
	}
	return &v1alpha1.SecurityStatus{Authentication: out, Encryption: encryption(s, now)}
}

// encryption is nil in a ring that was made by an earlier release of Helenus.
func encryption(s *facts.Snapshot, now time.Time) *v1alpha1.EncryptionStatus {
	made := s.Encryption()
	if made == nil {
		return nil
	}
	stage := *made
	if l := s.Ledger; l != nil && l.Encryption != nil && l.Encryption.Before != nil { // any may still have that
		stage = facts.LeastEncryption(stage, *l.Encryption.Before)
	}
	out := &v1alpha1.EncryptionStatus{Internode: stage.Internode, Clients: stage.Clients}
	for _, n := range s.Records() {
		for _, c := range n.Record.Status.Certificates {
			if c.NotAfter != nil && (out.NextExpiry == nil || c.NotAfter.Before(out.NextExpiry)) {
				out.NextExpiry = c.NotAfter
			}
		}
	}
	near := min(s.Cluster.Spec.CertificateLifetime()/4, facts.LongestNear)
	for _, use := range []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients} {
		t := s.Trust[v1alpha1.AuthorityName(s.Cluster.Name, use)]
		for _, a := range t.Trusted {
			ends := metav1.NewTime(a.EndsAt)
			out.Authorities = append(out.Authorities, v1alpha1.AuthorityStatus{Use: use, Fingerprint: a.Fingerprint,
				NotAfter: ends, Stage: t.Stage(a.Fingerprint)})
			if out.NextExpiry == nil || ends.Before(out.NextExpiry) {
				out.NextExpiry, near = &ends, facts.LongestNear
			}
		}
	}
	out.Authorities = out.Authorities[:min(len(out.Authorities), mostAuthorities)]
	if out.NextExpiry != nil {
		for _, days := range []int32{14, 7, 1} {
			if left := out.NextExpiry.Sub(now); left <= near && left <= time.Duration(days)*24*time.Hour {
				out.EndsWithinDays = days
			}
		}
	}
	return out
}

// mostAuthorities is the bound of the schema.
const mostAuthorities = 8

// bounded are the first so many of a list, with their nodes, if they have any, and their messages
// within the bounds of the schema.
func bounded[T any](all []T, most int, parts func(*T) (nodes *[]string, message *string)) []T {
	if len(all) == 0 {
		return nil
	}
	out := slices.Clone(all[:min(len(all), most)])
	for i := range out {
		nodes, message := parts(&out[i])
		if nodes != nil {
			*nodes = (*nodes)[:min(len(*nodes), mostNodes)]
		}
		*message = words.Shorten(*message, longestText)
	}
	return out
}

// history puts what this pass finished before what was known. A pass that failed finished nothing
// for certain; the next one says so again. So does one after a pass that lost a race: the same step
// is there once.
func history(old, finished []v1alpha1.StepRecord, failure error) []v1alpha1.StepRecord {
	if failure != nil || len(finished) == 0 {
		return old
	}
	finished = slices.Clone(finished)
	for i := range finished { // as the API server keeps them
		f := &finished[i]
		f.StartedAt, f.FinishedAt = f.StartedAt.Rfc3339Copy(), f.FinishedAt.Rfc3339Copy()
	}
	out := append(slices.Clone(finished), slices.DeleteFunc(slices.Clone(old), func(o v1alpha1.StepRecord) bool {
		return slices.ContainsFunc(finished, func(f v1alpha1.StepRecord) bool {
			return f.Step == o.Step && f.StartedAt.Equal(&o.StartedAt) && f.Message == o.Message
		})
	})...)
	return out[:min(len(out), keptHistory)]
}

// step is the current one. Since is kept while the step stays the same.
func step(plan plan.Plan, previous *v1alpha1.StepStatus, now time.Time) *v1alpha1.StepStatus {
	if plan.Current == nil {
		return nil
	}
	out := plan.Current.DeepCopy()
	out.Nodes = out.Nodes[:min(len(out.Nodes), mostNodes)]
	out.Message = words.Shorten(out.Message, longestText)
	if out.Since == nil {
		if previous != nil && previous.Name == out.Name && previous.Since != nil {
			out.Since = previous.Since
		} else {
			since := metav1.NewTime(now).Rfc3339Copy()
			out.Since = &since
		}
	}
	return out
}

// datacenters counts the nodes by datacenter and rack: first those of the spec in its order, then
// those that only records have.
func datacenters(s *facts.Snapshot) []v1alpha1.DatacenterStatus {
	var out []v1alpha1.DatacenterStatus
	dc := func(name string) *v1alpha1.DatacenterStatus {
		for i := range out {
			if out[i].Name == name {
				return &out[i]
			}
		}
		out = append(out, v1alpha1.DatacenterStatus{Name: name, Formed: s.Ledger.IsFormed(name)})
		return &out[len(out)-1]
	}
	rack := func(d *v1alpha1.DatacenterStatus, name string) *v1alpha1.RackStatus {
		for i := range d.Racks {
			if d.Racks[i].Name == name {
				return &d.Racks[i]
			}
		}
		d.Racks = append(d.Racks, v1alpha1.RackStatus{Name: name})
		return &d.Racks[len(d.Racks)-1]
	}
	for i := range s.Cluster.Spec.Datacenters {
		d := dc(s.Cluster.Spec.Datacenters[i].Name)
		for j := range s.Cluster.Spec.Datacenters[i].Racks {
			rack(d, s.Cluster.Spec.Datacenters[i].Racks[j].Name)
		}
	}
	for _, n := range s.Records() {
		d := dc(n.Record.Spec.Datacenter)
		r := rack(d, n.Record.Spec.Rack)
		d.Nodes++
		r.Nodes++
		if Serves(n) {
			d.Ready++
			r.Ready++
		}
	}
	return out
}

// Serves says that a node serves clients: its agent answers and says so, and Kubernetes agrees. For
// one that is only just being asked its record stands.
func Serves(n *facts.Node) bool {
	agent := n.CurrentAgent()
	ready := agent != nil && agent.Ready || n.Asking && n.StatusIsCurrent() && n.Record.Status.Ready
	if !ready || n.Pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range n.Pod.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// versions is the range of releases that run.
func versions(s *facts.Snapshot) *v1alpha1.VersionRange {
	var out *v1alpha1.VersionRange
	for _, n := range s.Records() {
		v := n.Record.Status.Version
		switch {
		case v == "" || !n.StatusIsCurrent():
		case out == nil:
			out = &v1alpha1.VersionRange{Lowest: v, Highest: v}
		case compareReleases(v, out.Lowest) < 0:
			out.Lowest = v
		case compareReleases(v, out.Highest) > 0:
			out.Highest = v
		}
	}
	return out
}

// compareReleases orders releases such as 4.1.9 and 4.1.10 by their numbers.
func compareReleases(a, b string) int {
	numbers := func(v string) []int {
		var out []int
		for _, part := range strings.FieldsFunc(v, func(r rune) bool { return r < '0' || r > '9' }) {
			n := 0
			for _, d := range part {
				n = n*10 + int(d-'0')
			}
			out = append(out, n)
		}
		return out
	}
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
}

func setConditions(out *v1alpha1.CassandraClusterStatus, s *facts.Snapshot, plan plan.Plan, failure error,
	now time.Time) {
	set := func(kind string, yes bool, reason, format string, args ...any) {
		value := metav1.ConditionFalse
		if yes {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason,
			Message:            words.Shorten(fmt.Sprintf(format, args...), longestField),
			ObservedGeneration: out.ObservedGeneration,
			LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
	wanted, stopped := wantedCount(s)
	formed := s.Ledger.HasRing()
	whole := !slices.ContainsFunc(out.Datacenters, func(d v1alpha1.DatacenterStatus) bool { return !d.Formed })
	switch {
	case s.Cluster.DeletionTimestamp != nil:
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonDeleting, "the cluster is being deleted")
	case isDown(s):
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonStopped, "%s", whyDown)
	case out.ReadyNodes == wanted && out.Nodes == wanted && formed && whole:
		set(v1alpha1.ConditionReady, true, v1alpha1.ReasonAllNodesReady, "%d of %d nodes serve clients", out.ReadyNodes,
			wanted)
	case !formed:
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonForming, "the ring is being formed")
	case stopped > 0:
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonStopped, "%d of %d nodes serve clients: %d are of a "+
			"datacenter that is stopped, as the spec says", out.ReadyNodes, wanted, stopped)
	case out.Nodes > wanted:
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady, "%d nodes serve clients, and the spec has %d",
			out.ReadyNodes, wanted)
	default:
		set(v1alpha1.ConditionReady, false, v1alpha1.ReasonNodesNotReady, "%d of %d nodes serve clients",
			out.ReadyNodes, wanted)
	}
	// An operator that has just started has heard nobody yet: what was said before stands for the
	// moment that this takes.
	unheard := slices.ContainsFunc(s.Records(), func(n *facts.Node) bool { return n.Asking })
	if !unheard || meta.FindStatusCondition(out.Conditions, v1alpha1.ConditionAvailable) == nil {
		setAvailable(set, s, formed)
	}
	if !unheard || meta.FindStatusCondition(out.Conditions, v1alpha1.ConditionHealthy) == nil {
		setHealthy(set, s, formed)
	}
	if reason, message := pending(s, plan, now); reason != "" {
		set(v1alpha1.ConditionUpToDate, false, reason, "%s", message)
	} else {
		set(v1alpha1.ConditionUpToDate, true, v1alpha1.ReasonApplied, "every node is as the spec describes it")
	}
	// kstatus: these two are there only while they are true.
	if plan.Stalled != nil {
		set(v1alpha1.ConditionStalled, true, plan.Stalled.Reason, "%s", plan.Stalled.Message)
	} else {
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionStalled)
	}
	switch {
	case failure != nil:
		set(v1alpha1.ConditionReconciling, true, v1alpha1.ReasonWaiting, "%s", failure)
	case s.Ledger.Stops() == ledger.StageStopped && s.Cluster.Spec.Stopped: // it is what the spec wants
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionReconciling)
	case plan.Stalled == nil && out.Step != nil:
		set(v1alpha1.ConditionReconciling, true, v1alpha1.ReasonStepOpen, "%s: %s", out.Step.Name, out.Step.Message)
	case plan.Stalled == nil && out.ReadyNodes != wanted-stopped:
		set(v1alpha1.ConditionReconciling, true, v1alpha1.ReasonWaiting, "%d of %d nodes serve clients", out.ReadyNodes,
			wanted)
	default:
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionReconciling)
	}
}

// whyDown is why a ring that is stopped as a whole serves nobody.
const whyDown = "the ring is stopped, as spec.stopped says"

// isDown says that the ring is stopped as a whole, or about to be, and not to start again.
func isDown(s *facts.Snapshot) bool {
	switch s.Ledger.Stops() {
	case ledger.StageClose, ledger.StageDeliver, ledger.StageDrain, ledger.StageStopped:
		return true
	default:
		return false
	}
}

// wantedCount is how many nodes the spec describes, and how many of them are of datacenters that
// are stopped alone.
func wantedCount(s *facts.Snapshot) (all, stopped int32) {
	for _, w := range render.WantedNodes(s.Cluster, s.Install) {
		all++
		if s.Ledger.StopsDatacenter(w.Datacenter) {
			stopped++
		}
	}
	return all, stopped
}

// pending says what keeps the nodes from being what the spec describes.
func pending(s *facts.Snapshot, plan plan.Plan, now time.Time) (reason, message string) {
	all := s.Records()
	records := make(map[string]*facts.Node, len(all))
	for _, n := range all {
		records[n.Name] = n
	}
	var compared render.Comparison
	for _, w := range assess.Wanted(s, now) {
		n := records[w.Name]
		delete(records, w.Name)
		if n != nil {
			w = render.Pinned(s.Cluster, w, n.Record)
		}
		switch {
		case n == nil:
			return v1alpha1.ReasonChangePending, fmt.Sprintf("node %s does not exist yet", w.Name)
		case !compared.Same(n, w):
			return v1alpha1.ReasonChangePending, fmt.Sprintf("node %s differs from the spec in %s", w.Name,
				strings.Join(render.Fields(render.Differences(n.Record, w)), ", "))
		case n.Pod != nil && n.Pod.DeletionTimestamp == nil &&
			n.PodTemplate() != compared.HashesOf(n).PodTemplate:
			return v1alpha1.ReasonChangePending, fmt.Sprintf("the pod of node %s is not yet a new one", w.Name)
		case n.VolumeGrows() != "":
			return v1alpha1.ReasonChangePending, fmt.Sprintf("claim %s of node %s waits for its volume to grow",
				n.VolumeGrows(), w.Name)
		case n.Record.Status.Configuration != nil && n.Record.Status.Configuration.RestartNeeded,
			n.Pod != nil && n.Record.Spec.Resized.Owes(n.Pod.UID):
			return v1alpha1.ReasonRestartNeeded, fmt.Sprintf("node %s needs a restart of its JVM", w.Name)
		}
	}
	for _, n := range all { // in the same order each time: every word that changes is a write
		if records[n.Name] != nil {
			return v1alpha1.ReasonChangePending, fmt.Sprintf("node %s is not in the spec", n.Name)
		}
	}
	if next := s.NextEncryption(); next != nil {
		return v1alpha1.ReasonChangePending, "the encryption of the ring has another stage to go"
	}
	if plan.Stalled != nil && plan.Stalled.Reason == v1alpha1.ReasonUnsupportedChange {
		return v1alpha1.ReasonChangePending, plan.Stalled.Message
	}
	return "", ""
}
