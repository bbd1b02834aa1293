package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
	"helenus.io/helenus/internal/backup/sweep"
	"helenus.io/helenus/internal/core/facts"
	restores "helenus.io/helenus/internal/core/restore"
)

const (
	// BackupAgain is when a description of a backup is read again that could not be.
	BackupAgain = 30 * time.Second
	// backupLimit is what that may take: the pass waits for it.
	backupLimit = 10 * time.Second
	// mostDescription is more than a description has of a thousand nodes, in bytes.
	mostDescription = 64 << 20
)

// backups are the descriptions that were read, by cluster. One never changes; what was wrong may
// have been put right.
type backups struct {
	mutex sync.Mutex
	known map[types.NamespacedName]knownBackup
}

type knownBackup struct {
	of     types.UID
	at     time.Time
	backup *facts.Backup
}

// backup finds out what the ring of a cluster is to be made from, until that has begun.
func (r *Reader) backup(ctx context.Context, s *facts.Snapshot) error {
	restore, key := s.Cluster.Spec.Restore(), client.ObjectKeyFromObject(s.Cluster)
	if restore == nil || s.Ledger != nil && (s.Ledger.Step != nil || s.Ledger.HasRing()) {
		r.backups.forget(key)
		return nil
	}
	r.backups.mutex.Lock()
	k := r.backups.known[key]
	r.backups.mutex.Unlock()
	if k.of != s.Cluster.UID || k.backup.Description == nil && r.Now().Sub(k.at) >= BackupAgain {
		found, err := r.readBackup(ctx, key.Namespace, restore, chosen(s))
		if err != nil {
			return err
		}
		k = knownBackup{s.Cluster.UID, r.Now(), found}
		r.backups.mutex.Lock()
		if r.backups.known == nil {
			r.backups.known = map[types.NamespacedName]knownBackup{}
		}
		r.backups.known[key] = k
		r.backups.mutex.Unlock()
	}
	s.Backup = k.backup
	return nil
}

func (b *backups) forget(cluster types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.known, cluster)
}

// chosen is the backup that tickets are for, whose ledger was lost; empty if there are none. By a
// time another one might be found since.
func chosen(s *facts.Snapshot) string {
	for _, n := range s.Records() {
		if j := n.Record.Spec.Join; j != nil && j.Restore != nil {
			return j.Restore.Backup
		}
	}
	return ""
}

// readBackup reads the description of a backup: of the one that was chosen before, if any was. The
// error is one of the API server.
func (r *Reader) readBackup(ctx context.Context, namespace string, restore *v1alpha1.Restore, id string) (
	*facts.Backup, error) {
	missing := func(format string, args ...any) (*facts.Backup, error) {
		return &facts.Backup{Missing: true, Problem: fmt.Sprintf(format, args...)}, nil
	}
	of := &v1alpha1.CassandraBackupStore{}
	switch err := r.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: restore.Store.Name}, of); {
	case apierrors.IsNotFound(err):
		return missing("there is no such CassandraBackupStore")
	case err != nil:
		return nil, fmt.Errorf("get CassandraBackupStore %s: %w", restore.Store.Name, err)
	}
	secret, _, none, err := r.secretsOf(ctx, namespace, &of.Spec)
	switch {
	case none != "":
		return missing("there is no Secret %s, which the store names", none)
	case err != nil:
		return nil, err
	}
	opened, err := r.Store(of.Spec, secret)
	if err != nil {
		return missing("%s", err)
	}
	ctx, cancel := context.WithTimeout(ctx, backupLimit)
	defer cancel()
	if id = cmp.Or(id, restore.Backup); id == "" {
		description, problem, err := latestBefore(ctx, opened, restore)
		switch {
		case err != nil:
			return &facts.Backup{Problem: err.Error()}, nil
		case problem != "":
			return missing("%s", problem)
		}
		return &facts.Backup{Store: of.Spec, Description: description}, nil
	}
	description, problem, err := describe(ctx, opened, format.BackupKey(string(restore.Source.UID), id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return missing("the store has no such backup, or not all of it")
	case err != nil:
		return &facts.Backup{Problem: err.Error()}, nil
	case problem != "":
		return missing("%s", problem)
	}
	return &facts.Backup{Store: of.Spec, Description: description}, nil
}

// latestBefore is the latest backup before a time, if the commit logs since then cover that time
// where the ring is made as it was then.
func latestBefore(ctx context.Context, in store.Store, of *v1alpha1.Restore) (found *format.Backup, problem string,
	err error) {
	at, cluster := cmp.Or(of.LatestBefore, of.PointInTime).Time, string(of.Source.UID)
	var keys []string
	var lacking *format.Backup
	if err := in.List(ctx, format.BackupPrefix(cluster), func(o store.Object) error {
		keys = append(keys, o.Key)
		return nil
	}); err != nil {
		return nil, "", err //nolint:wrapcheck // it says what it is about
	}
	for _, key := range slices.Backward(keys) {
		if format.BackupOf(key) > at.UTC().Format("20060102T150405Z")+"~" {
			continue // it was asked for later
		}
		b, problem, err := describe(ctx, in, key)
		if b == nil {
			return nil, problem, err
		}
		if !restores.Before(b, at) {
			continue
		}
		if of.PointInTime == nil || len(b.LeftOut) == 0 {
			found = b
			break
		}
		lacking = cmp.Or(lacking, b) // the logs of all nodes go on from one that has all
	}
	if of.PointInTime == nil {
		if found == nil {
			problem, err = noneBefore(ctx, in, keys)
		}
		return found, problem, err
	}
	logs, err := sweep.Coverage(ctx, in, cluster)
	if err != nil {
		return nil, "", err //nolint:wrapcheck // it says what it is about
	}
	problem = restores.Uncovered(found, logs, at)
	if problem != "" && lacking != nil {
		problem += fmt.Sprintf("; backup %s, which is later, is not taken for it: %s", lacking.ID,
			restores.Lacks(lacking))
	}
	return found, problem, nil
}

// noneBefore says which backups there are instead of one from before a time.
func noneBefore(ctx context.Context, in store.Store, keys []string) (problem string, err error) {
	if len(keys) == 0 {
		return restores.NoneBefore(nil, nil), nil
	}
	earliest, problem, err := describe(ctx, in, keys[0])
	if earliest == nil {
		return problem, err
	}
	latest, problem, err := describe(ctx, in, keys[len(keys)-1])
	if latest == nil {
		return problem, err
	}
	return restores.NoneBefore(earliest, latest), nil
}

// describe reads the description of a backup, or finds that what is there is none.
func describe(ctx context.Context, in store.Store, key string) (b *format.Backup, problem string, err error) {
	content, err := readObject(ctx, in, key)
	if err != nil {
		return nil, "", err
	}
	if b, err = format.Decode[format.Backup](content); err != nil {
		return nil, fmt.Sprintf("object %s: %s", key, err), nil
	}
	return b, "", nil
}

func readObject(ctx context.Context, from store.Store, key string) (content []byte, err error) {
	object, err := from.Get(ctx, key)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return io.ReadAll(io.LimitReader(object, mostDescription))
}
