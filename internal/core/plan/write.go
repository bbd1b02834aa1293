package plan

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

// Object is a typed Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Verb is what a write does. The set is closed; act knows each.
type Verb string

const (
	// Create makes an object that must not exist. AlreadyExists is an error: what exists has to be
	// observed first.
	Create Verb = "Create"
	// Apply makes a record what Object is, of the UID and ResourceVersion that was seen.
	Apply Verb = "Apply"
	// Change makes an object that must exist with UID what Object is, of what was Seen: the fields
	// in which the two differ, and no others. Lists are replaced.
	Change Verb = "Change"
	// ResizePod gives the containers of a pod, by UID, the resources that those of Object have,
	// after it has noted on the pod what for. A refusal is noted there, too, and is no failure.
	ResizePod Verb = "ResizePod"
	// Delete removes an object by UID.
	Delete Verb = "Delete"
	// DeleteByForce removes a pod by UID without waiting for the host that it is on, if that host
	// is gone for certain. The writer looks at the API server itself, just before, whether it is.
	DeleteByForce Verb = "DeleteByForce"
	// SetOwners replaces the owner references of an object, by UID and ResourceVersion.
	SetOwners Verb = "SetOwners"
	// Release takes our finalizer off an object, by UID. It is allowed to be gone already.
	Release Verb = "Release"
	// Hold puts our finalizer on an object, by UID.
	Hold Verb = "Hold"
	// PutLedger writes the ledger by compare-and-swap on the UID and ResourceVersion it was read
	// with; one that was never read is created.
	PutLedger Verb = "PutLedger"
	// IssueAuthority makes the cluster's certificate authority, a Secret that must not exist.
	IssueAuthority Verb = "IssueAuthority"
	// RotateAuthority has the Secret of an authority, by UID and with the content that was seen, go
	// on to its next stage: another authority is made, which is trusted; that signs; the one before
	// is dropped.
	RotateAuthority Verb = "RotateAuthority"
	// IssueCertificate makes a certificate of a node, or renews it by UID.
	IssueCertificate Verb = "IssueCertificate"
	// ApplyOther applies an object of a kind of others, which Kubernetes may not have.
	ApplyOther Verb = "ApplyOther"
	// MakePasswords makes a Secret with passwords of the ring's roles, which must not exist.
	MakePasswords Verb = "MakePasswords"
	// CopyPassword copies user name and password of the superuser's Secret into that of the applied
	// superuser, by UID, or creates it. What was there becomes the password before, unless there is
	// one already.
	CopyPassword Verb = "CopyPassword"
	// DropOldPassword has that Secret, by UID and ResourceVersion, forget the password before,
	// since the one of the time in Object's annotations is proven.
	DropOldPassword Verb = "DropOldPassword"
	// ApplyStatus makes the status of a task, a schedule or a store what that of Object is, of the
	// ResourceVersion that was seen. The operator alone writes it.
	ApplyStatus Verb = "ApplyStatus"
	// Event tells people something about the cluster, or about Object.
	Event Verb = "Event"
)

// Write is one act on the API server. Which fields count depends on the verb.
type Write struct {
	Verb Verb `json:"verb"`
	// Object to create or apply, or one that names (by type, namespace and name) what to delete,
	// hold or release.
	Object Object `json:"object,omitempty"`
	// Seen is what was seen of an object that is changed.
	Seen Object `json:"-"`
	// UID that the object was seen with: the write has no effect on another one.
	UID types.UID `json:"uid,omitempty"`
	// ResourceVersion that the object was seen with. Empty where any version of that UID will do.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Live asks the writer to read the cluster's records, pods and ledger from the API server
	// itself, not from the cache, before the write, and to continue only if they are those that the
	// plan rests on. Set on the first write of every step that is disruptive or that is a join, and
	// where a budget is opened.
	Live bool `json:"live,omitempty"`
	// Finalizer to hold or release.
	Finalizer string `json:"finalizer,omitempty"`
	// Ledger to put.
	Ledger *ledger.Ledger `json:"ledger,omitempty"`
	// Host that a pod is on which is deleted by force.
	Host string `json:"host,omitempty"`
	// Node whose certificate is issued.
	Node string `json:"node,omitempty"`
	// EventType is Normal or Warning.
	EventType string `json:"eventType,omitempty"`
	// Reason of the event.
	Reason string `json:"reason,omitempty"`
	// Why for people; the message of an event.
	Why string `json:"why,omitempty"`
}

// String names the write for people.
func (w Write) String() string {
	target := w.Node
	switch {
	case w.Verb == Event:
		target = w.Reason
	case w.Object != nil:
		target = fmt.Sprintf("%s %s", KindOf(w.Object), w.Object.GetName())
	case w.Ledger != nil:
		target = "ledger"
	}
	if w.Why == "" {
		return fmt.Sprintf("%s %s", w.Verb, target)
	}
	return fmt.Sprintf("%s %s: %s", w.Verb, target, w.Why)
}

// KindOf an object. One that was decoded does not carry it, but its type has the same name.
func KindOf(o Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}

// DeletePod deletes a pod by its uid.
func DeletePod(pod *corev1.Pod, why string) Write {
	return Write{Verb: Delete, Object: Named(pod), UID: pod.UID, Why: why}
}

// Named is an object with nothing but its type and name: all that a deletion needs.
func Named(object Object) Object {
	meta := metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace()}
	switch object.(type) {
	case *corev1.Pod:
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	case *corev1.PersistentVolumeClaim:
		return &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
			ObjectMeta: meta}
	case *v1alpha1.CassandraNode:
		return &v1alpha1.CassandraNode{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraNode"}, ObjectMeta: meta}
	case *v1alpha1.CassandraCluster:
		return &v1alpha1.CassandraCluster{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraCluster"}, ObjectMeta: meta}
	case *v1alpha1.CassandraTask:
		return &v1alpha1.CassandraTask{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraTask"}, ObjectMeta: meta}
	case *v1alpha1.CassandraBackup:
		return &v1alpha1.CassandraBackup{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraBackup"}, ObjectMeta: meta}
	case *v1alpha1.CassandraRestore:
		return &v1alpha1.CassandraRestore{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraRestore"}, ObjectMeta: meta}
	case *v1alpha1.CassandraTaskSchedule:
		return &v1alpha1.CassandraTaskSchedule{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraTaskSchedule"}, ObjectMeta: meta}
	case *v1alpha1.CassandraBackupSchedule:
		return &v1alpha1.CassandraBackupSchedule{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraBackupSchedule"}, ObjectMeta: meta}
	case *v1alpha1.CassandraBackupStore:
		return &v1alpha1.CassandraBackupStore{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "CassandraBackupStore"}, ObjectMeta: meta}
	default:
		return object
	}
}
