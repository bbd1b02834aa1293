package task

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/cluster/ticket"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/restore"
	"helenus.io/helenus/internal/core/ring"
	"helenus.io/helenus/internal/core/words"
)

// lost are those of some members whose disks are lost, or that are down for long, and that no other
// one sees up.
func lost(v *assess.View, among []string) []string {
	var out []string
	for _, name := range among {
		if n := v.Live(name); n != nil {
			if _, down := procedure.DownForLong(v, n); down && v.SeesAlive(n) == "" || diskLost(v, name) != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

// diskLost says, in words that follow the name of a member, that its disk is lost and not merely
// failing; empty if it is not.
func diskLost(v *assess.View, name string) string {
	if n := v.Live(name); n == nil || v.DiskFails(n) {
		return ""
	}
	return v.Lost(name)
}

// gone says, in words that follow the name of a node, why the snapshot that it has taken does not
// come back; empty if it may be there.
func (s *state) gone(v *assess.View, name string) string {
	switch id, member := s.hostID(v, name), v.Ledger.Members[name]; {
	case member == "":
		return "is no member any more"
	case member != id:
		return "was replaced: it had the host id " + id + ", and has " + member
	case slices.Contains(v.Ledger.Replaced, id):
		return "is being replaced, and its disk is no longer used: host id " + id + " is not started again"
	}
	return diskLost(v, name)
}

// hostID is that of a node when the snapshots were taken; as long as they are not, that of now.
func (s *state) hostID(v *assess.View, name string) string {
	if of := s.taken; of != nil && len(of.Members) == len(s.step.Nodes) {
		if i, found := slices.BinarySearch(s.step.Nodes, name); found {
			return of.Members[i]
		}
	}
	return v.Ledger.Members[name]
}

// asNow is what snapshots that are taken now are of: all members.
func asNow(v *assess.View) *snapshotted {
	out := &snapshotted{}
	for _, name := range v.Members() {
		out.Members = append(out.Members, v.Ledger.Members[name])
	}
	for _, due := range v.Ledger.RepairDue {
		if slices.Contains(lossy, due.Reason) || slices.ContainsFunc(due.Reasons, func(r v1alpha1.RepairDue) bool {
			return slices.Contains(lossy, r.Reason)
		}) {
			out.Lacking = append(out.Lacking, due.Node)
		}
	}
	return out
}

// lossy are the reasons for a repair of a node that has lost writes which it had acknowledged.
var lossy = []v1alpha1.RepairReason{v1alpha1.RepairCommitLogLost, v1alpha1.RepairScrubbed, v1alpha1.RepairReplaced}

// leavesOut are the members that are lost, if the backup can do without them. The error is why it
// needs them.
func (s *state) leavesOut(v *assess.View) ([]string, error) {
	out := lost(v, v.Members())
	if err := s.needs(v, out); err != nil {
		return nil, fmt.Errorf("%w; start it again, replace it if its disk is gone, or name other keyspaces in "+
			"spec.keyspaces", err)
	}
	return out, nil
}

// needs is why the backup cannot do without some nodes; nil if it can. Copies of a node that had
// lost writes, and was not repaired before its snapshot, do not count either: the nodes may be the
// last that have them.
func (s *state) needs(v *assess.View, nodes []string) error {
	view := v.AnyRing()
	switch {
	case len(nodes) == 0:
		return nil
	case view == nil:
		return errors.New("no member is up that says who else has its ranges")
	}
	of, among := s.taken, s.step.Nodes
	if of == nil {
		of, among = asNow(v), v.Members()
	}
	names, without := map[string]string{}, []string{}
	for _, name := range among {
		id := s.hostID(v, name)
		if names[id] = name; slices.Contains(of.Lacking, name) && !slices.Contains(nodes, name) {
			names[id], without = name+" (to be repaired)", append(without, id)
		}
	}
	for _, name := range nodes {
		without = append(without, s.hostID(v, name))
	}
	keyspaces, err := view.Replicated()
	if err != nil {
		return err
	}
	backedUp := s.keyspaces()
	return restore.Uncopied(view, of.Left, names, without, slices.DeleteFunc(keyspaces, func(k ring.Keyspace) bool {
		return len(backedUp) > 0 && !slices.Contains(backedUp, k.Name)
	}))
}

// leaveOutBefore marks the nodes that the snapshots were taken without.
func (s *state) leaveOutBefore(v *assess.View) {
	if s.backup == nil || !s.open {
		return
	}
	of, _ := ledger.StateOf[snapshotted](s.step)
	if !s.snapshots() {
		s.taken = &of
	}
	for i := range s.status.Nodes {
		if n := &s.status.Nodes[i]; !n.Phase.Final() && slices.Contains(of.LeftOut, n.Node) {
			leaveOut(n, isDown, whyDown(v, n.Node))
		}
	}
}

// leaveOutGone leaves out the nodes whose snapshots are gone before they were put into the store.
// If the backup cannot do without them, they have failed, and it is over.
func (s *state) leaveOutGone(v *assess.View) {
	if s.taken == nil || v.AnyRing() == nil {
		return
	}
	var gone []*v1alpha1.TaskNode
	var names []string
	for i := range s.status.Nodes {
		n := &s.status.Nodes[i]
		if n.Phase.Final() || s.gone(v, n.Node) == "" {
			continue
		}
		// a member may have joined gossip just now, and not know of all
		if s.place(v, n.Node) != nil || v.Ledger.Members[n.Node] != s.hostID(v, n.Node) {
			gone, names = append(gone, n), append(names, n.Node)
		}
	}
	err := s.needs(v, append(s.leftOut(), names...))
	for _, n := range gone {
		why := "it " + s.gone(v, n.Node)
		if err == nil {
			leaveOut(n, "its snapshot is lost", why)
			continue
		}
		s.needed = true
		s.fail(v, n, fmt.Sprintf("its snapshot is lost: %s; %s", why, err))
	}
}

// place is where in the ring a node was when the snapshots were taken; nil if that is not known.
func (s *state) place(v *assess.View, name string) *v1alpha1.LeftOutNode {
	id := s.hostID(v, name)
	out := s.taken.left(name, id)
	if e, known := v.AnyRing().ByHostID(id); len(out.Tokens) == 0 && known && e.Member() {
		out.Datacenter, out.Rack, out.Tokens = e.Datacenter, e.Rack, ticket.Format(e.RingTokens())
	}
	if len(out.Tokens) == 0 {
		return nil
	}
	return &out
}

// keepPlaces has the step keep where in the ring the nodes are that leave it, of which the store
// has nothing: the backup is of the ring in which the snapshots were taken.
func keepPlaces(v *assess.View, s *procedure.Step) {
	t := stateOf(v, s.ID())
	if t == nil || t.taken == nil || t.task.Status.Finished() || v.AnyRing() == nil {
		return
	}
	var places []v1alpha1.LeftOutNode
	for _, n := range t.status.Nodes {
		done := n.Phase == v1alpha1.TaskSucceeded || n.Phase == v1alpha1.TaskFailed
		if done || t.gone(v, n.Node) == "" && !v.Leaves(n.Node) || slices.ContainsFunc(t.taken.Left,
			func(left v1alpha1.LeftOutNode) bool { return left.Node == n.Node }) {
			continue
		}
		if place := t.place(v, n.Node); place != nil {
			places = append(places, *place)
		}
	}
	if len(places) == 0 {
		return
	}
	s.Write(false, "where nodes are that leave the ring", func(_ *ledger.Ring, own *ledger.Step) {
		of := *t.taken
		of.Left = append(slices.Clone(of.Left), places...)
		own.State = ledger.Encoded(of)
	})
}

// leaveOutLost leaves out the nodes that are down for long and have not put into the store what
// they keep, once all others have.
func (s *state) leaveOutLost(v *assess.View) {
	if s.taken == nil {
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
		leaveOut(n, isDown, whyDown(v, n.Node))
	}
}

const isDown = "it is down"

func whyDown(v *assess.View, name string) string {
	if n := v.Live(name); n != nil {
		return assess.WhyDown(n)
	}
	return "its record is recreated"
}

func leaveOut(n *v1alpha1.TaskNode, what, why string) {
	n.Phase = v1alpha1.TaskLeftOut
	n.Message = words.Shorten(what+", and others have a quorum of each of its ranges: "+why, longestResult)
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
