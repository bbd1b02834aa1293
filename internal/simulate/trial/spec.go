package trial

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/cassandra"
)

// bySpec holds the end to the spec, and what is said of the ring to the ring, by the words of the
// API alone: what a run without a fault does wrong is wrong here, too.
func (o *checker) bySpec(c *v1alpha1.CassandraCluster) {
	l := o.lastLedger
	if l == nil || len(l.Members) == 0 || o.w.Server.Object("ConfigMap", keyOf(v1alpha1.LedgerName(clusterName))) == nil {
		return
	}
	members, recorded := map[string]map[string]bool{}, map[string]bool{} // by datacenter, in Cassandra's words
	for _, object := range o.w.Server.Objects("CassandraNode") {
		n := object.(*v1alpha1.CassandraNode)
		recorded[n.Name] = true
		if at := n.Spec.Datacenter + "-" + n.Spec.Rack; !strings.HasPrefix(n.Name, c.Name+"-"+at+"-") {
			o.violated("the record of node %s says that it is of %s", n.Name, at)
		}
		if _, joined := l.Members[n.Name]; joined {
			dc := n.Spec.Configuration.DatacenterName
			if members[dc] == nil {
				members[dc] = map[string]bool{}
			}
			members[dc][n.Name] = true
		}
	}
	running := map[string]*cassandra.Process{}
	for _, s := range o.w.Pods.Sandboxes() {
		if j := s.JVM(); j != nil && j.Mode() == string(facts.ModeNormal) {
			running[s.Name()] = j
		}
	}
	for name, j := range running {
		if id, is := l.Members[name]; is && id != j.HostID() {
			o.violated("the ledger says that node %s is the member %q, and it is %s", name, id, j.HostID())
		}
		// of a node whose record is lost, and whose rack is taken out of the spec, nothing is known
		// until a person puts that back
		lost := !recorded[name] && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled)
		if row := j.Stray(); row != "" && !lost && !cleansUp(l, name) {
			o.violated("cleanup: node %s holds %s, which it does not own, and no cleanup of it is due", name, row)
		}
	}
	if settled(c) && !slices.ContainsFunc(l.Open(), func(s *ledger.Step) bool { return s.Kind != ledger.RepairTables }) {
		o.ringBySpec(c, members, running)
	}
}

// cleansUp says that the cleanup of a node is under way, due, or is to be when an open join closes.
func cleansUp(l *ledger.Ledger, node string) bool {
	return slices.Contains(l.Cleanup, node) || slices.ContainsFunc(slices.Concat(l.Open(), l.Suspended),
		func(s *ledger.Step) bool {
			return s.Kind == ledger.JoinNode || s.Kind == ledger.Cleanup && slices.Contains(s.Nodes, node)
		})
}

// settled says that the cluster neither refuses its spec, nor waits for anybody, nor is to.
func settled(c *v1alpha1.CassandraCluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) && len(c.Status.Blocked) == 0 &&
		!meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled) && !c.Spec.Paused &&
		!c.Spec.Stopped &&
		!slices.ContainsFunc(c.Status.Notices,
			func(n v1alpha1.Notice) bool { return n.Reason == v1alpha1.NoticeOperationPostponed })
}

// ringBySpec is what a ring is of which nothing is left to do.
func (o *checker) ringBySpec(c *v1alpha1.CassandraCluster, members map[string]map[string]bool,
	running map[string]*cassandra.Process) {
	described, planned := map[string]bool{}, map[string]int{}
	for _, dc := range c.Spec.Datacenters {
		inside := cmp.Or(dc.DatacenterName, dc.Name)
		for _, rack := range dc.Racks {
			nodes := dc.NodesPerRack
			if rack.Nodes != nil {
				nodes = *rack.Nodes
			}
			// Members stay, whatever their numbers: an edit may ask for more for a while.
			var stay, join []string
			for i := range nodes + more {
				name := v1alpha1.NodeName(c.Name, dc.Name, rack.Name, i)
				if members[inside][name] {
					stay = append(stay, name)
				} else {
					join = append(join, name)
				}
			}
			for _, name := range append(stay, join...)[:nodes] {
				described[name] = true
			}
		}
		planned[inside] = min(int(dc.PlannedReplicationFactor), len(members[inside]))
		b, _ := o.w.Server.Object("PodDisruptionBudget",
			keyOf(v1alpha1.DisruptionBudgetName(c.Name, dc.Name))).(*policyv1.PodDisruptionBudget)
		if n := len(members[inside]); b == nil || !o.evictable(b, n) {
			o.violated("budget: nothing is open, and evictions do not leave %d pods of datacenter %s, as they may",
				n-1, dc.Name)
		}
	}
	joined := map[string]bool{}
	for _, of := range members {
		maps.Copy(joined, of)
	}
	if !maps.Equal(joined, described) {
		o.violated("the spec has the nodes %v, and the ring %v", slices.Sorted(maps.Keys(described)),
			slices.Sorted(maps.Keys(joined)))
	}
	for name, j := range running {
		if !joined[name] {
			o.violated("node %s is NORMAL, and no member by the ledger", name)
		}
		for keyspace, replicas := range j.Replicas() {
			for _, dc := range slices.AppendSeq(slices.Sorted(maps.Keys(planned)), maps.Keys(replicas)) {
				want, here := planned[dc]
				if n := replicas[dc]; n != want && (!here || strings.HasPrefix(keyspace, "system_")) {
					o.violated("replication: keyspace %s has %d replicas in %s by node %s, and the spec wants %d there",
						keyspace, n, dc, name, want)
				}
			}
		}
		mode := cmp.Or(c.Spec.Encryption().Internode, v1alpha1.EncryptionRequired)
		encrypts, optional := j.Encrypts()
		if encrypts != (mode != v1alpha1.EncryptionDisabled) ||
			encrypts && optional == (mode == v1alpha1.EncryptionRequired) {
			o.violated("security: node %s encrypts: %v, optional: %v, and the spec says %s", name, encrypts, optional,
				mode)
		}
		asks := cmp.Or(c.Spec.AuthenticationMode(), v1alpha1.AuthenticationPassword) == v1alpha1.AuthenticationPassword
		if j.AsksPassword() != asks {
			o.violated("security: node %s asks for passwords: %v, and the spec says %v", name, j.AsksPassword(), asks)
		}
	}
}

// evictable says that a budget lets one pod of the members be evicted that is ready, and any that
// is not. Where pods have the data, one that is not ready goes only while all others are, and none
// goes while a node that is to be repaired may lack what is in it.
func (o *checker) evictable(b *policyv1.PodDisruptionBudget, members int) bool {
	left, unready := members-1, policyv1.AlwaysAllow
	if n := get(o.w).Spec.Node; n != nil && n.Storage != nil && n.Storage.Ephemeral != nil {
		unready = policyv1.IfHealthyBudget
		if len(o.lastLedger.RepairDue) > 0 {
			left = members
		}
	}
	return b.Spec.MinAvailable != nil && b.Spec.MinAvailable.IntValue() == left &&
		b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == unready
}
