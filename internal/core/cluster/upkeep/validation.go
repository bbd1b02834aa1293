package upkeep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/config/settings"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
	"helenus.io/helenus/internal/core/words"
)

// Validation refuses what the schema cannot see: settings that this release of Cassandra does not
// know, overlays that touch what is ours, and changes that are not supported yet. A refused spec
// changes nothing: what exists is kept going as its records describe it.
func (k *Keeper) Validation() plan.Result {
	reason, err := k.refusal()
	if err == nil {
		k.nameUndescribed()
		return plan.Nothing()
	}
	k.View = k.Rejecting()
	k.draft.Stall(reason, "%s", err)
	return plan.Stopped("the spec is refused and nothing is changed")
}

// nameUndescribed says of which members the records are gone, and cannot be recreated: those of
// racks that are to leave. What they have not said yet the spec has to say again.
func (k *Keeper) nameUndescribed() {
	for _, name := range k.Members() {
		if k.Describes(name) == nil && recordOf(k.Nodes[name]) == nil {
			k.draft.Stall(v1alpha1.ReasonUnsupportedChange, "the record of %s is gone, and the spec has nothing from "+
				"which it could be recreated: put its rack back until it is there", name)
		}
	}
}

func (k *Keeper) refusal() (string, error) {
	if problem := k.Defaults.Problem; problem != "" {
		k.draft.WakeIn(time.Minute) // nobody tells when it changes
		return v1alpha1.ReasonInvalidDefaults, fmt.Errorf("ConfigMap %s: %s: each key must be a field of node, as in "+
			"the spec of a CassandraCluster, without overlay", v1alpha1.DefaultsName, problem)
	}
	if err := k.checkSettings(); err != nil {
		return v1alpha1.ReasonUnknownSetting, err
	}
	if err := k.checkSpec(); err != nil {
		return v1alpha1.ReasonInvalidSpec, err
	}
	if err := k.checkChange(); err != nil {
		return v1alpha1.ReasonUnsupportedChange, err
	}
	if reason, err := k.checkCertificates(); err != nil {
		return reason, err
	}
	return "", nil
}

// checkSettings validates the settings of each rack. The racks usually inherit the same ones: the
// same words once are enough.
func (k *Keeper) checkSettings() error {
	var errs []error
	said := map[string]bool{}
	for i := range k.Wanted {
		if !k.FirstOfRack(i) {
			continue
		}
		w := &k.Wanted[i]
		limit := w.Pod.Resources.Limits[corev1.ResourceMemory]
		for _, problem := range config.Validate(&w.Configuration, limit.Value()) {
			if words := problem.String(); !said[words] {
				said[words] = true
				errs = append(errs, fmt.Errorf("rack %s/%s: %s", w.Datacenter, w.Rack, words))
			}
		}
	}
	return errors.Join(errs...)
}

func (k *Keeper) checkSpec() error {
	spec := k.Cluster.Spec
	rings := map[string]string{}
	for i := range spec.Datacenters {
		dc := &spec.Datacenters[i]
		name := render.DatacenterName(dc)
		if other, taken := rings[name]; taken {
			return fmt.Errorf("datacenters %s and %s have the same datacenterName %q", other, dc.Name, name)
		}
		rings[name] = dc.Name
	}
	if spec.AdoptedUID() != "" && spec.AdoptedUID() == k.Cluster.UID {
		return fmt.Errorf("bootstrap.adopt.clusterUID is %q, the uid of this cluster itself: it must be that of an "+
			"earlier one", spec.AdoptedUID())
	}
	if err := errors.Join(k.checkMaxUnavailable(), k.checkPasswords(), k.checkNetwork()); err != nil {
		return err
	}
	if spec.Stopped && !k.Begun() && !k.LedgerLost {
		return errors.New("stopped is true, and the ring has not formed: there is nothing to stop; take it out, and " +
			"set it when the ring has formed")
	}
	for i := range spec.Datacenters {
		if dc := &spec.Datacenters[i]; dc.Stopped && !k.Ledger.IsFormed(dc.Name) && !k.LedgerLost {
			return fmt.Errorf("datacenters[%s].stopped is true, and the datacenter has not formed: there is nothing "+
				"to stop; take it out, and set it when the datacenter has formed", dc.Name)
		}
	}
	for i := range k.Wanted {
		if !k.FirstOfRack(i) {
			continue
		}
		w := k.Wanted[i]
		if w.Pod.Storage.Ephemeral != nil {
			if err := k.checkEphemeral(w.Datacenter); err != nil {
				return err
			}
		} else if claims := w.Pod.Storage.Claims; claims == nil || claims.Data == nil {
			return fmt.Errorf("node.storage.claims.data.size is not set for datacenter %s: say how large the volume "+
				"of each node is", w.Datacenter)
		}
		for _, v := range render.Volumes(w.Pod) {
			if v.Claim.Size == nil {
				return fmt.Errorf("node.storage.claims.%s.size is not set for datacenter %s: say how large the "+
					"volume of each node is", volumeField(v.Name), w.Datacenter)
			}
		}
		if err := checkResources("node.resources", w.Pod.Resources); err != nil {
			return err
		}
		if err := checkResources("node.agentResources", w.Pod.AgentResources); err != nil {
			return err
		}
		record := render.Record(k.Owner(), w, nil, "")
		if _, err := render.Pod(k.Owner(), record, k.Install); err != nil {
			return err
		}
	}
	return nil
}

// checkEphemeral refuses what the nodes of a datacenter cannot be asked whose data goes with their
// pods.
func (k *Keeper) checkEphemeral(datacenter string) error {
	const storage = "datacenter %s is on ephemeral storage, which "
	switch dc := k.Datacenter(datacenter); {
	case k.Cluster.Spec.AdoptedUID() != "":
		return fmt.Errorf("bootstrap.adopt is set, and "+storage+"leaves no disks behind that could be adopted: take "+
			"it out", datacenter)
	case k.Cluster.Spec.Stopped, dc != nil && dc.Stopped:
		return fmt.Errorf("stopped is true, and "+storage+"would be lost with the pods, and all data with it: take it "+
			"out; to give the data up, delete the cluster, or take the datacenter out", datacenter)
	}
	return nil
}

// checkResources refuses what no API server takes in a pod: it would be found out only when the
// former pod is gone.
func checkResources(field string, r *v1alpha1.Resources) error {
	if r == nil {
		return nil
	}
	for _, of := range []corev1.ResourceList{r.Requests, r.Limits} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			known := name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
				name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), "hugepages-")
			if !known && !strings.Contains(string(name), "/") {
				return fmt.Errorf("%s has %q, which is no resource: it must be cpu, memory, ephemeral-storage, "+
					"hugepages-<size> or a name with a domain, such as vendor.example/disk", field, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			return fmt.Errorf("%s.requests.%s is %s, more than limits.%s, which is %s: a request must be at most "+
				"the limit", field, name, &request, name, &limit)
		}
	}
	return nil
}

// checkMaxUnavailable refuses a percentage of a rack that comes to no node.
func (k *Keeper) checkMaxUnavailable() error {
	limit := k.Cluster.Spec.Disruption.MaxUnavailable
	if limit == nil {
		return nil
	}
	for i := range k.Cluster.Spec.Datacenters {
		dc := &k.Cluster.Spec.Datacenters[i]
		for j := range dc.Racks {
			size := int(render.RackSize(dc, &dc.Racks[j]))
			if n, err := intstr.GetScaledValueFromIntOrPercent(limit, size, false); err != nil || n < 1 {
				return fmt.Errorf("disruption.maxUnavailable is %s, which is no node of the %d of rack %s/%s: name a "+
					"number, or at least %d%%", limit, size, dc.Name, dc.Racks[j].Name, (100+size-1)/size)
			}
		}
	}
	return nil
}

// volumeField is the field of node.storage.claims that describes a volume.
func volumeField(volume string) string {
	switch volume {
	case v1alpha1.VolumeData, v1alpha1.VolumeCommitlog:
		return volume
	default:
		return "additional[" + volume + "]"
	}
}

// checkChange refuses changes to a ring that exists. Before its first ticket a cluster follows
// every change of the spec, and a node that is not in the ring follows corrections after that.
func (k *Keeper) checkChange() error {
	if !k.Begun() {
		return nil
	}
	return errors.Join(k.checkNodes(), k.checkCompatibility(), k.checkNumbers(), k.checkLedger())
}

// checkNodes compares every record with what the spec describes, and sorts the differences into
// corrections and refusals.
func (k *Keeper) checkNodes() error {
	var errs []error
	refused, releases := map[string][]string{}, map[string][]string{}
	var fixed []string
	for i := range k.Wanted {
		n := k.Nodes[k.Wanted[i].Name]
		if recordOf(n) == nil || n.Record.DeletionTimestamp != nil {
			continue
		}
		if err := settings.CheckChange(k.releaseOf(n), k.Wanted[i].Configuration.Version); err != nil &&
			k.Of(n.Name).Joined() {
			releases[err.Error()] = append(releases[err.Error()], n.Name)
			continue
		}
		if have, want := n.Record.Spec.Configuration.Version, k.Wanted[i].Configuration.Version; have != want &&
			n.Record.Spec.Pod.Storage.Ephemeral != nil && k.Of(n.Name).Joined() {
			why := fmt.Sprintf("%s → %s: a node on ephemeral storage gets a new release with a new pod, and streams "+
				"its data from others that have the old one, which do not stream to it; add a datacenter with claims, "+
				"and take this one out, before the release changes", have, want)
			releases[why] = append(releases[why], n.Name)
			continue
		}
		drift, w := k.Drift(n, k.Wanted[i])
		switch drift {
		case assess.Same, assess.InTurn:
		case assess.Takes:
			k.corrections = append(k.corrections, correction{n, w})
		case assess.Grows:
			k.growing = append(k.growing, correction{n, w})
		case assess.Keeps:
			if claim := k.BoundClaim(n, w); claim != "" && !k.Of(n.Name).Started() {
				errs = append(errs, fmt.Errorf("node.storage: claim %s of node %s, which is to join, is bound to a "+
					"volume, and that does not change; take the change back, or delete the claim and its pod so that "+
					"both are recreated", claim, n.Name))
			} else {
				for _, d := range render.Fixed(render.Differences(n.Record, w)) {
					refused[d.String()] = append(refused[d.String()], n.Name)
				}
				for _, volume := range render.Volumes(w.Pod) {
					if c := n.Claims[volume.Name]; c.Bound() && k.CannotGrow(c, volume) != "" {
						fixed = append(fixed, k.CannotGrow(c, volume))
					}
				}
				if have, want := n.Record.Spec.Configuration.Version, w.Configuration.Version; have != want &&
					!k.Of(n.Name).Joined() {
					why := have + " → " + want + ": a node with a ticket keeps its release until it has joined"
					releases[why] = append(releases[why], n.Name)
				}
			}
		}
	}
	for _, change := range slices.Sorted(maps.Keys(releases)) {
		errs = append(errs, fmt.Errorf("version: %s (node %s); take the change back", change,
			words.List(releases[change], 3)))
	}
	var changes []string
	for _, d := range slices.Sorted(maps.Keys(refused)) {
		changes = append(changes, fmt.Sprintf("%s (node %s)", d, words.List(refused[d], 3)))
	}
	if len(changes) > 0 {
		why := "a ring that exists cannot change that"
		if slices.ContainsFunc(changes, func(c string) bool { return strings.HasPrefix(c, render.EphemeralSize) }) {
			why += "; another kind of storage is for another datacenter, which has its own node.storage: add one, " +
				"and take this one out when it has the data"
		}
		if len(fixed) > 0 {
			why += " (" + words.List(fixed, 2) + ")"
			k.draft.WakeIn(time.Minute) // nobody tells when a class changes
		}
		errs = append(errs, fmt.Errorf("%s: %s; take the change back", words.List(changes, 5), why))
	}
	return errors.Join(errs...)
}

// releaseOf a member is what its disk has: the newest release with which it was NORMAL there. One
// that never came up with what its record says can go back.
func (k *Keeper) releaseOf(n *facts.Node) string {
	disk := n.Record.Status.DiskRelease
	if agent := n.CurrentAgent(); agent != nil {
		disk = agent.DiskRelease
	}
	return cmp.Or(disk, n.Record.Spec.Configuration.Version)
}

// checkNumbers refuses nodes more than the ring can grow by. Nodes without any part in the ring can
// go; members leave by a step.
func (k *Keeper) checkNumbers() error {
	var early, fewer []string
	if !k.Settled() {
		early = slices.DeleteFunc(k.WantedNames(), k.Belongs)
	}
	for _, n := range k.Records() {
		switch {
		case k.Describes(n.Name) != nil, n.Record.Spec.State == v1alpha1.StateDecommissioned:
		case k.Settled() && k.Outside(n.Name):
			k.leavers = append(k.leavers, n.Name)
		case k.Abandoning(n.Name):
		default:
			fewer = append(fewer, n.Name)
		}
	}
	stays := func(dc string) bool { return k.Datacenter(dc) != nil }
	switch {
	case k.HasRing() && !slices.ContainsFunc(k.Ledger.Formed, stays):
		return fmt.Errorf("the spec lacks every datacenter of the ring (%s): the last one cannot leave; take the "+
			"change back, or add another datacenter first", words.List(k.Ledger.Formed, 3))
	case len(early) > 0:
		return fmt.Errorf("the spec has %s that the ring does not have (%s): a ring grows when it has formed; take "+
			"the change back until then", words.Plural(len(early), "node"), words.List(early, 3))
	case len(fewer) > 0:
		return fmt.Errorf("the spec lacks %s of a ring that has not formed (%s): nodes can leave when it has; take "+
			"the change back until then", words.Plural(len(fewer), "node"), words.List(fewer, 3))
	}
	return nil
}

// checkLedger refuses changes of what no record holds, and what was used up when the ring was
// formed.
func (k *Keeper) checkLedger() error {
	errs := []error{k.checkMadeWith()}
	if w := k.Cluster.Spec.Repair.Window; w != nil && k.NoRepairZone {
		errs = append(errs, fmt.Errorf("repair.window.timeZone %q is not in the IANA time zone database: allowed are "+
			"its names, such as UTC or Europe/Berlin", w.TimeZone))
	}
	for i := range k.Cluster.Spec.Datacenters {
		dc := &k.Cluster.Spec.Datacenters[i]
		if have, known := k.Ledger.Replication[dc.Name]; known && have != dc.PlannedReplicationFactor && !k.Settled() {
			errs = append(errs, fmt.Errorf("datacenters[%s].plannedReplicationFactor: %d → %d: the tokens and the "+
				"system keyspaces are made for the old one, which can be changed once the ring has formed; take the "+
				"change back. Keyspaces of your own can have any number of replicas", dc.Name, have,
				dc.PlannedReplicationFactor))
		}
	}
	if adopt := k.Adopts(); adopt != k.Ledger.Adopted {
		errs = append(errs, fmt.Errorf("bootstrap.adopt.clusterUID: %q → %q: a ring that exists cannot take over the "+
			"disks of another cluster; take the change back", k.Ledger.Adopted, adopt))
	}
	return errors.Join(errs...)
}
