package node

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
)

// A disk is filled before the first start by a ticket that says so, once, and again only if nothing
// is on it any more.
func TestWhenADiskIsRestored(t *testing.T) {
	from := &v1alpha1.DiskRestore{Cluster: "earlier", Backup: "b1", HostID: hostB, Roles: v1alpha1.RolesFresh}
	restores := func(f *Facts) { f.Record.Spec.Join.Restore = from }
	begun := with1(ticketed(), restores)
	begun.Memory = Before(&begun, RestoreDisk{Ticket: begun.Record.Spec.Join}, epoch)
	begun.Disk.HasData = true
	done := begun
	done.Memory = After(&begun, RestoreDisk{Ticket: begun.Record.Spec.Join})
	for name, c := range map[string]struct {
		f    Facts
		want ActionKind
	}{
		"its ticket says nothing of it": {ticketed(), "StartJVM"},
		"its ticket says so":            {with1(ticketed(), restores), "RestoreDisk"},
		"it was begun":                  {begun, "RestoreDisk"},
		"it is done":                    {done, "StartJVM"},
		"it is done, and the disk is empty now": {with1(done, func(f *Facts) { f.Disk.HasData = false }),
			"RestoreDisk"},
	} {
		if got := next(c.f); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// the start goes by the journal, which knows what was restored, and for which tokens
	started := done
	started.Memory = Before(&done, StartJVM{Start: &StartArguments{Incarnation: "i1", StartID: 4,
		Ticket: done.Record.Spec.Join}}, epoch)
	if j := started.Memory.Join; !j.Restored || j.Restore == nil || j.Restore.HostID != hostB || j.Attempts != 1 ||
		len(j.Tokens) != 2 {
		t.Errorf("%+v", j)
	}
	underWay := begun
	underWay.Doing = &Doing{Action: RestoreDisk{}, Progress: "1 of 2 GiB"}
	if d := Next(underWay, epoch); d.Action != nil || d.Status.Phase != v1alpha1.PhaseWaiting ||
		d.Status.Message != "the disk is filled with what is in the backup; 1 of 2 GiB" {
		t.Errorf("%v, %s: %s", d.Action, d.Status.Phase, d.Status.Message)
	}
}
