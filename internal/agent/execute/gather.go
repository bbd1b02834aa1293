package execute

import (
	"fmt"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/node"
	"helenus.io/helenus/internal/initapi"
)

// gather puts together what is known now. The lock is held.
func (a *Agent) gather() node.Facts {
	f := node.Facts{
		Self: a.self, Memory: a.memory, MemoryProblem: a.memoryProblem, Disk: a.disk,
		Probed: a.probed,
		Init:   initFacts(a.init, a.initAnswers, a.initProblem), JVM: a.jvm, Peers: a.peers, Doing: a.doing,
		Certificates: a.certificates, Log: a.logSaid,
		Failures: make(map[node.ActionKind]node.Failure, len(a.failures)),
	}
	for kind, failed := range a.failures {
		f.Failures[kind] = failed.Failure
	}
	if a.host.Record != nil {
		record, known := a.host.Record.Record()
		f.Record, f.Seeds, f.APISeenAt = record, a.host.Record.Seeds(), a.host.Record.HeardAt()
		f.Replaced = a.host.Record.Replaced()
		own := node.Own(a.memory, a.self, record)
		if !known {
			f.Record = own.Record.Object(a.self.Node)
		}
		if len(f.Seeds) == 0 {
			f.Seeds = own.Seeds
		}
	}
	for _, j := range a.jobs {
		f.Operations = append(f.Operations, j.Operation)
	}
	f.Memory = node.Own(a.memory, a.self, f.Record)
	if f.Record != nil {
		f.Configuration = a.configuration.of(&f, f.MemoryLimit(a.memoryLimit))
	}
	return f
}

// initFacts is init's state in the words of core/node.
func initFacts(s initapi.State, answers bool, problem string) node.Init {
	i := node.Init{Answers: answers, Problem: problem, Incarnation: s.Incarnation, Release: s.Image.Release(),
		Unlocked: s.Unlocked, LastStartID: s.LastStartID}
	if answers {
		i.Process, i.Exits, i.Stopping = s.Process, s.Exits, s.Stopping
	}
	return i
}

// comparison of the wanted configuration with the running one, kept as long as neither changes.
type comparison struct {
	generation int64
	uid        string
	start      string
	result     node.Configuration
}

func (c *comparison) of(f *node.Facts, limit int64) node.Configuration {
	start := ""
	running := f.Init.Process != nil && f.Memory.Start.Is(f.Init.Incarnation, f.Init.Process.StartID)
	if running {
		start = f.Memory.Start.Hash + "/" + fmt.Sprint(f.Memory.Start.StartID) + f.Memory.Start.Incarnation
	}
	if c.uid == string(f.Record.UID) && c.generation == f.Record.Generation && c.start == start && c.result.Hash != "" {
		return c.result
	}
	c.uid, c.generation, c.start = string(f.Record.UID), f.Record.Generation, start
	var old *v1alpha1.NodeConfiguration
	if running {
		old = &f.Memory.Start.Configuration
	}
	c.result = compare(&f.Record.Spec.Configuration, old, limit)
	return c.result
}

// compare says how a configuration stands to the one of the running JVM, nil for none.
func compare(wanted, running *v1alpha1.NodeConfiguration, limit int64) node.Configuration {
	out := node.Configuration{Limit: limit, HintWindow: config.HintWindow(wanted)}
	if !config.KnowsRevision(wanted.Revision) {
		out.Problem = fmt.Sprintf("revision %d of the rules of configuration is not known to this agent: it needs a "+
			"newer one", wanted.Revision)
		return out
	}
	memory, err := config.MemoryOf(wanted.JVM, limit)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Heap, out.Direct = memory.Heap, memory.Direct
	if out.Hash, err = config.Hash(wanted); err != nil {
		out.Problem = err.Error()
		return out
	}
	if running == nil {
		return out
	}
	changes, err := config.Diff(running, wanted)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.RestartNeeded, out.Hot = len(changes.Restart) > 0, changes.Hot
	return out
}
