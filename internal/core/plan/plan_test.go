package plan

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/ledger"
)

func TestAPlanInWords(t *testing.T) {
	made := Plan{
		Steps: []Report{{Step: "Ledger", Outcome: Done}, {Step: "OpenStep", Outcome: Wait, Message: "waiting"}},
		Writes: []Write{{Verb: Event, Reason: "RingFormed", Why: "it stands"},
			{Verb: PutLedger, Ledger: &ledger.Ledger{}}, {Verb: IssueCertificate, Node: "n"}},
		Stalled: &Stall{Reason: "InvalidSpec", Message: "no size"},
		Blocked: []v1alpha1.BlockedStep{{Step: "Join", Reason: "ItIsNot", Message: "waits until it is so"}},
		Notices: []v1alpha1.Notice{{Reason: "NodeDown", Message: "it is down"}},
	}
	const want = "Ledger    Done  \nOpenStep  Wait  waiting\n  → Event RingFormed: it stands\n  → PutLedger ledger\n " +
		" → IssueCertificate n\nstalled: InvalidSpec: no size\nblocked: Join: ItIsNot: waits until it is so\nnotice: " +
		"NodeDown: it is down\n"
	if got := made.String(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := (Plan{}).String(); got != "" {
		t.Errorf("%q of nothing", got)
	}
}
