package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/inspectapi"
)

const (
	// askPatience bounds one question, forwarding the port included. The operator gives up a little
	// earlier and says why.
	askPatience = 20 * time.Second
	// tries bounds how often it is asked in all, where it says "in a moment".
	tries = 5
	// pause before an operator that is busy is asked again.
	pause = time.Second
	// maxAnswerBytes holds a cluster of the largest size several times.
	maxAnswerBytes = 64 << 20
)

// ask gets the inspection of a cluster from the operator that leads; with a spec, as if the cluster
// had that.
func (s *settings) ask(ctx context.Context, c *connection, cluster string,
	spec *v1alpha1.CassandraClusterSpec) (*inspectapi.Inspection, error) {
	inspection := &inspectapi.Inspection{}
	if err := s.askFor(ctx, c, cluster, inspectapi.Path(c.namespace, cluster), spec, inspection); err != nil {
		return nil, err
	}
	return inspection, nil
}

// askFor asks the operator that leads for what a path about a cluster has.
func (s *settings) askFor(ctx context.Context, c *connection, cluster, path string,
	spec *v1alpha1.CassandraClusterSpec, into any) error {
	if c.config.Impersonate.UserName != "" {
		return errors.New("the answer comes from the operator, which knows no impersonation: ask without --as")
	}
	for try := 1; ; try++ {
		to, err := s.leader(ctx, c)
		if err != nil {
			return err
		}
		err = s.askOne(ctx, c, to, path, spec, into)
		var refused *refusedError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.again() && try < tries:
			select {
			case <-ctx.Done():
				return err
			case <-time.After(pause):
			}
		case errors.As(err, &refused):
			return refused.explain(s, c, cluster)
		case strings.Contains(err.Error(), " is forbidden"): // as text from the API server, through two libraries
			return s.mayNotReach(err)
		default:
			return fmt.Errorf("the operator in namespace %s does not answer, see kubectl get pods --namespace "+
				"%s; kubectl helenus status works without it: %w", s.operatorNamespace, s.operatorNamespace, err)
		}
	}
}

func (s *settings) askOne(ctx context.Context, c *connection, to leader, path string,
	spec *v1alpha1.CassandraClusterSpec, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	t, err := c.open(ctx, s.operatorNamespace, to)
	if err != nil {
		return err
	}
	defer t.close()
	httpClient, err := operatorClient(c.config, to.fingerprint)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	target := url.URL{Scheme: "https", Host: t.address}
	method, question := http.MethodGet, io.Reader(http.NoBody)
	if spec != nil {
		text, err := json.Marshal(spec)
		if err != nil {
			return fmt.Errorf("encode the spec: %w", err)
		}
		method, question = http.MethodPost, bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String()+path, question)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask pod %s: %w%s", to.pod, err, t.reason())
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read the answer of pod %s: %w", to.pod, err)
	}
	if response.StatusCode != http.StatusOK {
		refused := &refusedError{status: response.StatusCode, pod: to.pod}
		if json.Unmarshal(body, &refused.Refusal) != nil || refused.Refusal.Error == "" {
			refused.Refusal.Error = response.Status
		}
		return refused
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the answer of pod %s: %w", to.pod, err)
	}
	return nil
}

// operatorClient speaks to the operator with the credentials that the kubeconfig has for the API
// server: the same token, client certificate or command, over another connection. Nothing of them
// is sent before the operator proved that it has the key of the certificate that its Lease names.
func operatorClient(config *rest.Config, fingerprint string) (*http.Client, error) {
	t, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	t.TLS.Insecure = true // instead of an authority and a name, VerifyConnection
	t.TLS.CAFile, t.TLS.CAData, t.TLS.ReloadCAFiles, t.TLS.ServerName = "", nil, false, ""
	tlsConfig, err := transport.TLSConfigFor(t)
	if err != nil {
		return nil, fmt.Errorf("use credentials: %w", err)
	}
	tlsConfig.MinVersion = tls.VersionTLS13
	tlsConfig.VerifyConnection = func(state tls.ConnectionState) error {
		if shown := inspectapi.Fingerprint(state.PeerCertificates[0].Raw); shown != fingerprint {
			return fmt.Errorf("its certificate is %s, not %s as its Lease says: nothing was sent to it", shown,
				fingerprint)
		}
		return nil
	}
	// The proxy of the kubeconfig or of the environment is on the way to the API server, not here.
	through, err := transport.HTTPWrappersForConfig(t, &http.Transport{TLSClientConfig: tlsConfig})
	if err != nil {
		return nil, fmt.Errorf("use credentials: %w", err)
	}
	return &http.Client{Transport: through, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, nil
}
