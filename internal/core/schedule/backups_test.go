package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// kept is a backup that was taken at a time.
func kept(phase v1alpha1.BackupPhase, at time.Time) *v1alpha1.CassandraBackup {
	taken, ended := metav1.NewMicroTime(at), metav1.NewTime(at.Add(time.Hour))
	name := at.UTC().Format(time.RFC3339)
	b := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{v1alpha1.LabelScheduleUID: "s-1"}}}
	b.Status = v1alpha1.CassandraBackupStatus{Phase: phase, ID: "id-" + name, TakenAt: &taken, FinishedAt: &ended}
	return b
}

func TestExpired(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	day := func(hour int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(hour) * time.Hour} }
	const complete, failed, incomplete = v1alpha1.BackupComplete, v1alpha1.BackupFailed, v1alpha1.BackupIncomplete
	for name, c := range map[string]struct {
		keep  v1alpha1.BackupRetention
		all   map[string]v1alpha1.BackupPhase
		zone  *time.Location
		gone  []string
		clock string
	}{
		"the last two": {keep: v1alpha1.BackupRetention{Last: 2}, all: map[string]v1alpha1.BackupPhase{
			"2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete, "2026-03-03T03:00:00Z": complete},
			gone: []string{"2026-03-01T03:00:00Z"}},
		"nothing is said": {all: map[string]v1alpha1.BackupPhase{
			"2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete}, gone: []string{"2026-03-01T03:00:00Z"}},
		"the last of each day": {keep: v1alpha1.BackupRetention{Daily: 2}, all: map[string]v1alpha1.BackupPhase{
			"2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete, "2026-03-02T15:00:00Z": complete,
			"2026-03-04T03:00:00Z": complete}, gone: []string{"2026-03-01T03:00:00Z", "2026-03-02T03:00:00Z"}},
		"days in the zone": {keep: v1alpha1.BackupRetention{Daily: 2}, zone: berlin,
			all: map[string]v1alpha1.BackupPhase{"2026-03-01T22:30:00Z": complete, "2026-03-01T23:30:00Z": complete,
				"2026-03-02T22:30:00Z": complete}, gone: []string{"2026-03-01T23:30:00Z"}},
		"weeks begin on Monday": {keep: v1alpha1.BackupRetention{Weekly: 2}, all: map[string]v1alpha1.BackupPhase{
			"2026-02-28T03:00:00Z": complete, "2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete,
			"2026-03-03T03:00:00Z": complete}, gone: []string{"2026-02-28T03:00:00Z", "2026-03-02T03:00:00Z"}},
		"a week over the end of the year": {keep: v1alpha1.BackupRetention{Weekly: 9},
			all:  map[string]v1alpha1.BackupPhase{"2025-12-29T03:00:00Z": complete, "2026-01-01T03:00:00Z": complete},
			gone: []string{"2025-12-29T03:00:00Z"}, clock: "2026-02-01T00:00:00Z"},
		"months": {keep: v1alpha1.BackupRetention{Monthly: 2}, all: map[string]v1alpha1.BackupPhase{
			"2025-03-01T03:00:00Z": complete, "2026-02-01T03:00:00Z": complete, "2026-03-03T03:00:00Z": complete},
			gone: []string{"2025-03-01T03:00:00Z"}},
		"one rule is enough": {keep: v1alpha1.BackupRetention{Last: 1, Monthly: 2}, all: map[string]v1alpha1.BackupPhase{
			"2026-02-01T03:00:00Z": complete, "2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete},
			gone: []string{"2026-03-01T03:00:00Z"}},
		"not old enough": {keep: v1alpha1.BackupRetention{Last: 1, MinimumAge: day(48)},
			all: map[string]v1alpha1.BackupPhase{"2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": complete,
				"2026-03-03T03:00:00Z": complete}, clock: "2026-03-04T02:59:59Z", gone: []string{"2026-03-01T03:00:00Z"}},
		"those that failed do not count": {keep: v1alpha1.BackupRetention{Last: 1}, all: map[string]v1alpha1.BackupPhase{
			"2026-03-01T03:00:00Z": complete, "2026-03-02T03:00:00Z": failed, "2026-03-03T03:00:00Z": incomplete,
			"2026-03-03T04:00:00Z": v1alpha1.BackupUploading}},
		"three that failed stay": {keep: v1alpha1.BackupRetention{Last: 9}, all: map[string]v1alpha1.BackupPhase{
			"2026-03-01T03:00:00Z": failed, "2026-03-02T03:00:00Z": failed, "2026-03-03T03:00:00Z": incomplete,
			"2026-03-03T04:00:00Z": failed}, gone: []string{"2026-03-01T03:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			var own []*v1alpha1.CassandraBackup
			for text, phase := range c.all {
				own = append(own, kept(phase, at(text)))
			}
			if c.zone == nil {
				c.zone = time.UTC
			}
			now := at("2026-03-05T00:00:00Z")
			if c.clock != "" {
				now = at(c.clock)
			}
			var gone []string
			for _, b := range Expired(c.keep, c.zone, own, now) {
				gone = append(gone, b.Name)
			}
			if !slices.Equal(gone, c.gone) {
				t.Errorf("%q go, want %q", gone, c.gone)
			}
		})
	}
}

// Whatever the spec says: the latest complete one stays, what is young or has not finished too,
// what any rule keeps does, and what is left is bounded by them. A second look finds nothing more.
func TestWhatNeverExpires(t *testing.T) {
	phases := []v1alpha1.BackupPhase{v1alpha1.BackupComplete, v1alpha1.BackupComplete, v1alpha1.BackupFailed,
		v1alpha1.BackupIncomplete, v1alpha1.BackupUploading, ""}
	rapid.Check(t, func(t *rapid.T) {
		now := at("2026-03-05T00:00:00Z")
		var own []*v1alpha1.CassandraBackup
		for i, hours := range rapid.SliceOfN(rapid.IntRange(-48, 10_000), 0, 40).Draw(t, "ages") {
			b := kept(rapid.SampledFrom(phases).Draw(t, "phase"), now.Add(-time.Duration(hours)*time.Hour))
			b.UID = types.UID(rune('a' + i))
			own = append(own, b)
		}
		count := rapid.Int32Range(0, 5)
		keep := v1alpha1.BackupRetention{Last: count.Draw(t, "last"), Daily: count.Draw(t, "daily"),
			Weekly: count.Draw(t, "weekly"), Monthly: count.Draw(t, "monthly"),
			MinimumAge: &metav1.Duration{Duration: time.Duration(rapid.IntRange(0, 200).Draw(t, "age")) * time.Hour}}
		gone := Expired(keep, time.UTC, own, now)
		var left, complete []*v1alpha1.CassandraBackup
		for _, b := range own {
			expired := slices.Contains(gone, b)
			switch {
			case expired && !b.Status.Phase.Final():
				t.Fatalf("%s goes, which is %q", b.Name, b.Status.Phase)
			case expired && now.Sub(b.Status.TakenAt.Time) < keep.MinimumAge.Duration:
				t.Fatalf("%s goes, which is young", b.Name)
			case !expired:
				left = append(left, b)
			}
			if b.Status.Phase == v1alpha1.BackupComplete {
				complete = append(complete, b)
			}
		}
		if again := Expired(keep, time.UTC, left, now); len(again) > 0 {
			t.Fatalf("%d more go at once", len(again))
		}
		slices.SortStableFunc(complete, func(a, b *v1alpha1.CassandraBackup) int {
			return b.Status.TakenAt.Compare(a.Status.TakenAt.Time)
		})
		for i, b := range complete {
			if i < max(1, int(keep.Last)) && slices.Contains(gone, b) {
				t.Fatalf("%s goes, the latest but %d", b.Name, i)
			}
		}
		most := max(1, keep.Last) + keep.Daily + keep.Weekly + keep.Monthly
		old := slices.DeleteFunc(complete, func(b *v1alpha1.CassandraBackup) bool {
			return slices.Contains(gone, b) || now.Sub(b.Status.TakenAt.Time) < keep.MinimumAge.Duration
		})
		if len(old) > int(most) {
			t.Fatalf("%d stay, and the rules keep %d", len(old), most)
		}
	})
}

// A schedule makes its backups, says what became of them, and deletes its own alone.
func TestABackupScheduleLives(t *testing.T) {
	now := at("2026-03-01T12:00:00Z")
	s := &facts.BackupSchedule{Timing: facts.Timing{Zone: time.UTC, Cluster: true}, Store: true,
		Schedule: &v1alpha1.CassandraBackupSchedule{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "s-1", ResourceVersion: "1",
				Generation: 1, CreationTimestamp: metav1.NewTime(now)},
			Spec: v1alpha1.CassandraBackupScheduleSpec{Cluster: v1alpha1.TaskCluster{Name: "orders"},
				Store:  v1alpha1.BackupStoreReference{Name: "main"},
				Timing: v1alpha1.Timing{Schedule: "0 3 * * *", TimeZone: "UTC", Missed: v1alpha1.MissedRunOnce},
				Keep:   v1alpha1.BackupRetention{Last: 1}, DeletionPolicy: v1alpha1.BackupDelete,
				Template: v1alpha1.BackupTemplate{Keyspaces: []string{"shop"}}}}}
	other, taken := kept(v1alpha1.BackupComplete, at("2026-01-01T03:00:00Z")),
		kept(v1alpha1.BackupComplete, at("2026-01-02T03:00:00Z"))
	other.Labels[v1alpha1.LabelScheduleUID], taken.Labels = "s-0", nil
	s.Backups = []*v1alpha1.CassandraBackup{other, taken}
	var events []string
	pass := func(text string) {
		t.Helper()
		now = at(text)
		for _, w := range NextBackup(s, now).Writes {
			switch w.Verb {
			case plan.Create:
				b := w.Object.(*v1alpha1.CassandraBackup)
				b.UID, b.CreationTimestamp = types.UID(b.Name), metav1.NewTime(now)
				s.Backups = append(s.Backups, b)
			case plan.ApplyStatus:
				s.Schedule.Status = w.Object.(*v1alpha1.CassandraBackupSchedule).Status
			case plan.Delete:
				s.Backups = slices.DeleteFunc(s.Backups,
					func(b *v1alpha1.CassandraBackup) bool { return b.UID == w.UID })
			case plan.Event:
				events = append(events, w.Reason)
			default:
				t.Errorf("unknown write %s", w)
			}
		}
	}
	due := func(want string) {
		t.Helper()
		is := BackupDue(s)
		if want == "" && !is.IsZero() || want != "" && !is.Equal(at(want)) {
			t.Errorf("at %s the next is due at %s, want %s", now, is, want)
		}
	}
	finish := func(phase v1alpha1.BackupPhase) {
		b := s.Backups[len(s.Backups)-1]
		b.Status = kept(phase, now).Status
	}
	pass("2026-03-01T12:00:00Z")
	due("2026-03-02T03:00:00Z")
	pass("2026-03-02T03:00:00Z")
	due("2026-03-02T03:00:00Z")
	b := s.Backups[2]
	if b.Name != Name("nightly", now) || !slices.Equal(b.Finalizers, []string{v1alpha1.FinalizerBackup}) ||
		len(b.OwnerReferences) > 0 || !slices.Equal(b.Spec.Keyspaces, []string{"shop"}) ||
		b.Spec.DeletionPolicy != v1alpha1.BackupDelete || b.Spec.Store.Name != "main" || s.Schedule.Status.Active != b.Name {
		t.Fatalf("made %+v, status %+v", b, s.Schedule.Status)
	}
	finish(v1alpha1.BackupComplete)
	pass("2026-03-02T05:00:00Z")
	due("2026-03-03T03:00:00Z")
	pass("2026-03-03T03:00:00Z")
	finish(v1alpha1.BackupFailed)
	pass("2026-03-03T05:00:00Z")
	due("2026-03-03T03:00:00Z")
	if status := s.Schedule.Status; status.LastComplete.Name != b.Name || status.LastBackup.Name == b.Name ||
		status.LastBackup.Phase != v1alpha1.BackupFailed || status.Active != "" || len(s.Backups) != 4 {
		t.Errorf("status %+v, %d backups", status, len(s.Backups))
	}
	verified := metav1.NewTime(now)
	b.Status.Verified = &v1alpha1.BackupVerified{At: &verified, DamagedFiles: 2,
		Full: &v1alpha1.FullVerification{Since: verified}}
	s.Backups[3].Status.Verified = &v1alpha1.BackupVerified{Problem: "access denied"}
	pass("2026-03-04T03:00:00Z")
	if of := s.Schedule.Status.LastVerified; of == nil || of.Name != b.Name || of.DamagedFiles != 2 ||
		!of.At.Equal(&verified) || of.Full == nil {
		t.Errorf("verified %+v", of)
	}
	b.Status.Verified.Full = nil // one by hand, of a backup that is not the latest
	pass("2026-03-04T04:00:00Z")
	if of := s.Schedule.Status.LastVerified; of.Full == nil {
		t.Errorf("verified %+v", of)
	}
	due("2026-03-03T03:00:00Z")
	finish(v1alpha1.BackupComplete)
	pass("2026-03-04T05:00:00Z")
	due("2026-03-05T03:00:00Z")
	s.Schedule.Spec.Suspend = true
	pass("2026-03-04T06:00:00Z")
	due("")
	s.Schedule.Spec.Suspend = false
	pass("2026-03-04T07:00:00Z")
	due("2026-03-05T03:00:00Z")
	if len(s.Backups) != 4 || slices.Contains(s.Backups, b) || s.Backups[0] != other || s.Backups[1] != taken {
		t.Errorf("%d backups are left", len(s.Backups))
	}
	s.Store = false
	pass("2026-03-05T03:00:00Z")
	stalled := meta.FindStatusCondition(s.Schedule.Status.Conditions, v1alpha1.ConditionStalled)
	if len(s.Backups) != 4 || stalled == nil || stalled.Reason != v1alpha1.ReasonStoreMissing ||
		!strings.Contains(stalled.Message, `spec.store.name "main"`) {
		t.Errorf("%d backups, %+v", len(s.Backups), s.Schedule.Status)
	}
	pass("2026-03-06T03:00:00Z")
	due("2026-03-05T03:00:00Z") // since when it is stalled
	if want := []string{"BackupCreated", "BackupCreated", "BackupCreated"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}
