package scene

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/cqlclient"
	"helenus.io/helenus/dev/demo/follow"
	"helenus.io/helenus/internal/core/layout"
)

// Ring is a CassandraCluster of a scene: one object, not just any of its name.
type Ring struct {
	*Scene
	Name string
	UID  types.UID
	// Spec it was made with.
	Spec v1alpha1.CassandraClusterSpec

	// login of its clients; nil while they know none.
	login atomic.Pointer[gocql.PasswordAuthenticator]
}

// Sample reads a CassandraCluster from a file.
func Sample(file string) (*v1alpha1.CassandraCluster, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read sample: %w", err)
	}
	c := &v1alpha1.CassandraCluster{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("read sample %s: %w", file, err)
	}
	return c, nil
}

// Create makes a cluster in the scene.
func (s *Scene) Create(ctx context.Context, c *v1alpha1.CassandraCluster) (*Ring, error) {
	c = c.DeepCopy()
	c.Namespace = s.Namespace
	if err := s.Kubernetes.Client.Create(ctx, c); err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", c.Name, err)
	}
	return &Ring{Scene: s, Name: c.Name, UID: c.UID, Spec: c.Spec}, nil
}

// Form makes a cluster and waits until all its nodes serve.
func (s *Scene) Form(ctx context.Context, c *v1alpha1.CassandraCluster) (*Ring, error) {
	r, err := s.Create(ctx, c)
	if err != nil {
		return nil, err
	}
	return r, r.Formed(ctx)
}

// Formed waits until the ring has formed and all nodes serve.
func (r *Ring) Formed(ctx context.Context) error {
	return r.Until(ctx, formation, "the ring has formed and serves", r.serving)
}

// Serving waits until all nodes serve again, with the operator at rest.
func (r *Ring) Serving(ctx context.Context) error {
	return r.Until(ctx, comeback, "all nodes serve", r.serving)
}

func (r *Ring) serving(now follow.Sight) error {
	if c, found := now.Cluster(r.Name); found && c.UID != r.UID {
		return follow.Never(fmt.Errorf("cluster %s is another one, with uid %s", r.Name, c.UID))
	}
	return follow.Serving(r.Name)(now)
}

// RolledOut waits until every node is as the spec describes it.
func (r *Ring) RolledOut(ctx context.Context, bound time.Duration) error {
	return r.Until(ctx, bound, "every node is as the spec describes it", func(now follow.Sight) error {
		c, found := now.Cluster(r.Name)
		if !found || c.Status.ObservedGeneration != c.Generation || c.Status.Step != nil {
			return fmt.Errorf("the roll-out is not over: %+v", c.Status.Step)
		}
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionUpToDate)
		if condition == nil || condition.Status != "True" {
			return fmt.Errorf("the cluster is not up to date: %+v", condition)
		}
		return nil
	})
}

// Stalled waits until the cluster is stalled for a reason, and returns the message.
func (r *Ring) Stalled(ctx context.Context, reason string) (string, error) {
	message := ""
	err := r.Until(ctx, reaction, "the cluster is stalled with reason "+reason, func(now follow.Sight) error {
		c, found := now.Cluster(r.Name)
		if !found || c.UID != r.UID || c.Status.ObservedGeneration != c.Generation {
			return errors.New("the operator has not looked at it yet")
		}
		stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
		switch {
		case stalled == nil:
			return errors.New(stepOf(c))
		case stalled.Reason != reason:
			return fmt.Errorf("it is stalled with %s: %s", stalled.Reason, stalled.Message)
		}
		message = stalled.Message
		return nil
	})
	return message, err
}

// Nodes are the records.
func (r *Ring) Nodes(ctx context.Context) []v1alpha1.CassandraNode { return r.Now(ctx).Nodes(r.Name) }

// NodeNames are their names.
func (r *Ring) NodeNames(ctx context.Context) []string {
	var names []string
	for _, n := range r.Nodes(ctx) {
		names = append(names, n.Name)
	}
	return names
}

// Session speaks CQL through a node. A node that has just become ready may still refuse for a
// moment, and the way to it, through the API server and the kubelet, takes a minute to be found
// again after its host was cut off.
func (r *Ring) Session(ctx context.Context, node string) (*cqlclient.Session, error) {
	var session *cqlclient.Session
	err := r.poll(ctx, comeback, "node "+node+" takes a CQL session", func(ctx context.Context) error {
		var err error
		session, err = cqlclient.Connect(ctx, r.Kubernetes, r.Namespace, node)
		return err
	})
	return session, err
}

// Run runs a program in the Cassandra container of a node.
func (r *Ring) Run(ctx context.Context, node string, command ...string) (string, error) {
	return r.Kubernetes.Exec(ctx, r.Namespace, node, layout.CassandraContainer, command...)
}

// Edit changes the spec of the cluster.
func (r *Ring) Edit(ctx context.Context, change func(*v1alpha1.CassandraClusterSpec)) error {
	var changed int64
	err := r.poll(ctx, reaction, "the spec is changed", func(ctx context.Context) error {
		c, found := r.Now(ctx).Cluster(r.Name)
		if !found || c.UID != r.UID {
			return fmt.Errorf("change cluster %s: it is not there", r.Name)
		}
		c = c.DeepCopy()
		change(&c.Spec)
		if err := r.Kubernetes.Client.Update(ctx, c); err != nil {
			return fmt.Errorf("change cluster %s: %w", r.Name, err)
		}
		r.Spec, changed = c.Spec, c.Generation
		return nil
	})
	if err != nil {
		return err
	}
	return r.Until(ctx, reaction, "the change is seen", func(now follow.Sight) error {
		if c, found := now.Cluster(r.Name); !found || c.Generation < changed {
			return fmt.Errorf("cluster %s is seen as it was before", r.Name)
		}
		return nil
	})
}

// Delete deletes the cluster with a policy for its claims, and waits until it is gone.
func (r *Ring) Delete(ctx context.Context, policy v1alpha1.ClaimPolicy) error {
	c, found := r.Now(ctx).Cluster(r.Name)
	if !found || c.UID != r.UID {
		return fmt.Errorf("delete cluster %s: it is not there", r.Name)
	}
	if err := r.setClaimPolicy(ctx, c, policy); err != nil {
		return err
	}
	if err := r.Kubernetes.Client.Delete(ctx, c, client.Preconditions{UID: &r.UID}); err != nil {
		return fmt.Errorf("delete cluster %s: %w", r.Name, err)
	}
	return r.Until(ctx, removal, "the cluster is gone", func(now follow.Sight) error {
		if c, found := now.Cluster(r.Name); found && c.UID == r.UID {
			return errors.New(stepOf(c))
		}
		return nil
	})
}

// Leftovers are the objects that carry the uid of the cluster, of every kind that there is in a
// namespace, as resource/name.
func (r *Ring) Leftovers(ctx context.Context) ([]string, error) {
	lists, err := r.Kubernetes.Core.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return nil, fmt.Errorf("find kinds: %w", err)
	}
	var left []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			found, err := r.labelled(ctx, list.GroupVersion, resource.Name)
			if err != nil {
				return nil, err
			}
			left = append(left, found...)
		}
	}
	slices.Sort(left)
	return left, nil
}

func (r *Ring) labelled(ctx context.Context, groupVersion, resource string) ([]string, error) {
	path := "/apis/" + groupVersion
	if !strings.Contains(groupVersion, "/") {
		path = "/api/" + groupVersion
	}
	text, err := r.Kubernetes.Core.Discovery().RESTClient().Get().AbsPath(path, "namespaces", r.Namespace, resource).
		Param("labelSelector", v1alpha1.LabelClusterUID+"="+string(r.UID)).DoRaw(ctx)
	if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	var objects struct {
		Items []struct {
			Metadata struct{ Name string } `json:"metadata"`
		} `json:"items"`
	}
	if err := yaml.Unmarshal(text, &objects); err != nil {
		return nil, fmt.Errorf("list %s: %w", resource, err)
	}
	var names []string
	for _, o := range objects.Items {
		names = append(names, resource+"/"+o.Metadata.Name)
	}
	return names, nil
}

// NoLeftovers waits until nothing carries the uid of the cluster any more but what keep says, by
// resource/name. Kubernetes collects what the deleted cluster owned a little later, and tells
// nobody.
func (r *Ring) NoLeftovers(ctx context.Context, keep func(string) bool) error {
	return r.poll(ctx, time.Minute, "nothing is left of the cluster", func(ctx context.Context) error {
		left, err := r.Leftovers(ctx)
		if err != nil {
			return err
		}
		if left = slices.DeleteFunc(left, keep); len(left) > 0 {
			return fmt.Errorf("left are %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// Sees waits until what a node sees of the ring is as wanted: gossip takes a moment to tell
// everybody of a change. The members are sorted, each "STATE ADDRESS HOSTID" as nodetool status has
// them.
func (r *Ring) Sees(ctx context.Context, node string, wanted func(members []string) bool) error {
	return r.poll(ctx, reaction, "node "+node+" sees the ring as wanted", func(ctx context.Context) error {
		out, err := r.Run(ctx, node, "nodetool", "status")
		if err != nil {
			return err
		}
		if members := statusLines(out); !wanted(members) {
			return fmt.Errorf("it sees %q", members)
		}
		return nil
	})
}

// statusLines are the nodes in what nodetool status prints, each "STATE ADDRESS HOSTID".
func statusLines(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) > 4 && len(fields[0]) == 2 && strings.ContainsAny(fields[0][:1], "UD") {
			lines = append(lines, fields[0]+" "+fields[1]+" "+fields[len(fields)-2])
		}
	}
	slices.Sort(lines)
	return lines
}
