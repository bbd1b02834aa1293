package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
)

const (
	// MostBytes of a report.
	MostBytes = 50 << 20
	// logWindow is how far back logs go, and mostLog how much of one is kept: the end of it.
	logWindow = time.Hour
	mostLog   = 4 << 20
)

// Sources are where a report comes from: the API server, as the user.
type Sources struct {
	Client client.Client
	// Logs opens the log of a container.
	Logs func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)
	// OperatorNamespace is where the operator runs.
	OperatorNamespace string
	// Texts are files that others make: what programs and the API server say of their versions,
	// what the operator answers.
	Texts []Text
	Now   time.Time
}

// Text is a file that is made by a function.
type Text struct {
	Name string
	Make func(ctx context.Context) ([]byte, error)
}

// collection is a report while it is made.
type collection struct {
	Sources
	archive *archive
	cluster *v1alpha1.CassandraCluster
	// problems are what could not be had.
	problems []string
	names    map[string]bool
}

// Write makes the report of a cluster. What the user may not read, or what does not answer, is left
// out and named in problems.txt.
func Write(ctx context.Context, cluster *v1alpha1.CassandraCluster, from Sources, out io.Writer) error {
	root := fmt.Sprintf("helenus-report-%s-%s", cluster.Namespace, cluster.Name)
	c := &collection{Sources: from, cluster: cluster, archive: newArchive(out, MostBytes, root, from.Now),
		names: map[string]bool{cluster.Name: true}}
	collect := []func(context.Context) error{c.texts, c.objects, c.operator, c.events, c.logs}
	for _, part := range collect {
		if err := part(ctx); err != nil {
			return err
		}
	}
	said := strings.Join(c.problems, "\n") + "\n"
	if len(c.problems) == 0 {
		said = "Nothing was left out.\n"
	}
	if err := c.archive.put("problems.txt", []byte(said[:min(len(said), reserve/2)])); err != nil {
		return err
	}
	return c.archive.close()
}

// add a file; one for which there is no room is a problem, and no error.
func (c *collection) add(name string, content []byte) error {
	err := c.archive.add(name, content)
	if errors.Is(err, errFull) {
		c.problem(name, err)
		return nil
	}
	return err
}

func (c *collection) problem(name string, err error) {
	c.problems = append(c.problems, name+": "+text(err.Error()))
}

func (c *collection) texts(ctx context.Context) error {
	for _, t := range c.Texts {
		content, err := t.Make(ctx)
		if err != nil {
			c.problem(t.Name, err)
			continue
		}
		var decoded any
		if json.Unmarshal(content, &decoded) == nil {
			if content, err = json.MarshalIndent(object(decoded), "", "  "); err != nil {
				return fmt.Errorf("encode %s: %w", t.Name, err)
			}
		} else {
			content = []byte(text(string(content)))
		}
		if err := c.add(t.Name, content); err != nil {
			return err
		}
	}
	return nil
}

// objects are the cluster and all that belongs to it, but for Secrets.
func (c *collection) objects(ctx context.Context) error {
	if err := c.put("cluster.yaml", c.cluster); err != nil {
		return err
	}
	of := []client.ListOption{client.InNamespace(c.cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: c.cluster.Name}}
	for _, kind := range []struct {
		folder string
		list   client.ObjectList
		of     []client.ListOption
	}{
		{"nodes", &v1alpha1.CassandraNodeList{}, of},
		{"tasks", &v1alpha1.CassandraTaskList{}, of[:1]},
		{"schedules", &v1alpha1.CassandraTaskScheduleList{}, of[:1]},
		{"restores", &v1alpha1.CassandraRestoreList{}, of[:1]},
		{"backups", &v1alpha1.CassandraBackupList{}, of[:1]},
		{"backupschedules", &v1alpha1.CassandraBackupScheduleList{}, of[:1]},
		{"stores", &v1alpha1.CassandraBackupStoreList{}, of[:1]},
		{"pods", &corev1.PodList{}, of},
		{"claims", &corev1.PersistentVolumeClaimList{}, of},
		{"services", &corev1.ServiceList{}, of},
		{"budgets", &policyv1.PodDisruptionBudgetList{}, of},
		{"networkpolicies", &networkingv1.NetworkPolicyList{}, of},
		{"configmaps", &corev1.ConfigMapList{}, of}, // the ledger and the seeds
	} {
		if err := c.list(ctx, kind.folder, kind.list, kind.of); err != nil {
			return err
		}
	}
	return nil
}

// list puts each object of a list into a file of a folder.
func (c *collection) list(ctx context.Context, folder string, list client.ObjectList, of []client.ListOption) error {
	if err := c.Client.List(ctx, list, of...); err != nil {
		c.problem(folder, err)
		return nil
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		o := item.(client.Object)
		cluster := c.cluster.Name
		switch named := item.(type) {
		case *v1alpha1.CassandraTask:
			cluster = named.Spec.Cluster.Name
		case *v1alpha1.CassandraRestore:
			cluster = named.Spec.Cluster.Name
		case *v1alpha1.CassandraBackup:
			cluster = named.Spec.Cluster.Name
		case *v1alpha1.CassandraTaskSchedule:
			cluster = named.Spec.Cluster.Name
		case *v1alpha1.CassandraBackupSchedule:
			cluster = named.Spec.Cluster.Name
		}
		if cluster != c.cluster.Name {
			return nil
		}
		c.names[o.GetName()] = true
		return c.put(folder+"/"+o.GetName()+".yaml", o)
	})
}

// put an object into a file.
func (c *collection) put(name string, o client.Object) error {
	kind, err := apiutil.GVKForObject(o, c.Client.Scheme())
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if data, is := fields["data"].(map[string]any); is {
		for key, value := range data {
			var decoded any
			if literal, is := value.(string); is && json.Unmarshal([]byte(literal), &decoded) == nil {
				data[key] = decoded // such as the ledger
			}
		}
	}
	clean := object(fields).(map[string]any)
	clean["apiVersion"], clean["kind"] = kind.GroupVersion().String(), kind.Kind
	content, err := yaml.Marshal(clean)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return c.add(name, content)
}

// operator is what of the operator the user may see.
func (c *collection) operator(ctx context.Context) error {
	of := []client.ListOption{client.InNamespace(c.OperatorNamespace),
		client.MatchingLabels{v1alpha1.LabelName: "helenus"}}
	if err := c.list(ctx, "operator/deployments", &appsv1.DeploymentList{}, of); err != nil {
		return err
	}
	if err := c.list(ctx, "operator/pods", &corev1.PodList{}, of); err != nil {
		return err
	}
	return c.list(ctx, "operator/leases", &coordinationv1.LeaseList{}, of[:1])
}

// events of the cluster and of what belongs to it, the oldest first.
func (c *collection) events(ctx context.Context) error {
	list := &eventsv1.EventList{}
	if err := c.Client.List(ctx, list, client.InNamespace(c.cluster.Namespace)); err != nil {
		c.problem("events.txt", err)
		return nil
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	var out bytes.Buffer
	for _, e := range list.Items {
		if !c.names[e.Regarding.Name] {
			continue
		}
		fmt.Fprintf(&out, "%s %s %s %s/%s", timeOf(e).UTC().Format(time.RFC3339), e.Type, e.Reason, e.Regarding.Kind,
			e.Regarding.Name)
		if e.Related != nil {
			fmt.Fprintf(&out, " (%s)", e.Related.Name)
		}
		if e.Series != nil {
			fmt.Fprintf(&out, " %d times, last at %s", e.Series.Count,
				e.Series.LastObservedTime.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(&out, ": %s\n", text(e.Note))
	}
	return c.add("events.txt", out.Bytes())
}

func timeOf(e eventsv1.Event) time.Time {
	if !e.EventTime.IsZero() {
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// logs of the operator and of the cluster's pods, those before a restart included.
func (c *collection) logs(ctx context.Context) error {
	for _, of := range []struct {
		folder, namespace string
		labels            client.MatchingLabels
	}{
		{"operator/logs", c.OperatorNamespace, client.MatchingLabels{v1alpha1.LabelName: "helenus"}},
		{"logs", c.cluster.Namespace, client.MatchingLabels{v1alpha1.LabelCluster: c.cluster.Name}},
	} {
		list := &corev1.PodList{}
		if err := c.Client.List(ctx, list, client.InNamespace(of.namespace), of.labels); err != nil {
			c.problem(of.folder, err)
			continue
		}
		for i := range list.Items {
			if err := c.logsOf(ctx, of.folder, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collection) logsOf(ctx context.Context, folder string, pod *corev1.Pod) error {
	seconds := int64(logWindow / time.Second)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, previous := range []bool{true, false} {
			if previous && status.RestartCount == 0 {
				continue
			}
			name := folder + "/" + pod.Name + "/" + status.Name
			if previous {
				name += ".before"
			}
			content, err := c.log(ctx, pod, &corev1.PodLogOptions{Container: status.Name, Previous: previous,
				SinceSeconds: &seconds, Timestamps: true})
			if err != nil {
				c.problem(name+".log", err)
			}
			if len(content) == 0 {
				continue
			}
			if err := c.add(name+".log", []byte(text(string(content)))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collection) log(ctx context.Context, pod *corev1.Pod, o *corev1.PodLogOptions) ([]byte, error) {
	stream, err := c.Logs(ctx, pod.Namespace, pod.Name, o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // what was read counts
	return tail(stream, mostLog)
}
