package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ring"
)

// newDatacenter are the guards on the nodes of a datacenter that is to be added: all of them get
// their tickets at once, as when a ring forms.
var newDatacenter = append(slices.Clone(formation),
	Guard[Nodes]{v1alpha1.BlockedJVMNotAbsent, "no JVM runs on a node without a ticket", noJVMRuns})

// Adding is a datacenter that is to be added to a ring that has data.
type Adding struct {
	Datacenter *v1alpha1.Datacenter
	// DatacenterName and SourceDatacenter are the names in Cassandra of the datacenter and of the
	// one that it is to be rebuilt from; that is empty if there is none.
	DatacenterName   string
	SourceDatacenter string
	// Keyspaces that the ring has.
	Keyspaces []ring.Keyspace
}

// addedDatacenter are the guards on a datacenter as it is described.
var addedDatacenter = []Guard[Adding]{
	{v1alpha1.BlockedLocalConsistencyNotConfirmed, "extend.localConsistencyOnly is true", clientsStayLocal},
	{v1alpha1.BlockedReplicasAlreadyPlaced, "no keyspace has replicas in the new datacenter", nothingIsPlacedThere},
	{v1alpha1.BlockedExtensionSourceMissing, "every keyspace to be extended has replicas in the source datacenter",
		extensionIsPossible},
}

// clientsStayLocal refuses a new datacenter as long as nobody has said that clients use consistency
// levels that stay in their own datacenter: its nodes count as replicas as soon as a keyspace is
// extended to it, and hold nothing until they are rebuilt.
func clientsStayLocal(of Adding) []Finding {
	dc := of.Datacenter
	if dc.Extend != nil && dc.Extend.LocalConsistencyOnly {
		return nil
	}
	return []Finding{{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
		"datacenter %s is added to a ring that has data: until that is copied, reads that count its replicas would "+
			"miss it. Have all clients use LOCAL_* consistency levels and set "+
			"datacenters[%s].extend.localConsistencyOnly to true", dc.Name, dc.Name)}}
}

// nothingIsPlacedThere refuses a keyspace that already places replicas in the datacenter: it would
// be read there, or written, before it is rebuilt.
func nothingIsPlacedThere(of Adding) []Finding {
	var named, anywhere []string
	for _, k := range of.Keyspaces {
		switch k.Replication.Strategy() {
		case ring.NetworkTopologyStrategy:
			if k.Replication.Factor(of.DatacenterName) > 0 {
				named = append(named, k.Name)
			}
		case ring.SimpleStrategy, ring.EverywhereStrategy:
			anywhere = append(anywhere, k.Name)
		case ring.LocalStrategy:
		}
	}
	var out []Finding
	if len(named) > 0 {
		out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"keyspace %s already has replicas in datacenter %s, which has no nodes yet: take it out of the "+
				"replication, and name the keyspace in extend.keyspaces", strings.Join(named, ", "),
			of.DatacenterName)})
	}
	if len(anywhere) > 0 {
		out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"keyspace %s is replicated without regard to datacenters, and would have replicas on new nodes at once: "+
				"alter it to NetworkTopologyStrategy first", strings.Join(anywhere, ", "))})
	}
	return out
}

// mostExtended is how many keyspaces a datacenter can be extended by: as many as an operation
// takes.
const mostExtended = 64

// Extended are the keyspaces that come to a datacenter, with the replicas that each gets there:
// those that its spec names, and with all: true those that have NetworkTopologyStrategy.
func Extended(dc *v1alpha1.Datacenter, keyspaces []ring.Keyspace) map[string]int32 {
	if dc.Extend == nil {
		return nil
	}
	out := map[string]int32{}
	if dc.Extend.All {
		for i := range keyspaces {
			k := &keyspaces[i]
			if k.Replication.Strategy() == ring.NetworkTopologyStrategy &&
				!slices.Contains(ring.SystemKeyspaces(), k.Name) {
				out[k.Name] = dc.PlannedReplicationFactor
			}
		}
	}
	for _, k := range dc.Extend.Keyspaces {
		out[k.Name] = dc.PlannedReplicationFactor
		if k.ReplicationFactor > 0 {
			out[k.Name] = k.ReplicationFactor
		}
	}
	return out
}

// extensionIsPossible wants the keyspaces that are to come to a new datacenter to exist, and the
// datacenter that they come from to have all of each.
func extensionIsPossible(of Adding) []Finding {
	dc := of.Datacenter
	extended := Extended(dc, of.Keyspaces)
	if dc.Extend == nil || len(extended) == 0 && dc.Extend.From == "" {
		return nil
	}
	if of.SourceDatacenter == "" {
		return []Finding{{Stalled: v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("datacenters[%s].extend.from is %q: want the name of a datacenter of the ring",
				dc.Name, dc.Extend.From)}}
	}
	var unknown, absent []string
	for _, name := range slices.Sorted(maps.Keys(extended)) {
		i := slices.IndexFunc(of.Keyspaces, func(k ring.Keyspace) bool { return k.Name == name })
		switch {
		case i < 0:
			unknown = append(unknown, name)
		case of.Keyspaces[i].Replication.Factor(of.SourceDatacenter) == 0:
			absent = append(absent, name)
		}
	}
	var out []Finding
	if len(extended) > mostExtended {
		out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"datacenters[%s].extend.all: the ring has %d keyspaces to extend, and %d is the most: name those that "+
				"come first in extend.keyspaces, and alter and rebuild the others afterwards", dc.Name, len(extended),
			mostExtended)})
	}
	if len(unknown) > 0 {
		out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("datacenters[%s].extend.keyspaces: there is no keyspace %s", dc.Name,
				strings.Join(unknown, ", "))})
	}
	if len(absent) > 0 {
		out = append(out, Finding{Stalled: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"datacenters[%s].extend: keyspace %s has no replicas in datacenter %s, from which it is to be copied",
			dc.Name, strings.Join(absent, ", "), of.SourceDatacenter)})
	}
	return out
}
