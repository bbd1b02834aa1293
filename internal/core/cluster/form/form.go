package form

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/words"
)

// Form forms the ring of a new cluster: when every initial agent has answered, live, that its disk
// is empty, all get their tickets at once. Nothing is begun while one is missing, since an empty
// disk that nobody has looked at may be a lost one.
func Form(rules guard.Rules) procedure.Procedure {
	return procedure.Procedure{
		Kind: ledger.FormRing, Class: ledger.Topology, MovesRanges: true, AsksLast: true,
		Understands: procedure.Understands[ticket.State],
		Due: func(v *assess.View) *procedure.Proposal {
			if v.Adopts() != "" {
				return nil
			}
			nodes := procedure.TheseNodes(v, v.WantedNames()...)
			refusals := guard.Check(nodes, rules.Formation...)
			if v.Cluster.Spec.Restore() != nil {
				refusals = append(guard.Check(nodes, rules.Restore...), refusals...)
			}
			return &procedure.Proposal{
				What: "the ring is to form", Refusals: refusals, Wake: unreadFor(v),
				Open: func() (*procedure.Opening, []guard.Refusal) { return open(v) },
			}
		},
		Stages: []procedure.Stage{
			{Name: ledger.StageTickets, Run: ticket.AwaitRing},
			{Name: ledger.StageFormed, Run: recordMembers},
			{Name: ledger.StageSuperuser, Run: importSuperuser},
			{Name: ledger.StageKeyspaces, Run: setSystemKeyspaces},
			{Name: ledger.StageLogin, Run: func(v *assess.View, s *procedure.Step) plan.Result {
				return ticket.ProveLogin(v, s, checked(v))
			}},
			{Name: ledger.StageChecks, Run: checkRows},
			{Name: ledger.StageOpen, Run: openTraffic},
		},
	}
}

// unreadFor is when a backup that could not be read is read again; 0 if there is none.
func unreadFor(v *assess.View) time.Duration {
	if v.Cluster.Spec.Restore() == nil || v.Backup != nil && v.Backup.Description != nil {
		return 0
	}
	return 30 * time.Second
}

func open(v *assess.View) (*procedure.Opening, []guard.Refusal) {
	names := v.WantedNames()
	nodes := words.Plural(len(names), "node")
	out := &procedure.Opening{
		Stage: ledger.StageTickets, Datacenters: v.WantedDatacenters(), Nodes: names, Seeds: v.Seeds(names, nil),
		Change: func(r *ledger.Ring) {
			r.Replication, r.MadeWith = v.PlannedReplication(), v.MadeWith()
		},
		Why:   "all tickets at once",
		Event: "FormingRing", EventMessage: nodes + " get their tickets at once",
		ResultMessage: "issued join tickets to " + nodes,
	}
	if r := v.Cluster.Spec.Restore(); r != nil {
		state, err := ticket.Restored(v)
		if err != nil {
			return nil, ticket.NoTokens("tokens cannot be chosen: %s", err)
		}
		state.Seeds = out.Seeds
		out.State = state
		d := v.Backup.Description
		from := fmt.Sprintf("of cluster %s/%s in backup %s", d.Cluster.Namespace, d.Cluster.Name, d.ID)
		out.Event, out.EventMessage = "RestoringRing", nodes+" get their tickets at once, each with what a node "+from+
			" had"
		if r.PointInTime != nil {
			out.EventMessage += ", and its commit log up to " + r.PointInTime.UTC().Format(time.RFC3339)
		}
		if len(state.Restore.Datacenters) > 0 {
			out.EventMessage = fmt.Sprintf("%s get their tickets at once, with the schema %s. The rows follow, since "+
				"it has another shape: %s", nodes, from, words.List(restore.Changes(v.Wanted, d, r.Keyspaces), 4))
		}
		return out, nil
	}
	chosen, err := ticket.Fresh(v)
	if err != nil {
		return nil, ticket.NoTokens("tokens cannot be chosen: %s", err)
	}
	out.State = ticket.State{Tokens: chosen, Seeds: out.Seeds}
	return out, nil
}

// recordMembers writes into every record who the node is, and takes its ticket away, once the rows
// of a backup of another shape are there.
func recordMembers(v *assess.View, s *procedure.Step) plan.Result {
	next := ledger.StageKeyspaces
	if r, loaded := ticket.LoadRows(v, s); !loaded {
		return r
	}
	switch {
	case s.Kind() == ledger.AdoptRing:
		next = ledger.StageOpen
	case v.AsksForPassword():
		next = ledger.StageSuperuser
	}
	return ticket.RecordMembers(v, s, next)
}

// importSuperuser has every node get the superuser by which the roles are made, while CQL is closed
// on it: with a password there is nobody else who could log in. A node that is open already, since
// the ledger was lost, has it.
func importSuperuser(v *assess.View, s *procedure.Step) plan.Result {
	if v.Passwords.Applied == nil {
		s.Describe(0, "Secret %s is read: %s", v.SuperuserSecret(), v.Passwords.Problem)
		return plan.Waiting("waiting for user name and password in Secret %s", v.SuperuserSecret())
	}
	var arguments *v1alpha1.OperationArguments
	if r := v.Cluster.Spec.Restore(); r != nil && r.Roles == v1alpha1.RolesRestore {
		// Written now, it wins over the one of the backup, which is locked.
		now := metav1.NewTime(v.Now).Rfc3339Copy()
		arguments = &v1alpha1.OperationArguments{WrittenAt: &now}
	}
	closed := slices.DeleteFunc(s.Wave(), func(name string) bool {
		n := v.Live(name)
		return n != nil && n.Record.Spec.ClientTraffic != v1alpha1.TrafficClosed
	})
	p := s.Run(procedure.Operation{Purpose: "superuser", Type: v1alpha1.OperationImportSuperuser,
		Arguments: arguments, LastBackoff: 5 * time.Second}, closed)
	return ticket.Everywhere(s, p, len(closed), ledger.StageKeyspaces, "importing the superuser")
}

// setSystemKeyspaces lets one node be administered and has it set the replication of the system
// keyspaces, and the roles of a ring that asks for passwords, before client traffic opens.
func setSystemKeyspaces(v *assess.View, s *procedure.Step) plan.Result {
	o := procedure.Operation{
		Purpose: "keyspaces", Type: v1alpha1.OperationAlterSystemKeyspaces, LastBackoff: 5 * time.Second,
		Arguments: &v1alpha1.OperationArguments{Replication: v.FormedReplication()}, Also: ticket.Administer,
	}
	does, done, next := "sets the system keyspaces", "the system keyspaces are set", checked(v)
	if v.AsksForPassword() && s.Kind() == ledger.FormRing {
		o.Purpose, o.Type, o.Arguments.SuperuserSecret = "roles", v1alpha1.OperationSetRoles, v.AppliedSuperuser()
		does, done, next = "sets the roles and the system keyspaces", "the roles and the system keyspaces are set",
			ledger.StageLogin
	}
	among := s.Wave()
	if o.Type == v1alpha1.OperationSetRoles {
		among = whereRootIs(v, among)
	}
	r, over := s.RunOnOne(o, among, does)
	if !over {
		return r
	}
	// What an operation came to never changes, so nothing has to be asked again: by the altered
	// schema every node's facts change just now.
	s.Advance(false, done, next)
	return plan.Acting("%s", done)
}

// whereRootIs are the nodes of the datacenter in which helenus_root can log in: Cassandra reads
// roles at LOCAL_QUORUM, and each has one replica in the whole ring until system_auth is altered.
func whereRootIs(v *assess.View, nodes []string) []string {
	var owner *facts.Endpoint
	for _, name := range nodes {
		if n := v.Live(name); n != nil && n.CurrentAgent() != nil && n.CurrentAgent().Ring != nil {
			owner = n.CurrentAgent().Ring.OwnerOf(v1alpha1.RootToken)
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(name string) bool {
		n := v.Live(name) // its record has the name that Cassandra knows
		return owner == nil || n == nil || n.Record.Spec.Configuration.DatacenterName != owner.Datacenter
	})
}

// openTraffic opens every node for clients and closes the step.
func openTraffic(v *assess.View, s *procedure.Step) plan.Result {
	r, over := ticket.OpenTraffic(v, s)
	if !over {
		return r
	}
	nodes := words.Plural(len(s.Wave()), "node")
	if s.Kind() == ledger.AdoptRing {
		s.Event("RingAdopted", "%s start on their disks and are open to clients", nodes)
	} else {
		s.Event("ClusterFormed", "%s serve clients", nodes)
	}
	return plan.Nothing()
}
