//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/cqlclient"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// TestOneNode: the smallest cluster serves, with its commit log on a volume of its own, and the
// tools that its operator knows work in it unmodified. Its JVM is frozen in the end, for
// TestFrozenJVM.
func TestOneNode(t *testing.T) {
	s, err := scene.Open(background, kubernetes, "e2e-one", *patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		judge(t, s)
		if frozen.ring != nil || t.Failed() && *keep {
			return
		}
		if err := s.Close(background); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	sample := sampleOf(t, "one-node.yaml")
	size := resource.MustParse("1Gi")
	sample.Spec.Node.Storage.Claims.Commitlog = &v1alpha1.VolumeClaim{Size: &size}
	var ring *scene.Ring
	took(t, "one node serves", func() (err error) {
		ring, err = s.Form(t.Context(), sample)
		return err
	})
	took(t, "rows are written and read", func() error {
		if err := ring.Fill(t.Context(), gocql.One); err != nil {
			return err
		}
		return ring.ReadBack(t.Context(), gocql.All)
	})
	wantRingSeen(t, ring)
	wantShell(t, ring)
	wantRole(t, ring)
	wantTLS(t, ring)
	wantCommitLogApart(t, ring)
	if !t.Failed() && isRun("TestFrozenJVM") {
		freeze(t, ring)
	}
}

// wantShell fails if cqlsh does not find the rows when it is started in the container with the
// password of the Secret, and without any argument that says where; or if it gets in without.
func wantShell(t *testing.T, r *scene.Ring) {
	t.Helper()
	node := r.NodeNames(t.Context())[0]
	login, err := cqlclient.Superuser(t.Context(), r.Kubernetes, r.Namespace, node)
	if err != nil || login == nil {
		t.Fatalf("superuser %v, error %v; want one: a ring asks for passwords", login, err)
	}
	const statement = "SELECT count(*) FROM e2e.rows"
	for _, stranger := range [][]string{{"cqlsh", "-e", statement},
		{"cqlsh", "-u", v1alpha1.RoleDefault, "-p", v1alpha1.RoleDefault, "-e", statement}} {
		if out, err := r.Run(t.Context(), node, stranger...); err == nil {
			t.Errorf("%v says %q; want it refused", stranger, out)
		}
	}
	out, err := r.Run(t.Context(), node, "cqlsh", "-u", login.Username, "-p", login.Password, "-e", statement)
	if err != nil || !strings.Contains(out, "200") {
		t.Errorf("cqlsh says %q, error %v; want 200 rows", out, err)
	}
}

// wantRole fails if the role of an application that the spec asks for does not get what it is
// granted, or gets more.
func wantRole(t *testing.T, r *scene.Ring) {
	t.Helper()
	const role, password = "app", "that people choose"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: role},
		Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{corev1.BasicAuthPasswordKey: []byte(password)}}
	took(t, "an application has a role", func() error {
		if err := r.Kubernetes.Client.Create(t.Context(), secret); err != nil {
			return err
		}
		if err := r.Edit(t.Context(), func(s *v1alpha1.CassandraClusterSpec) {
			s.Security = &v1alpha1.Security{Authentication: &v1alpha1.Authentication{Roles: []v1alpha1.ApplicationRole{{
				Name: role, SecretName: role, Grants: []v1alpha1.RoleGrant{{Keyspace: "e2e",
					Permissions: []v1alpha1.Permission{v1alpha1.PermissionSelect}}}}}}}
		}); err != nil {
			return err
		}
		return r.Until(t.Context(), 2*time.Minute, "the role is kept", func(now follow.Sight) error {
			c, _ := now.Cluster(r.Name)
			if s := c.Status.Security; s == nil || len(s.Authentication.Roles) != 1 {
				return errors.New("it is not")
			}
			return nil
		})
	})
	node := r.NodeNames(t.Context())[0]
	for statement, may := range map[string]bool{"SELECT count(*) FROM e2e.rows": true, "TRUNCATE e2e.rows": false} {
		out, err := r.Run(t.Context(), node, "cqlsh", "-u", role, "-p", password, "-e", statement)
		if (err == nil) != may {
			t.Errorf("%s: cqlsh says %q, error %v; want that the role may: %v", statement, out, err, may)
		}
	}
}

// wantTLS fails if the port between nodes takes what is in clear, or if CQL is not encrypted by a
// certificate of the authority that is published.
func wantTLS(t *testing.T, r *scene.Ring) {
	t.Helper()
	node := r.Nodes(t.Context())[0]
	plain, err := net.DialTimeout("tcp", net.JoinHostPort(node.Status.Address, strconv.Itoa(layout.StoragePort)),
		10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close() //nolint:errcheck // the node ends it
	// The magic of a first message, and a beginning of its flags: in clear, Cassandra would wait
	// for the rest.
	if _, err := plain.Write([]byte{0xca, 0x55, 0x2d, 0xfa, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if err := plain.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, plain); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("port %d takes what is in clear", layout.StoragePort)
	}
	published := &corev1.ConfigMap{}
	if err := kubernetes.Client.Get(t.Context(), client.ObjectKey{Namespace: r.Namespace,
		Name: v1alpha1.AuthorityName(r.Name, v1alpha1.UseClients)}, published); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(published.Data["ca.crt"]))
	encrypted, err := tls.Dial("tcp", net.JoinHostPort(node.Status.Address, strconv.Itoa(layout.NativePort)),
		&tls.Config{RootCAs: roots, ServerName: v1alpha1.ClientServiceName(r.Name, node.Spec.Datacenter),
			MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatalf("CQL over TLS: %v", err)
	}
	encrypted.Close() //nolint:errcheck,gosec // nothing was sent
	login, err := cqlclient.Superuser(t.Context(), r.Kubernetes, r.Namespace, node.Name)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := r.Run(t.Context(), node.Name, "sh", "-c", `printf %s "$0" > /tmp/ca.crt`,
		published.Data["ca.crt"]); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	out, err := r.Run(t.Context(), node.Name, "env", "SSL_CERTFILE=/tmp/ca.crt", "cqlsh", "--ssl", "-u", login.Username,
		"-p", login.Password, "-e", "SELECT count(*) FROM e2e.rows", "localhost")
	if err != nil || !strings.Contains(out, "200") {
		t.Errorf("cqlsh over TLS says %q, error %v; want 200 rows", out, err)
	}
}

// wantCommitLogApart fails if the commit log is not on its own volume, or a volume does not say
// whose it is.
func wantCommitLogApart(t *testing.T, r *scene.Ring) {
	t.Helper()
	node := r.NodeNames(t.Context())[0]
	directory := layout.CommitlogDir + "/commitlog"
	if got := setting(t, r, node, "commitlog_directory"); got != directory {
		t.Errorf("commitlog_directory is %q, want %q", got, directory)
	}
	if out, err := r.Run(t.Context(), node, "ls", directory); err != nil || !strings.Contains(out, "CommitLog-") {
		t.Errorf("%s has %q, error %v; want segments", directory, out, err)
	}
	for volume, path := range map[string]string{v1alpha1.VolumeData: layout.DataDir,
		v1alpha1.VolumeCommitlog: layout.CommitlogDir} {
		out, err := r.Run(t.Context(), node, "cat", path+"/.helenus/volume.json")
		if err != nil {
			t.Errorf("marker of volume %s: %v", volume, err)
			continue
		}
		var file map[string]any
		if err := json.Unmarshal([]byte(out), &file); err != nil {
			t.Errorf("marker of volume %s: %v", volume, err)
		}
		for _, want := range []string{`"` + volume + `"`, `"` + node + `"`, `"` + string(r.UID) + `"`} {
			if !strings.Contains(out, want) {
				t.Errorf("the marker of volume %s is %s, and does not name %s", volume, out, want)
			}
		}
	}
}
