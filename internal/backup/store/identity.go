package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// tokenLimit is for a request for credentials, and identityLimit for one with its attempts: no
	// answer comes from an address that nobody has, such as that of the metadata of a host.
	tokenLimit    = 5 * time.Second
	identityLimit = 30 * time.Second
)

// Variables by which a webhook of a cloud gives an identity to the containers of a pod.
const (
	awsTokenFile   = "AWS_WEB_IDENTITY_TOKEN_FILE"
	awsPodIdentity = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
	awsTask        = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
	// awsTokenService is where credentials are asked for, and awsMetadata where the host is, if not
	// where Amazon has them.
	awsTokenService = "AWS_ENDPOINT_URL_STS"
	awsMetadata     = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
)

var azureVariables = []string{"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE"}

// awsIdentity has the temporary credentials of the pod's identity. They are asked for again when
// four fifths of their time are over, by the first request after that.
type awsIdentity struct {
	credentials.IAM

	// given says that the pod has an identity of its own. Otherwise its host is asked.
	given bool
}

func newAWSIdentity(region string, transport *http.Transport) *credentials.Credentials {
	transport = transport.Clone()
	i := &awsIdentity{given: slices.ContainsFunc([]string{awsTokenFile, awsPodIdentity, awsTask},
		func(name string) bool { return os.Getenv(name) != "" })}
	i.Region = region
	switch {
	case os.Getenv(awsTokenFile) != "":
		i.Endpoint = os.Getenv(awsTokenService)
	case !i.given:
		i.Endpoint = os.Getenv(awsMetadata)
		fallthrough
	default:
		transport.Proxy = nil // it would ask its own host
	}
	i.Client = &http.Client{Transport: transport, Timeout: tokenLimit}
	return credentials.New(i)
}

// RetrieveWithCredContext asks for credentials. The error is a Problem.
func (i *awsIdentity) RetrieveWithCredContext(of *credentials.CredContext) (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(of.Context, identityLimit)
	defer cancel()
	asking := *of
	asking.Context = ctx
	for attempt := 1; ; attempt++ {
		value, err := i.IAM.RetrieveWithCredContext(&asking)
		if err == nil {
			return value, nil
		}
		p := i.failed(err)
		if p.Reason != v1alpha1.ReasonStoreUnreachable || attempt == attempts || ctx.Err() != nil {
			return credentials.Value{}, p
		}
		select {
		case <-ctx.Done():
		case <-time.After(mostPause):
		}
	}
}

func (i *awsIdentity) failed(err error) *Problem {
	p := &Problem{Request: "get credentials of the service account", Err: err}
	var (
		answer     credentials.ErrorResponse
		unanswered *url.Error
		// Those who do not speak STS answer by a status alone, for which the library has no type.
		status = err.Error()
	)
	switch answered := errors.As(err, &answer); {
	case !i.given:
		p.Reason = v1alpha1.ReasonIdentityMissing
		p.Err = fmt.Errorf("the pod has no identity, since %s and %s are not set in it, and its host gives it none: %w",
			awsTokenFile, awsPodIdentity, err)
		p.Help = "give the service account a role, and recreate the pod"
	case answered && slices.Contains([]string{"IDPCommunicationError", "InternalFailure", "ServiceUnavailable",
		"Throttling"}, answer.STSError.Code), errors.As(err, &unanswered), strings.HasPrefix(status, "5"):
		p.Reason, p.Help = v1alpha1.ReasonStoreUnreachable, unreachable(err)
	case answered, strings.HasPrefix(status, "4"):
		p.Reason = v1alpha1.ReasonAccessDenied
		p.Help = "let the trust policy of the role name the service account"
	default:
		p.Reason = v1alpha1.ReasonIdentityMissing
	}
	return p
}

// newAzureIdentity has the tokens of the pod's identity. The client asks for a new one five minutes
// before its end. Which authority is asked is up to the webhook, so no other one is asked about it.
func newAzureIdentity(transport *http.Transport, retry policy.RetryOptions) (*azidentity.WorkloadIdentityCredential,
	error) {
	var missing []string
	for _, name := range azureVariables {
		if os.Getenv(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the pod has no identity, since %s is not set in it: label the pod "+
			"azure.workload.identity/use=true, annotate its service account with azure.workload.identity/client-id, "+
			"and recreate the pod", strings.Join(missing, ", "))
	}
	return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: policy.ClientOptions{Retry: retry,
			Transport: &http.Client{Transport: transport, Timeout: tokenLimit}},
		DisableInstanceDiscovery: true,
	})
}

// unauthenticated says why no token was given.
func unauthenticated(err *azidentity.AuthenticationFailedError) *Problem {
	p := &Problem{Request: "get a token of the service account", Err: err, Reason: v1alpha1.ReasonStoreUnreachable}
	if err.RawResponse == nil {
		return p
	}
	p.Err = fmt.Errorf("%s answers %s", err.RawResponse.Request.URL.Host, err.RawResponse.Status)
	if err.RawResponse.StatusCode >= http.StatusInternalServerError {
		return p
	}
	p.Reason = v1alpha1.ReasonAccessDenied
	p.Help = "give the identity a federated credential for the service account"
	var said struct {
		Description string `json:"error_description"`
	}
	if body, err := runtime.Payload(err.RawResponse); err == nil && json.Unmarshal(body, &said) == nil {
		what, _, _ := strings.Cut(said.Description, " Trace ID:") // another one each time
		p.Err = fmt.Errorf("%w: %s", p.Err, strings.TrimSpace(what))
	}
	return p
}
