package safeguard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/simulate/trial"
	"helenus.io/helenus/internal/simulate/world"
)

// A replacement takes each range from one replica. Where that lacks a write which the lost node
// had, two of three lack it then, unless they were repaired before.
func TestTheOthersAreRepairedBeforeAReplacement(t *testing.T) {
	scenario := func(when v1alpha1.ReplacementRepair) trial.Trial {
		return trial.Trial{Scenario: trial.ReplaceLostDisk("replace-laggard", "a member is replaced, and another lacks "+
			"rows", when), Seed: 1}
	}
	holds(t, scenario(v1alpha1.ReplacementRepairBefore))
	caught(t, scenario(v1alpha1.ReplacementRepairAfter), "a write that was acknowledged is lost")
}

// So it is where a person gives the disk of the member up.
func TestTheOthersAreRepairedBeforeADiskIsGivenUp(t *testing.T) {
	holds(t, trial.Trial{Scenario: trial.ReplacePlanned("planned-before", v1alpha1.ReplacementRepairBefore), Seed: 1})
	caught(t, trial.Trial{Scenario: trial.ReplacePlanned("planned-after", v1alpha1.ReplacementRepairAfter), Seed: 1},
		"a write that was acknowledged is lost")
}

// besideDown is the scenario of a member whose disk is lost while another is down, and the third
// lacks what it was sent.
func besideDown(name, by, down, laggard string, change func(*v1alpha1.CassandraCluster)) *trial.Scenario {
	var host string
	s := trial.Named(name, "a disk is lost while another member is down", true, func(c *v1alpha1.CassandraCluster) {
		c.Spec.Replacement.After = &metav1.Duration{Duration: 10 * time.Minute}
		c.Spec.Repair.Mode = v1alpha1.RepairRecommend // else what is lacking comes back soon
		if change != nil {
			change(c)
		}
	},
		waiting(time.Minute),
		trial.Act{Name: "have one lack rows", Do: func(w *world.World) error {
			sandbox(w, laggard).Content(v1alpha1.VolumeData).Data.WipeRows()
			return nil
		}},
		trial.Act{Name: "lose a host", Do: func(w *world.World) error {
			host = sandbox(w, down).Host()
			w.Kube.Lose(host)
			return nil
		}},
		trial.Act{Name: "lose a disk", Do: func(w *world.World) error {
			at := sandbox(w, first).Host()
			w.Kube.Lose(at)
			w.Line.After(time.Minute, "the host returns empty", func() { w.Kube.Return(at, false) })
			return nil
		}, Until: until(by, ledger.ReplaceNode), Within: time.Hour},
		trial.Act{Name: "wait", Do: func(*world.World) error { return nil }, Until: func(w *world.World) bool {
			c := trial.Cluster(w)
			return blockedBy(w, by) || c != nil && c.Status.Step == nil && sandbox(w, first).JVM() != nil
		}, Within: time.Hour},
		trial.Act{Name: "return it", Do: func(w *world.World) error { w.Kube.Return(host, true); return nil },
			Until: grown, Within: 2 * time.Hour})
	s.HostsPerZone, s.Grows, s.LosesDisk = 3, true, true
	return s
}

func replacementCases() []guardCase {
	const lost = "a write that was acknowledged is lost"
	return []guardCase{
		{"SecondRackDown", besideDown("replace-second-rack", "SecondRackDown", clusterName+"-dc1-r2-0",
			clusterName+"-dc1-r3-0", nil), nil, lost},
		{"LossNotAccepted", besideDown("replace-second-node", "LossNotAccepted", clusterName+"-dc1-r1-1",
			clusterName+"-dc1-r1-2", oneRack), nil, lost},
	}
}

func TestWhatAReplacementWouldLose(t *testing.T) {
	for _, c := range replacementCases() {
		c.try(t)
	}
}
