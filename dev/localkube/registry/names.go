package registry

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"helenus.io/helenus/dev/localkube/network"
)

// Images that every cluster has.
const (
	PauseImage   = "localkube.internal/pause:1"
	BusyboxImage = "localkube.internal/busybox:1"
)

const port = 5000

// Address is where the cluster's registry listens: HOST:PORT.
func Address(p network.Plan) string {
	return netip.AddrPortFrom(p.ControlPlane(), port).String()
}

// dockerHub is what containerd calls the registry of names without one.
const dockerHub = "docker.io"

// folder is the repository below which the images of a registry are kept: its
// name, with a port's colon replaced by what no name contains.
func folder(registry string) string {
	if registry == name.DefaultRegistry {
		registry = dockerHub
	}
	return strings.ReplaceAll(registry, ":", "__")
}

// stored is the place in the cluster's registry of an image called ref.
func stored(address, ref string) (name.Reference, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, fmt.Errorf("image name %q: %w", ref, err)
	}
	path := fmt.Sprintf("%s/%s/%s", address, folder(parsed.Context().RegistryStr()), parsed.Context().RepositoryStr())
	if digest, ok := parsed.(name.Digest); ok {
		return name.NewDigest(path+"@"+digest.DigestStr(), name.Insecure)
	}
	return name.NewTag(path+":"+parsed.Identifier(), name.Insecure)
}

// rewrite maps the path of a pull to the place where the image is stored.
// containerd pulls docker.io/library/x from a mirror as
// /v2/library/x/...?ns=docker.io.
func rewrite(path, namespace string) string {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok || rest == "" || namespace == "" {
		return path
	}
	return "/v2/" + folder(namespace) + "/" + rest
}
