package cassandra

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// rewriting is work on the SSTables of a keyspace, by its id in the life of the JVM.
type rewriting struct {
	id             int
	task, keyspace string
	stopped        bool
}

// rewrite takes the time that it takes to read the SSTables of a keyspace and to write others. It
// is refused when it is stopped.
func (p *Process) rewrite(task, keyspace string) *javaError {
	p.rewritings++
	own := &rewriting{id: p.rewritings, task: task, keyspace: keyspace}
	if slices.ContainsFunc(p.rewriting, func(r *rewriting) bool { return r.task == task && r.keyspace == keyspace }) {
		p.net.beside(p, task+" of keyspace "+keyspace)
	}
	p.rewriting = append(p.rewriting, own)
	defer func() {
		p.rewriting = slices.DeleteFunc(p.rewriting, func(r *rewriting) bool { return r == own })
	}()
	p.sleepUnless(func() bool { return own.stopped }, p.net.prolonged+p.net.within(50*time.Millisecond,
		300*time.Millisecond)+time.Duration(len(p.disk.data[keyspace]))*p.net.options.StreamPerKey)
	if own.stopped {
		return exception("java.util.concurrent.ExecutionException", "org.apache.cassandra.db.compaction."+
			"CompactionInterruptedException: Compaction interrupted: %s@%d(%s)", task, own.id, keyspace)
	}
	return nil
}

// rewrites is an operation that rewrites SSTables and changes no row, with its keyspace and tables
// at their places in the arguments. An empty name is a major compaction, which each release names
// otherwise.
func rewrites(name string, keyspace int, result string) func(*Process, []json.RawMessage) (json.RawMessage,
	*javaError) {
	return func(p *Process, arguments []json.RawMessage) (json.RawMessage, *javaError) {
		of, failed := argument[string](arguments, keyspace)
		if failed != nil {
			return nil, failed
		}
		if failed := p.stores(of); failed != nil {
			return nil, failed
		}
		if failed := p.haveTables(of, arguments, keyspace+1); failed != nil {
			return nil, failed
		}
		task := name
		switch {
		case task == "" && p.is50():
			task = "Major compaction"
		case task == "":
			task = "Compaction"
		}
		return json.RawMessage(result), p.rewrite(task, of)
	}
}

// haveTables refuses tables that a keyspace does not have.
func (p *Process) haveTables(keyspace string, arguments []json.RawMessage, i int) *javaError {
	tables, failed := argument[[]string](arguments, i)
	if failed != nil {
		return failed
	}
	for _, table := range tables {
		if _, found := p.schema[keyspace].tables[table]; !found && !slices.Contains(systemTables[keyspace], table) {
			return exception(illegalArgument, "Unknown keyspace/cf pair (%s.%s)", keyspace, table)
		}
	}
	return nil
}

// stopCompaction interrupts the work of an id.
func (p *Process) stopCompaction(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	id, failed := argument[string](arguments, 0)
	if failed != nil {
		return nil, failed
	}
	for _, r := range p.rewriting {
		if r.uuid() == id {
			r.stopped = true
		}
	}
	p.notify()
	return jsonNull, nil
}

func (r *rewriting) uuid() string { return fmt.Sprintf("%08d-0000-1000-8000-000000000000", r.id) }

// appendCompactions is Compactions: of what rewrites SSTables when it is asked to.
func (p *Process) appendCompactions(out []byte) []byte {
	out = append(out, '[')
	for i, r := range p.rewriting {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendText(append(out, `{"taskType":`...), r.task)
		out = appendText(append(out, `,"keyspace":`...), r.keyspace)
		out = appendText(append(out, `,"compactionId":`...), r.uuid())
		out = append(out, '}')
	}
	return append(out, ']')
}

// Rewrites says that the JVM rewrites SSTables.
func (p *Process) Rewrites() bool { return !p.ended && len(p.rewriting) > 0 }

// sleepUnless is sleep that ends as soon as a condition holds.
func (p *Process) sleepUnless(ended func() bool, d time.Duration) {
	if factor, slow := p.net.slow[p.address]; slow {
		d = time.Duration(float64(d) * factor)
	}
	p.await(context.Background(), ended, d)
	p.await(context.Background(), func() bool { return !p.frozen }, -1)
}

// rebuildIndex passes over names that no index has. There are none here.
func (p *Process) rebuildIndex(arguments []json.RawMessage) (json.RawMessage, *javaError) {
	name, _, failed := p.keyspaceOf(arguments, 0)
	if failed != nil {
		return nil, failed
	}
	table, failed := argument[string](arguments, 1)
	if failed != nil {
		return nil, failed
	}
	tables, err := json.Marshal([]string{table})
	if err != nil {
		return nil, exception(illegalArgument, "%s", err)
	}
	return jsonNull, p.haveTables(name, []json.RawMessage{tables}, 0)
}
