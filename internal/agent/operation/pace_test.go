package operation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"helenus.io/helenus/internal/cassandra"
)

// readers are clients of a node who wait longer the more of its files is read.
type readers struct {
	JVM
	now time.Time
	// rate is how many reads there are in a second, and usual how long one takes while nothing is
	// sent; it takes twice as long with so many bytes a second as slows says.
	rate  float64
	usual time.Duration
	slows float64
	// pauses says that the JVM pauses every five seconds: reads of one second take twice as long.
	pauses bool

	made, took float64
	silent     bool
}

func (r *readers) Reads(context.Context) (cassandra.Reads, error) {
	if r.silent {
		return cassandra.Reads{}, errors.New("timed out")
	}
	return cassandra.Reads{Count: int64(r.made), Took: time.Duration(r.took)}, nil
}

// send reads for some time by a pace, and returns how many bytes it was in a second of the last
// half.
func (r *readers) send(t *testing.T, p *pace, d time.Duration) float64 {
	t.Helper()
	const part = 128 << 10
	var half float64
	for end := r.now.Add(d); r.now.Before(end); {
		before := r.now
		if err := p.wait(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		r.now = r.now.Add(time.Millisecond) // the disk
		passed := r.now.Sub(before).Seconds()
		r.made += r.rate * passed
		r.took += r.rate * passed * float64(r.usual) * (1 + part/passed/r.slows)
		if r.pauses && before.Unix()/5 != r.now.Unix()/5 {
			r.took += r.rate * float64(r.usual)
		}
		if r.now.After(end.Add(-d / 2)) {
			half += part
		}
	}
	return half / (d / 2).Seconds()
}

func TestPaceHeedsReads(t *testing.T) {
	const mebibyte = 1 << 20
	for name, c := range map[string]struct {
		readers
		most        int64
		from, until float64
		says        string
	}{
		"nobody reads": {
			readers{slows: mebibyte},
			0, 100 * mebibyte, 128 * mebibyte, "",
		},
		"hardly anybody": {
			readers{rate: 2, usual: time.Second, slows: mebibyte},
			0, 100 * mebibyte, 128 * mebibyte, "",
		},
		"the node says nothing": {
			readers{rate: 500, usual: time.Millisecond, slows: mebibyte, silent: true},
			0, 100 * mebibyte, 128 * mebibyte, "",
		},
		"nobody waits longer": {
			readers{rate: 500, usual: time.Millisecond, slows: 1e12},
			0, 100 * mebibyte, 128 * mebibyte, "",
		},
		"only while the JVM pauses": {
			readers{rate: 500, usual: time.Millisecond, slows: 1e12, pauses: true},
			0, 100 * mebibyte, 128 * mebibyte, "",
		},
		"nobody, within a limit": {
			readers{rate: 500, usual: time.Millisecond, slows: 1e12},
			20 * mebibyte, 19 * mebibyte, 21 * mebibyte, "",
		},
		"below the slowest": {
			readers{rate: 500, usual: time.Millisecond, slows: mebibyte},
			100 << 10, 90 << 10, 110 << 10, "",
		},
		"many wait": {
			readers{rate: 500, usual: 4 * time.Millisecond, slows: 40 * mebibyte},
			0, 3 * mebibyte, 6 * mebibyte, "a second, for reads", // by 15 % at most
		},
		"some wait": {
			readers{rate: 15, usual: 4 * time.Millisecond, slows: 40 * mebibyte},
			50 * mebibyte, 3 * mebibyte, 6 * mebibyte, "and took 4.",
		},
		"any byte is one to many": {
			readers{rate: 500, usual: 40 * time.Millisecond, slows: mebibyte},
			0, mebibyte, 4 * mebibyte, "a second, for reads",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &c.readers
			r.now = time.Unix(1e9, 0)
			host := &Host{JVM: r, Now: func() time.Time { return r.now },
				Wait: func(_ context.Context, d time.Duration) error { r.now = r.now.Add(d); return nil }}
			p := newPace(t.Context(), host, c.most)
			if got := r.send(t, p, 10*time.Minute); got < c.from || got > c.until {
				t.Errorf("%.1f MiB a second, not %.1f to %.1f", got/mebibyte, c.from/mebibyte, c.until/mebibyte)
			}
			if said := p.String(); (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
				t.Errorf("says %q", said)
			}
			// Reads that take longer for another cause do not have it creep for long.
			r.usual *= 5
			if got := r.send(t, p, 10*time.Minute); got < c.from || c.most > 0 && got > float64(c.most)*1.1 {
				t.Errorf("%.1f MiB a second after another cause", got/mebibyte)
			}
		})
	}
}

// Whether anybody reads is known before the first byte is read and sent.
func TestPaceBegins(t *testing.T) {
	for name, c := range map[string]struct {
		rate float64
		most int64
		want rate.Limit
	}{
		"nobody reads":                 {0, 0, rate.Inf},
		"nobody reads, within a limit": {0, 20 << 20, 20 << 20},
		"some read":                    {100, 20 << 20, least},
	} {
		r := &readers{rate: c.rate, usual: time.Millisecond, now: time.Unix(1e9, 0)}
		host := &Host{JVM: r, Now: func() time.Time { return r.now }, Wait: func(_ context.Context, d time.Duration) error {
			r.now, r.made = r.now.Add(d), r.made+r.rate*d.Seconds()
			return nil
		}}
		if p := newPace(t.Context(), host, c.most); p.limiter.Limit() != c.want || p.sends.Limit() != c.want {
			t.Errorf("%s: %.0f and %.0f bytes a second, not %.0f", name, p.limiter.Limit(), p.sends.Limit(), c.want)
		}
	}
}

// Clients who wait much longer are noticed before a hundred of them have, one alone is not.
func TestPaceNoticesSoon(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(*readers)
		slower bool
	}{
		"all of them": {func(r *readers) { r.usual *= 20 }, true},
		"one alone":   {func(r *readers) { r.made, r.took = r.made+1, r.took+float64(200*time.Millisecond) }, false},
	} {
		r := &readers{rate: 15, usual: 4 * time.Millisecond, slows: 1e12, now: time.Unix(1e9, 0)}
		host := &Host{JVM: r, Now: func() time.Time { return r.now },
			Wait: func(_ context.Context, d time.Duration) error { r.now = r.now.Add(d); return nil }}
		p := newPace(t.Context(), host, 50<<20)
		r.send(t, p, 5*time.Minute)
		for since := p.since; p.since.Equal(since); {
			r.send(t, p, 100*time.Millisecond)
		}
		c.then(r)
		r.send(t, p, 3*time.Second)
		if got := p.limiter.Limit(); (got < 50<<20) != c.slower {
			t.Errorf("%s: %.0f bytes a second", name, got)
		}
	}
}

// What is sent of the files leaves evenly, as fast as they are read.
func TestPaceSendsEvenly(t *testing.T) {
	r := &readers{rate: 500, usual: time.Millisecond, slows: 1e12, now: time.Unix(1e9, 0)}
	longest := time.Duration(0)
	host := &Host{JVM: r, Now: func() time.Time { return r.now }, Wait: func(_ context.Context, d time.Duration) error {
		r.now, longest = r.now.Add(d), max(longest, d)
		return nil
	}}
	p := newPace(t.Context(), host, 0)
	p.set(r.now, 1<<20)
	longest = 0
	began := r.now
	for range 8 << 20 / (32 << 10) {
		if err := p.send(t.Context(), 32<<10); err != nil {
			t.Fatal(err)
		}
	}
	if took := r.now.Sub(began).Round(time.Second); took != 8*time.Second || longest > 100*time.Millisecond {
		t.Errorf("8 MiB took %s, with waits of up to %s", took, longest)
	}
	before := r.now
	if err := p.send(t.Context(), 1<<20); err != nil || r.now.Sub(before).Round(time.Second) != time.Second {
		t.Errorf("1 MiB at once took %s: %v", r.now.Sub(before), err)
	}
}
