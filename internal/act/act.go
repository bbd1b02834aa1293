package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Recorder tells people something about an object: the recorder of events.k8s.io.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Confirm reads the cluster from the API server itself and says what has changed since the snapshot
// that a plan rests on: nil if nothing that counts has.
type Confirm func(ctx context.Context) error

// Writer carries out plans.
type Writer struct {
	// Client writes to the API server.
	Client client.Client
	// Live reads from the API server itself, where a write needs to know what it changes.
	Live client.Reader
	// Recorder for events.
	Recorder Recorder
	// Now is the clock.
	Now func() time.Time
}

// Result is what was done of a plan.
type Result struct {
	// Done counts the writes that were carried out.
	Done int
	// Err is why the next one was not; nil if all were.
	Err error
	// Rejected is why the API server refused pods or claims, because of a quota, an admission
	// policy or an overlay. The other writes were carried out all the same: one node's pod is not
	// in the way of another's.
	Rejected error
}

// Do carries out the writes of a plan for a cluster, in order, and notes each in the store. A write
// whose precondition no longer holds ends the pass without harm: the next one looks again.
func (w *Writer) Do(ctx context.Context, s *facts.Snapshot, plan plan.Plan, confirm Confirm,
	store *consistency.Store) Result {
	pass := &pass{Writer: w, snapshot: s, store: store, owner: render.OwnerOf(s.Cluster)}
	var rejected []error
	for i, write := range plan.Writes {
		if write.Live {
			if err := confirm(ctx); err != nil {
				return Result{Done: i, Err: fmt.Errorf("confirm before %q: %w", write, err),
					Rejected: errors.Join(rejected...)}
			}
		}
		switch err := pass.do(ctx, write); {
		case err == nil:
		case rejection(write, err):
			rejected = append(rejected, fmt.Errorf("%s: %w", write, err))
		default:
			return Result{Done: i, Err: fmt.Errorf("%s: %w", write, err), Rejected: errors.Join(rejected...)}
		}
	}
	return Result{Done: len(plan.Writes), Rejected: errors.Join(rejected...)}
}

// rejection says that the API server does not want a pod or claim as it is.
func rejection(w plan.Write, err error) bool {
	switch w.Object.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		return (w.Verb == plan.Create || w.Verb == plan.Change) &&
			(apierrors.IsForbidden(err) || apierrors.IsInvalid(err))
	default:
		return false
	}
}

type pass struct {
	*Writer
	snapshot *facts.Snapshot
	store    *consistency.Store
	owner    render.Owner
}

func (p *pass) do(ctx context.Context, w plan.Write) error {
	switch w.Verb {
	case plan.Create:
		return p.create(ctx, w.Object)
	case plan.Apply:
		return p.changeRecord(ctx, w)
	case plan.Change:
		return p.change(ctx, w)
	case plan.ResizePod:
		return p.resizePod(ctx, w)
	case plan.Delete:
		return p.delete(ctx, w)
	case plan.DeleteByForce:
		return p.deleteByForce(ctx, w)
	case plan.Hold, plan.Release:
		return p.finalizer(ctx, w)
	case plan.SetOwners:
		return p.setOwners(ctx, w)
	case plan.PutLedger:
		return p.putLedger(ctx, w.Ledger)
	case plan.RotateAuthority:
		return p.rotateAuthority(ctx, w)
	case plan.IssueAuthority, plan.IssueCertificate:
		return p.certificate(ctx, w)
	case plan.ApplyOther:
		object := w.Object.(*unstructured.Unstructured).DeepCopy()
		return p.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner(v1alpha1.FieldManagerOperator), client.ForceOwnership)
	case plan.MakePasswords:
		return p.makePasswords(ctx, w)
	case plan.CopyPassword:
		return p.copyPassword(ctx, w)
	case plan.DropOldPassword:
		return p.dropOldPassword(ctx, w)
	case plan.ApplyStatus:
		return p.applyStatus(ctx, w)
	case plan.Event:
		var regarding runtime.Object = p.snapshot.Cluster
		if w.Object != nil {
			regarding = w.Object
		}
		p.Recorder.Eventf(regarding, nil, w.EventType, w.Reason, "Reconcile", "%s", w.Why)
		return nil
	default:
		return fmt.Errorf("unknown verb %q", w.Verb)
	}
}

func (p *pass) create(ctx context.Context, object plan.Object) error {
	created := object.DeepCopyObject().(client.Object)
	if err := p.Client.Create(ctx, created, client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(created)
}

// change is a strategic merge patch from what was seen to what is to be, of the uid that was seen.
// Whatever else the object has stays, such as fields that this release does not know, and
// containers that the outline of a pod leaves out.
func (p *pass) change(ctx context.Context, w plan.Write) error {
	if w.UID == "" || w.Seen == nil {
		return errors.New("change without the uid of what was seen")
	}
	seen, changed := w.Seen.DeepCopyObject().(client.Object), w.Object.DeepCopyObject().(client.Object)
	seen.SetUID("") // so that the uid is part of the patch
	changed.SetUID(w.UID)
	patch := client.StrategicMergeFrom(seen)
	if _, is := changed.(*unstructured.Unstructured); is {
		patch = client.MergeFrom(seen) // a kind of others, of which no strategy is known
	}
	if err := p.Client.Patch(ctx, changed, patch,
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(changed)
}

// changeRecord makes a record what it is to be, from the version that was seen. It is a merge
// patch: what the creation of an object has set is never taken away by an apply that leaves it out,
// since to the API server the two are different managers of a field, and a ticket or a setting must
// be able to go.
func (p *pass) changeRecord(ctx context.Context, w plan.Write) error {
	wanted := w.Object.(*v1alpha1.CassandraNode)
	n := p.snapshot.Nodes[wanted.Name]
	if n == nil || n.Record == nil || n.Record.UID != w.UID || n.Record.ResourceVersion != w.ResourceVersion {
		return errors.New("change of a record that was not seen")
	}
	seen, changed := n.Record.DeepCopy(), n.Record.DeepCopy()
	seen.UID = "" // so that the uid is part of the patch
	changed.Spec, changed.OwnerReferences, changed.Annotations = *wanted.Spec.DeepCopy(), wanted.OwnerReferences,
		wanted.Annotations
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	maps.Copy(changed.Labels, wanted.Labels)
	for _, f := range wanted.Finalizers {
		controllerutil.AddFinalizer(changed, f)
	}
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(changed)
}

// delete removes exactly the object that was seen. One that is gone already, or has given way to
// another, is what was wanted.
func (p *pass) delete(ctx context.Context, w plan.Write, how ...client.DeleteOption) error {
	if w.UID == "" {
		return errors.New("delete without the uid of what was seen")
	}
	preconditions := client.Preconditions{UID: &w.UID}
	if w.ResourceVersion != "" {
		preconditions.ResourceVersion = &w.ResourceVersion
	}
	how = append(how, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	err := p.Client.Delete(ctx, w.Object.DeepCopyObject().(client.Object), how...)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	key, err := p.keyOf(w.Object.(client.Object))
	if err != nil {
		return err
	}
	p.store.Deleted(key, w.UID)
	return nil
}

// finalizer puts our finalizer on an object or takes it off, by uid. An object that is gone needs
// none.
func (p *pass) finalizer(ctx context.Context, w plan.Write) error {
	current := w.Object.DeepCopyObject().(client.Object)
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		return client.IgnoreNotFound(err)
	}
	if current.GetUID() != w.UID {
		return nil
	}
	set := controllerutil.RemoveFinalizer
	if w.Verb == plan.Hold {
		set = controllerutil.AddFinalizer
	}
	if !set(current, w.Finalizer) {
		return nil
	}
	return client.IgnoreNotFound(p.patchMeta(ctx, current, w.UID, current.GetResourceVersion(),
		map[string]any{"finalizers": current.GetFinalizers()}))
}

func (p *pass) setOwners(ctx context.Context, w plan.Write) error {
	owners := w.Object.GetOwnerReferences()
	if owners == nil {
		owners = []metav1.OwnerReference{}
	}
	return p.patchMeta(ctx, w.Object.DeepCopyObject().(client.Object), w.UID, w.ResourceVersion,
		map[string]any{"ownerReferences": owners})
}

// patchMeta changes metadata of the object that was seen, in the version that was seen.
func (p *pass) patchMeta(ctx context.Context, object client.Object, uid types.UID, resourceVersion string,
	fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = uid, resourceVersion
	patch, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	if err := p.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch),
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(object)
}

// putLedger is a compare-and-swap: an update of the version that was read, or a creation if none
// was.
func (p *pass) putLedger(ctx context.Context, l *ledger.Ledger) error {
	data, err := ledger.Encode(l)
	if err != nil {
		return err
	}
	object := render.Ledger(p.owner, data)
	if l.UID == "" {
		return p.create(ctx, object)
	}
	object.UID, object.ResourceVersion = l.UID, l.ResourceVersion
	if err := p.Client.Update(ctx, object, client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(object)
}

// applyStatus is a server-side apply of the version that was seen: a uid would not be looked at,
// since a write to the status takes the metadata from what is stored.
func (p *pass) applyStatus(ctx context.Context, w plan.Write) error {
	if w.ResourceVersion == "" {
		return errors.New("apply of a status without the version of what was seen")
	}
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.Object)
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": whole["status"]}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(plan.KindOf(w.Object)))
	object.SetNamespace(w.Object.GetNamespace())
	object.SetName(w.Object.GetName())
	object.SetResourceVersion(w.ResourceVersion)
	if err := p.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(v1alpha1.FieldManagerOperator), client.ForceOwnership); err != nil {
		return client.IgnoreNotFound(err) // it was deleted meanwhile
	}
	return p.wrote(object)
}

func (p *pass) certificate(ctx context.Context, w plan.Write) error {
	secret := w.Object.DeepCopyObject().(*corev1.Secret)
	if w.UID != "" { // before the authority: what was signed since by a later stage is not overwritten
		have := &corev1.Secret{}
		if err := p.Live.Get(ctx, client.ObjectKeyFromObject(secret), have); err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		secret.ResourceVersion = have.ResourceVersion
	}
	fill := p.fillAuthority
	if w.Verb == plan.IssueCertificate {
		fill = p.fillCertificate
	}
	if err := fill(ctx, secret); err != nil {
		return err
	}
	if w.UID == "" {
		return p.create(ctx, secret)
	}
	secret.UID = w.UID // the API server refuses the patch of another one
	if err := p.Client.Patch(ctx, secret, client.MergeFrom(&corev1.Secret{}),
		client.FieldOwner(v1alpha1.FieldManagerOperator)); err != nil {
		return err
	}
	return p.wrote(secret)
}

// wrote notes the version that an object has after a write.
func (p *pass) wrote(object client.Object) error {
	key, err := p.keyOf(object)
	if err != nil {
		return err
	}
	p.store.Wrote(key, object.GetUID(), object.GetResourceVersion())
	return nil
}

// keyOf takes the kind from the scheme: a decoded object does not carry it.
func (p *pass) keyOf(object client.Object) (consistency.Key, error) {
	kind, err := p.Client.GroupVersionKindFor(object)
	if err != nil {
		return consistency.Key{}, fmt.Errorf("find kind of %s: %w", object.GetName(), err)
	}
	return consistency.Key{Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}, nil
}
