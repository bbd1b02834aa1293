package repair

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"helenus.io/helenus/internal/core/ring"
)

// History is what is proven to be repaired. It is never changed once others have it.
type History struct {
	// Tables by the id of the table.
	Tables map[string]*Record
	// Ended is when the last runs ended, and Took how long they took.
	Ended time.Time
	Took  time.Duration
	// Rate is how many bytes of one replica all runs of a time repaired in a second, as a mean of
	// the last ones; 0 if that was not measured.
	Rate int64
}

// Record is what is known of one table.
type Record struct {
	// Replication of its keyspace when it was repaired, or first seen: with another one nothing is
	// proven.
	Replication string
	// Made says that it has had this replication since it was made, as far as anybody knows: what
	// was never repaired counts as repaired then.
	Made bool
	// Rate is how many bytes of one replica are repaired in a second; 0 if that is not known.
	Rate int64
	// Runs cover the ring from its lowest token to its highest.
	Runs []Run
}

// Run is when the tokens after the end of the run before, up to and including End, were last
// repaired: the minute in which the repair began, in Unix time, 0 for never.
type Run struct {
	End ring.Token
	At  int64
}

// span is a range that does not wrap around: the tokens after Start, up to and including End.
type span = ring.Range

// unwrapped are one or two spans that a range consists of.
func unwrapped(r ring.Range) []span {
	switch {
	case r.Start < r.End:
		return []span{r}
	case r.Start == ring.MaxToken:
		return []span{{Start: ring.MinToken, End: r.End}}
	case r.End == ring.MinToken:
		return []span{{Start: r.Start, End: ring.MaxToken}}
	}
	return []span{{Start: r.Start, End: ring.MaxToken}, {Start: ring.MinToken, End: r.End}}
}

// within calls do for each part of a span with the time of its last repair.
func (r *Record) within(s span, do func(part span, at int64)) {
	var runs []Run
	if r != nil {
		from, _ := slices.BinarySearchFunc(r.Runs, s.Start,
			func(run Run, t ring.Token) int { return cmp.Or(cmp.Compare(run.End, t), -1) })
		runs = r.Runs[from:]
	}
	for _, run := range runs {
		if s.Start >= s.End {
			return
		}
		end := min(run.End, s.End)
		do(span{Start: s.Start, End: end}, run.At)
		s.Start = end
	}
	if s.Start < s.End {
		do(s, 0)
	}
}

// add notes that a span was repaired.
func (r *Record) add(s span, at int64) {
	var out []Run
	put := func(end ring.Token, at int64) {
		if n := len(out); n > 0 && out[n-1].At == at {
			out[n-1].End = end
			return
		}
		out = append(out, Run{end, at})
	}
	r.within(span{Start: ring.MinToken, End: ring.MaxToken}, func(part span, was int64) {
		if from, to := max(part.Start, s.Start), min(part.End, s.End); from < to {
			if part.Start < from {
				put(from, was)
			}
			put(to, max(was, at))
			part.Start = to
		}
		if part.Start < part.End {
			put(part.End, was)
		}
	})
	r.Runs = out
}

// oldest is the part of the ring that was not repaired for the longest time.
func (r *Record) oldest() (part span, at int64) {
	part, at = span{Start: ring.MinToken, End: ring.MaxToken}, -1
	r.within(part, func(p span, was int64) {
		if at < 0 || was < at {
			part, at = p, was
		}
	})
	return part, at
}

// With is the history with ranges of tables that were repaired, by a repair that began at a time.
func (h *History) With(units []Unit, began time.Time) *History {
	out := h.copied()
	for _, u := range units {
		for _, t := range u.Tables {
			r := out.record(t)
			for _, s := range u.Ranges {
				r.add(s, began.Unix()/60)
			}
		}
	}
	return out
}

// Learn is the history with how fast tables are repaired: twice as fast for what took less than
// half the time that it was expected to, half as fast for what took twice that.
func (h *History) Learn(u Unit, took time.Duration) *History {
	var factor float64
	switch expected := u.Expected(); {
	case took > 2*expected:
		factor = 0.5
	case took < expected/2 && u.large():
		factor = 2
	default:
		return h
	}
	out := h.copied()
	for _, t := range u.Tables {
		r := out.record(t)
		r.Rate = min(max(int64(float64(r.rate())*factor), slowest), fastest)
	}
	return out
}

// rateOver is of how much time in which repairs ran the rate is a mean, about.
const rateOver = 30 * time.Minute

// Ran notes the end of units that began at a time, and what of them was repaired. Where none had
// much to compare, they say nothing of the rate.
func (h *History) Ran(units, repaired []Unit, began, now time.Time) *History {
	out := h.copied()
	out.Ended, out.Took = now, now.Sub(began)
	if out.Took < time.Second || !slices.ContainsFunc(units, func(u Unit) bool { return u.large() }) {
		return out
	}
	done := 0.0
	for _, u := range repaired {
		done += float64(u.Bytes)
	}
	weight := 1.0
	if out.Rate > 0 {
		weight = float64(out.Took) / float64(out.Took+rateOver)
	}
	out.Rate += int64(weight * (done/out.Took.Seconds() - float64(out.Rate)))
	return out
}

const (
	usual   = 8 << 20
	slowest = 64 << 10
	fastest = 1 << 30
)

func (r *Record) rate() int64 {
	if r == nil || r.Rate == 0 {
		return usual
	}
	return r.Rate
}

func (h *History) copied() *History {
	out := &History{Tables: map[string]*Record{}}
	if h != nil {
		out.Ended, out.Took, out.Rate = h.Ended, h.Took, h.Rate
		maps.Copy(out.Tables, h.Tables)
	}
	return out
}

// record is one of a copied history that may be changed.
func (h *History) record(t TableOf) *Record {
	was := h.Tables[t.ID]
	out := &Record{Replication: t.Replication, Made: was == nil}
	if was != nil {
		out.Rate = was.Rate
		if was.Replication == t.Replication {
			out.Runs, out.Made = was.Runs, was.Made // add makes a new list
		}
	}
	h.Tables[t.ID] = out
	return out
}

// Noted is the history with the replication of tables that it lacks, or has with another one, and
// says whether there were any. A replica that is added later has no row that was written before.
func (h *History) Noted(tables []Table, now time.Time) (*History, bool) {
	out, changed := h, false
	for i := range tables {
		t := &tables[i]
		var was *Record
		if h != nil {
			was = h.Tables[t.ID]
		}
		if t.Replication == "" || was != nil && was.Replication == t.Replication {
			continue
		}
		if !changed {
			out, changed = h.copied(), true
		}
		out.record(t.TableOf).Made = was == nil && now.Sub(t.Since) < seenWithin
	}
	return out, changed
}

// seenWithin is how soon after it was made a table is seen that nobody has altered before.
const seenWithin = time.Hour

// Only is the history without tables that are gone.
func (h *History) Only(ids map[string]bool) *History {
	out := h.copied()
	maps.DeleteFunc(out.Tables, func(id string, _ *Record) bool { return !ids[id] })
	return out
}

const (
	// mostBytes is how large an encoded history becomes at most: a ConfigMap takes 1 MiB.
	mostBytes = 900 << 10
	version   = 1
)

// Encode writes a history as text. Where it would be too long, times are rounded down until it is
// not: what was repaired is repaired again the earlier for it.
func Encode(h *History) string {
	for minutes := int64(1); ; minutes *= 4 {
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is one that there is
		_, _ = w.Write(h.bytes(minutes))                  // a buffer takes everything
		_ = w.Close()
		if base64.StdEncoding.EncodedLen(packed.Len()) <= mostBytes {
			return base64.StdEncoding.EncodeToString(packed.Bytes())
		}
	}
}

// bytes has every token at which any table's time changes once, then a time for each of them by
// table, as the difference to the one before.
func (h *History) bytes(minutes int64) []byte {
	ids := slices.Sorted(maps.Keys(h.Tables))
	rounded := make([][]Run, len(ids))
	var ends []ring.Token
	for i, id := range ids {
		for _, run := range h.Tables[id].Runs {
			run.At -= run.At % minutes
			if n := len(rounded[i]); n > 0 && rounded[i][n-1].At == run.At {
				rounded[i][n-1].End = run.End
				continue
			}
			rounded[i] = append(rounded[i], run)
		}
		for _, run := range rounded[i] {
			ends = append(ends, run.End)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	out := binary.AppendUvarint(nil, version)
	out = binary.AppendVarint(out, h.Ended.Unix())
	out = binary.AppendUvarint(out, uint64(h.Took/time.Second)) //nolint:gosec // it is not negative
	out = binary.AppendUvarint(out, uint64(minutes))            //nolint:gosec // it is not negative
	out = binary.AppendUvarint(out, uint64(len(ends)))
	for _, end := range ends {
		out = binary.LittleEndian.AppendUint64(out, uint64(end)) //nolint:gosec // any bits will do
	}
	out = binary.AppendUvarint(out, uint64(len(ids)))
	for i, id := range ids {
		r := h.Tables[id]
		for _, text := range []string{id, r.Replication} {
			out = binary.AppendUvarint(out, uint64(len(text)))
			out = append(out, text...)
		}
		out = binary.AppendUvarint(out, uint64(r.Rate)) //nolint:gosec // it is not negative
		run, before := 0, int64(0)
		for _, end := range ends {
			for run < len(rounded[i]) && rounded[i][run].End < end {
				run++
			}
			at := int64(0)
			if run < len(rounded[i]) {
				at = rounded[i][run].At / minutes
			}
			out = binary.AppendVarint(out, at-before)
			before = at
		}
	}
	for _, id := range ids { // after all else: earlier releases read no further
		made := uint64(0)
		if h.Tables[id].Made {
			made = 1
		}
		out = binary.AppendUvarint(out, made)
	}
	return binary.AppendUvarint(out, uint64(h.Rate)) //nolint:gosec // it is not negative
}

// errNoHistory says that a text is none of Encode.
var errNoHistory = errors.New("it is cut off, or of another release of Helenus")

// Decode reads what Encode has written.
func Decode(text string) (*History, error) {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decode history of repairs: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), 64<<20))
	if err != nil {
		return nil, fmt.Errorf("decompress history of repairs: %w", err)
	}
	d := decoder{raw: raw}
	h := d.history()
	if d.failed {
		return nil, fmt.Errorf("read history of repairs: %w", errNoHistory)
	}
	return h, nil
}

type decoder struct {
	raw    []byte
	failed bool
}

func (d *decoder) history() *History {
	h := &History{Tables: map[string]*Record{}}
	d.failed = d.uint() != version
	h.Ended = time.Unix(d.int(), 0).UTC()
	h.Took = time.Duration(d.uint()) * time.Second //nolint:gosec // it was no more
	minutes := int64(d.uint())                     //nolint:gosec // it was no more
	ends := make([]ring.Token, d.count(8))
	for i := range ends {
		ends[i] = ring.Token(binary.LittleEndian.Uint64(d.take(8))) //nolint:gosec // any bits will do
	}
	all := make([]*Record, 0, 64)
	for range d.count(3) {
		id, r := d.text(), &Record{Replication: d.text()}
		r.Rate = int64(d.uint()) //nolint:gosec // it was no more
		at := int64(0)
		for _, end := range ends {
			at += d.int()
			if n := len(r.Runs); n > 0 && r.Runs[n-1].At == at*minutes {
				r.Runs[n-1].End = end
				continue
			}
			r.Runs = append(r.Runs, Run{end, at * minutes})
		}
		if d.failed {
			return nil
		}
		h.Tables[id] = r
		all = append(all, r)
	}
	for _, r := range all {
		r.Made = len(d.raw) > 0 && d.uint() == 1 // an earlier release has not written it
	}
	if len(d.raw) > 0 { // nor this
		h.Rate = int64(d.uint()) //nolint:gosec // it was no more
	}
	return h
}

// take is the next n bytes.
func (d *decoder) take(n int) []byte {
	if d.failed = d.failed || n > len(d.raw); d.failed {
		return make([]byte, min(n, 8))
	}
	out := d.raw[:n]
	d.raw = d.raw[n:]
	return out
}

// count is how many follow, each of so many bytes at least.
func (d *decoder) count(bytes int) int {
	n := d.uint()
	if d.failed = d.failed || n > uint64(len(d.raw)/bytes); d.failed {
		return 0
	}
	return int(n) //nolint:gosec // it is no more than there are bytes
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.raw)
	d.skip(n)
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.raw)
	d.skip(n)
	return v
}

func (d *decoder) skip(n int) {
	if d.failed = d.failed || n <= 0; !d.failed {
		d.raw = d.raw[n:]
	}
}
