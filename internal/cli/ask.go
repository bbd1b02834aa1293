package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"helenus.io/helenus/internal/inspectapi"
)

const (
	// askPatience bounds one question, forwarding the port included. The operator gives up a little
	// earlier and says why.
	askPatience = 20 * time.Second
	// tries bounds how often it is asked in all: other replicas, and again where it says "in a
	// moment".
	tries = 5
	// maxAnswerBytes holds a cluster of the largest size several times.
	maxAnswerBytes = 64 << 20
)

// ask gets the inspection of a cluster from the operator that leads.
func (s *settings) ask(ctx context.Context, c *connection, cluster string) (*inspectapi.Inspection, error) {
	if c.config.Impersonate.UserName != "" {
		return nil, errors.New("the plan comes from the operator, which knows no impersonation: ask without --as")
	}
	left, err := s.candidates(ctx, c)
	if err != nil {
		return nil, err
	}
	var failure error
	for try := 0; try < tries && len(left) > 0; try++ {
		to := left[0]
		inspection, err := s.askOne(ctx, c, to, cluster)
		var refused *refusedError
		switch {
		case err == nil:
			return inspection, nil
		case errors.As(err, &refused) && refused.status == http.StatusMisdirectedRequest:
			left = leaderFirst(left[1:], refused.Leader)
		case errors.As(err, &refused) && refused.again():
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(pause):
			}
		case errors.As(err, &refused):
			return nil, refused.explain(s, c, cluster)
		case errors.Is(err, errMayNotForward):
			return nil, s.mayNotReach(err)
		default:
			left = left[1:]
		}
		failure = err
	}
	return nil, fmt.Errorf("no operator in namespace %q answered, see kubectl get pods --namespace %s; kubectl "+
		"helenus status works without it: %w",
		s.operatorNamespace, s.operatorNamespace, failure)
}

// pause before an operator that is busy is asked again.
const pause = time.Second

// leaderFirst puts the pod that is said to lead before the others.
func leaderFirst(left []candidate, leader string) []candidate {
	if i := slices.IndexFunc(left, func(c candidate) bool { return c.pod == leader }); i > 0 {
		left[0], left[i] = left[i], left[0]
	}
	return left
}

func (s *settings) askOne(ctx context.Context, c *connection, to candidate, cluster string) (*inspectapi.Inspection,
	error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	t := tunnel{config: c.config, namespace: s.operatorNamespace, to: to}
	httpClient, err := operatorClient(c.config, t.dial)
	if err != nil {
		return nil, err
	}
	defer httpClient.CloseIdleConnections()
	target := url.URL{Scheme: "https", Host: to.pod}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		target.String()+inspectapi.Path(c.namespace, cluster), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask pod %s: %w", to.pod, err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of pod %s: %w", to.pod, err)
	}
	if response.StatusCode != http.StatusOK {
		refused := &refusedError{status: response.StatusCode, pod: to.pod}
		if json.Unmarshal(body, &refused.Refusal) != nil || refused.Refusal.Error == "" {
			refused.Refusal.Error = response.Status
		}
		return nil, refused
	}
	inspection := &inspectapi.Inspection{}
	if err := json.Unmarshal(body, inspection); err != nil {
		return nil, fmt.Errorf("read the answer of pod %s: %w", to.pod, err)
	}
	return inspection, nil
}

// operatorClient speaks to the operator with the credentials that the kubeconfig has for the API
// server: the same token, client certificate or command, over another connection.
//
// The operator's certificate is not verified: it is recreated with each process, and nobody vouches
// for it. Who answers is known by the way there: the API server, which is verified, and whose word
// says which pod runs as the operator, carries the bytes to the kubelet of that pod, which hands
// them over on the loopback address inside it.
func operatorClient(config *rest.Config,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) (*http.Client, error) {
	t, err := config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	t.TLS.Insecure = true
	t.TLS.CAFile, t.TLS.CAData, t.TLS.ReloadCAFiles = "", nil, false
	t.TLS.ServerName = ""
	t.TLS.NextProtos = []string{"http/1.1"}
	t.DialHolder = &transport.DialHolder{Dial: dial}
	// The proxy of the kubeconfig or of the environment is on the way to the API server, not behind
	// it.
	t.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	through, err := transport.New(t)
	if err != nil {
		return nil, fmt.Errorf("use credentials: %w", err)
	}
	return &http.Client{Transport: through, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, nil
}
