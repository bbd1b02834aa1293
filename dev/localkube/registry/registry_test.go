package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// serve runs a registry over dir and gives its HOST:PORT.
func serve(t *testing.T, dir string) (address string, stop func()) {
	t.Helper()
	h, err := newHandler(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), s.Close
}

func image(t *testing.T) v1.Image {
	t.Helper()
	i, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// digestOf pulls the way containerd does from a mirror: repository path and tag
// without the registry, which is in the query.
func digestOf(t *testing.T, address, registry, path string) string {
	t.Helper()
	res, err := http.Get("http://" + address + "/v2/" + path + "?ns=" + registry)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return res.Status
	}
	return res.Header.Get("Docker-Content-Digest")
}

func wantDigest(t *testing.T, address, registry, path string, want v1.Image) {
	t.Helper()
	d, err := want.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := digestOf(t, address, registry, path); got != d.String() {
		t.Errorf("pull of %s from %s: %s, want %s", path, registry, got, d)
	}
}

func TestImagesOfEveryRegistrySurviveARestart(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	address, stop := serve(t, dir)
	hub, github, local := image(t), image(t), image(t)
	for ref, i := range map[string]v1.Image{"cassandra:5.0.6": hub, "ghcr.io/library/cassandra:5.0.6": github,
		"localhost:5001/a/b:c": local} {
		if l, err := Push(ctx, address, ref, i); err != nil || l.Present {
			t.Fatalf("push %s: present %v, error %v", ref, l.Present, err)
		}
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image(t)})
	if _, err := Push(ctx, address, "example.com/multi:1", index); err != nil {
		t.Fatal(err)
	}
	check := func(address string) {
		wantDigest(t, address, "docker.io", "library/cassandra/manifests/5.0.6", hub)
		wantDigest(t, address, "ghcr.io", "library/cassandra/manifests/5.0.6", github)
		wantDigest(t, address, "localhost:5001", "a/b/manifests/c", local)
		want, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if got := digestOf(t, address, "example.com", "multi/manifests/1"); got != want.String() {
			t.Errorf("pull of an index: %s, want %s", got, want)
		}
		if got := digestOf(t, address, "quay.io", "library/cassandra/manifests/5.0.6"); !strings.HasPrefix(got, "404") {
			t.Errorf("an image of another registry is served: %s", got)
		}
	}
	check(address)
	stop()
	address, _ = serve(t, dir)
	check(address)
	if l, err := Push(ctx, address, "cassandra:5.0.6", hub); err != nil || !l.Present {
		t.Errorf("second push: present %v, error %v", l.Present, err)
	}
	if l, err := Push(ctx, address, "cassandra:5.0.6", github); err != nil || l.Present {
		t.Errorf("push of other content under the same name: present %v, error %v", l.Present, err)
	}
	wantDigest(t, address, "docker.io", "library/cassandra/manifests/5.0.6", github)
}

func TestPrivateNamesNeedThePassword(t *testing.T) {
	ctx, want := context.Background(), image(t)
	digest, err := want.Digest()
	if err != nil {
		t.Fatal(err)
	}
	address, _ := serve(t, t.TempDir())
	if _, err := Push(ctx, address, "cassandra:5.0.6", want); err != nil {
		t.Fatal(err)
	}
	config, err := DockerConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, public := range []string{"cassandra:5.0.6", "docker.io/library/cassandra@" + digest.String()} {
		private, err := Private(address, public)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(private, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		var refused *transport.Error
		if _, err := remote.Head(ref); !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
			t.Errorf("pull of %s without the password: error %v, want 401", private, err)
		}
		if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), config, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := remote.Head(ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != digest {
			t.Errorf("pull of %s: digest %s, want %s", private, got.Digest, digest)
		}
	}
}

func TestAnImageOfAnotherRegistryIsNotPrivateByItsName(t *testing.T) {
	want := image(t)
	address, _ := serve(t, t.TempDir())
	if _, err := Push(context.Background(), address, "private/cassandra:1", want); err != nil {
		t.Fatal(err)
	}
	wantDigest(t, address, "docker.io", "private/cassandra/manifests/1", want)
}

func TestLoad(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	first, second := image(t), image(t)

	docker := filepath.Join(dir, "docker.tar")
	a, err := name.NewTag("cassandra:5.0.6")
	if err != nil {
		t.Fatal(err)
	}
	b, err := name.NewTag("ghcr.io/helenus/operator:dev")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.MultiWriteToFile(docker, map[name.Tag]v1.Image{a: first, b: second}); err != nil {
		t.Fatal(err)
	}

	folder := filepath.Join(dir, "oci")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	named := layout.WithAnnotations(map[string]string{refAnnotation: "quay.io/x/y:1"})
	if err := path.AppendImage(first, named); err != nil {
		t.Fatal(err)
	}
	oci := filepath.Join(dir, "oci.tar")
	pack(t, folder, oci)

	for _, tc := range []struct {
		file string
		refs []string
	}{
		{docker, []string{"docker.io/library/cassandra:5.0.6", "ghcr.io/helenus/operator:dev"}},
		{folder, []string{"quay.io/x/y:1"}},
		{oci, []string{"quay.io/x/y:1"}},
	} {
		address, _ := serve(t, t.TempDir())
		loaded, err := Load(ctx, address, tc.file)
		if err != nil {
			t.Errorf("%s: %v", tc.file, err)
			continue
		}
		if len(loaded) != len(tc.refs) {
			t.Errorf("%s: loaded %v, want %v", tc.file, loaded, tc.refs)
		}
		for _, ref := range tc.refs {
			registry, rest, _ := strings.Cut(ref, "/")
			repository, tag, _ := strings.Cut(rest, ":")
			if got := digestOf(t, address, registry, repository+"/manifests/"+tag); !strings.HasPrefix(got, "sha256:") {
				t.Errorf("%s: pull of %s: %s", tc.file, ref, got)
			}
		}
		again, err := Load(ctx, address, tc.file)
		if err != nil {
			t.Errorf("%s again: %v", tc.file, err)
		}
		for _, l := range again {
			if !l.Present {
				t.Errorf("%s again: %s was copied a second time", tc.file, l.Reference)
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "unnamed")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image(t), layout.WithAnnotations(map[string]string{
		refAnnotation: "latest",
	})); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text.tar")
	if err := os.WriteFile(text, []byte("no tar, but long enough to be read as a header"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.tar")
	pack(t, t.TempDir(), other)
	address, _ := serve(t, t.TempDir())
	for file, want := range map[string]string{
		folder:                         "REPOSITORY:TAG",
		text:                           "read tar",
		other:                          "it is no image",
		filepath.Join(dir, "none.tar"): "find image",
	} {
		if _, err := Load(context.Background(), address, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", file, err, want)
		}
	}
}

func pack(t *testing.T, folder, file string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUnpackStaysInItsFolder(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "../outside", Mode: 0o644, Size: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	file, dir := filepath.Join(base, "a.tar"), filepath.Join(base, "in")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unpack(file, dir); err == nil {
		t.Error("no error for a path that leads outside")
	}
	if _, err := os.Stat(filepath.Join(base, "outside")); err == nil {
		t.Error("a file was written outside the folder")
	}
}

func TestStaticImageIsReproducible(t *testing.T) {
	program := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for range 2 {
		i, err := staticImage("/bin/p", program, []string{"a", "b"}, v1.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := i.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same program gave %s, then %s", digests[0], digests[1])
	}
}
