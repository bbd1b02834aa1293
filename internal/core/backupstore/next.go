package backupstore

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/words"
)

const (
	// every is how long a store that was found usable is believed to be, and again how long one
	// that was not is believed not to be.
	every = time.Hour
	again = 5 * time.Minute
	// lookAgain is how long a change of the Secret may be missed: Secrets are not watched.
	lookAgain = time.Minute
	// longestMessage of a condition.
	longestMessage = 1024
)

// Due says that the store is to be checked now.
func Due(s *facts.BackupStore, now time.Time) bool {
	status := s.Object.Status
	if s.Object.DeletionTimestamp != nil || s.SecretMissing != "" {
		return false
	}
	last := status.LastCheckTime
	if last == nil || last.After(now) || status.ObservedGeneration != s.Object.Generation ||
		status.CheckedSecret != s.Secret {
		return true
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		return now.Sub(last.Time) >= every
	}
	return now.Sub(last.Time) >= again
}

// needs is what the Secret that is missing must have.
func needs(s *facts.BackupStore) string {
	var keys []string
	if s.SecretMissing == s.Object.Spec.CredentialsSecret() {
		switch spec := s.Object.Spec; {
		case spec.Azure != nil:
			keys = append(keys, v1alpha1.KeyAccountKey)
		case spec.GCS != nil:
			keys = append(keys, v1alpha1.KeyServiceAccountKey)
		default:
			keys = append(keys, v1alpha1.KeyAccessKeyID, v1alpha1.KeySecretAccessKey)
		}
	}
	if s.SecretMissing == s.Object.Spec.EncryptionSecret() {
		keys = append(keys, v1alpha1.KeyIdentities)
	}
	return strings.Join(keys, " and ")
}

// Next is what is to be done about a store now: its status is written if it has changed, and an
// event says so if the reason of Ready has.
func Next(s *facts.BackupStore, now time.Time) plan.Plan {
	if s.Object.DeletionTimestamp != nil {
		return plan.Plan{}
	}
	found := s.Check
	status := *s.Object.Status.DeepCopy()
	switch {
	case s.SecretMissing != "":
		found = &facts.StoreCheck{Reason: v1alpha1.ReasonSecretMissing,
			Message: fmt.Sprintf("there is no Secret %s: create it with %s", s.SecretMissing, needs(s))}
		status.CheckedSecret = ""
	case found != nil:
		status.CheckedSecret, status.LastCheckTime = s.Secret, &metav1.Time{Time: now}
	}
	draft := plan.Draft{Plan: plan.Plan{Wake: lookAgain}}
	if found == nil {
		return draft.Plan
	}
	status.ObservedGeneration = s.Object.Generation
	is, kind, event := metav1.ConditionFalse, corev1.EventTypeWarning, v1alpha1.EventStoreNotUsable
	if found.Reason == v1alpha1.ReasonStoreUsable {
		is, kind, event = metav1.ConditionTrue, corev1.EventTypeNormal, v1alpha1.EventStoreUsable
	}
	message := words.Shorten(found.Message, longestMessage)
	before := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	changed := before == nil || before.Reason != found.Reason
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: is,
		Reason: found.Reason, Message: message, ObservedGeneration: s.Object.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy()})
	if equality.Semantic.DeepEqual(status, s.Object.Status) {
		return draft.Plan
	}
	object := plan.Named(s.Object).(*v1alpha1.CassandraBackupStore)
	object.Status = status
	draft.Write(plan.Write{Verb: plan.ApplyStatus, Object: object, UID: s.Object.UID,
		ResourceVersion: s.Object.ResourceVersion})
	if changed {
		draft.Write(plan.Write{Verb: plan.Event, Object: s.Object, EventType: kind, Reason: event,
			Why: found.Reason + ": " + message})
	}
	return draft.Plan
}
