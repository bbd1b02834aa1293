package sweep

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/internal/backup/format"
	"helenus.io/helenus/internal/backup/store"
)

// What is deleted of a commit log, and what then counts as covered.
func TestLogsAreSwept(t *testing.T) {
	const day = 24 * time.Hour
	none := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		retention time.Duration
		// backups by their age; segments by those of their parts.
		backups  []time.Duration
		segments map[string][]time.Duration
		unread   error
		left     []string
		from     time.Duration   // ago; since when the log is covered that began 20 days ago
		lacking  []time.Duration // backups that were taken without a node
	}{
		"the backup before the retention counts": {3 * day, []time.Duration{9 * day, 5 * day, 4 * day, day},
			map[string][]time.Duration{"a": {5 * day}, "b": {5 * day, 4*day - time.Minute}, "c": {2 * day}}, nil,
			[]string{"b", "c"}, 4 * day, nil},
		"one without a node is none": {3 * day, []time.Duration{5 * day},
			map[string][]time.Duration{"a": {6 * day}, "b": {5*day - time.Minute}}, nil, []string{"b"}, 5 * day,
			[]time.Duration{4 * day}},
		"clocks differ": {3 * day, []time.Duration{4 * day},
			map[string][]time.Duration{"a": {4*day + 16*time.Minute}, "b": {4*day + 14*time.Minute}}, nil,
			[]string{"b"}, 4 * day, nil},
		"no backup is that old": {3 * day, []time.Duration{day},
			map[string][]time.Duration{"a": {4 * day}, "b": {2 * day}}, nil, []string{"b"}, 3 * day, nil},
		"a ring is made of it": {3 * day, []time.Duration{4 * day}, map[string][]time.Duration{"a": {5 * day}},
			errors.New("read"), []string{"a"}, 20 * day, nil},
		"none is kept any more": {0, nil, map[string][]time.Duration{"a": {8 * day}, "b": {6 * day}}, nil,
			[]string{"b"}, 7 * day, nil},
		"nothing is old": {3 * day, nil, map[string][]time.Duration{"a": {day}}, nil, []string{"a"}, 20 * day, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwept(t)
			for _, age := range c.backups {
				s.write(format.BackupKey("c", s.now.Add(-age).Format(askedFor)+"-1"), `{"version":1}`, age)
			}
			for _, age := range c.lacking {
				s.write(format.BackupKey("c", s.now.Add(-age).Format(askedFor)+"-1"),
					`{"version":1,"leftOut":[{"name":"n"}]}`, age)
			}
			for segment, ages := range c.segments {
				for i, age := range ages {
					of := format.Segment{Name: segment, Appeared: s.now.Add(-ages[0])}
					s.write(format.PartKey("c", "h", of, int64(i)), "x", age)
				}
			}
			for _, i := range []format.Interval{{From: s.now.Add(-20 * day), To: s.now},
				{From: s.now.Add(-30 * day), To: s.now.Add(-21 * day)}} {
				s.write(format.CoveredKey("c", "h", i), "", 0)
			}
			unread := none
			if c.unread != nil {
				unread = func(context.Context) error { return c.unread }
			}
			if err := Log(t.Context(), s, "c", c.retention, s.now, unread); !errors.Is(err, c.unread) {
				t.Fatal(err)
			}
			var left []string
			if err := s.List(t.Context(), format.LogPrefix("c", ""), func(o store.Object) error {
				_, segment, _, err := format.ParsePart("c", o.Key)
				left = append(left, segment.Name)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			slices.Sort(left)
			if left = slices.Compact(left); !slices.Equal(left, c.left) {
				t.Errorf("%v is left, want %v", left, c.left)
			}
			logs, err := Coverage(t.Context(), s, "c")
			of := logs["h"]
			if err != nil || len(of) == 0 || !of[len(of)-1].From.Equal(s.now.Add(-c.from)) || len(logs) != 1 {
				t.Errorf("covered %v, %v", logs, err)
			}
		})
	}
}
