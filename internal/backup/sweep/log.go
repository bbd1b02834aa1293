package sweep

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// unused is for how long the logs of a cluster stay of which nobody says for how long.
const unused = 7 * 24 * time.Hour

// askedFor begins the id of a backup.
const askedFor = "20060102T150405Z"

// Log deletes what no restore to a time of the retention reads of the commit logs of a cluster:
// what was written before the latest backup from before that which has all nodes, or, if there is
// none, before the oldest one. Retention is 0 where logs are not kept any more. Unread fails while
// a log may be read.
func Log(ctx context.Context, s store.Store, cluster string, retention time.Duration, now time.Time,
	unread func(context.Context) error) error {
	if retention == 0 {
		retention = unused
	}
	keys, err := list(ctx, s, format.BackupPrefix(cluster))
	if err != nil {
		return err
	}
	from := now.Add(-retention)
	keep := from
	for _, key := range slices.Backward(keys) {
		asked, err := time.Parse(askedFor, format.BackupOf(key)[:min(len(askedFor), len(format.BackupOf(key)))])
		if err != nil || asked.After(from) {
			continue
		}
		b, err := Read[format.Backup](ctx, s, key)
		if err == nil && len(b.LeftOut) == 0 {
			keep = asked // it was taken later
			break
		}
		if err != nil && !errors.Is(err, format.ErrDamaged) {
			return err
		}
	}
	old := keep.Add(-skew) // as Fetch of the archive reads it
	var over []string
	var last string
	var parts []string
	young := false
	// A segment goes when its last part is old: earlier ones are needed to read it.
	flush := func() {
		if !young {
			over = append(over, parts...)
		}
		parts, young = nil, false
	}
	if err := s.List(ctx, format.LogPrefix(cluster, ""), func(o store.Object) error {
		if _, _, _, err := format.ParsePart(cluster, o.Key); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
		if segment := path.Dir(o.Key); segment != last {
			flush()
			last = segment
		}
		parts, young = append(parts, o.Key), young || !o.Written.Before(old)
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // it says what it is about
	}
	flush()
	_, said, err := coverage(ctx, s, cluster)
	if err != nil || len(over) == 0 {
		return err
	}
	if err := unread(ctx); err != nil {
		return err
	}
	// What is deleted must not count as covered before it is, nor what was said of it after that.
	key := format.CoveredKey(cluster, format.Swept, format.Interval{From: time.UnixMilli(0), To: keep})
	if err := s.Put(ctx, key, strings.NewReader(""), 0); err != nil && !errors.Is(err, store.ErrExists) {
		return err //nolint:wrapcheck // it says what it is about
	}
	for of, i := range said {
		if of != key && i.To.Before(keep) {
			over = append(over, of)
		}
	}
	for _, key := range over {
		if _, err := store.Unlocked(ctx, s, key); err != nil {
			return err //nolint:wrapcheck // it says what it is about
		}
	}
	return nil
}

// Coverage is what the commit logs of a cluster in a store cover.
func Coverage(ctx context.Context, s store.Store, cluster string) (format.Coverage, error) {
	logs, _, err := coverage(ctx, s, cluster)
	return logs.Usable(), err
}

func coverage(ctx context.Context, s store.Store, cluster string) (format.Coverage, map[string]format.Interval, error) {
	logs, keys := format.Coverage{}, map[string]format.Interval{}
	err := s.List(ctx, format.CoveredPrefix(cluster), func(o store.Object) error {
		hostID, i, err := format.ParseCovered(cluster, o.Key)
		logs.Add(hostID, i)
		keys[o.Key] = i
		return err //nolint:wrapcheck // it says what it is about
	})
	return logs, keys, err //nolint:wrapcheck // it says what it is about
}
