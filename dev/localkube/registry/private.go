package registry

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Who pulls an image by its private name has to say this. It guards nothing: every image has a
// public name too.
const (
	user     = "localkube"
	password = "localkube"
)

// privateFolder is the repository below which every image has its private name.
const privateFolder = "private"

// Private is another name of the image called ref, by which only who knows the password can pull
// it: with it pull secrets can be tried. A ref with a digest keeps it.
func Private(address, ref string) (string, error) {
	at, err := stored(address, ref)
	if err != nil {
		return "", err
	}
	return address + "/" + privateFolder + strings.TrimPrefix(at.Name(), address), nil
}

// DockerConfig is the content of a Secret of type kubernetes.io/dockerconfigjson by which pods pull
// private names from the registry at address.
func DockerConfig(address string) ([]byte, error) {
	content, err := json.Marshal(map[string]map[string]authn.AuthConfig{"auths": {address: {Username: user,
		Password: password}}})
	if err != nil {
		return nil, fmt.Errorf("encode the login: %w", err)
	}
	return content, nil
}

// admit refuses the request for a private name without the password, and turns one with it into a
// request for the image itself.
func admit(w http.ResponseWriter, r *http.Request) bool {
	rest, private := strings.CutPrefix(r.URL.Path, "/v2/"+privateFolder+"/")
	if !private || r.URL.Query().Has("ns") {
		return true // the name of an image of another registry may begin so, too
	}
	u, p, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(u+":"+p), []byte(user+":"+password)) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="localkube"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"the image is private"}]}`, http.StatusUnauthorized)
		return false
	}
	r.URL.Path = "/v2/" + rest
	return true
}
