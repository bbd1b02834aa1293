package ticket

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/ring/tokens"
	"helenus.io/helenus/internal/core/words"
)

// Add takes the ticket of a node into the state, which is rebuilt from tickets.
func (s *State) Add(node string, t *v1alpha1.JoinTicket) {
	s.Tokens[node] = t.Tokens
	if t.Restore == nil {
		return
	}
	if s.Restore == nil {
		s.Restore, s.Sources = t.Restore.DeepCopy(), map[string]string{}
		s.Restore.HostID = ""
	}
	s.Sources[node] = t.Restore.HostID
}

// Fresh are tokens for all nodes of the spec, as a ring has them that begins empty.
func Fresh(v *assess.View) (map[string][]string, error) {
	var formations []tokens.Formation
	for i := range v.Cluster.Spec.Datacenters {
		formations = append(formations, FormationOf(v, &v.Cluster.Spec.Datacenters[i]))
	}
	return Choose(formations, nil)
}

// Restored is the state of a step that makes a ring from the backup of the view, whose description
// is known and fits: each node takes the tokens of the one whose data it gets. In another shape all
// have fresh tokens, and the schema of the same node. It is the same whenever it is asked for.
func Restored(v *assess.View) (State, error) {
	r, b := v.Cluster.Spec.Restore(), v.Backup
	out := State{
		Restore: &v1alpha1.DiskRestore{Store: b.Store, Cluster: r.Source.UID, Backup: b.Description.ID,
			Roles: cmp.Or(r.Roles, v1alpha1.RolesFresh), PointInTime: r.PointInTime.DeepCopy(),
			Keyspaces: slices.Clone(r.Keyspaces)},
		Tokens: map[string][]string{}, Sources: map[string]string{},
	}
	if len(restore.Shape(v.Wanted, b.Description)) == 0 {
		for name, source := range restore.Sources(v.Wanted, b.Description) {
			out.Tokens[name], out.Sources[name] = source.Tokens, source.HostID
		}
		return out, nil
	}
	out.Restore.Datacenters = restore.Datacenters(v.Wanted)
	if len(b.Description.Nodes) == 0 {
		return out, errors.New("the backup has no nodes")
	}
	var err error
	out.Tokens, err = Fresh(v)
	for name := range out.Tokens {
		out.Sources[name] = b.Description.Nodes[0].HostID
	}
	return out, err
}

// LoadRows has the nodes of a ring of another shape than that of its backup download what they are
// to load, then load it, and clear it. It says whether all have. They keep their tickets meanwhile:
// by these it is known, if the ledger is lost, that the ring lacks rows.
func LoadRows(v *assess.View, s *procedure.Step) (plan.Result, bool) {
	from := Of(openStep(v, s)).Restore
	if from == nil || len(from.Datacenters) == 0 {
		return plan.Nothing(), true
	}
	a := &v1alpha1.RestoreArguments{Tag: v1alpha1.RestoreTagPrefix + string(v.Cluster.UID), Store: from.Store,
		Cluster: from.Cluster, Backup: from.Backup, Keyspaces: from.Keyspaces, NewRing: true}
	for _, name := range s.Wave() {
		a.Members = append(a.Members, v.Ledger.Members[name])
	}
	slices.Sort(a.Members)
	all := []procedure.Operation{
		{Purpose: "download", Type: v1alpha1.OperationStageTables, Arguments: &v1alpha1.OperationArguments{Restore: a}},
		{Purpose: "load", Type: v1alpha1.OperationLoadTables, Arguments: &v1alpha1.OperationArguments{Restore: a}},
		{Purpose: "clear", Type: v1alpha1.OperationClearSnapshot, Arguments: &v1alpha1.OperationArguments{Tag: a.Tag}},
	}
	what := []string{"downloading backup " + from.Backup, "streaming the rows to their owners",
		"clearing what was downloaded"}
	for i := furthest(v, s, all); i < len(all); i++ {
		all[i].LastBackoff = time.Minute
		p := s.Run(all[i], s.Wave())
		if len(p.Finished) < len(s.Wave()) {
			s.Describe(len(p.Finished), "%s: %s", what[i], words.List(p.Waiting, 3))
			return p.Result("%s on %s", what[i], words.Plural(p.Begun, "node")), false
		}
		if all[i].Type == v1alpha1.OperationLoadTables {
			first := s.Wave()[0] // all say the same
			o := v.Live(first).Record.Status.Operation(s.Attempt(all[i], first))
			if left := restore.Without(o.Message); left != "" {
				s.Warn("FilesLeftOut", "the rows of backup %s are loaded%s", from.Backup, left)
			}
		}
	}
	return plan.Nothing(), true
}

// furthest is the place of the latest operation that any node was asked for: all have ended those
// before it, which their records do not say any more.
func furthest(v *assess.View, s *procedure.Step, all []procedure.Operation) int {
	at := 0
	for _, name := range s.Wave() {
		n := v.Live(name)
		if n == nil {
			continue
		}
		for _, o := range n.Record.Spec.Operations {
			is := func(of procedure.Operation) bool { return of.Type == o.Type && ledger.OfIntent(o.ID) == s.ID() }
			at = max(at, slices.IndexFunc(all, is))
		}
	}
	return at
}
