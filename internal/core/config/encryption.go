package config

import (
	"helenus.io/helenus/api/v1alpha1"
)

// KeyFile is the file of the configuration directory with a certificate of the node and its key.
func KeyFile(use v1alpha1.CertificateUse) string { return string(use) + ".pem" }

// TrustFile is that with the authorities of those whom the node trusts.
func TrustFile(use v1alpha1.CertificateUse) string { return string(use) + "-ca.pem" }

// setEncryption has Cassandra encrypt by PEM files, which it reads again without a restart. Names
// in certificates are not verified between nodes: Cassandra's server side cannot (ADR 22).
func setEncryption(document *document, node *Node) {
	e := node.Configuration.Encryption
	options := func(use v1alpha1.CertificateUse, mode v1alpha1.EncryptionMode, certificates bool,
		more map[string]any) map[string]any {
		out := map[string]any{
			"optional": mode == v1alpha1.EncryptionOptional, "require_client_auth": certificates,
			"require_endpoint_verification": false,
			"keystore":                      node.Directories.Configuration + "/" + KeyFile(use),
			"truststore":                    node.Directories.Configuration + "/" + TrustFile(use),
			"ssl_context_factory": map[string]any{
				"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"},
		}
		for name, value := range more {
			out[name] = value
		}
		return out
	}
	if e.Has(v1alpha1.UseInternode) {
		connects := "all"
		if e.ConnectsPlain {
			connects = "none" // with optional, both are accepted all the same
		}
		document.set("server_encryption_options", yamlOf(options(v1alpha1.UseInternode, e.Internode, true,
			map[string]any{"internode_encryption": connects})))
	}
	if e.Has(v1alpha1.UseClients) {
		document.set("client_encryption_options", yamlOf(options(v1alpha1.UseClients, e.Clients,
			e.ClientCertificates == v1alpha1.ClientCertificatesRequired, map[string]any{"enabled": true})))
	}
}
