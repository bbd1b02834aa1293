package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// gcsScope lets tokens do all with objects that their owner may, and nothing else.
	gcsScope = "https://www.googleapis.com/auth/devstorage.read_write"
	// googleMetadata is where the metadata server is, if not where Google has it.
	googleMetadata = "GCE_METADATA_HOST"
)

// keyTokens are those that Google gives for a key of a service account.
type keyTokens struct{ oauth2.TokenSource }

// tokensByKey has tokens for a key. They are asked for at Google, whatever the key says: it may
// have been written by somebody who wants this host to send requests. An endpoint of somebody else
// is asked itself, so it gets no token of Google's.
func tokensByKey(key []byte, endpoint *url.URL, transport *http.Transport) (oauth2.TokenSource, error) {
	var is struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKeyID string `json:"private_key_id"`
		PrivateKey   string `json:"private_key"`
	}
	if err := json.Unmarshal(key, &is); err != nil {
		return nil, errors.New("it is no JSON") // the error may have some of the key
	}
	if is.Type != "service_account" || is.ClientEmail == "" {
		return nil, errors.New("its type must be service_account, with client_email and private_key")
	}
	block, _ := pem.Decode([]byte(is.PrivateKey))
	if block == nil {
		return nil, errors.New("its private_key is not in PEM")
	}
	parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
	if _, is := parsed.(*rsa.PrivateKey); !is {
		return nil, errors.New("its private_key is none of RSA in PKCS #8")
	}
	from := "https://oauth2.googleapis.com"
	if endpoint.Scheme != "https" || !strings.HasSuffix(endpoint.Hostname(), ".googleapis.com") {
		from = endpoint.Scheme + "://" + endpoint.Host
	}
	config := jwt.Config{Email: is.ClientEmail, PrivateKeyID: is.PrivateKeyID, PrivateKey: []byte(is.PrivateKey),
		Scopes: []string{gcsScope}, TokenURL: from + "/token"}
	client := &http.Client{Transport: transport, Timeout: tokenLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return keyTokens{config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client))}, nil
}

// Token asks for one if the last one has ended. The error is a Problem.
func (t keyTokens) Token() (*oauth2.Token, error) {
	token, err := t.TokenSource.Token()
	if err == nil {
		return token, nil
	}
	p := &Problem{Request: "get a token for the key", Err: err, Reason: v1alpha1.ReasonStoreUnreachable}
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return nil, p
	}
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(answer.Body, &said) // the status says enough without it
	p.Err = fmt.Errorf("%s answers %s: %s", answer.Response.Request.URL.Host, answer.Response.Status,
		strings.Trim(said.Error+": "+said.Description, ": "))
	switch status := answer.Response.StatusCode; {
	case strings.Contains(said.Description, "reasonable timeframe"):
		p.Reason, p.Help = v1alpha1.ReasonClockSkewed, "the clock of the host is wrong"
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		p.Reason, p.Help = v1alpha1.ReasonAccessDenied, "put a key into the Secret that Google knows"
	}
	return nil, p
}

// gcsIdentity has the tokens of the pod's service account, or of its host: the metadata server
// knows which pod asks.
type gcsIdentity struct {
	client *http.Client
	url    string
}

func newGCSIdentity(transport *http.Transport) oauth2.TokenSource {
	transport = transport.Clone()
	transport.Proxy = nil // it would ask its own host
	return oauth2.ReuseTokenSourceWithExpiry(nil, &gcsIdentity{
		client: &http.Client{Transport: transport, Timeout: tokenLimit},
		url: "http://" + cmp.Or(os.Getenv(googleMetadata), "169.254.169.254") +
			"/computeMetadata/v1/instance/service-accounts/default/token?scopes=" + url.QueryEscape(gcsScope),
	}, time.Minute)
}

// Token asks for one. The error is a Problem.
func (i *gcsIdentity) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, i.url, http.NoBody)
	if err != nil {
		return nil, err //nolint:wrapcheck // it does not happen
	}
	r.Header.Set("Metadata-Flavor", "Google")
	p := &Problem{Request: "get a token of the service account", Reason: v1alpha1.ReasonIdentityMissing,
		Help: "enable Workload Identity Federation for GKE in the Kubernetes cluster and its node pools, or use a key"}
	answer, err := i.client.Do(r)
	if err != nil {
		p.Err = fmt.Errorf("the pod has no identity, since no metadata server of Google answers: %w", err)
		return nil, p
	}
	defer func() { _ = answer.Body.Close() }()
	content, _ := io.ReadAll(io.LimitReader(answer.Body, 16<<10)) // without its end it has no token
	var given struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if answer.StatusCode == http.StatusOK && json.Unmarshal(content, &given) == nil && given.AccessToken != "" {
		return &oauth2.Token{AccessToken: given.AccessToken, TokenType: "Bearer",
			Expiry: time.Now().Add(time.Duration(given.ExpiresIn) * time.Second)}, nil
	}
	p.Err = fmt.Errorf("the metadata server answers %s", answer.Status)
	switch {
	case answer.StatusCode == http.StatusNotFound:
	case answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusTooManyRequests:
		p.Reason, p.Err = v1alpha1.ReasonAccessDenied, fmt.Errorf("%w: %.300s", p.Err, bytes.TrimSpace(content))
		p.Help = "let the service account of the pod act as the one of Google that it is annotated with"
	default:
		p.Reason, p.Help = v1alpha1.ReasonStoreUnreachable, ""
	}
	return nil, p
}
