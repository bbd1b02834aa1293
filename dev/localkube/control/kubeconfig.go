package control

import (
	"encoding/base64"
	"fmt"
	"os"

	"helenus.io/helenus/dev/localkube/state"
)

// kubeconfig is complete in itself: certificates are embedded, so that the file
// can be copied and is readable where the cluster's folder is not.
const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[4]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[4]s
current-context: %[1]s
`

// WriteKubeconfig writes a kubeconfig for the client certificate of that name.
func WriteKubeconfig(dir state.Dir, c *state.Cluster, path, certificate string) error {
	var encoded []any
	for _, file := range []string{"ca.crt", certificate + ".crt", certificate + ".key"} {
		content, err := os.ReadFile(dir.PKI(file))
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", certificate, err)
		}
		encoded = append(encoded, base64.StdEncoding.EncodeToString(content))
	}
	text := fmt.Sprintf(kubeconfig, c.Name, ServerURL(c), encoded[0], certificate, encoded[1], encoded[2])
	return state.WriteFile(path, []byte(text), 0o600)
}

// ServerURL is the address of the API server.
func ServerURL(c *state.Cluster) string { return fmt.Sprintf("https://%s:%d", c.Address, c.APIPort) }
