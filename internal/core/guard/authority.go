package guard

import (
	"fmt"
	"slices"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
)

// Rotating are nodes whose authority of a use is to go on to its next stage.
type Rotating struct {
	Nodes
	Use   v1alpha1.CertificateUse
	Trust facts.Trust
}

// authority are the guards before the next stage of an authority.
var authority = []Guard[Rotating]{
	{v1alpha1.BlockedAuthorityStageIncomplete, "every node has proven the certificate of this stage by a handshake",
		certificatesAreProven},
}

// certificatesAreProven: nodes of two stages that follow each other trust each other, and no
// others.
func certificatesAreProven(r Rotating) []Finding {
	var out []Finding
	for _, name := range r.Names {
		if n := r.Nodes.Nodes[name]; !n.Proves(r.Use, r.Trust) {
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf(
				"node %s has not proven its certificate for %s: %s", name, r.Use, whyNotProven(n, r))})
		}
	}
	return out
}

func whyNotProven(n *facts.Node, r Rotating) string {
	agent := n.CurrentAgent()
	switch {
	case agent == nil:
		return assess.WhyNoAnswer(n)
	case agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal:
		return "it is " + string(agent.Phase)
	}
	for _, c := range n.Record.Status.Certificates {
		switch {
		case c.Use != r.Use:
		case c.Problem != "":
			return c.Problem
		case c.Authority == "":
			return "if its agent is of an earlier release of Helenus, delete its pod"
		case slices.Equal(c.Trusted, r.Trust.Fingerprints()):
			return "cert-manager has signed none for it by the new authority yet"
		}
	}
	return "Cassandra does not show it yet"
}
