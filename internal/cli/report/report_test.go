package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiJoZWxlbnVzIn0.c2lnbmF0dXJlLW9mLWl0"
	pem = "-----BEGIN RSA PRIVATE KEY-----\nTUlJRXBBSUJBQUtDQVFFQQ==\nc2Vjb25kbGluZQ==\n-----END RSA PRIVATE KEY-----"
	aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY"
)

// planted are secrets of many kinds: what must not be found, and where it stands.
var planted = map[string]struct{ secret, in string }{
	"private key":                {"TUlJRXBBSUJBQUtDQVFFQQ", pem},
	"token of a service account": {"eyJzdWIiOiJoZWxlbnVzIn0", "read " + jwt + " from the volume"},
	"bearer":                     {"abcdef0123456789", "Authorization: Bearer abcdef0123456789"},
	"basic": {"Y2Fzc2FuZHJhOmNhc3NhbmRyYQ==",
		"-H 'authorization: Basic Y2Fzc2FuZHJhOmNhc3NhbmRyYQ=='"},
	"scheme alone":      {"Zm9vOmJhcmJheg==", "sent Basic Zm9vOmJhcmJheg== to it"},
	"user in a URL":     {"hunter2!", "fetching https://bob:hunter2!@nexus.example.com/x"},
	"system property":   {"changeit-1", "-Djavax.net.ssl.keyStorePassword=changeit-1 -Dx=y"},
	"YAML":              {"truststore!9", "truststore_password: truststore!9"},
	"JSON":              {"s3cr3t-json", `{"a":1,"clientSecret":"s3cr3t-json"}`},
	"JSON in a text":    {"s3cr3t-text", `msg="{\"password\":\"s3cr3t-text\"}"`},
	"CQL":               {"cql-Pa55", "CREATE ROLE app WITH PASSWORD = 'cql-Pa55' AND LOGIN = true"},
	"CQL of old":        {"old-Pa55", "CREATE USER app IDENTIFIED BY 'old-Pa55'"},
	"access key":        {"AKIAIOSFODNN7EXAMPLE", "using AKIAIOSFODNN7EXAMPLE of the instance"},
	"random characters": {aws, "got " + aws + " from it"},
	"token of GitHub": {"ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"clone with ghp_0123456789abcdefghijABCDEFGHIJ012345"},
	"hash of a password": {"$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy",
		"salted_hash $2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"},
	"variable of a shell":          {"pw-of-shell", "export BACKUP_PASS=pw-of-shell"},
	"private key without its end":  {"c2Vjb25kbGluZQ", "-----BEGIN PRIVATE KEY-----\nc2Vjb25kbGluZQ=="},
	"quoted value, several words":  {"two words", `password="two words"`},
	"secret key of object storage": {"tiny-key", "secret_access_key = tiny-key"},
}

func TestText(t *testing.T) {
	for name, p := range planted {
		if got := text(p.in); strings.Contains(got, p.secret) || !strings.Contains(got, redacted) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, s := range []string{
		"INFO  [main] StorageService.java:712 - Token metadata: initial_token: -9223372036854775808, num_tokens: 16",
		"authenticator: PasswordAuthenticator", "secretName",
		"node orders-dc1-r1-0 joined with host id 0b2c7d1e-0000-4000-8000-000000000001",
		"/var/lib/cassandra/data/shop/orders-5a1c395eb41f11e6a5f1d9c1b0e3a3b1/nb-1-big-Data.db",
		"image r/helenus/agent@sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
		"org.apache.cassandra.db.compaction.CompactionStrategyManager$AbstractStrategyHolderOfSSTables",
	} {
		if got := text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// world is a cluster with secrets in all that a report is made of.
func world(t *testing.T, funcs interceptor.Funcs) (client.Client, *v1alpha1.CassandraCluster) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	of := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelCluster: "orders", v1alpha1.LabelName: "helenus"}}
	}
	everything := ""
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		everything += planted[name].in + "\n"
	}
	cluster := &v1alpha1.CassandraCluster{ObjectMeta: of("shop", "orders")}
	cluster.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"x":"applied-before"}`}
	cluster.Status.History = []v1alpha1.StepRecord{{Step: "Join", Message: everything}}
	record := &v1alpha1.CassandraNode{ObjectMeta: of("shop", "n1")}
	record.Status.Tokens, record.Status.Message = []string{"-42"}, everything
	pod := &corev1.Pod{ObjectMeta: of("shop", "n1")}
	pod.Spec.Containers = []corev1.Container{{Name: "cassandra", Env: []corev1.EnvVar{
		{Name: "DB_PASSWORD", Value: "literal-of-env"}, {Name: "OPTS", Value: everything},
		{Name: "ZONE", Value: "kept"},
		{Name: "REF_TOKEN", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{Key: "kept-key"}}}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "cassandra", RestartCount: 1}}
	ledger := &corev1.ConfigMap{ObjectMeta: of("shop", "orders-ledger"),
		Data: map[string]string{"ledger.json": `{"steps":7,"state":{"apiKey":"key-in-ledger"}}`, "plain": everything}}
	secret := &corev1.Secret{ObjectMeta: of("shop", "orders-agent-ca"),
		Data: map[string][]byte{"tls.key": []byte("held-by-a-secret")}}
	event := &eventsv1.Event{ObjectMeta: of("shop", "e"), Reason: "StepBlocked", Type: "Warning", Note: everything,
		Regarding: corev1.ObjectReference{Kind: "CassandraCluster", Name: "orders"}}
	foreign := &eventsv1.Event{ObjectMeta: of("shop", "f"), Note: "of a stranger",
		Regarding: corev1.ObjectReference{Name: "web"}}
	operator := &corev1.Pod{ObjectMeta: of("helenus-system", "helenus-a")}
	operator.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "operator"}}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).
		WithObjects(cluster, record, pod, ledger, secret, event, foreign, operator).Build(), cluster
}

// files of a report by their names, without its folder.
func files(t *testing.T, report []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(h.Name, "helenus-report-shop-orders/")] = string(content)
	}
}

// written is a report, as its files.
func written(t *testing.T, funcs interceptor.Funcs,
	logs func(name string) (io.ReadCloser, error)) map[string]string {
	t.Helper()
	c, cluster := world(t, funcs)
	var out bytes.Buffer
	if err := Write(t.Context(), cluster, Sources{Client: c, OperatorNamespace: "helenus-system", Now: time.Unix(0, 0),
		Logs: func(_ context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
			if *o.SinceSeconds != 3600 {
				t.Errorf("the log of %s goes back %d s", pod, *o.SinceSeconds)
			}
			return logs(fmt.Sprintf("%s/%s/%s %t", namespace, pod, o.Container, o.Previous))
		},
		Texts: []Text{
			{"plan.json", func(context.Context) ([]byte, error) {
				return []byte(`{"password":"of-the-plan","n":1}`), nil
			}},
			{"versions.json", func(context.Context) ([]byte, error) {
				return nil, errors.New("no answer: password=of-an-error")
			}},
		}}, &out); err != nil {
		t.Fatal(err)
	}
	return files(t, out.Bytes())
}

// A report has what is of the cluster, and no secret in any form.
func TestAReportHoldsNoSecret(t *testing.T) {
	everything := ""
	for _, name := range slices.Sorted(maps.Keys(planted)) {
		everything += planted[name].in + "\n"
	}
	got := written(t, interceptor.Funcs{}, func(name string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("log of " + name + "\n" + everything)), nil
	})
	for name, words := range map[string]string{
		"cluster.yaml": "kind: CassandraCluster", "nodes/n1.yaml": `- "-42"`, "pods/n1.yaml": "value: kept",
		"configmaps/orders-ledger.yaml": "steps: 7", "plan.json": `"n": 1`, "operator/pods/helenus-a.yaml": "kind: Pod",
		"events.txt":                           "Warning StepBlocked CassandraCluster/orders",
		"logs/n1/cassandra.log":                "log of shop/n1/cassandra false",
		"logs/n1/cassandra.before.log":         "log of shop/n1/cassandra true",
		"operator/logs/helenus-a/operator.log": "log of helenus-system/helenus-a/operator false",
		"problems.txt":                         "versions.json: no answer",
	} {
		if !strings.Contains(got[name], words) {
			t.Errorf("%s lacks %q: %s", name, words, got[name])
		}
	}
	secrets := []string{"applied-before", "literal-of-env", "key-in-ledger", "held-by-a-secret",
		"of-the-plan", "of-an-error",
		"of a stranger", base64.StdEncoding.EncodeToString([]byte("held-by-a-secret"))}
	for _, p := range planted {
		secrets = append(secrets, p.secret)
	}
	for name, content := range got {
		for _, s := range secrets {
			if strings.Contains(content, s) {
				t.Errorf("%s holds %q", name, s)
			}
		}
	}
	if !strings.Contains(got["pods/n1.yaml"], "key: kept-key") {
		t.Errorf("where a secret is may be said: %s", got["pods/n1.yaml"])
	}
}

// What may not be read is named, and the rest is there.
func TestAReportNamesWhatItLacks(t *testing.T) {
	got := written(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
		o ...client.ListOption) error {
		if _, is := list.(*corev1.PodList); is {
			return errors.New("pods is forbidden")
		}
		return c.List(ctx, list, o...)
	}}, func(string) (io.ReadCloser, error) { return nil, errors.New("not asked") })
	for _, want := range []string{"pods: pods is forbidden", "operator/pods: pods is", "logs: pods is"} {
		if !strings.Contains(got["problems.txt"], want) {
			t.Errorf("problems lack %q: %s", want, got["problems.txt"])
		}
	}
	if got["nodes/n1.yaml"] == "" {
		t.Error("the records are missing")
	}
}

// noise cannot be compressed, as no log is.
type noise struct{ left int }

func (n *noise) Read(p []byte) (int, error) {
	if n.left <= 0 {
		return 0, io.EOF
	}
	r := rand.New(rand.NewPCG(uint64(n.left), 1))
	for i := range p {
		p[i] = byte(r.UintN(255)) + 1
		if i%64 == 63 {
			p[i] = '\n'
		}
	}
	n.left -= len(p)
	return len(p), nil
}

// The end of a long log is kept, and a report does not grow beyond its size.
func TestAReportIsBounded(t *testing.T) {
	got, err := tail(io.MultiReader(strings.NewReader("the first line\n"), &noise{10 << 20},
		strings.NewReader("the last line\n")), 1<<20)
	if err != nil || len(got) > 1<<20 || len(got) < 1<<20-100 || !bytes.HasSuffix(got, []byte("\nthe last line\n")) {
		t.Errorf("%d bytes are kept (%v)", len(got), err)
	}
	if got, err := tail(strings.NewReader("one\ntwo"), 100); err != nil || string(got) != "one\ntwo" {
		t.Errorf("of a short log %q is kept (%v)", got, err)
	}
	var out bytes.Buffer
	a := newArchive(&out, 3<<20, "r", time.Unix(0, 0))
	refused := 0
	for i := range 8 {
		content, _ := io.ReadAll(&noise{500 << 10})
		if err := a.add(fmt.Sprint(i), content); errors.Is(err, errFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.close(); err != nil || out.Len() > 3<<20 || refused == 0 || refused == 8 {
		t.Errorf("%d bytes, %d files left out (%v)", out.Len(), refused, err)
	}
}
