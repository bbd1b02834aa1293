//go:build race

package safeguard

func init() { underRace = true }
