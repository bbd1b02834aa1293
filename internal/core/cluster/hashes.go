package cluster

import (
	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
)

// hashes are those that were worked out in a pass, or before it.
type hashes struct {
	records map[*facts.Node]*facts.RecordHashes
	wanted  map[likeness]facts.Hashes
}

// likeness is everything in which a node as the spec describes it can differ from the others of its rack: what is pinned by its record.
type likeness struct {
	datacenter, rack   string
	configurationRules int32
	podRules           int32
	image              string
	imageDefaulted     bool
}

// hashesOf the record of a node.
func (p *pass) hashesOf(n *facts.Node) *facts.RecordHashes {
	if known := n.KnownHashes(); known != nil {
		return known
	}
	h, known := p.hashes.records[n]
	if !known {
		h = render.HashesOf(n.Record)
		if p.hashes.records == nil {
			p.hashes.records = map[*facts.Node]*facts.RecordHashes{}
		}
		p.hashes.records[n] = h
	}
	return h
}

// same says that the record of a node is what the spec describes.
func (p *pass) same(n *facts.Node, w render.Wanted) bool {
	like := likeness{w.Datacenter, w.Rack, w.Configuration.Revision, w.Pod.Revision, w.Pod.Image, w.Pod.ImageDefaulted}
	want, known := p.hashes.wanted[like]
	if !known {
		want = w.Hashes()
		if p.hashes.wanted == nil {
			p.hashes.wanted = map[likeness]facts.Hashes{}
		}
		p.hashes.wanted[like] = want
	}
	return p.hashesOf(n).Hashes == want
}

// madeForAnother says that the pod of a node was made for another spec than its record has.
func (p *pass) madeForAnother(n *facts.Node) bool {
	return n.Pod.Annotations[v1alpha1.AnnotationTemplateHash] != p.hashesOf(n).PodTemplate
}
