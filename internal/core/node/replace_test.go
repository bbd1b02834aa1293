package node

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

// replacement has an empty disk, and a ticket to take the place of the member that it was.
func replacement() Facts {
	f := newcomer()
	f.Record.Spec.Member = &v1alpha1.Member{HostID: hostA}
	f.Record.Spec.Replaced = []v1alpha1.ReplacedMember{{HostID: hostA, Address: "10.0.0.9"}}
	f.Record.Spec.Join = &v1alpha1.JoinTicket{Intent: v1alpha1.Intent{ID: "replace/1"}, Mode: v1alpha1.JoinReplace,
		Replace: &v1alpha1.ReplaceTarget{HostID: hostA, Address: "10.0.0.9"}}
	f.Record.Status.HostID, f.Record.Status.Disk = hostA, v1alpha1.DiskEmpty
	keep(&f)
	answered(&f, "", peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
	f.Peers.Answers[0].Down = []string{hostA}
	return f
}

// What the operator has published as replaced starts nowhere, and the peers of its node are told
// so.
func TestAReplacedMemberStartsNowhere(t *testing.T) {
	f := member()
	f.Replaced = []string{f.Memory.Member.HostID}
	d := Next(f, epoch)
	if b := d.Status.Blocked; b == nil || b.Reason != v1alpha1.BlockedHostIDReplaced {
		t.Errorf("%v", d.Steps)
	}
	f.Replaced = []string{hostC}
	m := Before(&f, NoteNormal{}, epoch)
	if len(m.Replaced) != 1 || m.Replaced[0] != hostC {
		t.Errorf("it remembers %v", m.Replaced)
	}
}

// A node starts in the place of the member that its ticket names, and of no other; and on the disk
// of that member never.
func TestInWhosePlaceANodeStarts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		guard  v1alpha1.Reason
	}{
		"the member that it was": {func(*Facts) {}, ""},
		"another one": {func(f *Facts) { f.Record.Spec.Join.Replace.HostID = hostB },
			v1alpha1.BlockedDiskUnreadable},
		"without a ticket": {func(f *Facts) { f.Record.Spec.Join = nil }, v1alpha1.BlockedDiskUnreadable},
		"by a ticket that replaces nobody": {func(f *Facts) {
			f.Record.Spec.Join.Mode, f.Record.Spec.Join.Replace = v1alpha1.JoinBootstrap, nil
		}, v1alpha1.BlockedDiskUnreadable},
		"on the disk of the member": {func(f *Facts) {
			f.Disk.HasData, f.Disk.Bootstrapped, f.Disk.HostID = true, WordCompleted, hostA
			f.Memory.Member = &Member{HostID: hostA}
			mark(f, uid, self)
		}, v1alpha1.BlockedHostIDReplaced},
		"its disk was lost after it had joined by the ticket": {func(f *Facts) { f.Record.Status.HostID = hostC },
			v1alpha1.BlockedMemberDiskMissing},
		"its disk was lost before any member saw it join": {func(f *Facts) {
			f.Record.Status.HostID = hostC
			f.Record.Spec.Replaced = append(f.Record.Spec.Replaced, v1alpha1.ReplacedMember{HostID: hostC})
		}, ""},
		"after a try that was cut off": {func(f *Facts) {
			cut := cutOff(-joinerHeardAgain)
			f.Disk, f.Memory = cut.Disk, cut.Memory
			f.Memory.Join.ID, f.Memory.Join.Mode, f.Memory.Join.Tokens = "replace/1", v1alpha1.JoinReplace, nil
			f.Memory.Join.Replace = f.Record.Spec.Join.Replace
			f.Disk.HostID = hostC[:35] + "9"
			keep(f)
			answered(f, f.Disk.HostID, peer("10.0.0.2", "b", hostB), peer("10.0.0.3", "c", hostC))
		}, ""},
	} {
		f := replacement()
		c.change(&f)
		d := Next(f, epoch)
		var guard v1alpha1.Reason
		if d.Status.Blocked != nil {
			guard = d.Status.Blocked.Reason
		}
		start, starts := d.Action.(StartJVM)
		if guard != c.guard || starts != (c.guard == "") {
			t.Errorf("%s: %s, %v", name, guard, d.Steps)
		}
		if starts && (start.Start.Ticket == nil || start.Start.Ticket.Replace == nil) {
			t.Errorf("%s: it starts with the ticket %v", name, start.Start.Ticket)
		}
	}
}
