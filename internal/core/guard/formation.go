package guard

import (
	"cmp"
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/restore"
)

// formation are the guards before the first tickets of a cluster.
var formation = []Guard[Nodes]{
	{v1alpha1.BlockedInitialNodeNotReady, "the agent of every initial node answers from its present pod",
		everyNodeAnswers},
	{v1alpha1.BlockedDiskNotEmpty, "the disk of every initial node is empty", everyDiskIsEmpty},
	{v1alpha1.BlockedClientTrafficAlreadyOpened, "no disk of an initial node has served clients before",
		noneServedClients},
}

// adoption are the guards before the disks of an earlier cluster are taken over.
var adoption = []Guard[Nodes]{
	{v1alpha1.BlockedInitialNodeNotReady, "the agent of every initial node answers from its present pod",
		everyNodeAnswers},
	{v1alpha1.BlockedDiskNotAdoptable, "every disk is one of the adopted cluster", everyDiskIsAdopted},
	{v1alpha1.BlockedDuplicateHostID, "no two disks have the same host id", everyHostIDOnce},
}

// restoration are the guards before a ring is made from a backup.
var restoration = []Guard[Nodes]{
	{v1alpha1.BlockedBackupUnreadable, "the description of the backup can be read", backupIsKnown},
	{v1alpha1.BlockedBackupDoesNotFit, "the backup fits the spec", backupFits},
}

func backupIsKnown(of Nodes) []Finding {
	b, r := of.Backup, of.Cluster.Spec.Restore()
	if b != nil && b.Description != nil {
		return nil
	}
	out := Finding{Message: fmt.Sprintf("%s of the cluster with uid %s in store %s is not known: ", r.What(),
		r.Source.UID, r.Store.Name)}
	if b == nil {
		out.Message += "nobody has read it yet"
		return []Finding{out}
	}
	if out.Message += b.Problem; b.Missing {
		out.Stalled = v1alpha1.ReasonRestoreImpossible
	}
	return []Finding{out}
}

func backupFits(of Nodes) []Finding {
	if of.Backup == nil || of.Backup.Description == nil {
		return nil
	}
	var out []Finding
	what := of.Cluster.Spec.Restore().What()
	if of.Cluster.Spec.Restore().Backup == "" {
		what += " (backup " + of.Backup.Description.ID + ")"
	}
	for _, problem := range restore.Problems(of.Cluster, render.WantedNodes(of.Cluster, of.Install),
		of.Backup.Description) {
		out = append(out, Finding{Stalled: v1alpha1.ReasonRestoreImpossible,
			Message: fmt.Sprintf("%s cannot be restored: %s", what, problem)})
	}
	return out
}

// everyNodeAnswers: an agent that was not heard is an unknown disk, and an unknown disk may hold
// anything.
func everyNodeAnswers(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		n := of.Nodes[name]
		if agent := n.CurrentAgent(); agent != nil && agent.Address != "" {
			continue
		}
		out = append(out, Finding{Nodes: []string{name},
			Message: fmt.Sprintf("node %s is not ready to join: %s", name, assess.WhyNoAnswer(n))})
	}
	return out
}

func everyDiskIsEmpty(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		agent := of.Nodes[name].CurrentAgent()
		if agent == nil || agent.Disk == v1alpha1.DiskEmpty {
			continue
		}
		advice := "delete its claim, or adopt the cluster it is of"
		if o := agent.Owner; o != nil && o.ClusterUID == of.Cluster.UID {
			// Ledger and records were lost together. What the disk holds is this cluster's data.
			advice = "it is a disk of this very cluster, so keep its claim; restore the ledger and the records of " +
				"the nodes from a backup"
		}
		out = append(out, Finding{Nodes: []string{name}, Stalled: v1alpha1.ReasonForeignDisks,
			Message: fmt.Sprintf("the disk of node %s is not empty but %s: it is neither used nor wiped; %s", name,
				diskInWords(agent), advice)})
	}
	return out
}

func diskInWords(agent *facts.Agent) string {
	owner := ""
	if o := agent.Owner; o != nil && (o.ClusterUID != "" || o.ClusterName != "") {
		owner = fmt.Sprintf(" of cluster %q with uid %q, node %q", o.ClusterName, o.ClusterUID, o.Node)
	}
	return string(agent.Disk) + owner
}

// noneServedClients: a node that opened client traffic may have taken writes that only it has.
func noneServedClients(of Nodes) []Finding {
	var out []Finding
	for _, name := range of.Names {
		if agent := of.Nodes[name].CurrentAgent(); agent != nil && agent.TrafficOpened {
			out = append(out, Finding{Nodes: []string{name}, Stalled: v1alpha1.ReasonForeignDisks,
				Message: fmt.Sprintf("node %s was open to clients before: its data may be the only copy of writes",
					name)})
		}
	}
	return out
}

func everyDiskIsAdopted(of Nodes) []Finding {
	adopt, clusterName := of.Cluster.Spec.AdoptedUID(), render.ClusterName(of.Cluster)
	var out []Finding
	for _, name := range of.Names {
		agent := of.Nodes[name].CurrentAgent()
		if agent == nil {
			continue
		}
		var wrong string
		switch {
		case agent.Disk != v1alpha1.DiskMember || agent.HostID == "":
			wrong = "it is " + diskInWords(agent)
		case agent.Owner == nil || (agent.Owner.ClusterUID != adopt && agent.Owner.ClusterUID != of.Cluster.UID):
			wrong = "it is " + diskInWords(agent)
		case agent.Owner.Node != name:
			wrong = fmt.Sprintf("it is the disk of node %q", agent.Owner.Node)
		case agent.Owner.ClusterName != "" && agent.Owner.ClusterName != clusterName:
			wrong = fmt.Sprintf("its cluster_name is %q, not %q: set spec.clusterName", agent.Owner.ClusterName,
				clusterName)
		default:
			version := of.Nodes[name].Record.Spec.Configuration.Version
			if err := settings.CheckChange(cmp.Or(agent.DiskRelease, version), version); err != nil {
				wrong = err.Error() + ": set spec.version"
			}
		}
		if wrong != "" {
			out = append(out, Finding{Nodes: []string{name}, Stalled: v1alpha1.ReasonAdoptionIncomplete,
				Message: fmt.Sprintf("the disk of node %s is not a disk of the cluster with uid %s that is to be "+
					"adopted: %s; nothing is started", name, adopt, wrong)})
		}
	}
	return out
}

func everyHostIDOnce(of Nodes) []Finding {
	var out []Finding
	found := map[string]string{}
	for _, name := range of.Names {
		agent := of.Nodes[name].CurrentAgent()
		if agent == nil || agent.HostID == "" {
			continue
		}
		if other, twice := found[agent.HostID]; twice {
			out = append(out, Finding{Nodes: []string{other, name}, Stalled: v1alpha1.ReasonAdoptionIncomplete,
				Message: fmt.Sprintf("the disks of nodes %s and %s have the same host id %s: one is a copy of the "+
					"other", other, name, agent.HostID)})
		}
		found[agent.HostID] = name
	}
	return out
}
