package release

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"helenus.io/helenus/dev/images/internal/own"
)

// Key signs what is published, in the forms of cosign.
type Key struct{ private *ecdsa.PrivateKey }

// ReadKey reads a key as `cosign generate-key-pair` writes it, with its password, or one of ECDSA
// in PKCS #8.
func ReadKey(file, password string) (*Key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read key %s: it is no PEM", file)
	}
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if block.Bytes, err = encrypted.Decrypt(block.Bytes, []byte(password)); err != nil {
			return nil, fmt.Errorf("decrypt key %s with COSIGN_PASSWORD: %w", file, err)
		}
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("read key %s: it is a %s, want what cosign generate-key-pair writes", file, block.Type)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", file, err)
	}
	private, is := key.(*ecdsa.PrivateKey)
	if !is {
		return nil, fmt.Errorf("read key %s: it is of another kind than ECDSA", file)
	}
	return &Key{private}, nil
}

// Sign is the signature of content, as `cosign sign-blob` writes it.
func (k *Key) Sign(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	signature, err := k.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

// A signature is a layer of this type, and in this annotation of it: so `cosign verify` finds it.
const (
	simpleSigning       = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// signature writes what `cosign sign` would put beside an image into the registry, as an archive of
// an OCI layout.
func (r *Release) signature(i own.Image, digest v1.Hash) error {
	type object = map[string]any
	payload, err := json.Marshal(object{"critical": object{
		"identity": object{"docker-reference": i.Repository},
		"image":    object{"docker-manifest-digest": digest.String()},
		"type":     "cosign container image signature",
	}, "optional": nil})
	if err != nil {
		return err
	}
	signature, err := r.Key.Sign(payload)
	if err != nil {
		return err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), mutate.Addendum{Layer: static.NewLayer(payload, simpleSigning),
		Annotations: map[string]string{signatureAnnotation: signature}})
	if err != nil {
		return err
	}
	directory := filepath.Join(r.Work, i.Name+"-signature")
	all, err := layout.Write(directory, empty.Index)
	if err != nil {
		return err
	}
	name := i.Repository + ":" + digest.Algorithm + "-" + digest.Hex + ".sig"
	if err := all.AppendImage(image, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": name})); err != nil {
		return err
	}
	_, err = r.archive(i.Name+"-"+r.Version+".sig.oci.tar.gz", directory, "", nil)
	return err
}

// SignFile writes the signature of a file beside it.
func (k *Key) SignFile(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	if len(content) == 0 {
		return errors.New("sign " + file + ": it is empty")
	}
	signature, err := k.Sign(content)
	if err != nil {
		return err
	}
	return os.WriteFile(file+".sig", []byte(signature+"\n"), 0o644)
}
