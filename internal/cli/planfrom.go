package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
)

// clusterIn reads the CassandraCluster of a file, or of standard input if the file is "-". Of
// several the name decides, which may be empty for the only one.
func (s *settings) clusterIn(file, name string) (*v1alpha1.CassandraCluster, error) {
	in := s.streams.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read --from: %w", err)
		}
		defer func() { _ = opened.Close() }() // it was read
		in = opened
	}
	var found []*v1alpha1.CassandraCluster
	var names []string
	for documents := utilyaml.NewYAMLOrJSONDecoder(in, 4096); ; {
		var document map[string]any
		if err := documents.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read --from %s: %w", file, err)
		}
		if document["kind"] != "CassandraCluster" {
			continue
		}
		text, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("read --from %s: %w", file, err)
		}
		c := &v1alpha1.CassandraCluster{}
		if err := yaml.UnmarshalStrict(text, c); err != nil {
			return nil, fmt.Errorf("read the CassandraCluster of %s: %w", file, err)
		}
		if names = append(names, c.Name); name == "" || c.Name == name {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no CassandraCluster", file)
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no CassandraCluster %q; it has %s", file, name, strings.Join(names, ", "))
	default:
		return nil, fmt.Errorf("%s has the CassandraClusters %s: name one", file, strings.Join(names, ", "))
	}
}

// accepted is the spec of a file as the API server would keep it for a cluster: held to the schema,
// to its rules and to the policies, with defaults. Nothing is written.
func (c *connection) accepted(ctx context.Context, given *v1alpha1.CassandraCluster,
	file string) (*v1alpha1.CassandraClusterSpec, error) {
	if given.Namespace != "" && given.Namespace != c.namespace {
		return nil, fmt.Errorf("%s is of namespace %q, and not of %q: give --namespace %s", file, given.Namespace,
			c.namespace, given.Namespace)
	}
	cluster, err := c.cluster(ctx, given.Name)
	if err != nil {
		return nil, err
	}
	cluster.Spec = given.Spec
	switch err := c.client.Update(ctx, cluster, client.DryRunAll); {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the API server refuses the spec of %s, or you may not update CassandraClusters in "+
			"namespace %q: %w", file, c.namespace, err)
	case err != nil:
		return nil, fmt.Errorf("the API server refuses the spec of %s: %w", file, err)
	}
	return &cluster.Spec, nil
}
