package scene

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockFile is the file on the data volume that one JVM at a time holds a lock of.
const lockFile = "/var/lib/cassandra/.helenus/lock"

// RunningJVM is a process of Cassandra on a host of the local cluster.
type RunningJVM struct {
	PID int
	// Locked says that it has the file of the lock open, which it can only have inherited.
	Locked bool
}

// Volumes are the JVMs that run on each data volume of the local cluster, by the file of its lock.
func (s *Scene) Volumes() (map[string][]RunningJVM, error) {
	if _, err := s.Local(); err != nil {
		return nil, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	volumes := map[string][]RunningJVM{}
	for _, file := range files {
		process := filepath.Dir(file)
		command, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(command), "\x00org.apache.cassandra.service.CassandraDaemon\x00") {
			continue // it has ended, or is another
		}
		var lock syscall.Stat_t
		if syscall.Stat(process+"/root"+lockFile, &lock) != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		volume := fmt.Sprintf("%d/%d", lock.Dev, lock.Ino)
		volumes[volume] = append(volumes[volume], RunningJVM{PID: pid, Locked: opens(process, lock)})
	}
	return volumes, nil
}

// opens says whether a process has a file open.
func opens(process string, file syscall.Stat_t) bool {
	descriptors, _ := filepath.Glob(process + "/fd/*")
	for _, d := range descriptors {
		var is syscall.Stat_t
		if syscall.Stat(d, &is) == nil && is.Dev == file.Dev && is.Ino == file.Ino {
			return true
		}
	}
	return false
}
