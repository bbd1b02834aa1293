package execute

import (
	"testing"
	"testing/synctest"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/node"
)

// A write that does not end is waited for so long and no longer, and none is begun beside it.
func TestADiskThatHangsDoesNotHangTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hangs := make(chan struct{})
		w.block["probe"] = hangs
		a := w.agent()
		for range 3 {
			a.ProbeVolumes(t.Context())
		}
		synctest.Wait()
		if len(w.calls) != 1 || a.probed.Problem.Reason != v1alpha1.ReasonDiskHangs {
			t.Fatalf("%d writes begun, found %+v", len(w.calls), a.probed)
		}
		close(hangs)
		synctest.Wait()
		for range 5 {
			a.ProbeVolumes(t.Context())
		}
		if len(w.calls) != 6 || !a.probed.Known || a.probed.Problem != (node.DiskProblem{}) {
			t.Errorf("%d writes begun, found %+v", len(w.calls), a.probed)
		}
	})
}
