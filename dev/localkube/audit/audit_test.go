package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// line is an event as kube-apiserver writes it, at noon plus some seconds.
func line(seconds int, user, verb, object, stage string, code int) string {
	at := noon.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano)
	ref := ""
	if object != "" {
		ref = fmt.Sprintf(`"objectRef":{%s},`, object)
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":%q,"requestURI":"/version?timeout=1s","verb":%q,"user":{"username":%q},%s"responseStatus":{"metadata":{},"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`+"\n",
		stage, verb, user, ref, code, at, at)
}

const (
	pods   = `"resource":"pods","namespace":"a","apiVersion":"v1"`
	status = `"resource":"pods","namespace":"a","subresource":"status","apiVersion":"v1"`
	sets   = `"resource":"statefulsets","apiGroup":"apps","apiVersion":"v1"`
	leases = `"resource":"leases","apiGroup":"coordination.k8s.io","apiVersion":"v1"`
)

func sample() string {
	return strings.Join([]string{
		line(0, "operator", "create", pods, "ResponseComplete", 201),
		line(1, "operator", "create", pods, "ResponseComplete", 409),
		line(2, "operator", "patch", status, "ResponseComplete", 200),
		line(3, "operator", "watch", pods, "ResponseStarted", 200),
		line(3, "operator", "watch", pods, "ResponseComplete", 200),
		line(3, "operator", "watch", sets, "ResponseComplete", 403),
		line(4, "operator", "update", leases, "ResponseComplete", 200),
		line(5, "system:node:n1", "update", leases, "ResponseComplete", 200),
		line(6, "admin", "get", "", "ResponseComplete", 200),
		line(7, "operator", "update", sets, "ResponseComplete", 200),
	}, "")
}

func count(user, verb, resource string, requests, failed int) Count {
	return Count{Key: Key{User: user, Verb: verb, Resource: resource}, Requests: requests, Failed: failed}
}

func TestSummarise(t *testing.T) {
	for _, tc := range []struct {
		name   string
		filter Filter
		want   []Count
	}{
		{name: "all", want: []Count{
			count("operator", "create", "pods", 2, 1),
			count("admin", "get", "/version", 1, 0),
			count("operator", "patch", "pods/status", 1, 0),
			count("operator", "update", "leases.coordination.k8s.io", 1, 0),
			count("operator", "update", "statefulsets.apps", 1, 0),
			count("operator", "watch", "pods", 1, 0),
			count("operator", "watch", "statefulsets.apps", 1, 1),
			count("system:node:n1", "update", "leases.coordination.k8s.io", 1, 0),
		}},
		{name: "writes without leases", filter: Filter{WritesOnly: true, WithoutLeases: true}, want: []Count{
			count("operator", "create", "pods", 2, 1),
			count("operator", "patch", "pods/status", 1, 0),
			count("operator", "update", "statefulsets.apps", 1, 0),
		}},
		{name: "since", filter: Filter{Since: noon.Add(6 * time.Second)}, want: []Count{
			count("admin", "get", "/version", 1, 0),
			count("operator", "update", "statefulsets.apps", 1, 0),
		}},
		{name: "users by prefix", filter: Filter{User: "system:node:*"}, want: []Count{
			count("system:node:n1", "update", "leases.coordination.k8s.io", 1, 0),
		}},
		{name: "one user", filter: Filter{User: "admin"}, want: []Count{count("admin", "get", "/version", 1, 0)}},
		{name: "nobody", filter: Filter{User: "adm"}, want: []Count{}},
	} {
		got, err := Summarise(strings.NewReader(sample()), tc.filter)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestSummariseLeavesOutALineBeingWritten(t *testing.T) {
	whole := line(0, "admin", "create", pods, "ResponseComplete", 201)
	got, err := Summarise(strings.NewReader(whole+whole[:len(whole)/2]), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Count{count("admin", "create", "pods", 1, 0)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSummariseRefusesWhatIsNoLog(t *testing.T) {
	_, err := Summarise(strings.NewReader("I0101 starting\n"), Filter{})
	if err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("error %v, want one that names the line", err)
	}
}

func TestSummariseFileReadsRotatedLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"audit.log", "audit-2025-03-01T12-00-00.000.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(sample()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := SummariseFile(filepath.Join(dir, "audit.log"), Filter{User: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Count{count("admin", "get", "/version", 2, 0)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := SummariseFile(filepath.Join(dir, "none.log"), Filter{}); err == nil {
		t.Error("no error for a log that is not there")
	}
}
