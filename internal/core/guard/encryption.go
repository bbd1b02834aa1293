package guard

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// Encrypting are nodes that are to go from one stage of encryption to another.
type Encrypting struct {
	Nodes
	Stage, Next v1alpha1.NodeEncryption
	// Back says that Next is the stage before, which every node has that has not this one.
	Back bool
}

// encryption are the guards before the next stage of encryption.
var encryption = []Guard[Encrypting]{
	{v1alpha1.BlockedEncryptionStageIncomplete, "every node runs this stage, and has certificates for the next one",
		stageIsComplete},
	{v1alpha1.BlockedPlainClients, "no client is connected without encryption", noPlainClient},
}

// stageIsComplete: nodes of two stages understand each other if nothing is between these.
func stageIsComplete(e Encrypting) []Finding {
	var out []Finding
	said := func(name, format string, args ...any) {
		out = append(out, Finding{Nodes: []string{name},
			Message: fmt.Sprintf("node %s ", name) + fmt.Sprintf(format, args...)})
	}
	for _, name := range e.Names {
		n := e.Nodes.Nodes[name]
		if !e.Back && !n.Encrypts(e.Stage) {
			said(name, "is not known to encrypt as all are to: %s", whyNot(n))
		}
		for _, use := range e.Next.Uses() {
			if e.Shared.Secrets[v1alpha1.CertificateName(name, use)] == nil {
				said(name, "has no certificate for %s yet", use)
			}
		}
	}
	return out
}

func whyNot(n *facts.Node) string {
	agent := n.CurrentAgent()
	switch {
	case agent == nil:
		return assess.WhyNoAnswer(n)
	case agent.Ring == nil || agent.Ring.Mode != facts.ModeNormal:
		return "it is " + string(agent.Phase)
	case n.StatusIsCurrent() && n.Record.Status.Configuration != nil &&
		n.Record.Status.Configuration.Encryption == nil && !n.Record.Status.Configuration.RestartNeeded:
		return "if its agent is of an earlier release of Helenus, delete its pod"
	}
	return "its JVM does not run with that yet"
}

// noPlainClient: what is connected without encryption would be refused from the next stage on.
func noPlainClient(e Encrypting) []Finding {
	if e.Next.Clients != v1alpha1.EncryptionRequired || e.Stage.Clients == e.Next.Clients {
		return nil
	}
	var out []Finding
	for _, name := range e.Names {
		n := e.Nodes.Nodes[name]
		agent := n.CurrentAgent()
		switch {
		case !e.Back && !n.Encrypts(e.Stage): // that is said already
		case agent == nil || agent.Ring == nil || agent.Ring.PlainClients == nil:
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("node %s does not say yet whether "+
				"clients are connected without encryption", name)})
		case len(agent.Ring.PlainClients) > 0:
			out = append(out, Finding{Nodes: []string{name}, Message: fmt.Sprintf("clients of node %s are connected "+
				"without encryption: %s", name, words.List(agent.Ring.PlainClients, 5))})
		}
	}
	return out
}
