package operation

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"helenus.io/helenus/internal/cassandra"
)

const (
	// least is how many bytes are read in a second however long clients wait: a backup must end.
	least = 1 << 20
	// burst is how many bytes are read, and sent, at once at most.
	burst = 128 << 10
	// lookEvery is how often it is asked how long clients wait, and before for how long it is first
	// seen whether anybody reads.
	lookEvery, before = time.Second, 250 * time.Millisecond
	// enoughReads say how long one takes: some take many times as long as others. Where there are
	// fewer in fewReads, nobody is disturbed.
	enoughReads = 100
	fewReads    = 10 * time.Second
	// muchLonger is how many times as long as usual fewer reads, at least someReads, must take to
	// be enough: one slow read does not make so much, and clients wait meanwhile.
	muchLonger = 8
	someReads  = 20
	// disturbed is how many times as long as usual reads take that wait for a backup, and noise is
	// what they may take longer by chance.
	disturbed = 1.1
	noise     = 100 * time.Microsecond
	// twice is how many looks in a row must say that clients wait longer: a JVM that pauses has one
	// say so.
	twice = 2
	// growing is how many times as much is sent a second later, and probing that near what was too
	// much the last time. The step that is too much must be a small one, and a rare one: clients
	// wait until enough reads have said so.
	growing = 1.03
	probing = 1.005
	// afterLooks is for how many looks clients wait longer, with next to nothing read, until that
	// is taken for usual: it has another cause.
	afterLooks = 5
)

// pace is how fast the files of a backup are read and sent: as fast as its limit lets, and slower
// while clients of the node wait a tenth longer for their reads than with next to nothing read.
// All nodes send at the same time, and a coordinator waits for other replicas too, so that
// each node heeds those of its neighbours.
type pace struct {
	*Host
	most rate.Limit
	// limiter is of what is read, and sends of what is sent of it, as fast.
	limiter, sends *rate.Limiter
	// sent is how many bytes were read since the last look that said something.
	sent atomic.Int64

	mu sync.Mutex
	// reads are those until since.
	reads cassandra.Reads
	since time.Time
	asked time.Time
	// usual is how long a read took with next to nothing sent; is how long the last ones took.
	usual, is time.Duration
	// much is the pace at which reads took too long last, and 0 if they never did; late is for how
	// many looks in a row they do.
	much rate.Limit
	late int
}

// newPace has a limit in bytes a second; 0 for none.
func newPace(ctx context.Context, h *Host, most int64) *pace {
	p := &pace{Host: h, most: rate.Inf}
	if most > 0 {
		p.most = rate.Limit(most)
	}
	p.limiter, p.sends = rate.NewLimiter(p.most, burst), rate.NewLimiter(p.most, burst)
	var err error
	p.since = h.Now()
	if p.reads, err = h.JVM.Reads(ctx); err == nil {
		p.set(p.since, least)
		err = h.Wait(ctx, before)
	}
	if p.asked = h.Now(); err == nil {
		p.look(ctx, p.asked)
	}
	return p
}

// wait until so many bytes, at most burst, may be read.
func (p *pace) wait(ctx context.Context, n int) error {
	p.sent.Add(int64(n))
	if p.mu.TryLock() { // who looks does it for all
		p.lookAgain(ctx, p.Now())
		p.mu.Unlock()
	}
	return p.reserve(ctx, p.limiter, n)
}

// send waits until so many bytes may be sent.
func (p *pace) send(ctx context.Context, n int) error {
	for ; n > burst; n -= burst {
		if err := p.reserve(ctx, p.sends, burst); err != nil {
			return err
		}
	}
	return p.reserve(ctx, p.sends, n)
}

func (p *pace) reserve(ctx context.Context, of *rate.Limiter, n int) error {
	now := p.Now()
	if delay := of.ReserveN(now, n).DelayFrom(now); delay > 0 {
		return p.Wait(ctx, delay)
	}
	return nil
}

func (p *pace) lookAgain(ctx context.Context, now time.Time) {
	if now.Sub(p.asked) >= lookEvery {
		p.asked = now
		p.look(ctx, now)
	}
}

// look how long clients wait, and set the pace.
func (p *pace) look(ctx context.Context, now time.Time) {
	reads, err := p.JVM.Reads(ctx)
	if err != nil {
		return // perhaps later
	}
	if reads.Count < p.reads.Count { // it has started again
		p.reads, p.since = reads, now
		p.sent.Store(0)
		return
	}
	meanwhile, passed := reads.Since(p.reads), now.Sub(p.since)
	few := meanwhile.Count*int64(fewReads) < enoughReads*int64(passed)
	sure := !few && p.usual > 0 && meanwhile.Count >= someReads && meanwhile.Mean() > muchLonger*p.usual+noise
	if meanwhile.Count < enoughReads && passed < fewReads && !sure {
		if few && p.usual == 0 {
			p.set(now, p.most)
		}
		return
	}
	sent := rate.Limit(float64(p.sent.Swap(0)) / passed.Seconds())
	p.reads, p.since = reads, now
	if few {
		p.usual, p.much, p.late = 0, 0, 0
		p.set(now, p.most)
		return
	}
	p.is = meanwhile.Mean()
	p.adapt(now, sent, passed, sure)
}

// adapt the pace to how long reads took for some time, with so many bytes a second. If it is sure
// that they take too long, nothing need be seen twice.
func (p *pace) adapt(now time.Time, sent rate.Limit, passed time.Duration, sure bool) {
	slowest, at := min(p.most, least), p.limiter.Limit()
	faster := func(perSecond float64) rate.Limit {
		return at * rate.Limit(math.Pow(perSecond, min(passed, fewReads).Seconds()))
	}
	switch {
	case p.usual == 0 && at > slowest: // it must be known first
		p.set(now, slowest)
	case p.usual == 0:
		p.usual = p.is
		p.set(now, faster(growing))
	case float64(p.is) <= disturbed*float64(p.usual)+float64(noise):
		p.late, p.usual = 0, p.usual-max(0, p.usual-p.is)/8
		if near := at > p.much*3/4 && at < p.much*11/10; near {
			p.set(now, faster(probing))
		} else {
			p.set(now, faster(growing))
		}
	default:
		p.late++
		switch {
		case at > slowest && (sure || p.late == twice):
			p.late, p.much = 0, min(at, sent)
			p.set(now, max(slowest, p.much/2))
		case p.late == afterLooks: // only at the slowest
			p.late, p.usual, p.much = 0, p.is, 0
		}
	}
}

func (p *pace) set(now time.Time, to rate.Limit) {
	p.limiter.SetLimitAt(now, min(p.most, to))
	p.sends.SetLimitAt(now, min(p.most, to))
}

// String says that the pace is slower than its limit, and why; else it is empty.
func (p *pace) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.limiter.Limit()
	if p.much == 0 || at >= p.most {
		return ""
	}
	return fmt.Sprintf("; %d KiB a second, for reads of clients take %s, and took %s before", int64(at)>>10,
		p.is.Round(10*time.Microsecond), p.usual.Round(10*time.Microsecond))
}
