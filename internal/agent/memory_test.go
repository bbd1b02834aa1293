package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The resident memory of a process is less once the pages of its executable are unmapped.
func TestTheProgramGivesItsPagesBack(t *testing.T) {
	mapped := func() (kibibytes int) {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(status), "RssFile:")
		if _, err := fmt.Sscan(after, &kibibytes); !found || err != nil {
			t.Fatalf("read RssFile of %s: %v", status, err)
		}
		return kibibytes
	}
	before := mapped()
	if err := unmapProgram(); err != nil {
		t.Fatal(err)
	}
	if after := mapped(); after >= before {
		t.Errorf("%d KiB of the program's file are mapped, and %d were before", after, before)
	}
}
