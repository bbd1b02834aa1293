package config

import (
	"fmt"
	"maps"
	"slices"
)

// Rule turns the files of the image into those of a node.
type Rule func(base Files, node *Node) (Files, error)

// Rules by revision. A revision that was released is never changed: what it renders for the same
// input stays the same, byte for byte, which its golden files hold it to. Another rule is another
// revision. New records are written with the newest; existing ones keep theirs until the user
// changes something, so that a newer Helenus restarts nothing by itself.
var Rules = map[int32]Rule{
	1: renderRevision1,
}

// NewestRevision of the rules that this Helenus knows.
func NewestRevision() int32 { return slices.Max(slices.Collect(maps.Keys(Rules))) }

// KnowsRevision says whether this Helenus can render a revision.
func KnowsRevision(revision int32) bool {
	return Rules[revision] != nil
}

// Render returns the files of the configuration directory that differ from the image's or may do
// so, for the agent to write over a copy of the image's directory. The base must be the image's own
// files, never the result of an earlier rendering.
//
// What the user set is taken as it is: it was checked by Validate before it came into the record,
// and a node must be able to start again with the record it has, whatever a later Helenus checks.
// Keys and options that Helenus owns win over the user's.
func Render(base Files, node Node) (Files, error) {
	render := Rules[node.Configuration.Revision]
	if render == nil {
		return nil, fmt.Errorf("render configuration: revision %d is not known to this Helenus (newest: %d)",
			node.Configuration.Revision, NewestRevision())
	}
	node.normalize()
	if err := node.check(); err != nil {
		return nil, fmt.Errorf("render configuration: %w", err)
	}
	for _, name := range []string{CassandraYAML, RackProperties, ServerOptions, Logback} {
		if _, found := base[name]; !found {
			return nil, fmt.Errorf("render configuration: the image has no %s in its configuration directory", name)
		}
	}
	files, err := render(base, &node)
	if err != nil {
		return nil, fmt.Errorf("render configuration: %w", err)
	}
	return files, nil
}
