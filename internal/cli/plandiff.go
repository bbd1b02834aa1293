package cli

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// planDiff prints what changes in the files and the pod of a node of each rack, as unified diffs.
func planDiff(w io.Writer, r *plan.RollOut) error {
	if r == nil {
		return nil
	}
	for _, rack := range r.Racks {
		fmt.Fprintf(w, "\nRack %s/%s, by the example of %s:\n", rack.Datacenter, rack.Rack, rack.Node)
		have, err := rendered(rack, rack.Have)
		if err != nil {
			return err
		}
		want, err := rendered(rack, rack.Want)
		if err != nil {
			return err
		}
		said := false
		for _, name := range slices.Sorted(maps.Keys(want)) {
			text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
				A: difflib.SplitLines(have[name]), B: difflib.SplitLines(want[name]), FromFile: "now/" + name,
				ToFile: "wanted/" + name, Context: 2,
			})
			if err != nil {
				return fmt.Errorf("compare %s: %w", name, err)
			}
			fmt.Fprint(w, text)
			said = said || text != ""
		}
		if !said {
			fmt.Fprintln(w, "neither files nor the pod differ")
		}
	}
	return nil
}

// rendered are the files and the pod of a node. What is not the user's, such as addresses, is the
// same for both sides, and of the files of the image there is nothing: only what the spec sets
// differs.
func rendered(rack plan.RackChange, in plan.NodeInput) (map[string]string, error) {
	nowhere := netip.MustParseAddr("192.0.2.1")
	node := config.Node{Configuration: in.Configuration, Address: nowhere, Seeds: []netip.Addr{nowhere},
		Directories: config.Directories{Configuration: "/etc/cassandra", Logs: "/var/log/cassandra"}.
			OnVolumes("/var/lib/cassandra", ""),
		Jolokia: config.Jolokia{Jar: "/jolokia.jar", Port: 1, User: "user", Password: "password"}}
	if in.Pod.Resources != nil {
		node.MemoryLimit = in.Pod.Resources.Limits.Memory().Value()
	}
	files, err := config.Render(config.Files{config.CassandraYAML: nil, config.RackProperties: nil,
		config.ServerOptions: nil, config.Logback: []byte(plainLogback)}, node)
	if err != nil {
		return nil, fmt.Errorf("render the files of node %s: %w", rack.Node, err)
	}
	out := map[string]string{"environment": ""}
	for name, text := range files {
		out[name] = string(text)
	}
	for _, v := range in.Configuration.Environment {
		out["environment"] += v.Name + "=" + v.Value + "\n"
	}
	record := &v1alpha1.CassandraNode{Spec: v1alpha1.CassandraNodeSpec{Datacenter: rack.Datacenter, Rack: rack.Rack,
		Pod: in.Pod}}
	record.Name = rack.Node
	pod, err := render.Pod(render.Owner{}, record, facts.Install{})
	if err != nil {
		return nil, fmt.Errorf("make the pod of node %s: %w", rack.Node, err)
	}
	for _, ours := range []string{v1alpha1.AnnotationTemplateHash, v1alpha1.AnnotationAdded} {
		delete(pod.Annotations, ours)
	}
	pod.Status = corev1.PodStatus{}
	text, err := yaml.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("print the pod of node %s: %w", rack.Node, err)
	}
	out["pod.yaml"] = strings.TrimSuffix(string(text), "status: {}\n")
	return out, nil
}

// plainLogback is as much of a logback.xml as is needed to render one.
const plainLogback = `<configuration><appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender"/>` +
	`<root level="INFO"><appender-ref ref="STDOUT"/></root></configuration>`
