package agentapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/internal/pki"
)

// Paths of the facts server.
const (
	// PathFacts answers a facts.Agent. With ?digest=<etag>&wait=<duration> it answers when the
	// facts have another digest, or after the time given.
	PathFacts = "/v1/facts"
	// PathIdentity answers a facts.Peer. With ?address= and ?hostID= it says what this node's ring
	// knows of them.
	PathIdentity = "/v1/identity"
)

// maxAnswerBytes holds the ring of a thousand nodes with 16 tokens each several times.
const maxAnswerBytes = 16 << 20

// ErrUnreachable means that no answer came: nothing listens, the time was over, or the other side
// could not prove who it is.
var ErrUnreachable = errors.New("agent does not answer")

// Client asks the agent at one address. It keeps one connection for the next question, until Close
// or for a few minutes.
type Client struct {
	address string
	wire    *wire
}

// NewClient asks the agent of one node, which must prove to be that node. The certificates are
// taken from the source at each new connection.
func NewClient(source pki.Source, node pki.Identity, address string, now func() time.Time) *Client {
	return newClient(address, source, func(m *pki.Material) *tls.Config { return pki.ClientConfig(m, node, now) })
}

// NewPeerClient asks whichever node of the source's own cluster is at an address.
func NewPeerClient(source pki.Source, address string, now func() time.Time) *Client {
	return newClient(address, source, func(m *pki.Material) *tls.Config { return pki.AnyNodeConfig(m, now) })
}

func newClient(address string, source pki.Source, config func(*pki.Material) *tls.Config) *Client {
	dial := func(ctx context.Context) (net.Conn, error) {
		material, err := source()
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{NetDialer: &net.Dialer{}, Config: config(material)}).DialContext(ctx, "tcp", address)
	}
	return &Client{address: address, wire: &wire{dial: dial}}
}

// Facts asks for the facts as they are now: the agent looks at its JVM before it answers. Ctx
// bounds it.
func (c *Client) Facts(ctx context.Context) (*facts.Agent, error) {
	answer := &facts.Agent{}
	return answer, c.get(ctx, PathFacts, "", answer)
}

// WaitFacts asks for the facts as soon as their digest is another than the given one, and at the
// latest after limit (at most MaxWait). The answer may be the same as before.
func (c *Client) WaitFacts(ctx context.Context, digest string, limit time.Duration) (*facts.Agent, error) {
	answer := &facts.Agent{}
	return answer, c.get(ctx, PathFacts, queryOfWait(digest, limit), answer)
}

func queryOfWait(digest string, limit time.Duration) string {
	return url.Values{"digest": {digest}, "wait": {min(limit, MaxWait).String()}}.Encode()
}

// Identity asks who is there, and what the ring of that node knows of an address and a host id;
// both may be empty.
func (c *Client) Identity(ctx context.Context, address, hostID string) (*facts.Peer, error) {
	query := url.Values{}
	if address != "" {
		query.Set("address", address)
	}
	if hostID != "" {
		query.Set("hostID", hostID)
	}
	answer := &facts.Peer{}
	return answer, c.get(ctx, PathIdentity, query.Encode(), answer)
}

// Close ends the connection that is kept.
func (c *Client) Close() { c.wire.close() }

// get asks, and decodes the answer. What it waits with on its stack is what an operator has for
// every node, so the rest is done elsewhere.
func (c *Client) get(ctx context.Context, path, query string, into any) error {
	request, err := c.question(ctx, path, query)
	if err != nil {
		return err
	}
	answer, err := c.wire.ask(request)
	if err != nil {
		return c.unanswered(err)
	}
	return c.decode(path, answer, into)
}

func (c *Client) unanswered(err error) error {
	if errors.Is(err, errTooLarge) {
		return fmt.Errorf("ask %s: %w", c.address, err)
	}
	return fmt.Errorf("ask %s: %w: %w", c.address, ErrUnreachable, err)
}

func (c *Client) decode(path string, answer reply, into any) error {
	if answer.code != http.StatusOK {
		return fmt.Errorf("ask %s for %s: HTTP %s: %.200q", c.address, path, answer.status, answer.body)
	}
	if err := json.Unmarshal(answer.body, into); err != nil {
		return fmt.Errorf("ask %s for %s: read answer: %w", c.address, path, err)
	}
	return nil
}

func (c *Client) question(ctx context.Context, path, query string) (*http.Request, error) {
	target := url.URL{Scheme: "https", Host: c.address, Path: path, RawQuery: query}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return request, nil
}

// FactsAddress is where the agent of a pod answers.
func FactsAddress(podIP string) string {
	return net.JoinHostPort(podIP, strconv.Itoa(layout.FactsPort))
}

// Of says whether an answer comes from the pod that it was expected from.
func Of(answer *facts.Agent, cluster types.UID, node string, pod types.UID) error {
	if answer.ClusterUID != cluster || answer.Node != node || answer.PodUID != pod {
		return fmt.Errorf("answer of node %s, pod %s, cluster %s; expected %s, %s, %s", answer.Node, answer.PodUID,
			answer.ClusterUID, node, pod, cluster)
	}
	return nil
}
