package observe

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/consistency"
	"helenus.io/helenus/internal/core/facts"
)

// ErrChanged says that the world is no longer what a plan rests on.
var ErrChanged = errors.New("the cluster has changed since it was looked at")

// Confirm reads the cluster's object, records, pods and ledger from the API server itself, with a
// lost ledger the claims that had no volume, and asks every agent that a snapshot has an answer of
// again. It returns ErrChanged if anything that a decision rests on is no longer as the snapshot
// has it, but for the ledger and records as they were written since, by the same plan.
func (r *Reader) Confirm(ctx context.Context, s *facts.Snapshot, own *consistency.Store) error {
	key := types.NamespacedName{Namespace: s.Cluster.Namespace, Name: s.Cluster.Name}
	cluster := &v1alpha1.CassandraCluster{}
	if err := r.Live.Get(ctx, key, cluster); err != nil {
		return fmt.Errorf("read the cluster: %w", err)
	}
	if cluster.UID != s.Cluster.UID || cluster.Generation != s.Cluster.Generation ||
		(cluster.DeletionTimestamp == nil) != (s.Cluster.DeletionTimestamp == nil) {
		return fmt.Errorf("%w: its spec or its deletion", ErrChanged)
	}
	var records v1alpha1.CassandraNodeList
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(podListKind)
	for _, l := range []client.ObjectList{&records, &pods} {
		if err := r.Live.List(ctx, l, client.InNamespace(key.Namespace),
			client.MatchingLabels{v1alpha1.LabelClusterUID: string(s.Cluster.UID)}); err != nil {
			return fmt.Errorf("list %T: %w", l, err)
		}
	}
	if err := r.addStrays(ctx, s, &records, &pods); err != nil {
		return err
	}
	if err := sameRecords(s, records.Items, own); err != nil {
		return err
	}
	if err := samePods(s, pods.Items); err != nil {
		return err
	}
	if s.Ledger == nil {
		if err := r.sameClaims(ctx, s); err != nil {
			return err
		}
	} else if err := r.sameLedger(ctx, s, own); err != nil {
		return err
	}
	if err := r.sameTasks(ctx, s); err != nil {
		return err
	}
	return r.Agents.Confirm(ctx, s)
}

// sameLedger compares versions: what a ledger says is decided on as a whole.
func (r *Reader) sameLedger(ctx context.Context, s *facts.Snapshot, own *consistency.Store) error {
	live := &corev1.ConfigMap{ObjectMeta: metaOf(s, v1alpha1.LedgerName(s.Cluster.Name))}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(live), live); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: the ledger is gone", ErrChanged)
	case err != nil:
		return fmt.Errorf("read the ledger: %w", err)
	case own.Is(consistency.Key{Kind: "ConfigMap", Namespace: live.Namespace, Name: live.Name}, live.UID,
		live.ResourceVersion):
		return nil
	case live.UID != s.Ledger.UID || live.ResourceVersion != s.Ledger.ResourceVersion:
		return fmt.Errorf("%w: the ledger", ErrChanged)
	}
	return nil
}

// addStrays adds the records and pods of the snapshot that have lost the label by which they are
// listed: what puts that right is confirmed, too.
func (r *Reader) addStrays(ctx context.Context, s *facts.Snapshot, records *v1alpha1.CassandraNodeList,
	pods *metav1.PartialObjectMetadataList) error {
	for _, n := range s.Nodes {
		if n.Record != nil {
			live := &v1alpha1.CassandraNode{}
			if stray, err := r.stray(ctx, s, n.Record, live); err != nil {
				return err
			} else if stray {
				records.Items = append(records.Items, *live)
			}
		}
		if n.Pod != nil {
			live := &metav1.PartialObjectMetadata{}
			live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			if stray, err := r.stray(ctx, s, n.Pod, live); err != nil {
				return err
			} else if stray {
				pods.Items = append(pods.Items, *live)
			}
		}
	}
	return nil
}

// stray says that an object of the snapshot could not be listed and is there, and reads it.
func (r *Reader) stray(ctx context.Context, s *facts.Snapshot, seen, live client.Object) (bool, error) {
	labelled := func(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelClusterUID] == string(s.Cluster.UID) }
	if labelled(seen) {
		return false, nil
	}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", seen, seen.GetName(), err)
	}
	return !labelled(live), nil
}

// sameRecords compares identity and spec. The status of a record changes all the time, and what it
// says is not trusted for a decision of this kind.
func sameRecords(s *facts.Snapshot, live []v1alpha1.CassandraNode, own *consistency.Store) error {
	count := 0
	for i := range live {
		count++
		n := s.Nodes[live[i].Name]
		if n != nil && n.Record != nil && own.Is(consistency.Key{Kind: "CassandraNode", Namespace: live[i].Namespace,
			Name: live[i].Name}, n.Record.UID, live[i].ResourceVersion) {
			continue
		}
		if n == nil || n.Record == nil || n.Record.UID != live[i].UID || n.Record.Generation != live[i].Generation ||
			(n.Record.DeletionTimestamp == nil) != (live[i].DeletionTimestamp == nil) {
			return fmt.Errorf("%w: record %s", ErrChanged, live[i].Name)
		}
	}
	if count != len(s.Records()) {
		return fmt.Errorf("%w: a record is gone", ErrChanged)
	}
	return nil
}

func samePods(s *facts.Snapshot, live []metav1.PartialObjectMetadata) error {
	found := map[string]bool{}
	for i := range live {
		found[live[i].Name] = true
		n := s.Nodes[live[i].Name]
		if n == nil || n.Pod == nil || n.Pod.UID != live[i].UID ||
			(n.Pod.DeletionTimestamp == nil) != (live[i].DeletionTimestamp == nil) {
			return fmt.Errorf("%w: pod %s", ErrChanged, live[i].Name)
		}
	}
	for name, n := range s.Nodes {
		if n.Pod != nil && !found[name] {
			return fmt.Errorf("%w: pod %s is gone", ErrChanged, name)
		}
	}
	return nil
}

// sameClaims compares the claims that had no volume: such a one holds nothing, on which a ledger
// that is rebuilt rests.
func (r *Reader) sameClaims(ctx context.Context, s *facts.Snapshot) error {
	for _, n := range s.Nodes {
		for _, c := range n.Claims {
			if !c.Unbound() {
				continue
			}
			live := &facts.Claim{Claim: &corev1.PersistentVolumeClaim{}}
			switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(c.Claim), live.Claim); {
			case apierrors.IsNotFound(err):
				return fmt.Errorf("%w: claim %s is gone", ErrChanged, c.Claim.Name)
			case err != nil:
				return fmt.Errorf("read claim %s: %w", c.Claim.Name, err)
			case live.Claim.UID != c.Claim.UID || live.Bound():
				return fmt.Errorf("%w: claim %s", ErrChanged, c.Claim.Name)
			}
		}
	}
	return nil
}

// sameTasks compares what says whether a task, a restore or a backup that had not finished is to be
// done.
func (r *Reader) sameTasks(ctx context.Context, s *facts.Snapshot) error {
	for _, t := range s.Tasks {
		live := &v1alpha1.CassandraTask{}
		if err := r.sameTask(ctx, "task", t, live, t.Status.Finished(), live.Status.Finished); err != nil {
			return err
		}
	}
	for _, t := range s.Restores {
		live := &v1alpha1.CassandraRestore{}
		isOver := func() bool { // what was replaced is not replaced again
			return live.Status.Finished() || !equality.Semantic.DeepEqual(live.Status.Replaced, t.Status.Replaced)
		}
		if err := r.sameTask(ctx, "restore", t, live, t.Status.Finished(), isOver); err != nil {
			return err
		}
	}
	for _, b := range s.Backups {
		live := &v1alpha1.CassandraBackup{}
		if err := r.sameTask(ctx, "backup", b, live, b.Status.Phase.Final(),
			func() bool { return live.Status.Phase.Final() }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) sameTask(ctx context.Context, kind string, seen, live client.Object, over bool,
	isOver func() bool) error {
	if over {
		return nil
	}
	switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live); {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s %s is gone", ErrChanged, kind, seen.GetName())
	case err != nil:
		return fmt.Errorf("read %s %s: %w", kind, seen.GetName(), err)
	case live.GetUID() != seen.GetUID() || isOver() ||
		(live.GetDeletionTimestamp() == nil) != (seen.GetDeletionTimestamp() == nil):
		return fmt.Errorf("%w: %s %s", ErrChanged, kind, seen.GetName())
	}
	return nil
}

var podListKind = corev1.SchemeGroupVersion.WithKind("PodList")

func metaOf(s *facts.Snapshot, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: name}
}
