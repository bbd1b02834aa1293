package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	tokens "helenus.io/helenus/internal/core/ring"
	held "helenus.io/helenus/internal/core/status"
	"helenus.io/helenus/internal/inspect"
	"helenus.io/helenus/internal/inspectapi"
)

// markup is what a keyspace or a message may be called.
const markup = `<img src=x onerror=alert(1)>`

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// ring is a formed cluster of datacenters with three racks each.
func ring(name string, datacenters, nodes, tokens int) *facts.Snapshot {
	s := &facts.Snapshot{Cluster: &v1alpha1.CassandraCluster{}, Nodes: map[string]*facts.Node{},
		Install: facts.Install{Version: "v1"}, Ledger: &ledger.Ledger{Ring: ledger.Ring{Formed: []string{"dc1"}, Members: map[string]string{}}}}
	c := s.Cluster
	c.Namespace, c.Name, c.Generation, c.Spec.Version = "shop", name, 3, "5.0.9"
	c.Spec.Disruption.Consistency = v1alpha1.ConsistencyLocalQuorum
	var endpoints []facts.Endpoint
	for i := range nodes {
		dc, rack := fmt.Sprintf("dc%d", i%datacenters+1), fmt.Sprintf("r%d", i/datacenters%3+1)
		node, id := fmt.Sprintf("%s-%s-%s-%d", name, dc, rack, i/datacenters/3), fmt.Sprintf("id-%d", i)
		e := facts.Endpoint{HostID: id, Datacenter: dc, Rack: rack, Status: facts.StatusNormal, Live: true,
			Load: 3 << 30}
		for j := range tokens {
			step := uint64(1<<63) / uint64(nodes*tokens) * 2
			e.Tokens = append(e.Tokens, int64(uint64(j*nodes+i)*step-1<<63)) //nolint:gosec // wraps as it is meant
		}
		endpoints = append(endpoints, e)
		s.Ledger.Members[node] = id
		r := &v1alpha1.CassandraNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
		r.Spec.Datacenter, r.Spec.Rack, r.Spec.State = dc, rack, v1alpha1.StateRunning
		r.Spec.Member = &v1alpha1.Member{HostID: id}
		r.Spec.Configuration = v1alpha1.NodeConfiguration{Revision: 1, Version: "5.0.9", ClusterName: "shop." + name,
			DatacenterName: dc, NumTokens: int32(tokens), //nolint:gosec // few
			CassandraYaml: v1alpha1.Settings{"concurrent_reads": {Raw: []byte("64")}}}
		pod := &corev1.Pod{}
		pod.Spec.NodeName = fmt.Sprintf("host-%d", i)
		s.Nodes[node] = &facts.Node{Name: node, Record: r, Pod: pod, Agent: &facts.Agent{Version: "v1", HostID: id,
			Address: fmt.Sprintf("10.0.0.%d", i), Phase: v1alpha1.PhaseNormal, Ready: true,
			Process: facts.ProcessRunning, Traffic: v1alpha1.TrafficOpen,
			Space: &facts.Space{Free: 60 << 30, Capacity: 100 << 30, Data: 3 << 30}, Ring: &facts.Ring{
				Mode: facts.ModeNormal, ReleaseVersion: "5.0.9",
				Keyspaces: map[string]string{"orders": "NetworkTopologyStrategy {dc1=3}", markup: "SimpleStrategy {1}"}}}}
	}
	for _, n := range s.Nodes {
		n.Agent.Ring.Endpoints = endpoints
	}
	return s
}

func status(s *facts.Snapshot) v1alpha1.CassandraClusterStatus {
	n := int32(len(s.Nodes)) //nolint:gosec // few
	is := v1alpha1.CassandraClusterStatus{ObservedGeneration: 3, Nodes: n, ReadyNodes: n,
		Version:     &v1alpha1.VersionRange{Lowest: "5.0.9", Highest: "5.0.9"},
		Datacenters: []v1alpha1.DatacenterStatus{{Name: "dc1", Formed: true, Nodes: 3, Ready: 3}},
		History: []v1alpha1.StepRecord{{Step: "FormRing", Result: v1alpha1.StepSucceeded, Message: "formed dc1",
			StartedAt: ago(2 * time.Hour), FinishedAt: ago(time.Hour)}}}
	for _, c := range []string{"Ready", "Available", "Healthy", "UpToDate"} {
		is.Conditions = append(is.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: "AsItShould",
			Message: "nothing is wrong"})
	}
	return is
}

func healthy(name string, datacenters, nodes, tokens int) *inspectapi.View {
	return shown(ring(name, datacenters, nodes, tokens))
}

// shown is the view of a ring that is well.
func shown(s *facts.Snapshot) *inspectapi.View {
	p := plan.Plan{Steps: []plan.Report{{Step: "Ledger", Outcome: plan.Done}}}
	return inspectapi.ViewOf(s, p, nil, status(s), inspectapi.Operator{Pod: "helenus-b", Version: "v1"},
		func(n *facts.Node) bool { return n.CurrentAgent() != nil })
}

// broken is a ring of which one node has lost its disk and one is gone.
func broken() (s *facts.Snapshot, lost, gone, busy *facts.Node) {
	s = ring("broken", 1, 3, 2)
	lost, gone, busy = s.Nodes["broken-dc1-r1-0"], s.Nodes["broken-dc1-r2-0"], s.Nodes["broken-dc1-r3-0"]
	lost.Agent.Phase, lost.Agent.Message, lost.Agent.Ring = v1alpha1.PhaseDataLost, "the disk is empty: "+markup, nil
	gone.Agent, gone.Unreachable = nil, "connection refused"
	busy.Agent.Ring.Endpoints[1].Live = false
	return s, lost, gone, busy
}

// trouble is a cluster of which much is wrong.
func trouble() *inspectapi.View {
	s, lost, gone, busy := broken()
	progress := int32(40)
	busy.Record.Spec.Operations = []v1alpha1.OperationIntent{{Intent: v1alpha1.Intent{ID: "c1"}, Type: "Cleanup"}}
	busy.Record.Status.Operations = []v1alpha1.OperationStatus{{ID: "c1", Phase: v1alpha1.OperationRunning,
		Progress: &progress, Message: "orders.items"}}
	s.Tasks = []*v1alpha1.CassandraTask{{ObjectMeta: metav1.ObjectMeta{Name: "tidy", CreationTimestamp: ago(time.Minute * 5)},
		Spec: v1alpha1.CassandraTaskSpec{TaskTemplate: v1alpha1.TaskTemplate{Type: v1alpha1.TaskCleanup}},
		Status: v1alpha1.CassandraTaskStatus{Phase: v1alpha1.TaskRunning, Total: 3, Succeeded: 1, Failed: 1,
			Nodes: []v1alpha1.TaskNode{{Node: busy.Name, Phase: v1alpha1.TaskFailed, Message: markup}}}}}
	is := status(s)
	is.ReadyNodes, is.ObservedGeneration = 1, 2
	is.Conditions[1] = metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "RangesAtRisk",
		Message: "3 ranges are not served at LOCAL_QUORUM"}
	is.Conditions = append(is.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue,
		Reason: "DataLost", Message: markup})
	is.Step = &v1alpha1.StepStatus{Name: "RollOut", Message: "held after the first rack", Hold: "r1", Progress: &progress}
	is.Recommended = []v1alpha1.Recommendation{{Operation: "Replace", Nodes: []string{lost.Name}, Message: "it has lost its disk"}}
	is.Repair = &v1alpha1.RepairStatus{Mode: "Automatic", Progress: &progress, Tables: []v1alpha1.TableRepair{
		{Name: "orders.items", Deadline: metav1.NewTime(now.Add(time.Hour))}}}
	is.JVMRestarts = []v1alpha1.JVMRestart{{Node: busy.Name, Reason: v1alpha1.RestartOutOfMemory, At: ago(time.Hour * 3)}}
	p := plan.Plan{Stalled: &plan.Stall{Reason: "DataLost", Message: markup},
		Steps: []plan.Report{{Step: "Ledger", Outcome: plan.Done}, {Step: "RollOut", Outcome: plan.Stuck, Message: "a node is lost"}},
		Blocked: []v1alpha1.BlockedStep{{Step: "RollOut", Reason: "MemberDown", Nodes: []string{gone.Name},
			Message: "waits until it is up"}},
		Notices: []v1alpha1.Notice{{Reason: "NodeDown", Nodes: []string{gone.Name}, Message: "it is down"}},
		Writes:  []plan.Write{{Verb: plan.Delete, Node: gone.Name, Why: markup}}}
	ahead := &plan.RollOut{Waves: [][]string{{lost.Name}, {gone.Name, busy.Name}}, Changes: []plan.FieldChange{{
		Field: "node.cassandraYaml.concurrent_reads", Have: "64", Want: "128", Takes: plan.Restart, Nodes: []string{busy.Name}}}}
	return inspectapi.ViewOf(s, p, ahead, is, inspectapi.Operator{Pod: "helenus-b", Version: "v1"},
		func(n *facts.Node) bool { return n == busy })
}

// desk is the endpoint of the operator behind what lets a browser in, as kubectl helenus console
// does.
type desk struct {
	board    *inspect.Board
	operator *inspect.Server
	// down has the operator away.
	down atomic.Bool
	*httptest.Server
}

func serve(t testing.TB, views ...*inspectapi.View) *desk {
	t.Helper()
	all := map[string]*inspectapi.View{}
	var briefs []inspectapi.Brief
	for _, v := range views {
		all[v.Cluster] = v
		c := &v1alpha1.CassandraCluster{Status: v.Status}
		c.Namespace, c.Name, c.Spec.Version = v.Namespace, v.Cluster, v.Wanted
		briefs = append(briefs, inspectapi.BriefOf(c))
	}
	d := &desk{board: &inspect.Board{}}
	reviews := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Create: func(_ context.Context,
		_ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		switch review := o.(type) {
		case *authenticationv1.TokenReview:
			review.Status.Authenticated, review.Status.User.Username = review.Spec.Token == "token", "bob"
		case *authorizationv1.SubjectAccessReview:
			review.Status.Allowed = true
		}
		return nil
	}}).Build()
	d.operator = &inspect.Server{Reviews: inspect.Reviews{Live: reviews, Client: reviews}, Board: d.board,
		Now: time.Now, Log: logr.Discard(),
		Look: func(_ context.Context, key types.NamespacedName) error {
			if all[key.Name] == nil {
				return inspect.ErrNoCluster
			}
			d.put(t, all[key.Name])
			return nil
		},
		Replicas: func(_ context.Context, key types.NamespacedName, keyspace string, token *tokens.Token) (*held.Replicas, error) {
			s := ring(key.Name, 1, 3, 2)
			if key.Name == "broken" {
				s, _, _, _ = broken()
			}
			return held.ReplicasOf(s, keyspace, token)
		},
		Fleet: func(context.Context, string) ([]inspectapi.Brief, error) { return briefs, nil },
	}
	operator := d.operator.Handler()
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "session"):
			_, _ = w.Write([]byte("session"))
		case strings.HasPrefix(r.URL.Path, "/v1/") &&
			(d.down.Load() || r.Header.Get("Authorization") != "Bearer session"):
			w.WriteHeader(http.StatusBadGateway)
			_ = json.NewEncoder(w).Encode(inspectapi.Refusal{Error: "no leader"})
		default:
			r.Header.Set("Authorization", "Bearer token")
			operator.ServeHTTP(w, r)
		}
	}))
	d.ends(t)
	return d
}

// ends the server with the test.
func (d *desk) ends(t testing.TB) {
	server := d.Server
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
}

// served is the endpoint as browsers reach it through a Service.
func served(t testing.TB, views ...*inspectapi.View) *desk {
	t.Helper()
	d, leads := serve(t, views...), make(chan struct{})
	close(leads)
	d.Server = httptest.NewTLSServer((&inspect.Public{Server: d.operator, Hosts: []string{"127.0.0.1"},
		Leads: leads}).Handler())
	d.ends(t)
	return d
}

func (d *desk) put(t testing.TB, v *inspectapi.View) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d.board.Put(types.NamespacedName{Namespace: v.Namespace, Name: v.Cluster}, text, now)
}
