package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
)

const rotateAuthorityLong = `Replaces a certificate authority of a ring, with all certificates that it has signed: that of
what nodes say to each other, or that by which clients know the nodes. Nothing restarts, and
no connection is cut. First all nodes trust both authorities, then they show certificates of
the new one, then the old one is dropped. Clients have a week for each change of ConfigMap
<cluster>-clients-ca, or as long as certificates.clients.hold says.

It sets security.encryption.certificates.<use>.rotatedAt in the spec of the CassandraCluster
to now, with your rights.`

func newRotateAuthority(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "rotate-authority CLUSTER internode|clients", Short: "Replace a certificate authority of a ring",
		Long: rotateAuthorityLong, Args: clusterAnd("internode or clients"),
		Example: "  kubectl helenus rotate-authority orders internode",
		RunE: s.connected(func(ctx context.Context, c *connection, args []string) error {
			return s.change(ctx, c, args[0], func(of *v1alpha1.CassandraCluster) (string, error) {
				return rotateAuthority(of, v1alpha1.CertificateUse(args[1]), metav1.NewTime(s.now()).Rfc3339Copy())
			})
		}),
	}
}

func rotateAuthority(c *v1alpha1.CassandraCluster, use v1alpha1.CertificateUse, at metav1.Time) (string, error) {
	if c.Spec.Security == nil {
		c.Spec.Security = &v1alpha1.Security{}
	}
	if c.Spec.Security.Encryption == nil {
		c.Spec.Security.Encryption = &v1alpha1.Encryption{}
	}
	if c.Spec.Security.Encryption.Certificates == nil {
		c.Spec.Security.Encryption.Certificates = &v1alpha1.Certificates{}
	}
	of := c.Spec.Security.Encryption.Certificates
	switch use {
	case v1alpha1.UseInternode:
		if of.Internode == nil {
			of.Internode = &v1alpha1.InternodeAuthority{}
		}
		of.Internode.RotatedAt = &at
	case v1alpha1.UseClients:
		if of.Clients == nil {
			of.Clients = &v1alpha1.ClientsAuthority{}
		}
		of.Clients.RotatedAt = &at
	default:
		return "", fmt.Errorf("there is no certificate authority of %q: it is of internode or of clients", use)
	}
	return fmt.Sprintf("gets another certificate authority of %s; its status.security.encryption.authorities says how "+
		"far it is", use), nil
}
