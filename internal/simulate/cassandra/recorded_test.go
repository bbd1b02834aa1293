package cassandra

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAnswersHaveTheFormOfRecordedOnes sends what was asked of real nodes to simulated ones in the
// same state, and compares the forms of the answers: which attributes, of which types, which
// refusals, and which lines of gossip.
func TestAnswersHaveTheFormOfRecordedOnes(t *testing.T) {
	for name, reach := range map[string]func(l *lab) *Process{
		"no-beans": func(l *lab) *Process {
			p := l.start(member(1), l.fresh(1, 1)...)
			l.line.RunFor(1500 * time.Millisecond)
			return p
		},
		"starting": func(l *lab) *Process {
			p := l.start(member(1), l.fresh(1, 1)...)
			l.await("gossip", time.Minute, func() bool { return p.gossip.active })
			return p
		},
		"normal": func(l *lab) *Process {
			_, p := l.form(3)
			l.line.RunFor(5 * time.Second)
			return p[0]
		},
		"joining": func(l *lab) *Process {
			l.form(3)
			_, p := l.join(4)
			l.await("its word", time.Minute, func() bool { return len(p.joiningNodes()) > 0 })
			return p
		},
		"leaving": func(l *lab) *Process {
			_, p := l.form(4)
			l.exec(p[3], "decommission(boolean)", true)
			l.await("the stream", time.Minute, func() bool { return !p[3].joined })
			return p[3]
		},
		"decommissioned": func(l *lab) *Process {
			_, p := l.form(4)
			l.exec(p[3], "decommission(boolean)", true)
			l.awaitMode(p[3], modeDecommissioned)
			return p[3]
		},
		"drained": func(l *lab) *Process {
			_, p := l.form(3)
			l.line.RunFor(5 * time.Second)
			l.exec(p[2], "drain()")
			l.awaitMode(p[2], modeDrained)
			return p[2]
		},
	} {
		for _, release := range []string{"4.1.10", "5.0.6"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "cassandra", "testdata", "view",
				release+"-"+name+".json"))
			if os.IsNotExist(err) {
				continue // not every state was recorded of both
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Run(release+" "+name, func(t *testing.T) {
				var recorded struct{ Request, Response json.RawMessage }
				if err := json.Unmarshal(text, &recorded); err != nil {
					t.Fatal(err)
				}
				l := newLab(t, 1)
				l.setRelease(release)
				p := reach(l)
				body := new(bytes.Buffer)
				if err := json.Compact(body, recorded.Request); err != nil {
					t.Fatal(err)
				}
				request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/jolokia/", body)
				if err != nil {
					t.Fatal(err)
				}
				request.SetBasicAuth("helenus", jolokiaPassword)
				response, err := driven{l, p}.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close() //nolint:errcheck // in memory
				answer, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				got, want := formOf(t, answer), formOf(t, recorded.Response)
				for _, key := range slices.Sorted(maps.Keys(want)) {
					if got[key] != want[key] {
						t.Errorf("%s is %s, recorded %s", key, got[key], want[key])
					}
				}
				for _, key := range slices.Sorted(maps.Keys(got)) {
					if want[key] == "" && key != "gossip of a member" {
						t.Errorf("%s (%s) was never recorded", key, got[key])
					}
				}
			})
		}
	}
}

// formOf describes a bulk answer: statuses, errors, types of attributes, what is said of state in
// so many words, and the names in gossip.
func formOf(t *testing.T, answer []byte) map[string]string {
	t.Helper()
	var elements []struct {
		Status int
		Value  map[string]any
		Error  string
	}
	if err := json.Unmarshal(answer, &elements); err != nil {
		t.Fatal(err)
	}
	form := map[string]string{}
	for i, e := range elements {
		form[fmt.Sprint("status ", i)] = fmt.Sprintf("%d %s", e.Status, e.Error)
		for name, value := range e.Value {
			form[name] = fmt.Sprintf("%T", value)
			switch v := value.(type) {
			case bool:
				form[name] = fmt.Sprint(v)
			case string:
				if name == "OperationMode" || name == "BootstrapState" || name == "PartitionerName" {
					form[name] = v
				}
				if name == "AllEndpointStatesWithPort" {
					for key, value := range gossipForm(v) {
						form[key] = value
					}
				}
			}
		}
	}
	return form
}

// gossipForm is which lines there are of a node itself, which alone prints INTERNAL_IP, and of a
// living member.
func gossipForm(text string) map[string]string {
	form := map[string]string{}
	for _, block := range strings.Split(text, "/")[1:] {
		var names []string
		status := ""
		for _, line := range strings.Split(strings.TrimSpace(block), "\n")[1:] {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "STATUS_WITH_PORT" {
				_, word, _ := strings.Cut(value, ":")
				status, _, _ = strings.Cut(word, ",")
			}
			// LOAD comes within a minute, and DISK_USAGE only where a guardrail asks.
			if name != "LOAD" && name != "DISK_USAGE" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		switch {
		case slices.Contains(names, "INTERNAL_IP"):
			form["gossip of itself"] = strings.Join(names, " ") + " " + status
		case status == statusNormal:
			form["gossip of a member"] = strings.Join(names, " ")
		}
	}
	return form
}
