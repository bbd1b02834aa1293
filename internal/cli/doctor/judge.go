package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
	"helenus.io/helenus/internal/installation"
)

// Result of a check.
type Result string

// Results. Warning is also what is not known.
const (
	Good    Result = "Good"
	Warning Result = "Warning"
	Wrong   Result = "Wrong"
)

// Finding is what a check has found.
type Finding struct {
	Check string `json:"check"`
	// Cluster it is about; empty if it is about the installation.
	Cluster string `json:"cluster,omitempty"`
	Result  Result `json:"result"`
	Found   string `json:"found"`
	// Help is what would help.
	Help string `json:"help,omitempty"`
}

// oldest Kubernetes that is supported, as the chart says it.
const oldest = "1.34"

const (
	// overdue is how long after its time a certificate may be renewed.
	overdue = 24 * time.Hour
	// mostNames is how many things a finding names.
	mostNames = 5
)

const reinstall = "install the manifest or the chart of the operator's release again"

func good(format string, arguments ...any) Finding {
	return Finding{Result: Good, Found: fmt.Sprintf(format, arguments...)}
}

func warning(found, help string) Finding { return Finding{Result: Warning, Found: found, Help: help} }

func wrong(found, help string) Finding { return Finding{Result: Wrong, Found: found, Help: help} }

func unknown(err error) Finding {
	help := ""
	if apierrors.IsForbidden(err) {
		help = "run it as an administrator of this Kubernetes cluster"
	}
	return warning("not known: "+err.Error(), help)
}

// Judge says what is good and what is not, by what was seen alone.
func Judge(f *Facts) []Finding {
	var out []Finding
	cluster := ""
	// check judges what was seen without the error.
	check := func(name string, err error, judge func() Finding) {
		var found Finding
		if err != nil {
			found = unknown(err)
		} else {
			found = judge()
		}
		found.Check, found.Cluster = cmp.Or(found.Check, name), cluster
		out = append(out, found)
	}
	check("Kubernetes", f.Kubernetes.Err, f.kubernetes)
	check("versions", nil, f.versions)
	check("definitions", f.Definitions.Err, func() Finding { return f.compared(f.Definitions.It) })
	check("operator", f.Operator.Err, f.operator)
	check("rights", f.Rights.Err, f.rights)
	check("proof of the operator", f.Proof.Err, f.proof)
	check("policies", f.Policies.Err, func() Finding { return f.compared(f.Policies.It) })
	for _, r := range f.Refusals {
		check("policy "+r.Policy, nil, r.judge)
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		cluster = c.Namespace + "/" + c.Name
		check("watched", f.Deployment.Err, func() Finding { return f.watches(c) })
		check("zones", nil, func() Finding { return f.zones(c) })
		check("storage", f.Classes.Err, func() Finding { return f.storage(c) })
		check("agents", c.Inspection.Err, c.agents)
		check("clocks", nil, c.clocks)
		check("DNS", errors.Join(c.Pods.Err, c.Named.Err), c.dns)
		check("certificates", nil, func() Finding { return c.certificates(f.Now) })
		for _, condition := range c.conditions() {
			check("conditions", nil, func() Finding { return condition })
		}
	}
	return out
}

func (f *Facts) kubernetes() Finding {
	is, err := version.ParseGeneric(f.Kubernetes.It)
	switch {
	case err != nil:
		return unknown(err)
	case is.LessThan(version.MustParseGeneric(oldest)):
		return wrong(f.Kubernetes.It+" is too old", "upgrade it to "+oldest+" or later")
	}
	return good("%s", f.Kubernetes.It)
}

// release of the operator by its own word, or else by the tag of its image; empty if unknown.
func (f *Facts) release() string {
	for i := range f.Clusters {
		if inspection := f.Clusters[i].Inspection; inspection.Err == nil && inspection.It.Operator.Version != "" {
			return inspection.It.Operator.Version
		}
	}
	for _, container := range f.containers() {
		name := container.Image[strings.LastIndex(container.Image, "/")+1:]
		if _, tag, tagged := strings.Cut(name, ":"); tagged && !strings.Contains(name, "@") {
			return tag
		}
	}
	return ""
}

func (f *Facts) versions() Finding {
	switch release := f.release(); release {
	case "":
		return warning("plugin "+f.Plugin+", the operator's is not known by its image", "")
	case f.Plugin:
		return good("plugin and operator %s", release)
	default:
		return warning(fmt.Sprintf("plugin %s, operator %s", f.Plugin, release), "use the plugin of that release: "+
			"what it compares the installation with is of its own")
	}
}

// compared judges objects of the installation. Those of another release are different.
func (f *Facts) compared(it installation.Compared) Finding {
	switch {
	case len(it.Missing) > 0:
		return wrong(words.List(it.Missing, mostNames)+": missing", reinstall)
	case len(it.Different) > 0 && f.release() == f.Plugin:
		return wrong(words.List(it.Different, mostNames)+": not as in this release", reinstall)
	case len(it.Different) > 0:
		return warning(words.List(it.Different, mostNames)+": not as in the release of this plugin", "use the plugin "+
			"of the operator's release")
	}
	return good("%s as in this release", words.Plural(it.Same, "object"))
}

func (f *Facts) operator() Finding {
	look := "see kubectl get pods --namespace " + f.OperatorNamespace
	switch d := f.Deployment; {
	case f.Operator.Problem != "":
		return wrong(f.Operator.Problem, look)
	case d.Err != nil:
		return unknown(d.Err)
	default:
		if want := d.It.Spec.Replicas; want != nil && d.It.Status.ReadyReplicas < *want {
			return warning(fmt.Sprintf("%d of %d replicas ready", d.It.Status.ReadyReplicas, *want), look)
		}
	}
	return good("%s", f.Operator.Said)
}

func (f *Facts) rights() Finding {
	if missing := f.Rights.It.Missing; len(missing) > 0 {
		return wrong(fmt.Sprintf("%s may not %s", installation.User(f.OperatorNamespace),
			words.List(missing, mostNames)), reinstall)
	}
	return good("the operator has all %d", f.Rights.It.Asked)
}

func (f *Facts) proof() Finding {
	if proof := f.Proof.It; proof.Status != metav1.ConditionTrue {
		return wrong(proof.Message, reinstall)
	}
	return good("%s", f.Proof.It.Message)
}

func (r *Refusal) judge() Finding {
	switch {
	case r.Err == nil:
		return wrong("a write that it must refuse was accepted (a dry run)", reinstall)
	case errors.Is(r.Err, errUntried):
		return warning("not tried: "+r.Err.Error(), "")
	case strings.Contains(r.Err.Error(), "'"+r.Policy+"'"):
		return good("refuses what it must")
	}
	return unknown(r.Err)
}

func (f *Facts) watches(c *Cluster) Finding {
	watched := f.watched()
	switch {
	case len(watched) == 0:
		return good("the operator looks after all namespaces")
	case slices.Contains(watched, c.Namespace):
		return good("the operator looks after namespace %s", c.Namespace)
	}
	return wrong(fmt.Sprintf("the operator does not look after namespace %s", c.Namespace), "add it to "+
		"watch.namespaces of the chart")
}

func (f *Facts) zones(c *Cluster) Finding {
	var named, without []string
	for _, w := range render.WantedNodes(c.CassandraCluster, facts.Install{}) {
		p := w.Pod.Placement
		if p == nil || p.Zone == "" || slices.Contains(named, p.Zone) {
			continue
		}
		named = append(named, p.Zone)
		if !slices.ContainsFunc(f.Hosts.It, func(host corev1.Node) bool {
			return host.Labels[corev1.LabelTopologyZone] == p.Zone
		}) {
			without = append(without, p.Zone)
		}
	}
	switch {
	case len(named) == 0:
		return good("no rack names a zone")
	case f.Hosts.Err != nil:
		return unknown(f.Hosts.Err)
	case len(without) > 0:
		return wrong(fmt.Sprintf("no host has the label %s with %s", corev1.LabelTopologyZone,
			words.List(without, mostNames)), "label the hosts, or correct placement.zone")
	}
	return good("hosts in %s", words.List(named, mostNames))
}

func (f *Facts) storage(c *Cluster) Finding {
	var used []string
	for _, w := range render.WantedNodes(c.CassandraCluster, facts.Install{}) {
		for _, v := range render.Volumes(w.Pod) {
			name := f.defaultClass()
			if given := v.Claim.StorageClassName; given != nil {
				name = *given
			} else if name == "" {
				return wrong("no StorageClass is the default, and the spec names none", "make one the default, or set "+
					"storage.claims.data.storageClassName")
			}
			if name != "" && !slices.Contains(used, name) { // without a class, volumes are made by hand
				used = append(used, name)
			}
		}
	}
	out := good("StorageClass %s", cmp.Or(words.List(used, mostNames), "is not used"))
	for _, name := range used {
		i := slices.IndexFunc(f.Classes.It, func(class storagev1.StorageClass) bool { return class.Name == name })
		if i < 0 {
			return wrong("StorageClass "+name+" is not there", "make it, or correct storageClassName")
		}
		class := f.Classes.It[i]
		if grows := class.AllowVolumeExpansion; grows == nil || !*grows {
			out = warning("volumes of StorageClass "+name+" cannot grow", "set its allowVolumeExpansion if its driver "+
				"can do that")
		}
		if mode := class.VolumeBindingMode; mode == nil || *mode != storagev1.VolumeBindingWaitForFirstConsumer {
			out = warning("StorageClass "+name+" binds volumes before their pods have a host", "use a class with "+
				"volumeBindingMode WaitForFirstConsumer: else hosts are chosen by volumes, not by racks")
		}
	}
	return out
}

func (f *Facts) defaultClass() string {
	for _, class := range f.Classes.It {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			return class.Name
		}
	}
	return ""
}

func (c *Cluster) agents() Finding {
	var silent []string
	answer := 0
	for _, n := range c.Inspection.It.Snapshot.Nodes {
		switch {
		case n.Agent != nil:
			answer++
		case n.Pod:
			silent = append(silent, n.Name+" ("+n.Unreachable+")")
		}
	}
	if len(silent) > 0 {
		return wrong("do not answer the operator: "+words.List(silent, mostNames), "see the pods, and whether a "+
			"network policy lets the operator reach port 7780")
	}
	return good("%d answer the operator", answer)
}

func (c *Cluster) clocks() Finding {
	for _, notice := range c.Status.Notices {
		if notice.Reason == v1alpha1.NoticeClocksDiffer {
			return warning(notice.Message, "synchronize the clocks of these hosts: Cassandra keeps the write with the "+
				"latest time")
		}
	}
	if len(c.Status.Conditions) == 0 {
		return warning("not known: the operator has not looked at the cluster yet", "")
	}
	return good("the operator sees none that differs")
}

func (c *Cluster) dns() Finding {
	var without []string
	for i := range c.Pods.It {
		if pod := &c.Pods.It[i]; pod.Status.PodIP != "" && !c.Named.It[pod.Name] {
			without = append(without, pod.Name)
		}
	}
	if len(without) > 0 {
		return wrong(fmt.Sprintf("Service %s leads not to %s", v1alpha1.NodesServiceName(c.Name),
			words.List(without, mostNames)), "see whether kube-controller-manager runs, and kubectl get endpointslices")
	}
	return good("Service %s leads to %s", v1alpha1.NodesServiceName(c.Name), words.Plural(len(c.Named.It), "pod"))
}

func (c *Cluster) certificates(now time.Time) Finding {
	for _, blocked := range c.Status.Blocked {
		if blocked.Reason == v1alpha1.BlockedCAModified || blocked.Reason == v1alpha1.BlockedCAMissing {
			return wrong(blocked.Message, "")
		}
	}
	if c.Secrets.Err != nil {
		return unknown(c.Secrets.Err)
	}
	var late []string
	for _, secret := range c.Secrets.It {
		due, err := time.Parse(time.RFC3339, secret.Annotations[v1alpha1.AnnotationRenewAfter])
		if err == nil && now.After(due.Add(overdue)) {
			late = append(late, secret.Name+" since "+due.Format(time.DateOnly))
		}
	}
	if len(late) > 0 {
		return wrong("not renewed in time: "+words.List(late, mostNames), "see that the operator works: it renews them")
	}
	return good("%s, none is overdue", words.Plural(len(c.Secrets.It), "Secret"))
}

// conditions that are not as they should be; a good one in their place if all are.
func (c *Cluster) conditions() []Finding {
	var out []Finding
	if c.Status.ObservedGeneration < c.Generation {
		out = append(out, warning("the operator has not seen the spec as it is now", ""))
	}
	for _, want := range []struct {
		condition string
		status    metav1.ConditionStatus
		otherwise func(found, help string) Finding
	}{
		{v1alpha1.ConditionReady, metav1.ConditionTrue, warning},
		{v1alpha1.ConditionAvailable, metav1.ConditionTrue, wrong},
		{v1alpha1.ConditionHealthy, metav1.ConditionTrue, wrong},
		{v1alpha1.ConditionUpToDate, metav1.ConditionTrue, warning},
		{v1alpha1.ConditionStalled, metav1.ConditionFalse, wrong},
	} {
		is := meta.FindStatusCondition(c.Status.Conditions, want.condition)
		if is == nil || is.Status == want.status {
			continue
		}
		finding := want.otherwise(fmt.Sprintf("%s, %s: %s", is.Status, is.Reason, is.Message), "")
		if is.Reason == v1alpha1.ReasonStopped {
			finding.Result = Warning // as the spec wants it
		}
		finding.Check = "condition " + want.condition
		out = append(out, finding)
	}
	if len(out) == 0 {
		out = append(out, good("all as they should be"))
	}
	return out
}
