package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"helenus.io/helenus/api/v1alpha1"
)

// fit makes the sample fit the machines that there are, and says what it changed. The sample binds
// three racks to the zones a, b and c; other clusters call their zones otherwise, have fewer, or
// have fewer machines than the ring has nodes.
func fit(cluster *v1alpha1.CassandraCluster, machines []corev1.Node) []string {
	usable := slices.DeleteFunc(slices.Clone(machines), func(m corev1.Node) bool { return !takesPods(m) })
	var said []string
	for i := range cluster.Spec.Datacenters {
		said = append(said, fitZones(cluster.Spec.Datacenters[i].Racks, zonesOf(usable))...)
	}
	if nodes := nodesOf(cluster); len(usable) < nodes {
		placement(cluster).HostAntiAffinity = v1alpha1.HostAntiAffinityPreferred
		said = append(said, fmt.Sprintf("%d machines take pods and the ring has %d nodes: nodes may share a machine, "+
			"which a ring for real use should not", len(usable), nodes))
	}
	return said
}

func fitZones(racks []v1alpha1.Rack, zones []string) []string {
	fits := true
	for _, rack := range racks {
		zone := zoneOf(rack)
		fits = fits && (zone == "" || slices.Contains(zones, zone))
	}
	switch {
	case fits:
		return nil
	case len(zones) >= len(racks):
		for i := range racks {
			racks[i].Node.Placement.Zone = zones[i]
		}
		return []string{"the racks are in the zones " + strings.Join(zones[:len(racks)], ", ")}
	default:
		for i := range racks {
			if zoneOf(racks[i]) != "" {
				racks[i].Node.Placement.Zone = ""
			}
		}
		return []string{fmt.Sprintf("the machines are in %d zones and there are %d racks: the racks are not bound to "+
			"zones", len(zones), len(racks))}
	}
}

func zoneOf(rack v1alpha1.Rack) string {
	if rack.Node == nil || rack.Node.Placement == nil {
		return ""
	}
	return rack.Node.Placement.Zone
}

// takesPods says that a machine is ready and keeps no ordinary pod away.
func takesPods(m corev1.Node) bool {
	ready := slices.ContainsFunc(m.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	closed := slices.ContainsFunc(m.Spec.Taints,
		func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
	return ready && !closed && !m.Spec.Unschedulable
}

func zonesOf(machines []corev1.Node) []string {
	var zones []string
	for _, m := range machines {
		if zone := m.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func nodesOf(cluster *v1alpha1.CassandraCluster) int {
	n := 0
	for _, dc := range cluster.Spec.Datacenters {
		for _, rack := range dc.Racks {
			switch {
			case rack.Nodes != nil:
				n += int(*rack.Nodes)
			case dc.NodesPerRack > 0:
				n += int(dc.NodesPerRack)
			default:
				n++ // the default of nodesPerRack
			}
		}
	}
	return n
}

func placement(cluster *v1alpha1.CassandraCluster) *v1alpha1.Placement {
	if cluster.Spec.Node == nil {
		cluster.Spec.Node = &v1alpha1.NodeTemplate{}
	}
	if cluster.Spec.Node.Placement == nil {
		cluster.Spec.Node.Placement = &v1alpha1.Placement{}
	}
	return cluster.Spec.Node.Placement
}
