package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// verified fails unless a signature is that of content.
func verified(t *testing.T, public *ecdsa.PublicKey, content []byte, signature string) {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature))
	sum := sha256.Sum256(content)
	if err != nil || !ecdsa.VerifyASN1(public, sum[:], der) {
		t.Errorf("%q is no signature of %q: %v", signature, content, err)
	}
}

// The images of a release and a file are signed by a key with a password: the signature names the
// digest of the image, and is where cosign looks for it.
func TestSigned(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := encrypted.Encrypt(der, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	save := func(name, kind string, content []byte) string {
		file := filepath.Join(directory, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for file, why := range map[string]string{
		filepath.Join(directory, "none"):              "no such file",
		save("public", "PUBLIC KEY", der):             "it is a PUBLIC KEY",
		save("broken", "PRIVATE KEY", []byte("x")):    "asn1",
		save("other", "SIGSTORE PRIVATE KEY", closed): "cosign generate-key-pair",
	} {
		if _, err := ReadKey(file, ""); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", file, err)
		}
	}
	file := save("key", "ENCRYPTED SIGSTORE PRIVATE KEY", closed)
	if _, err := ReadKey(file, "guess"); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
		t.Errorf("another password: %v", err)
	}
	key, err := ReadKey(file, "secret")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := ReadKey(save("plain", "PRIVATE KEY", der), ""); err != nil || !plain.private.Equal(private) {
		t.Errorf("without a password: %v", err)
	}

	files := write(t, key)
	digest := digestIn(t, unpacked(t, files["agent-v1.2.3.oci.tar.gz"])["index.json"])
	signed := unpacked(t, files["agent-v1.2.3.sig.oci.tar.gz"])
	place := "registry.example/agent:" + strings.Replace(digest, ":", "-", 1) + ".sig"
	if !strings.Contains(signed["index.json"], place) {
		t.Errorf("the signature is not at %s: %s", place, signed["index.json"])
	}
	blob := func(digest string) []byte { return []byte(signed["blobs/"+strings.Replace(digest, ":", "/", 1)]) }
	var manifest struct {
		Layers []struct {
			MediaType, Digest string
			Annotations       map[string]string
		}
	}
	err = json.Unmarshal(blob(digestIn(t, signed["index.json"])), &manifest)
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%+v: %v", manifest, err)
	}
	payload := blob(manifest.Layers[0].Digest)
	verified(t, &private.PublicKey, payload, manifest.Layers[0].Annotations[signatureAnnotation])
	if !strings.Contains(string(payload), `"docker-manifest-digest":"`+digest+`"`) {
		t.Errorf("another image is signed: %s", payload)
	}

	sums := filepath.Join(directory, "SHA256SUMS")
	if err := os.WriteFile(sums, []byte("sums"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := key.SignFile(sums); err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(sums + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	verified(t, &private.PublicKey, []byte("sums"), string(signature))
}

// digestIn is that of the first manifest of an index.
func digestIn(t *testing.T, index string) string {
	t.Helper()
	var of struct{ Manifests []struct{ Digest string } }
	if err := json.Unmarshal([]byte(index), &of); err != nil || len(of.Manifests) == 0 {
		t.Fatalf("index %s: %v", index, err)
	}
	return of.Manifests[0].Digest
}
