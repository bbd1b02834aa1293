package backupstore

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

var verifiedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// toVerify is the newest backup of a schedule that wants its backups verified.
func toVerify() *facts.BackupVerification {
	bandwidth := resource.MustParse("7Mi")
	return &facts.BackupVerification{Newest: true,
		Object: &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "u",
			ResourceVersion: "1"}, Status: v1alpha1.CassandraBackupStatus{Phase: v1alpha1.BackupComplete, ID: "b-1",
			ClusterUID: "c", Conditions: []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}}},
		Schedule: &v1alpha1.CassandraBackupSchedule{Spec: v1alpha1.CassandraBackupScheduleSpec{
			Verify: &v1alpha1.BackupVerify{Sample: "5%", Bandwidth: &bandwidth}}},
		Store: &v1alpha1.CassandraBackupStore{Status: v1alpha1.CassandraBackupStoreStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}}}}
}

func TestVerificationDue(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: verifiedAt.Add(-d)} }
	ask := func(v *facts.BackupVerification, request string) {
		v.Object.Annotations = map[string]string{v1alpha1.AnnotationVerify: request}
	}
	for name, c := range map[string]struct {
		change func(*facts.BackupVerification)
		want   *Sample
	}{
		"the newest of a schedule": {func(*facts.BackupVerification) {}, &Sample{5, 7 << 20}},
		"not the newest":           {func(v *facts.BackupVerification) { v.Newest = false }, nil},
		"it was verified": {func(v *facts.BackupVerification) {
			v.Object.Status.Verified = &v1alpha1.BackupVerified{At: ago(900 * time.Hour)}
		}, nil},
		"it has failed": {func(v *facts.BackupVerification) {
			v.Object.Status.Verified = &v1alpha1.BackupVerified{AttemptedAt: ago(29 * time.Minute), Problem: "slow down"}
		}, nil},
		"it has failed a while ago": {func(v *facts.BackupVerification) {
			v.Object.Status.Verified = &v1alpha1.BackupVerified{AttemptedAt: ago(verifyAgain), Problem: "slow down"}
		}, &Sample{5, 7 << 20}},
		"it has failed, and the clock was set back": {func(v *facts.BackupVerification) {
			v.Object.Status.Verified = &v1alpha1.BackupVerified{AttemptedAt: ago(-time.Hour), Problem: "slow down"}
		}, &Sample{5, 7 << 20}},
		"the schedule wants none": {func(v *facts.BackupVerification) { v.Schedule.Spec.Verify = nil }, nil},
		"no schedule":             {func(v *facts.BackupVerification) { v.Schedule, v.Newest = nil, false }, nil},
		"it is asked for": {func(v *facts.BackupVerification) { v.Schedule, v.Newest = nil, false; ask(v, "20%@now") },
			&Sample{20, verifyBandwidth}},
		"it is asked for without a percentage": {func(v *facts.BackupVerification) { v.Schedule, v.Newest = nil, false; ask(v, "please") },
			&Sample{100, verifyBandwidth}},
		"it is asked for by too much": {func(v *facts.BackupVerification) { ask(v, "101%@"+strings.Repeat("x", 900)) },
			&Sample{100, 7 << 20}},
		"it was asked for, and is done": {func(v *facts.BackupVerification) {
			ask(v, "20%@now")
			v.Object.Status.Verified = &v1alpha1.BackupVerified{At: ago(0), Request: "20%@now"}
		}, nil},
		"it was asked for, and has failed": {func(v *facts.BackupVerification) {
			v.Schedule, v.Newest = nil, false
			ask(v, "20%@now")
			v.Object.Status.Verified = &v1alpha1.BackupVerified{AttemptedAt: ago(verifyAgain), Request: "20%@now"}
		}, nil},
		"it is asked for again": {func(v *facts.BackupVerification) {
			ask(v, "20%@later")
			v.Object.Status.Verified = &v1alpha1.BackupVerified{At: ago(0), Request: "20%@now"}
		}, &Sample{20, 7 << 20}},
		"it is not complete": {func(v *facts.BackupVerification) {
			ask(v, "20%@now")
			v.Object.Status.Phase = v1alpha1.BackupIncomplete
		}, nil},
		"it is deleted":          {func(v *facts.BackupVerification) { v.Object.DeletionTimestamp = ago(0) }, nil},
		"no store":               {func(v *facts.BackupVerification) { v.Store = nil }, nil},
		"no Secret":              {func(v *facts.BackupVerification) { v.SecretMissing = "key" }, nil},
		"a store that is no use": {func(v *facts.BackupVerification) { v.Store.Status.Conditions = nil }, nil},
	} {
		v := toVerify()
		c.change(v)
		got := VerificationDue(v, verifiedAt)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if p := NextVerification(v, verifiedAt); len(p.Writes) > 0 {
			t.Errorf("%s: nothing was found, and %v is written", name, p.Writes)
		} else if got == nil && v.Newest && v.Object.DeletionTimestamp == nil && p.Wake == 0 {
			t.Errorf("%s: nobody looks again", name)
		}
	}
}

// What was found is in the status, a condition and an Event; what could not be found out leaves
// what was found before.
func TestNextVerification(t *testing.T) {
	v := toVerify()
	step := func(found *facts.VerifiedBackup, problem string, says ...string) {
		t.Helper()
		v.Verified, v.Problem = found, problem
		p := NextVerification(v, verifiedAt)
		var said []string
		for _, w := range p.Writes {
			switch w.Verb {
			case plan.ApplyStatus:
				v.Object.Status = w.Object.(*v1alpha1.CassandraBackup).Status
			case plan.Event:
				said = append(said, w.EventType+" "+w.Reason+" "+w.Why)
			default:
				t.Errorf("writes %v", w)
			}
		}
		if len(said) != len(says) || len(said) == 1 && said[0] != says[0] {
			t.Errorf("said %q, want %q", said, says)
		}
	}
	nodes := []format.Node{{Name: "a", HostID: "h-a", Datacenter: "dc1", Rack: "r1", Tokens: []string{"1"}},
		{Name: "b", HostID: "h-b", Datacenter: "dc1", Rack: "r1", Tokens: []string{"2"}}}
	found := func(factor string, damaged ...facts.DamagedFile) *facts.VerifiedBackup {
		return &facts.VerifiedBackup{Files: 9, Bytes: 90, FilesRead: 1, BytesRead: 10, Damaged: damaged, DamagedFiles: int64(len(damaged)),
			Description: &format.Backup{Nodes: nodes, Replication: map[string]map[string]string{
				"shop": {"class": "SimpleStrategy", "replication_factor": factor}}}}
	}
	bad := facts.DamagedFile{HostID: "h-a", Node: "a", Keyspace: "shop", Table: "orders", File: "nb-1-big-Data.db",
		Why: "is missing"}
	step(nil, "slow down", "Warning BackupNotVerified slow down")
	step(nil, "slow down")
	if of := v.Object.Status.Verified; of.At != nil || of.Problem != "slow down" || of.AttemptedAt == nil {
		t.Errorf("%+v", of)
	}
	step(found("2", bad), "", "Warning BackupDamaged 1 file of 9 missing or damaged; shop.orders of a: "+
		"nb-1-big-Data.db is missing; all of its 2 ranges are in files of b")
	step(nil, "slow down", "Warning BackupNotVerified slow down")
	of, is := v.Object.Status.Verified, meta.FindStatusCondition(v.Object.Status.Conditions, v1alpha1.ConditionVerified)
	if of.DamagedFiles != 1 || of.At == nil || of.Damaged[0].CoveredBy[0] != "b" || is.Status != metav1.ConditionFalse ||
		is.Reason != v1alpha1.ReasonFilesDamaged {
		t.Errorf("%+v, %+v", of, is)
	}
	step(found("1", bad), "", "Warning BackupDamaged 1 file of 9 missing or damaged; shop.orders of a: "+
		"nb-1-big-Data.db is missing; no other node has files of its 1 ranges")
	lost := found("1", facts.DamagedFile{File: "its description", Why: "is missing"})
	lost.Description = &format.Backup{}
	step(lost, "", "Warning BackupDamaged 1 file of 9 missing or damaged; all tables of all nodes: its description is "+
		"missing; nothing of it can be restored")
	v.Object.Annotations = map[string]string{v1alpha1.AnnotationVerify: "now"}
	step(found("2"), "", "Normal BackupVerified 9 files of 90 bytes are there, 1 of them were read and are what "+
		"was written")
	if of := v.Object.Status; len(of.Conditions) != 2 || of.Verified.Request != "now" || of.Verified.Problem != "" ||
		!meta.IsStatusConditionTrue(of.Conditions, v1alpha1.ConditionVerified) {
		t.Errorf("%+v", of)
	}
}

// The latest backups are read in full within 30 days, however often there is one, and by one of
// which all is read at once.
func TestAllFilesAreReadInAMonth(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		every    time.Duration
		sample   int
		days     int
		most     int // percent at once
		complete bool
	}{
		"every day":         {day, 5, 31, 4, true},
		"it is not over":    {day, 5, 30, 4, false},
		"every two weeks":   {14 * day, 5, 43, 47, true},
		"less than a month": {40 * day, 5, 41, 100, true},
		"all at once":       {day, 100, 1, 0, true},
	} {
		v, at, most := toVerify(), verifiedAt, 0
		for ; at.Before(verifiedAt.Add(time.Duration(c.days) * day)); at = at.Add(c.every) {
			from, to := Part(v, at)
			most = max(most, to-from)
			v.Verified = &facts.VerifiedBackup{Description: &format.Backup{}, ReadTo: to}
			if c.sample == 100 {
				v.Verified.ReadTo = 100
			}
			status := NextVerification(v, at).Writes[0].Object.(*v1alpha1.CassandraBackup).Status
			v.Schedule.Status.LastVerified = &v1alpha1.ScheduledVerification{At: *status.Verified.At,
				Full: status.Verified.Full}
		}
		if of := v.Schedule.Status.LastVerified.Full; most != c.most || (of.LastAt != nil) != c.complete {
			t.Errorf("%s: at most %d%% at once, %+v", name, most, of)
		}
	}
	for name, change := range map[string]func(*facts.BackupVerification){
		"not the latest": func(v *facts.BackupVerification) { v.Newest = false },
		"nothing":        func(v *facts.BackupVerification) { v.Schedule.Spec.Verify.Sample = "0%" },
	} {
		v := toVerify()
		v.Schedule.Status.LastVerified = &v1alpha1.ScheduledVerification{Full: &v1alpha1.FullVerification{}}
		if change(v); full(v, &metav1.Time{}) != nil {
			t.Errorf("%s: it has a part", name)
		}
		if from, to := Part(v, verifiedAt); from != to {
			t.Errorf("%s: from %d to %d", name, from, to)
		}
	}
}
