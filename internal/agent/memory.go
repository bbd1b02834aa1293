package agent

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// restsEvery is how often the agent gives back what it does not use: much of its program is for its
// start, or for operations that are rare.
const restsEvery = time.Minute

// rest gives back pages of the program's file until ctx ends.
func rest(ctx context.Context, logger *log.Logger) {
	tick := time.NewTicker(restsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := unmapProgram(); err != nil {
				logger.Printf("give back memory: %v", err)
				return
			}
		}
	}
}

// unmapProgram takes the pages of the program's file out of the memory of the process. The kernel
// keeps them as long as it has room, and maps again what is used again. What could be written, or
// was while the program was loaded, stays.
func unmapProgram() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read the mappings: %w", err)
	}
	var from, to uintptr // of a mapping of the file
	for line := range strings.Lines(string(mappings)) {
		switch fields := strings.Fields(line); {
		case !strings.HasSuffix(fields[0], ":"): // such as 00400000-00e8d000 r-xp 00000000 fe:00 1234 /opt/program
			from, to = 0, 0
			if len(fields) == 6 && fields[5] == self && !strings.Contains(fields[1], "w") {
				if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil {
					return fmt.Errorf("read mapping %s: %w", fields[0], err)
				}
			}
		case fields[0] == "Anonymous:" && fields[1] == "0" && to > 0:
			if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failed != 0 {
				return fmt.Errorf("unmap %x-%x: %w", from, to, failed)
			}
		}
	}
	return nil
}
