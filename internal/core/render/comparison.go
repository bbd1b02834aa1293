package render

import (
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// Comparison compares records with what the spec describes. It is made for one snapshot, of which
// it works out nothing twice: the nodes of a rack are described alike. The zero value is ready.
type Comparison struct {
	records map[*facts.Node]*facts.RecordHashes
	wanted  map[likeness]facts.RecordHashes
	// last is what was asked for last, and of are its hashes: often the same is asked for again.
	last likeness
	of   facts.RecordHashes
}

// likeness is everything in which a node as the spec describes it can differ from the others of its
// rack: what its record pins.
type likeness struct {
	datacenter, rack   string
	configurationRules int32
	podRules           int32
	image              string
	imageDefaulted     bool
	restartedAt        time.Time
	authentication     v1alpha1.AuthenticationMode
}

// HashesOf the record of a node, which must have one.
func (c *Comparison) HashesOf(n *facts.Node) *facts.RecordHashes {
	if known := n.KnownHashes(); known != nil {
		return known
	}
	h, known := c.records[n]
	if !known {
		h = HashesOf(n.Record)
		if c.records == nil {
			c.records = map[*facts.Node]*facts.RecordHashes{}
		}
		c.records[n] = h
	}
	return h
}

// Same says that the record of a node describes the same as the spec does, of which what the record
// has is Pinned or not.
func (c *Comparison) Same(n *facts.Node, w Wanted) bool {
	return c.HashesOf(n).Hashes == c.Wanted(w).Hashes
}

// Wanted are the hashes of the record of a node as the spec describes it.
func (c *Comparison) Wanted(w Wanted) facts.RecordHashes {
	like := likeness{w.Datacenter, w.Rack, w.Configuration.Revision, w.Pod.Revision, w.Pod.Image,
		w.Pod.ImageDefaulted, time.Time{}, w.Configuration.Authentication}
	if at := w.Configuration.RestartedAt; at != nil {
		like.restartedAt = at.Time
	}
	if c.wanted != nil && like == c.last {
		return c.of
	}
	want, known := c.wanted[like]
	if !known {
		want = facts.RecordHashes{Hashes: w.Hashes(), PodTemplate: PodHash(w.Pod)}
		if c.wanted == nil {
			c.wanted = map[likeness]facts.RecordHashes{}
		}
		c.wanted[like] = want
	}
	c.last, c.of = like, want
	return want
}
