package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// mayNotCompile are the kinds of mutation that can make code which the compiler refuses, such as the difference of two strings.
var mayNotCompile = map[string]bool{
	"ARITHMETIC_BASE": true, "INVERT_ASSIGNMENTS": true, "INVERT_BITWISE": true, "INVERT_BWASSIGN": true, "INVERT_LOOPCTRL": true,
	"REMOVE_SELF_ASSIGNMENTS": true,
}

// findUnviable takes the mutants out of the killed ones that the compiler refuses: no test has killed them. To gremlins both look alike.
func (g gremlins) findUnviable(ctx context.Context, pkg string, mutants []mutant) error {
	changed, overlay := filepath.Join(g.module, "mutant.go.txt"), filepath.Join(g.module, "overlay.json")
	for i := range mutants {
		m := &mutants[i]
		if m.status != statusKilled || !mayNotCompile[m.operator] {
			continue
		}
		content, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(g.module, m.File): changed}})
		if err != nil {
			return fmt.Errorf("encode overlay: %w", err)
		}
		if err := os.WriteFile(overlay, content, 0o600); err != nil {
			return fmt.Errorf("write overlay: %w", err)
		}
		if err := os.WriteFile(changed, m.mutated, 0o600); err != nil {
			return fmt.Errorf("write mutant: %w", err)
		}
		if err := goCommand(ctx, g.module, "build", "-overlay", overlay, "./"+pkg); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			m.status = statusNotViable
		}
	}
	return nil
}
