package config

import (
	"fmt"
	"strings"
	"time"
)

// CommitLogArchiving is the file that says, at each start, up to when a commit log is replayed.
const CommitLogArchiving = "commitlog_archiving.properties"

// mostReplayed is what the tables of a commit log that are replayed may have as one argument of a
// process, in bytes: Linux takes 128 KiB.
const mostReplayed = 120 << 10

// Replay has a JVM replay the commit log that lies on its disk, of these tables alone, and of them
// what was written at a time or before. What has a later timestamp is dropped with all that was
// written with it.
func (s *Start) Replay(files Files, tables []string, until time.Time) error {
	if len(tables) == 0 {
		return nil
	}
	list := strings.Join(tables, ",")
	if len(list) > mostReplayed {
		return fmt.Errorf("replay the commit log: the names of its %d tables have %d bytes, and a JVM takes no more "+
			"than %d", len(tables), len(list), mostReplayed)
	}
	s.Arguments = append(s.Arguments, "-D", "cassandra.replayList="+list)
	files[CommitLogArchiving] = fmt.Appendf(nil, "restore_point_in_time=%s\nprecision=MICROSECONDS\n",
		until.UTC().Format("2006:01:02 15:04:05.000000"))
	return nil
}
