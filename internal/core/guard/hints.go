package guard

import (
	"fmt"
	"maps"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/words"
)

// Kept asks what some members keep for others.
type Kept struct {
	Nodes
	// For are the others. Batches says that those count, too.
	For     []string
	Batches bool
}

// undelivered is the guard on what nodes have missed, before the next ones go down.
var undelivered = []Guard[Kept]{
	{v1alpha1.BlockedHintsNotDelivered, "they are delivered, or have not become fewer for 2 minutes", nothingKept},
}

// nothingKept: what a node has missed, and others keep for it, is on one replica less than it was
// acknowledged for.
func nothingKept(k Kept) []Finding {
	names := make(map[string]string, len(k.For))
	for _, name := range k.For {
		if id, member := k.Ledger.HostID(name); member {
			names[id] = name
		}
	}
	holders, rings := k.views()
	var out []Finding
	for i, r := range rings {
		said := func(left int, format string, args ...any) {
			out = append(out, Finding{Nodes: []string{holders[i]}, Left: left,
				Message: "node " + holders[i] + " " + fmt.Sprintf(format, args...)})
		}
		var of []string
		files := 0
		for _, id := range slices.Sorted(maps.Keys(r.Hints)) {
			if name := names[id]; name != "" {
				of, files = append(of, name), files+r.Hints[id]
			}
		}
		switch {
		case r.Hints == nil && len(names) > 0:
			said(1, "does not say whether it keeps hints")
		case files > 0:
			said(files, "keeps hints for %s", words.List(of, 3))
		}
		switch {
		case k.Batches && r.Unfinished == nil:
			said(1, "does not say whether batches wait")
		case k.Batches && r.Unfinished.Batches > 0:
			said(r.Unfinished.Batches, "has batches that wait to be replayed")
		}
	}
	return out
}
