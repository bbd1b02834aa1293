package audit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Event is what we read of an audit event.
type Event struct {
	User struct {
		Username string `json:"username"`
		Extra    map[string][]string
	} `json:"user"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Stage         string    `json:"stage"`
	StageTime     time.Time `json:"stageTimestamp"`
	RequestURI    string    `json:"requestURI"`
	RequestedTime time.Time `json:"requestReceivedTimestamp"`
}

// Key is by what requests are counted.
type Key struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
}

// Count is the number of requests of one key.
type Count struct {
	Key
	Requests int `json:"requests"`
	// Failed are those of them with a status of 400 and above: they changed
	// nothing.
	Failed int `json:"failed,omitempty"`
}

// Filter chooses which requests are counted. The zero value counts all.
type Filter struct {
	// Since leaves out requests that were received earlier.
	Since time.Time
	// WritesOnly leaves out get, list and watch.
	WritesOnly bool
	// WithoutLeases leaves out leases: heartbeats of nodes and elections.
	WithoutLeases bool
	// User leaves out all others, unless it is empty. A trailing * stands for
	// any ending.
	User string
}

var reads = []string{"get", "list", "watch"}

// matches tells whether the event is the end of a request that is counted. A
// watch ends late, so it counts when it starts.
func (f Filter) matches(e Event) bool {
	if e.Stage != "ResponseComplete" && e.Stage != "Panic" && (e.Verb != "watch" || e.Stage != "ResponseStarted") {
		return false
	}
	if e.Verb == "watch" && e.Stage == "ResponseComplete" && e.code() < 400 {
		return false
	}
	switch {
	case e.RequestedTime.Before(f.Since):
		return false
	case f.WritesOnly && slices.Contains(reads, e.Verb):
		return false
	case f.WithoutLeases && e.ObjectRef != nil && e.ObjectRef.Resource == "leases":
		return false
	}
	if prefix, ok := strings.CutSuffix(f.User, "*"); ok {
		return strings.HasPrefix(e.User.Username, prefix)
	}
	return f.User == "" || f.User == e.User.Username
}

func (e Event) code() int {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

// resource names what the request was about: pods/status, a group's kind as
// deployments.apps, or the path of a request that is about no object.
func (e Event) resource() string {
	if e.ObjectRef == nil || e.ObjectRef.Resource == "" {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return path
	}
	name := e.ObjectRef.Resource
	if e.ObjectRef.APIGroup != "" {
		name += "." + e.ObjectRef.APIGroup
	}
	if e.ObjectRef.Subresource != "" {
		name += "/" + e.ObjectRef.Subresource
	}
	return name
}

// Summarise counts the requests of a log, the most frequent first. A last line
// that is being written is left out.
func Summarise(log io.Reader, f Filter) ([]Count, error) {
	counts := make(map[Key]*Count)
	if err := f.addTo(counts, log); err != nil {
		return nil, err
	}
	return sorted(counts), nil
}

func (f Filter) addTo(counts map[Key]*Count, log io.Reader) error {
	r := bufio.NewReaderSize(log, 1<<16)
	for number := 1; ; number++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read audit log, line %d: %w", number, err)
		}
		if !f.matches(e) {
			continue
		}
		key := Key{User: e.User.Username, Verb: e.Verb, Resource: e.resource()}
		c := counts[key]
		if c == nil {
			c = &Count{Key: key}
			counts[key] = c
		}
		c.Requests++
		if e.code() >= 400 {
			c.Failed++
		}
	}
}

func sorted(counts map[Key]*Count) []Count {
	all := make([]Count, 0, len(counts))
	for _, c := range counts {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(
			cmp.Compare(b.Requests, a.Requests),
			cmp.Compare(a.User, b.User), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource),
		)
	})
	return all
}

// SummariseFile counts the requests of a log file and of the older ones that the
// API server has put aside beside it (audit-TIME.log).
func SummariseFile(file string, f Filter) ([]Count, error) {
	ext := filepath.Ext(file)
	files, err := filepath.Glob(strings.TrimSuffix(file, ext) + "-*" + ext)
	if err != nil {
		return nil, fmt.Errorf("find audit logs: %w", err)
	}
	counts := make(map[Key]*Count)
	for _, name := range append(files, file) {
		log, err := os.Open(name)
		// The server removes the oldest while we look.
		if errors.Is(err, fs.ErrNotExist) && name != file {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open audit log: %w", err)
		}
		err = errors.Join(f.addTo(counts, log), log.Close())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return sorted(counts), nil
}
