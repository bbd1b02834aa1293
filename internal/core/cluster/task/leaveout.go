package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// lost are those of some members that are down for long, and that no other one sees up.
func lost(v *assess.View, among []string) []string {
	var out []string
	for _, name := range among {
		if n := v.Live(name); n != nil && v.SeesAlive(n) == "" {
			if _, down := procedure.DownForLong(v, n); down {
				out = append(out, name)
			}
		}
	}
	return out
}

// leavesOut are the members that are lost, if the backup can do without them. The error is why it
// needs them.
func (s *state) leavesOut(v *assess.View) ([]string, error) {
	out := lost(v, v.Members())
	if err := s.needs(v, out); err != nil {
		return nil, err
	}
	return out, nil
}

// lossy are the reasons for a repair of a node that has lost writes which it had acknowledged.
var lossy = []v1alpha1.RepairReason{v1alpha1.RepairCommitLogLost, v1alpha1.RepairScrubbed, v1alpha1.RepairReplaced}

// needs is why the backup cannot do without some members; nil if it can. Copies of a node that has
// lost writes do not count either until it is repaired: the members may be the last that have them.
func (s *state) needs(v *assess.View, members []string) error {
	view := v.AnyRing()
	switch {
	case len(members) == 0:
		return nil
	case view == nil:
		return errors.New("no member is up that says who else has its ranges")
	}
	names, without := map[string]string{}, []string{}
	for name, hostID := range v.Ledger.Members {
		names[hostID] = name
	}
	for _, name := range members {
		without = append(without, v.Ledger.Members[name])
	}
	for _, due := range v.Ledger.RepairDue {
		lacks := slices.Contains(lossy, due.Reason) || slices.ContainsFunc(due.Reasons, func(r v1alpha1.RepairDue) bool {
			return slices.Contains(lossy, r.Reason)
		})
		if hostID := v.Ledger.Members[due.Node]; lacks && hostID != "" && !slices.Contains(members, due.Node) {
			names[hostID], without = due.Node+" (to be repaired)", append(without, hostID)
		}
	}
	keyspaces, err := view.Replicated()
	if err == nil {
		of := s.keyspaces()
		err = restore.Uncopied(view, names, without, slices.DeleteFunc(keyspaces, func(k ring.Keyspace) bool {
			return len(of) > 0 && !slices.Contains(of, k.Name)
		}))
	}
	if err != nil {
		return fmt.Errorf("%w; start it again, replace it if its disk is gone, or name other keyspaces in "+
			"spec.keyspaces", err)
	}
	return nil
}

// leaveOutBefore marks the nodes that the snapshots were taken without.
func (s *state) leaveOutBefore(v *assess.View) {
	if s.backup == nil || !s.open {
		return
	}
	of, _ := ledger.StateOf[snapshotted](s.step)
	for i := range s.status.Nodes {
		if n := &s.status.Nodes[i]; !n.Phase.Final() && slices.Contains(of.LeftOut, n.Node) {
			leaveOut(v, n)
		}
	}
}

// leaveOutLost leaves out the nodes that are down for long and have not put into the store what
// they keep, once all others have.
func (s *state) leaveOutLost(v *assess.View) {
	if s.backup == nil || !s.open || s.snapshots() {
		return
	}
	var left []*v1alpha1.TaskNode
	var names []string
	for i := range s.status.Nodes {
		switch n := &s.status.Nodes[i]; n.Phase {
		case v1alpha1.TaskFailed:
			return
		case v1alpha1.TaskSucceeded, v1alpha1.TaskLeftOut:
		default:
			left, names = append(left, n), append(names, n.Node)
		}
	}
	if len(lost(v, names)) < len(names) || s.needs(v, append(s.leftOut(), names...)) != nil {
		return
	}
	for _, n := range left {
		leaveOut(v, n)
	}
}

func leaveOut(v *assess.View, n *v1alpha1.TaskNode) {
	why := "its record is recreated"
	if of := v.Live(n.Node); of != nil {
		why = assess.WhyDown(of)
	}
	n.Phase = v1alpha1.TaskLeftOut
	n.Message = words.Shorten("it is down, and others have a quorum of each of its ranges: "+why, longestResult)
}

// leftOut are the names of the nodes that a backup is taken without.
func (s *state) leftOut() []string {
	var out []string
	for _, n := range s.status.Nodes {
		if n.Phase == v1alpha1.TaskLeftOut {
			out = append(out, n.Node)
		}
	}
	return out
}

// uploadsEnd says that all nodes of a backup that are not left out have put into the store what
// they keep.
func (s *state) uploadsEnd() bool {
	return s.backup != nil && s.status.Succeeded > 0 && int(s.status.Succeeded)+len(s.leftOut()) == int(s.status.Total)
}

// untilLost is in how long a node of a backup that is down may be left out; 0 if none may.
func (s *state) untilLost(v *assess.View) time.Duration {
	if s.backup == nil {
		return 0
	}
	out := time.Duration(0)
	for _, of := range s.status.Nodes {
		if n := v.Live(of.Node); n != nil && !of.Phase.Final() {
			if left, _ := procedure.DownForLong(v, n); left > 0 && (out == 0 || left < out) {
				out = left
			}
		}
	}
	return out
}

// cancel has the operations of a step end, and says which are waited for: none of nodes that are
// left out, as long as they are down.
func cancel(v *assess.View, s *procedure.Step, why string) []string {
	var gone []string
	if t := stateOf(v, s.ID()); t != nil {
		of := t.leftOut()
		gone = but(of, v.UpAmong(of))
	}
	s.CancelOn(gone, why)
	return s.CancelOn(but(s.Nodes(), gone), why)
}

// but are some names without others.
func but(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
