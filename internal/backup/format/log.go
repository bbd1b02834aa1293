package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LogPrefix is that of the commit log of all members of a cluster, and of one with a host id.
func LogPrefix(cluster, hostID string) string {
	if hostID == "" {
		return cluster + "/log/"
	}
	return cluster + "/log/" + hostID + "/"
}

// Segment is a file of the commit log, and when it appeared: what is in it is not older.
type Segment struct {
	Name     string
	Appeared time.Time
}

// String is how it is named in a store, and beside the log.
func (s Segment) String() string { return fmt.Sprintf("%013d.%s", s.Appeared.UnixMilli(), s.Name) }

// ParseSegment reads such a name.
func ParseSegment(text string) (Segment, error) {
	at, name, found := strings.Cut(text, ".")
	milli, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil || name == "" || strings.Contains(name, "/") {
		return Segment{}, fmt.Errorf("%q is no segment of a commit log", text)
	}
	return Segment{name, time.UnixMilli(milli).UTC()}, nil
}

// PartKey is where what a segment has from an offset on lies, up to the next part.
func PartKey(cluster, hostID string, s Segment, offset int64) string {
	return fmt.Sprintf("%s%s/%010d", LogPrefix(cluster, hostID), s, offset)
}

// ParsePart reads such a key.
func ParsePart(cluster, key string) (hostID string, s Segment, offset int64, err error) {
	parts := strings.Split(strings.TrimPrefix(key, LogPrefix(cluster, "")), "/")
	if len(parts) != 3 {
		return "", s, 0, fmt.Errorf("%s is no part of a commit log", key)
	}
	if s, err = ParseSegment(parts[1]); err != nil {
		return "", s, 0, err
	}
	if offset, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return "", s, 0, fmt.Errorf("%s is no part of a commit log", key)
	}
	return parts[0], s, offset, nil
}

// CoveredPrefix is that of what the logs in a store cover.
func CoveredPrefix(cluster string) string { return cluster + "/covered/" }

// Interval is a time in which all that a member has acknowledged is in the store, to milliseconds.
type Interval struct{ From, To time.Time }

// Has says that a time is in it.
func (i Interval) Has(t time.Time) bool { return !t.Before(i.From) && !t.After(i.To) }

func (i Interval) String() string {
	return i.From.UTC().Format(time.RFC3339) + " – " + i.To.UTC().Format(time.RFC3339)
}

// CoveredKey is where it is said, by an empty object, that the log of a member covers a time. Of
// those with the same beginning the latest end counts.
func CoveredKey(cluster, hostID string, i Interval) string {
	return fmt.Sprintf("%s%s/%013d-%013d", CoveredPrefix(cluster), hostID, i.From.UnixMilli(), i.To.UnixMilli())
}

// ParseCovered reads such a key.
func ParseCovered(cluster, key string) (hostID string, i Interval, err error) {
	hostID, times, _ := strings.Cut(strings.TrimPrefix(key, CoveredPrefix(cluster)), "/")
	from, to, _ := strings.Cut(times, "-")
	begun, err := strconv.ParseInt(from, 10, 64)
	if err == nil {
		var ended int64
		ended, err = strconv.ParseInt(to, 10, 64)
		i = Interval{time.UnixMilli(begun).UTC(), time.UnixMilli(ended).UTC()}
	}
	if err != nil {
		return "", i, fmt.Errorf("%s is no interval of a commit log", key)
	}
	return hostID, i, nil
}

// Swept stands in place of a host id for the time of which the logs of all members were deleted.
const Swept = "swept"

// Coverage is what the log of each member covers by its host id, in order.
type Coverage map[string][]Interval

// Usable is what is covered of what was not deleted.
func (c Coverage) Usable() Coverage {
	var until time.Time
	for _, i := range c[Swept] {
		if i.To.After(until) {
			until = i.To
		}
	}
	out := Coverage{}
	for hostID, of := range c {
		for _, i := range of {
			if i.From.Before(until) {
				i.From = until
			}
			if hostID != Swept && !i.To.Before(i.From) {
				out[hostID] = append(out[hostID], i)
			}
		}
	}
	return out
}

// Add an interval of a member. Of those with the same beginning the longest stays.
func (c Coverage) Add(hostID string, i Interval) {
	of := c[hostID]
	if at := slices.IndexFunc(of, func(o Interval) bool { return o.From.Equal(i.From) }); at < 0 {
		of = append(of, i)
	} else if i.To.After(of[at].To) {
		of[at] = i
	}
	slices.SortFunc(of, func(a, b Interval) int { return a.From.Compare(b.From) })
	c[hostID] = of
}
