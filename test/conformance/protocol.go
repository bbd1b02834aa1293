package conformance

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"helenus.io/helenus/internal/jolokia"
)

const (
	storageService = "org.apache.cassandra.db:type=StorageService"
	noSuchKeyspace = "no_such_keyspace"
)

// protocolChecks hold the node to the protocol.
var protocolChecks = []Check{
	{Name: "the agent says its version", Run: func(t *testing.T, s *Subject) {
		var version struct{ Agent, Protocol string }
		if err := s.do(t, jolokia.Request{Type: "version"})[0].Decode(&version); err != nil || version.Agent == "" ||
			version.Protocol == "" {
			t.Errorf("version is %+v, error %v", version, err)
		}
	}},
	{Name: "answers come in the order of the requests", Run: func(t *testing.T, s *Subject) {
		attributes := []string{"ReleaseVersion", "OperationMode", "ClusterName", "LocalHostId"}
		requests := make([]jolokia.Request, 0, len(attributes))
		for _, attribute := range attributes {
			requests = append(requests, jolokia.Read(storageService, attribute))
		}
		answers := s.do(t, requests...)
		for i, attribute := range attributes {
			var value map[string]string
			if err := answers[i].Decode(&value); err != nil || len(value) != 1 || value[attribute] == "" {
				t.Errorf("answer %d is %v, error %v; want the attribute %s", i+1, value, err, attribute)
			}
		}
	}},
	{Name: "a refused request does not touch the others", Run: func(t *testing.T, s *Subject) {
		answers := s.do(t,
			jolokia.Read("org.apache.cassandra.db:type=NoSuchBean", "X"),
			jolokia.Read(storageService, "OperationMode", "NoSuchAttribute"),
			jolokia.Exec(storageService, "drainNothing()"), // of a name that the policy of Jolokia allows
			jolokia.Exec(storageService, "drain(int)", 1),
			jolokia.Exec(storageService, "getKeyspaceReplicationInfo(java.lang.String)", noSuchKeyspace),
			jolokia.Read(storageService, "OperationMode"),
		)
		want := []error{
			jolokia.ErrInstanceNotFound, jolokia.ErrAttributeNotFound, jolokia.ErrOperationNotFound,
			jolokia.ErrOperationNotFound,
			jolokia.ErrException, nil,
		}
		for i, answer := range answers {
			if !errors.Is(answer.Err, want[i]) {
				t.Errorf("answer %d: %v, want %v", i+1, answer.Err, want[i])
			}
		}
	}},
	{Name: "wrong values and arguments are refused as exceptions", Run: func(t *testing.T, s *Subject) {
		answers := s.do(t,
			jolokia.Write(storageService, "RpcTimeout", "soon"),
			jolokia.Exec(storageService, "removeNode(java.lang.String)", "not-a-host-id"),
			jolokia.Exec(storageService, "removeNode(java.lang.String)", "00000000-0000-0000-0000-000000000000"),
		)
		classes := []string{"java.lang.NumberFormatException", "java.lang.IllegalArgumentException",
			"java.lang.UnsupportedOperationException"}
		statuses := []int{http.StatusBadRequest, http.StatusBadRequest, http.StatusInternalServerError}
		for i, answer := range answers {
			var refusal *jolokia.Error
			if !errors.Is(answer.Err, jolokia.ErrException) || !errors.As(answer.Err, &refusal) ||
				refusal.Class != classes[i] || refusal.Status != statuses[i] {
				t.Errorf("answer %d: %v, want %s with status %d", i+1, answer.Err, classes[i], statuses[i])
			}
		}
	}},
	{Name: "another signature of a known operation is refused with those that are known",
		Run: func(t *testing.T, s *Subject) {
			answers := s.do(t, jolokia.Exec(storageService, "rebuild(int)", 1))
			if err := answers[0].Err; !errors.Is(err, jolokia.ErrOperationNotFound) ||
				!strings.Contains(err.Error(), "Known signatures: ") {
				t.Errorf("error %v", err)
			}
		}},
	{Name: "a write answers the value before it", Run: func(t *testing.T, s *Subject) {
		const attribute = "TombstoneWarnThreshold"
		var before struct{ TombstoneWarnThreshold int }
		answer, err := s.JMX.Call(s.Context, jolokia.Read(storageService, attribute))
		if err = errors.Join(err, answer.Decode(&before)); err != nil {
			t.Fatal(err)
		}
		changed := before.TombstoneWarnThreshold + 1
		answers := s.do(t,
			jolokia.Write(storageService, attribute, changed),
			jolokia.Write(storageService, attribute, before.TombstoneWarnThreshold),
		)
		for i, want := range []int{before.TombstoneWarnThreshold, changed} {
			var got int
			if err := answers[i].Decode(&got); err != nil || got != want {
				t.Errorf("write %d answered %d, error %v; want %d", i+1, got, err, want)
			}
		}
	}},
}
