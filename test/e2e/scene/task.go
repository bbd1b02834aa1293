package scene

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
)

// Give creates a task for the cluster.
func (r *Ring) Give(ctx context.Context, name string,
	spec v1alpha1.TaskTemplate) (*v1alpha1.CassandraTask, error) {
	t := &v1alpha1.CassandraTask{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name},
		Spec: v1alpha1.CassandraTaskSpec{Cluster: v1alpha1.TaskCluster{Name: r.Name}, TaskTemplate: spec}}
	if err := r.Kubernetes.Client.Create(ctx, t); err != nil {
		return nil, fmt.Errorf("create task %s: %w", name, err)
	}
	return t, nil
}

// Indexed is a table of the keyspace, and Index the index that it has.
const (
	Indexed = "indexed"
	Index   = "by_name"
)

// MakeIndex makes them, where they are not there.
func (r *Ring) MakeIndex(ctx context.Context) error {
	return r.define(ctx, "CREATE TABLE IF NOT EXISTS "+Keyspace+"."+Indexed+" (id int PRIMARY KEY, name text)",
		"CREATE INDEX IF NOT EXISTS "+Index+" ON "+Keyspace+"."+Indexed+" (name)")
}

// TaskRuns waits until a task is at work on a node, or was.
func (r *Ring) TaskRuns(ctx context.Context, t *v1alpha1.CassandraTask) error {
	return r.poll(ctx, 5*time.Minute, "task "+t.Name+" runs", func(ctx context.Context) error {
		if err := r.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(t), t); err != nil {
			return fmt.Errorf("get task %s: %w", t.Name, err)
		}
		for _, n := range t.Status.Nodes {
			if n.Phase != v1alpha1.TaskPending {
				return nil
			}
		}
		return fmt.Errorf("task %s is %s: %s", t.Name, t.Status.Phase, t.Status.Message)
	})
}

// Finished waits until a task has finished, and says an error if it has failed.
func (r *Ring) Finished(ctx context.Context, t *v1alpha1.CassandraTask) error {
	err := r.poll(ctx, 10*time.Minute, "task "+t.Name+" has finished", func(ctx context.Context) error {
		if err := r.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(t), t); err != nil {
			return fmt.Errorf("get task %s: %w", t.Name, err)
		}
		if !t.Status.Finished() {
			return fmt.Errorf("task %s is %s %s: %s", t.Name, t.Status.Phase, t.Status.Progress, t.Status.Message)
		}
		return nil
	})
	if err == nil && t.Status.Phase != v1alpha1.TaskSucceeded {
		err = fmt.Errorf("task %s is %s: %s", t.Name, t.Status.Phase, t.Status.Message)
	}
	return err
}

// Gone waits until a task or a backup is deleted, by whomever.
func (r *Ring) Gone(ctx context.Context, o client.Object) error {
	return r.poll(ctx, reaction, o.GetName()+" is gone", func(ctx context.Context) error {
		err := r.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Errorf("%s is there", o.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// BackUp creates a backup of the cluster into a store, and waits until it is complete.
func (r *Ring) BackUp(ctx context.Context, name, store string, change ...func(*v1alpha1.CassandraBackupSpec)) (
	*v1alpha1.CassandraBackup, error) {
	b := &v1alpha1.CassandraBackup{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name},
		Spec: v1alpha1.CassandraBackupSpec{Cluster: v1alpha1.TaskCluster{Name: r.Name},
			Store: v1alpha1.BackupStoreReference{Name: store}}}
	for _, change := range change {
		change(&b.Spec)
	}
	if err := r.Kubernetes.Client.Create(ctx, b); err != nil {
		return nil, fmt.Errorf("create backup %s: %w", name, err)
	}
	err := r.poll(ctx, 20*time.Minute, "backup "+name+" has finished", func(ctx context.Context) error {
		if err := r.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return fmt.Errorf("get backup %s: %w", name, err)
		}
		if !b.Status.Phase.Final() {
			return fmt.Errorf("backup %s is %s %s: %s", name, b.Status.Phase, b.Status.Progress, b.Status.Message)
		}
		return nil
	})
	if err == nil && b.Status.Phase != v1alpha1.BackupComplete {
		err = fmt.Errorf("backup %s is %s: %s", name, b.Status.Phase, b.Status.Message)
	}
	return b, err
}

// Verify has the operator read a whole backup in its store, and fails unless it has found all of
// it.
func (r *Ring) Verify(ctx context.Context, b *v1alpha1.CassandraBackup) error {
	of, err := r.Verified(ctx, b)
	if err == nil && of.DamagedFiles > 0 {
		err = fmt.Errorf("backup %s has %+v", b.Name, of)
	}
	return err
}

// Verified has the operator read a whole backup in its store, and returns what it has found.
func (r *Ring) Verified(ctx context.Context, b *v1alpha1.CassandraBackup) (*v1alpha1.BackupVerified, error) {
	const request = "100%@once"
	before := b.DeepCopy()
	metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.AnnotationVerify, request)
	if err := r.Kubernetes.Client.Patch(ctx, b, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("annotate backup %s: %w", b.Name, err)
	}
	err := r.poll(ctx, 5*time.Minute, "backup "+b.Name+" is verified", func(ctx context.Context) error {
		if err := r.Kubernetes.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return fmt.Errorf("get backup %s: %w", b.Name, err)
		}
		of := b.Status.Verified
		if of == nil || of.Request != request || of.At == nil || of.FilesRead == 0 {
			return fmt.Errorf("backup %s has %+v", b.Name, of)
		}
		return nil
	})
	return b.Status.Verified, err
}

// Restore brings the table of rows back from a backup, and waits until that is done: in place of
// the rows that it has, or merged after it was truncated.
func (r *Ring) Restore(ctx context.Context, name, store, backup string, mode v1alpha1.RestoreMode) error {
	const table = Keyspace + ".rows"
	replaces := mode == v1alpha1.RestoreReplace
	if !replaces {
		if err := r.define(ctx, "TRUNCATE "+table); err != nil {
			return err
		}
	}
	o := &v1alpha1.CassandraRestore{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name},
		Spec: v1alpha1.CassandraRestoreSpec{Cluster: v1alpha1.TaskCluster{Name: r.Name},
			Store: v1alpha1.BackupStoreReference{Name: store}, Backup: backup,
			Tables: []v1alpha1.RestoredTable{{From: table}}, Mode: mode, Confirm: replaces}}
	if err := r.Kubernetes.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("create restore %s: %w", name, err)
	}
	o, err := r.Restored(ctx, name)
	if err == nil && o.Status.Phase != v1alpha1.TaskSucceeded {
		err = fmt.Errorf("restore %s is %s: %s", name, o.Status.Phase, o.Status.Message)
	}
	if err == nil && replaces != (o.Status.Replaced != nil && o.Status.Replaced.TruncatedAt != nil) {
		err = fmt.Errorf("restore %s has replaced %+v", name, o.Status.Replaced)
	}
	return err
}

// Restored waits until a restore has finished, in whatever way.
func (r *Ring) Restored(ctx context.Context, name string) (*v1alpha1.CassandraRestore, error) {
	o := &v1alpha1.CassandraRestore{}
	key := client.ObjectKey{Namespace: r.Namespace, Name: name}
	return o, r.poll(ctx, 10*time.Minute, "restore "+name+" has finished", func(ctx context.Context) error {
		if err := r.Kubernetes.Client.Get(ctx, key, o); err != nil {
			return fmt.Errorf("get restore %s: %w", name, err)
		}
		if !o.Status.Finished() {
			return fmt.Errorf("restore %s is %s %s: %s", name, o.Status.Phase, o.Status.Progress, o.Status.Message)
		}
		return nil
	})
}
