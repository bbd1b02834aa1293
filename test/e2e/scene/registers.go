package scene

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// registerClients set the registers beside each other, each with a session of its own.
	registerClients = 3
	// registerRate is how many operations each of them makes in a second at most.
	registerRate = 4
	// registersAtOnce are few, so that their clients get into each other's way.
	registersAtOnce = 2
	// registerLife is after how many operations another register takes the place of one: the time
	// and the memory that the checker takes grow with the square of it.
	registerLife = 500
	// registerReads is the share of reads: one of so many.
	registerReads = 3
	// judgement bounds the check of a history.
	judgement = 5 * time.Minute
)

// Linearizable has a cluster carry out lightweight transactions so that they stay linearizable
// while ranges move. All releases that Helenus runs know the setting.
func Linearizable(s *v1alpha1.CassandraClusterSpec) {
	if s.Node == nil {
		s.Node = &v1alpha1.NodeTemplate{}
	}
	if s.Node.CassandraYaml == nil {
		s.Node.CassandraYaml = v1alpha1.Settings{}
	}
	s.Node.CassandraYaml["paxos_variant"] = v1alpha1.Value{Raw: []byte(`"v2"`)}
}

// registers are set by lightweight transactions, and read serially. Each of their clients makes one
// operation after the other, and remembers what it last knew of a register.
type registers struct {
	run         string
	began       time.Time
	connections []*connection

	mutex   sync.Mutex
	asked   int
	value   int64
	history history
}

// Registers says what became of the operations on registers.
type Registers struct {
	// Operations that were made, and those of them whose outcome is unknown.
	Operations, Unknown int
	// Linearizable says that all of them have an order.
	Linearizable bool
}

func (r Registers) String() string {
	text := fmt.Sprintf("%d CAS operations", r.Operations)
	if r.Unknown > 0 {
		text += fmt.Sprintf(" (%d of unknown outcome)", r.Unknown)
	}
	if r.Linearizable {
		return text + ", linearizable"
	}
	return text + ", not known to be linearizable"
}

func newRegisters(run string) *registers { return &registers{run: run, began: time.Now()} }

// loop makes one operation after the other.
func (r *registers) loop(ctx context.Context, client int) {
	chance := rand.New(rand.NewPCG(uint64(client), 0)) //nolint:gosec // not for secrets, and never negative
	tick := time.NewTicker(time.Second / registerRate)
	defer tick.Stop()
	known := map[int]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		in := r.next(known, chance.IntN(registerReads) == 0)
		out, _ := r.operate(client, in) // one without answer is noted as such
		switch {
		case out.unknown:
		case out.applied:
			known[in.register] = in.value
		default:
			known[in.register] = out.is
		}
	}
}

// next operation, of a client that knows something of the registers.
func (r *registers) next(known map[int]int64, read bool) input {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n := r.asked
	r.asked++
	register := n/(registersAtOnce*registerLife)*registersAtOnce + n%registersAtOnce
	if read {
		return input{kind: reading, register: register}
	}
	r.value++
	return input{kind: exchanging, register: register, expected: known[register], value: r.value}
}

// operate makes an operation and notes it. The error says why its outcome is unknown.
func (r *registers) operate(client int, in input) (out output, err error) {
	ctx, done := context.WithTimeout(context.Background(), 2*clientTimeout+time.Second)
	defer done()
	call := time.Since(r.began)
	err = r.connections[client].on(ctx, func(session *gocql.Session) (err error) {
		out, err = r.ask(ctx, session, in)
		return err
	})
	if err != nil {
		out = output{unknown: true}
	}
	back := time.Since(r.began)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.history = append(r.history, operation(client, in, out, call, back))
	return out, err
}

// ask the ring. A transaction is not tried again by the driver: the second try would be refused
// because of the first.
func (r *registers) ask(ctx context.Context, session *gocql.Session, in input) (out output, err error) {
	if in.kind == reading {
		err = session.Query("SELECT value FROM "+Keyspace+".registers WHERE run = ? AND id = ?", r.run, in.register).
			Consistency(gocql.LocalSerial).ScanContext(ctx, &out.is)
		if errors.Is(err, gocql.ErrNotFound) {
			return output{}, nil // nobody has set it
		}
		return out, err
	}
	query := session.Query("UPDATE "+Keyspace+".registers SET value = ? WHERE run = ? AND id = ? IF value = ?",
		in.value, r.run, in.register, in.expected)
	if in.expected == 0 {
		query = session.Query("INSERT INTO "+Keyspace+".registers (run, id, value) VALUES (?, ?, ?) IF NOT EXISTS",
			r.run, in.register, in.value)
	}
	row := map[string]any{}
	out.applied, err = query.Idempotent(false).RetryPolicy(nil).SerialConsistency(gocql.LocalSerial).
		MapScanCASContext(ctx, row)
	if value, found := row["value"]; err == nil && !out.applied && found { // else there is no such row
		out.is = value.(int64)
	}
	return out, err
}

// end reads all registers once more, and judges their history.
func (r *registers) end(ctx context.Context) (Registers, error) {
	sum := Registers{Operations: len(r.history)}
	applied := 0
	for _, o := range r.history {
		switch out := o.Output.(output); {
		case out.unknown:
			sum.Unknown++
		case out.applied:
			applied++
		}
	}
	if applied == 0 {
		return sum, fmt.Errorf("of %d operations on registers none has set one: nothing was tried", sum.Operations)
	}
	for _, of := range partition(r.history) {
		last := input{kind: reading, register: of[0].Input.(input).register}
		err := r.connections[0].ring.poll(ctx, comeback, fmt.Sprintf("register %d can be read", last.register),
			func(context.Context) error {
				_, err := r.operate(0, last)
				return err
			})
		if err != nil {
			return sum, err
		}
	}
	err := r.history.linearizable(judgement)
	sum.Linearizable = err == nil
	return sum, err
}
