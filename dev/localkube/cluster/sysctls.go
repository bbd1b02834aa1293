package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helenus.io/helenus/dev/localkube/network"
	"helenus.io/helenus/dev/localkube/state"
)

// sysctls are the settings of the whole machine that a kubelet changes.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom",
	"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

func sysctlFile() (string, error) {
	root, err := state.Root()
	return filepath.Join(root, "sysctls.json"), err
}

// saveSysctls remembers the machine's settings before the first cluster changes
// them. The caller holds the lock on all clusters.
func saveSysctls() error {
	file, err := sysctlFile()
	if err != nil {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	values := make(map[string]string)
	for _, name := range sysctls {
		content, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read setting %s: %w", name, err)
		}
		values[name] = strings.TrimSpace(string(content))
	}
	content, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return fmt.Errorf("encode settings: %w", err)
	}
	return state.WriteFile(file, content, 0o644)
}

// restoreSysctls sets the machine's settings back when the last cluster with
// nodes is gone. The caller holds the lock on all clusters.
func restoreSysctls() error {
	others, err := network.Clusters()
	if err != nil || len(others) > 0 {
		return err
	}
	file, err := sysctlFile()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read saved settings: %w", err)
	}
	values := make(map[string]string)
	if err := json.Unmarshal(content, &values); err != nil {
		return fmt.Errorf("read saved settings %s: %w", file, err)
	}
	for name, value := range values {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return fmt.Errorf("restore setting %s: %w", name, err)
		}
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove saved settings: %w", err)
	}
	return nil
}
