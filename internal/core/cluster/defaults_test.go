package cluster

import (
	"testing"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

// A ring is made with the defaults that its namespace has then, and the ledger keeps them. Nothing
// begins while they cannot be read.
func TestARingIsMadeWithTheDefaultsOfItsNamespace(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	w.snapshot.Defaults = facts.Defaults{Problem: `key "jvm": it is no object`}
	wantStalled(t, w.settle(), v1alpha1.ReasonInvalidDefaults, "ConfigMap helenus-defaults: key \"jvm\"")
	if len(w.snapshot.Records()) > 0 {
		t.Error("records are made by defaults that cannot be read")
	}
	node := &v1alpha1.NodeSettings{JVM: &v1alpha1.JVM{Options: []string{"-Xss1m"}}}
	w.snapshot.Defaults = facts.Defaults{Node: node}
	w.settle()
	w.wantOpen()
	made := w.snapshot.Ledger.MadeWith.Defaults
	if made == nil || made == node || made.JVM.Options[0] != "-Xss1m" {
		t.Errorf("the ring was made with %+v", made)
	}
	if w.snapshot.FollowsDefaults() {
		t.Error("a ring that is made follows the ConfigMap")
	}
}
