package backupstore

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/words"
)

const (
	// verifyAgain is when a verification that the schedule wants and that has failed is tried
	// again.
	verifyAgain = 30 * time.Minute
	// verifyLook is how long a change of the schedule may be missed.
	verifyLook = time.Hour
	// verifyBandwidth is what a verification reads in a second where no schedule says it.
	verifyBandwidth = 50 << 20
	// fullWithin is how long it takes until all files are read.
	fullWithin = 30 * 24 * time.Hour
	// everything is the sample of a request that names none.
	everything = 100
)

// Sample is how a backup is to be verified: the percentage of files that are read, and how many
// bytes in a second.
type Sample struct {
	Percent   int
	Bandwidth int64
}

// VerificationDue says how the backup is to be verified now; nil if it is not.
func VerificationDue(v *facts.BackupVerification, now time.Time) *Sample {
	b := v.Object
	if b.DeletionTimestamp != nil || b.Status.Phase != v1alpha1.BackupComplete || !verifiable(v) {
		return nil
	}
	out := &Sample{Percent: everything, Bandwidth: verifyBandwidth}
	var of *v1alpha1.BackupVerify
	if v.Schedule != nil {
		of = v.Schedule.Spec.Verify
	}
	if of != nil && of.Bandwidth != nil {
		out.Bandwidth = of.Bandwidth.Value()
	}
	had := b.Status.Verified
	if had == nil {
		had = &v1alpha1.BackupVerified{}
	}
	if request := b.Annotations[v1alpha1.AnnotationVerify]; request != "" && shortened(request) != had.Request {
		out.Percent = percent(request, everything)
		return out
	}
	if of == nil || !v.Newest || had.At != nil ||
		had.AttemptedAt != nil && now.Sub(had.AttemptedAt.Time) < verifyAgain && !had.AttemptedAt.After(now) {
		return nil
	}
	out.Percent = percent(of.Sample, 0)
	return out
}

// Part of all contents, in the order of their hashes, that is read beside the sample, from and to a
// percentage: so much that within 30 days all of them are read. It needs no memory of one that was
// interrupted, and loads the store the less, the more often there is one.
func Part(v *facts.BackupVerification, now time.Time) (from, to int) {
	had := fullBefore(v)
	if had == nil {
		return 0, 0
	}
	from = int(had.Percent)
	share := float64(now.Sub(had.Since.Time)) / float64(fullWithin)
	return from, max(from, int(math.Ceil(everything*min(share, 1))))
}

// fullBefore is how far it was that all files are read; nil if that has not begun, or the backup
// has no part in it.
func fullBefore(v *facts.BackupVerification) *v1alpha1.FullVerification {
	if !readsAll(v) || v.Schedule.Status.LastVerified == nil {
		return nil
	}
	return v.Schedule.Status.LastVerified.Full
}

// readsAll says that the backup has a part in it: with a sample of 0% nothing is read.
func readsAll(v *facts.BackupVerification) bool {
	return v.Newest && v.Schedule.Spec.Verify != nil && percent(v.Schedule.Spec.Verify.Sample, 0) > 0
}

// full is how far it is with what was found.
func full(v *facts.BackupVerification, at *metav1.Time) *v1alpha1.FullVerification {
	if !readsAll(v) {
		return nil
	}
	out := fullBefore(v).DeepCopy()
	if out == nil {
		out = &v1alpha1.FullVerification{Since: *at}
	}
	out.Percent = max(out.Percent, int32(v.Verified.ReadTo)) //nolint:gosec // it is a percentage
	if out.Percent == everything {
		return &v1alpha1.FullVerification{Since: *at, LastAt: at}
	}
	return out
}

// verifiable says that the store can be relied on.
func verifiable(v *facts.BackupVerification) bool {
	return v.Store != nil && Sweepable(v.Store) && v.SecretMissing == ""
}

// percent is the percentage at the beginning of a text.
func percent(text string, otherwise int) int {
	digits, _, found := strings.Cut(text, "%")
	if n, err := strconv.Atoi(digits); found && err == nil && n >= 0 && n <= everything {
		return n
	}
	return otherwise
}

// shortened is a request as the schema takes it.
func shortened(request string) string { return words.Shorten(request, 64) }

// NextVerification is what is to be done after a look at a backup: what a verification has found is
// put into its status, and people are told.
func NextVerification(v *facts.BackupVerification, now time.Time) plan.Plan {
	b, draft := v.Object, plan.Draft{}
	switch {
	case b.DeletionTimestamp != nil:
		return draft.Plan
	case v.Problem != "" || (v.Newest || b.Annotations[v1alpha1.AnnotationVerify] != "") && !verifiable(v):
		draft.Wake = verifyAgain
	case v.Newest:
		draft.Wake = verifyLook
	}
	if v.Verified == nil && v.Problem == "" {
		return draft.Plan
	}
	object := plan.Named(b).(*v1alpha1.CassandraBackup)
	object.Status = *b.Status.DeepCopy()
	status := &object.Status
	had := cmp.Or(status.Verified, &v1alpha1.BackupVerified{})
	event := plan.Write{Verb: plan.Event, Object: b, EventType: corev1.EventTypeWarning}
	said := []plan.Write{}
	if at := metav1.NewTime(now).Rfc3339Copy(); v.Verified != nil {
		status.Verified = verified(v.Verified, &at)
		status.Verified.Full = full(v, &at)
		is := metav1.Condition{Type: v1alpha1.ConditionVerified, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonFilesDamaged, ObservedGeneration: b.Generation, LastTransitionTime: at}
		event.Reason = v1alpha1.EventBackupDamaged
		if status.Verified.DamagedFiles == 0 {
			is.Status, is.Reason = metav1.ConditionTrue, v1alpha1.ReasonFilesFound
			event.EventType, event.Reason = corev1.EventTypeNormal, v1alpha1.EventBackupVerified
		}
		is.Message = words.Shorten(describe(status.Verified), longestMessage)
		meta.SetStatusCondition(&status.Conditions, is)
		event.Why = is.Message
		said = append(said, event)
	} else {
		status.Verified = had.DeepCopy()
		status.Verified.AttemptedAt = &at
		status.Verified.Problem = words.Shorten(v.Problem, longestMessage)
		if event.Reason = v1alpha1.EventBackupNotVerified; had.Problem != status.Verified.Problem {
			event.Why = status.Verified.Problem
			said = append(said, event)
		}
	}
	status.Verified.Request = shortened(b.Annotations[v1alpha1.AnnotationVerify])
	draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: b.UID, ResourceVersion: b.ResourceVersion})
	draft.Write(said...)
	return draft.Plan
}

// verified is what was found, as the status has it.
func verified(of *facts.VerifiedBackup, at *metav1.Time) *v1alpha1.BackupVerified {
	return &v1alpha1.BackupVerified{At: at, AttemptedAt: at, Files: of.Files, Bytes: of.Bytes, FilesRead: of.FilesRead,
		BytesRead: of.BytesRead, DamagedFiles: of.DamagedFiles, Damaged: restore.Damaged(of.Description, of.Damaged)}
}

// describe what was found in a sentence for people, the ranges that no other node has first.
func describe(of *v1alpha1.BackupVerified) string {
	if of.DamagedFiles == 0 {
		return fmt.Sprintf("%d files of %d bytes are there, %d of them were read and are what was written", of.Files,
			of.Bytes, of.FilesRead)
	}
	tables := slices.SortedStableFunc(slices.Values(of.Damaged), func(a, b v1alpha1.DamagedTable) int {
		return cmp.Compare(b.Uncovered, a.Uncovered)
	})
	out := fmt.Sprintf("%s of %d missing or damaged", words.Plural(int(of.DamagedFiles), "file"), of.Files)
	for _, t := range tables {
		what := cmp.Or(t.Table, "all tables")
		covers := fmt.Sprintf("all of its %d ranges are in files of %s", t.Ranges, words.List(t.CoveredBy, 3))
		switch {
		case t.Node == "":
			covers = "nothing of it can be restored"
		case t.Ranges == 0:
			covers = "each node has its own"
		case t.Uncovered > 0 && len(t.CoveredBy) == 0:
			covers = fmt.Sprintf("no other node has files of its %d ranges", t.Ranges)
		case t.Uncovered > 0:
			covers = fmt.Sprintf("%d of its %d ranges are in no files of others", t.Uncovered, t.Ranges)
		}
		out += fmt.Sprintf("; %s of %s: %s; %s", what, cmp.Or(t.Node, "all nodes"), t.Files[0], covers)
	}
	return out
}
