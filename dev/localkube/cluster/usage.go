package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// resident is what a process has in memory, in bytes; 0 when it has ended.
func resident(pid int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(content), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// residentBelow sums up what all processes have in memory that run in the
// process namespace of a node's init, or in one inside it.
func residentBelow(init int) int64 {
	parents := make(map[int]int)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, file := range stats {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var pid, parent int
		var state string
		if _, err := fmt.Sscan(string(content), &pid); err != nil {
			continue
		}
		// The name, in parentheses, may hold spaces.
		rest := string(content[strings.LastIndexByte(string(content), ')')+1:])
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
			continue
		}
		parents[pid] = parent
	}
	var sum int64
	for pid := range parents {
		for p := pid; p != 0; p = parents[p] {
			if p == init {
				sum += resident(pid)
				break
			}
		}
	}
	return sum
}

// diskUsage sums up the blocks of all files below a folder. What cannot be read
// does not count.
func diskUsage(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			sum += blocks(d)
		}
		return nil
	})
	return sum
}

func blocks(d fs.DirEntry) int64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Blocks * 512
}
