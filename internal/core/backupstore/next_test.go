package backupstore

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
)

// The life of a store, minute by minute: when it is checked, and when somebody is told.
func TestStore(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &facts.BackupStore{Object: &v1alpha1.CassandraBackupStore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		Name: "main", UID: "s", ResourceVersion: "1", Generation: 1}, Spec: v1alpha1.BackupStoreSpec{
		S3:         &v1alpha1.S3Store{Bucket: "backups", SecretName: "key"},
		Encryption: &v1alpha1.StoreEncryption{Mode: v1alpha1.StoreEncryptionClient, SecretName: "lines"}}}}
	s.SecretMissing = "key"
	for _, step := range []struct {
		name   string
		passed time.Duration
		before func()
		// found by a check; empty means that none is due.
		found  string
		reason string
		event  string
	}{
		{"no Secret", 0, nil, "", v1alpha1.ReasonSecretMissing, v1alpha1.EventStoreNotUsable},
		{"no Secret still", time.Hour, nil, "", v1alpha1.ReasonSecretMissing, ""},
		{"the other one", time.Hour, func() { s.SecretMissing = "lines" }, "", v1alpha1.ReasonSecretMissing, ""},
		{"a Secret", time.Minute, func() { s.Secret, s.SecretMissing = "7", "" }, v1alpha1.ReasonAccessDenied,
			v1alpha1.ReasonAccessDenied, v1alpha1.EventStoreNotUsable},
		{"a moment later", 4 * time.Minute, nil, "", v1alpha1.ReasonAccessDenied, ""},
		{"checked again", time.Minute, nil, v1alpha1.ReasonAccessDenied, v1alpha1.ReasonAccessDenied, ""},
		{"another Secret", time.Minute, func() { s.Secret = "8" }, v1alpha1.ReasonStoreUsable,
			v1alpha1.ReasonStoreUsable, v1alpha1.EventStoreUsable},
		{"not yet an hour", 59 * time.Minute, nil, "", v1alpha1.ReasonStoreUsable, ""},
		{"an hour", time.Minute, nil, v1alpha1.ReasonStoreUsable, v1alpha1.ReasonStoreUsable, ""},
		{"another spec", time.Minute, func() { s.Object.Generation = 2 }, v1alpha1.ReasonStoreUnreachable,
			v1alpha1.ReasonStoreUnreachable, v1alpha1.EventStoreNotUsable},
		{"another problem", 5 * time.Minute, nil, v1alpha1.ReasonBucketPublic, v1alpha1.ReasonBucketPublic,
			v1alpha1.EventStoreNotUsable},
		{"the clock was set back", -24 * time.Hour, nil, v1alpha1.ReasonStoreUsable, v1alpha1.ReasonStoreUsable,
			v1alpha1.EventStoreUsable},
		{"the Secret is gone", time.Minute, func() { s.Secret, s.SecretMissing = "", "key" }, "",
			v1alpha1.ReasonSecretMissing, v1alpha1.EventStoreNotUsable},
		{"the same Secret is back", time.Minute, func() { s.Secret, s.SecretMissing = "8", "" },
			v1alpha1.ReasonStoreUsable, v1alpha1.ReasonStoreUsable, v1alpha1.EventStoreUsable},
	} {
		now = now.Add(step.passed)
		if step.before != nil {
			step.before()
		}
		if due := Due(s, now); due != (step.found != "") {
			t.Fatalf("%s: a check is due: %t", step.name, due)
		}
		s.Check = nil
		if step.found != "" {
			s.Check = &facts.StoreCheck{Reason: step.found, Message: "so it is"}
		}
		p := Next(s, now)
		if p.Wake != lookAgain {
			t.Errorf("%s: wakes after %s", step.name, p.Wake)
		}
		event := ""
		for _, w := range p.Writes {
			switch w.Verb {
			case plan.ApplyStatus:
				if w.ResourceVersion != "1" {
					t.Errorf("%s: writes to version %q", step.name, w.ResourceVersion)
				}
				s.Object.Status = w.Object.(*v1alpha1.CassandraBackupStore).Status
			case plan.Event:
				event = w.Reason
			default:
				t.Errorf("%s: %s", step.name, w)
			}
		}
		ready := meta.FindStatusCondition(s.Object.Status.Conditions, v1alpha1.ConditionReady)
		if event != step.event || ready.Reason != step.reason || ready.ObservedGeneration != s.Object.Generation ||
			(ready.Status == metav1.ConditionTrue) != (step.reason == v1alpha1.ReasonStoreUsable) {
			t.Errorf("%s: event %q, %+v", step.name, event, ready)
		}
		if again := Next(&facts.BackupStore{Object: s.Object, Secret: s.Secret,
			SecretMissing: s.SecretMissing}, now); len(again.Writes) > 0 {
			t.Errorf("%s: writes again: %v", step.name, again.Writes)
		}
	}
	s.Object.Spec.S3.SecretName, s.Object.Spec.S3.ServiceAccount, s.Object.Spec.Encryption = "", true, nil
	s.Object.Generation, s.Secret, s.Check = 3, "", &facts.StoreCheck{Reason: v1alpha1.ReasonIdentityMissing}
	if p := Next(s, now); !Due(s, now) || len(p.Writes) != 2 ||
		p.Writes[0].Object.(*v1alpha1.CassandraBackupStore).Status.CheckedSecret != "" {
		t.Errorf("one without any Secret: %v", p)
	}
	s.Object.DeletionTimestamp, s.Object.Generation = &metav1.Time{Time: now}, 3
	if p := Next(s, now); Due(s, now) || len(p.Writes) > 0 || p.Wake != 0 {
		t.Errorf("one that is being deleted: %v", p)
	}
}
