package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A commit log is replayed of tables that are named, up to a time, or not at all.
func TestReplay(t *testing.T) {
	files, until := Files{}, time.Date(2026, 11, 25, 15, 3, 10, 0, time.FixedZone("", 3600))
	start := Start{Arguments: []string{"-f"}}
	if err := start.Replay(files, nil, until); err != nil || len(files) > 0 || len(start.Arguments) != 1 {
		t.Errorf("without tables: %v %v %v", start, files, err)
	}
	if err := start.Replay(files, []string{"shop.a", "shop.b"}, until); err != nil ||
		!slices.Equal(start.Arguments, []string{"-f", "-D", "cassandra.replayList=shop.a,shop.b"}) ||
		string(files[CommitLogArchiving]) != "restore_point_in_time=2026:11:25 14:03:10.000000\n"+
			"precision=MICROSECONDS\n" {
		t.Errorf("%v %s %v", start, files, err)
	}
	if err := start.Replay(files, slices.Repeat([]string{strings.Repeat("t", 90)}, 2000), until); err == nil {
		t.Error("more than a process takes is accepted")
	}
}
