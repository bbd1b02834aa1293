//go:build cluster

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"helenus.io/helenus/dev/localkube/audit"
	"helenus.io/helenus/dev/localkube/control"
	"helenus.io/helenus/dev/localkube/process"
)

// TestSeveralAPIServersAtOnce starts three side by side and checks that each is
// usable and its own, and that nothing of them stays.
func TestSeveralAPIServersAtOnce(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	var clusters [3]*Cluster
	var wg sync.WaitGroup
	for i := range clusters {
		wg.Go(func() {
			name := fmt.Sprintf("api%d", i)
			c, err := Up(ctx, Options{Name: name, State: filepath.Join(base, name), APIOnly: true, Controllers: i == 0})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() {
				if err := c.Down(ctx, io.Discard); err != nil {
					t.Error(err)
				}
			})
			clusters[i] = c
			client, err := c.Client()
			if err != nil {
				t.Error(err)
				return
			}
			if err := client.Apply(ctx, "/api/v1/namespaces/only-"+name,
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"only-`+name+`"}}`); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for i, c := range clusters {
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		client, err := c.Client()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Get(ctx, "/api/v1/namespaces", &list); err != nil {
			t.Fatal(err)
		}
		var own []string
		for _, n := range list.Items {
			if strings.HasPrefix(n.Metadata.Name, "only-") {
				own = append(own, n.Metadata.Name)
			}
		}
		if want := fmt.Sprintf("only-api%d", i); len(own) != 1 || own[0] != want {
			t.Errorf("cluster %d has the namespaces %v, want %s alone", i, own, want)
		}
	}
	t.Run("controllers", func(t *testing.T) {
		client, err := clusters[0].Client()
		if err != nil {
			t.Fatal(err)
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		// Made by the controller manager alone.
		if err := process.WaitFor(wait, 100*time.Millisecond, func(ctx context.Context) error {
			return client.Get(ctx, "/api/v1/namespaces/only-api0/serviceaccounts/default", nil)
		}); err != nil {
			t.Error(err)
		}
	})
	t.Run("bound tokens and policies", func(t *testing.T) { boundTokens(t, clusters[1]) })
	for _, c := range clusters {
		if err := c.Down(ctx, os.Stderr); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(base); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// policy lets a pod write the config map of its own name only. It uses what only
// a token bound to the pod carries.
const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: own-name}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  matchConditions: [{name: sa, expression: "request.userInfo.username.startsWith('system:serviceaccount:default:')"}]
  variables:
  - name: pod
    expression: "'authentication.kubernetes.io/pod-name' in request.userInfo.extra ? request.userInfo.extra['authentication.kubernetes.io/pod-name'][0] : ''"
  validations: [{expression: variables.pod == object.metadata.name, messageExpression: "'pod ' + variables.pod + ' must not write ' + object.metadata.name"}]
`

const binding = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: own-name}
spec: {policyName: own-name, validationActions: [Deny]}
`

const writer = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: default, name: agent}]
`

func boundTokens(t *testing.T, c *Cluster) {
	ctx := context.Background()
	client, err := c.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct{ path, manifest string }{
		{"/api/v1/namespaces/default/serviceaccounts/agent",
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"agent"}}`},
		{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/writer", writer},
		{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/own-name", policy},
		{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/own-name", binding},
		{
			"/api/v1/namespaces/default/pods/p1", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1"},"spec":{"serviceAccountName":"agent","containers":[{"name":"c","image":"x"}]}}`,
		},
	} {
		if err := client.Apply(ctx, o.path, o.manifest); err != nil {
			t.Fatal(err)
		}
	}
	var made struct{ Metadata struct{ UID string } }
	if err := client.Get(ctx, "/api/v1/namespaces/default/pods/p1", &made); err != nil {
		t.Fatal(err)
	}
	var token struct{ Status struct{ Token string } }
	request := fmt.Sprintf(
		`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p1","uid":%q}}}`, made.Metadata.UID,
	)
	if err := client.Create(ctx, "/api/v1/namespaces/default/serviceaccounts/agent/token", request,
		&token); err != nil {
		t.Fatal(err)
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A new policy takes effect a moment later.
	if err := process.WaitFor(wait, 100*time.Millisecond, func(context.Context) error {
		if code, message := createConfigMap(t, c, token.Status.Token, "p2"); code != http.StatusUnprocessableEntity &&
			code != http.StatusForbidden || !strings.Contains(message, "pod p1 must not write p2") {
			// What was let through is taken back, to ask again.
			if err := client.Delete(ctx, "/api/v1/namespaces/default/configmaps/p2"); err != nil {
				t.Fatal(err)
			}
			return fmt.Errorf("HTTP %d: %s", code, message)
		}
		return nil
	}); err != nil {
		t.Errorf("write of another's object: %v", err)
	}
	if code, message := createConfigMap(t, c, token.Status.Token, "p1"); code != http.StatusCreated {
		t.Errorf("write of the own object: HTTP %d: %s", code, message)
	}
	counts, err := c.Audit(audit.Filter{User: "system:serviceaccount:default:agent"})
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != 1 || counts[0].Verb != "create" || counts[0].Resource != "configmaps" || counts[0].Failed < 1 ||
		counts[0].Requests <= counts[0].Failed {
		t.Errorf("audited are %v, want creations of configmaps, failed and not", counts)
	}
}

// createConfigMap creates one as the holder of the token.
func createConfigMap(t *testing.T, c *Cluster, token, name string) (code int, answer string) {
	t.Helper()
	ca, err := os.ReadFile(c.dir.PKI("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate in ca.crt")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
	req, err := http.NewRequest(http.MethodPost, control.ServerURL(c.state)+"/api/v1/namespaces/default/configmaps",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	var status struct{ Message string }
	if err := json.Unmarshal(b.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, status.Message
}
