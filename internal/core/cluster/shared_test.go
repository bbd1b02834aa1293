package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/cluster/procedure"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/guard"
	"helenus.io/helenus/internal/core/ledger"
	"helenus.io/helenus/internal/core/plan"
	"helenus.io/helenus/internal/core/render"
)

// Whatever somebody edits of an object that belongs to the cluster is put back, and what is added
// to it is left alone.
func TestEditsOfSharedObjectsAreTakenBack(t *testing.T) {
	agents := v1alpha1.AgentServiceAccountName("orders")
	for name, c := range map[string]struct {
		edit func(*facts.Shared)
		want string // the object that is applied
	}{
		"a label": {func(s *facts.Shared) {
			s.Services["orders"].Labels[v1alpha1.LabelClusterUID] = "x"
		}, "orders"},
		"a label of their own": {func(s *facts.Shared) { s.Services["orders"].Labels["team"] = "shop" }, ""},
		"its owner":            {func(s *facts.Shared) { s.Services["orders"].OwnerReferences = nil }, "orders"},
		"the selector":         {func(s *facts.Shared) { s.Services["orders"].Spec.Selector["x"] = "y" }, "orders"},
		"the ports":            {func(s *facts.Shared) { s.Services["orders"].Spec.Ports[0].Port++ }, "orders"},
		"who is published": {func(s *facts.Shared) {
			o := s.Services["orders"]
			o.Spec.PublishNotReadyAddresses = !o.Spec.PublishNotReadyAddresses
		}, "orders"},
		"the token": {func(s *facts.Shared) {
			s.ServiceAccounts[agents].AutomountServiceAccountToken = ptr(true)
		}, agents},
		"the rights":   {func(s *facts.Shared) { s.Roles[agents].Rules = nil }, agents},
		"whose rights": {func(s *facts.Shared) { s.RoleBindings[agents].Subjects[0].Name = "x" }, agents},
		"how many may go": {func(s *facts.Shared) {
			s.Budgets["orders-dc1"].Spec.MinAvailable = ptr(intstr.FromInt32(1))
		}, "orders-dc1"},
		"how many may not": {func(s *facts.Shared) {
			s.Budgets["orders-dc1"].Spec.MaxUnavailable = ptr(intstr.FromInt32(1))
		}, "orders-dc1"},
		"a port more": {func(s *facts.Shared) {
			o := s.Services["orders-dc1"]
			o.Spec.Ports = append(o.Spec.Ports, corev1.ServicePort{Name: "debug", Port: 4711})
		}, "orders-dc1"},
		"its type": {func(s *facts.Shared) {
			s.Services["orders-dc1"].Spec.Type = corev1.ServiceTypeNodePort
		}, "orders-dc1"},
		"a field of their own": {func(s *facts.Shared) {
			s.Services["orders-dc1"].Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}, ""},
		"whose pods may go": {func(s *facts.Shared) {
			s.Budgets["orders-dc1"].Spec.Selector.MatchLabels["x"] = "y"
		}, "orders-dc1"},
		"the seeds": {func(s *facts.Shared) {
			s.ConfigMaps["orders-seeds"].Data["seeds"] = "10.9.9.9"
		}, "orders-seeds"},
		"the label of the seeds": {func(s *facts.Shared) { s.ConfigMaps["orders-seeds"].Labels = nil }, "orders-seeds"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			c.edit(&w.snapshot.Shared)
			made := next(w)
			if c.want == "" {
				if len(made.Writes) > 0 {
					t.Errorf("want no write:\n%s", made)
				}
				return
			}
			if len(made.Writes) != 1 || made.Writes[0].Verb != plan.Change ||
				made.Writes[0].Object.GetName() != c.want ||
				made.Writes[0].UID == "" {
				t.Errorf("want %s to be applied:\n%s", c.want, made)
			}
			w.settle()
			if made := next(w); len(made.Writes) > 0 {
				t.Errorf("still not right:\n%s", made)
			}
		})
	}
}

// What the spec says about services and the account is done to the live objects; what others added
// stays, and what the spec no longer says goes.
func TestServicesFollowTheSpec(t *testing.T) {
	w := formed(t)
	w.settle()
	nodes, clients := w.snapshot.Shared.Services["orders"], w.snapshot.Shared.Services["orders-dc1"]
	account := w.snapshot.Shared.ServiceAccounts[v1alpha1.AgentServiceAccountName("orders")]
	nodes.Labels["theirs"], clients.Annotations = "x", map[string]string{"theirs": "x"}
	before := clients.UID
	current := func() {
		nodes, clients = w.snapshot.Shared.Services["orders"], w.snapshot.Shared.Services["orders-dc1"]
		account = w.snapshot.Shared.ServiceAccounts[v1alpha1.AgentServiceAccountName("orders")]
	}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Services = &v1alpha1.Services{
			IPFamilies: []v1alpha1.IPFamily{v1alpha1.IPv4, v1alpha1.IPv6},
			Nodes:      &v1alpha1.Metadata{Labels: map[string]string{"team": "shop"}},
			Clients: &v1alpha1.ClientService{Type: v1alpha1.ServiceLoadBalancer, Metadata: v1alpha1.Metadata{
				Annotations: map[string]string{"cloud": "internal"},
			}},
		}
		s.ServiceAccount = &v1alpha1.Metadata{Annotations: map[string]string{"role": "orders"}}
	})
	w.settle()
	current()
	if nodes.Labels["team"] != "shop" || nodes.Labels["theirs"] != "x" || nodes.Spec.ClusterIP != corev1.ClusterIPNone {
		t.Errorf("service of the nodes: %v, %+v", nodes.Labels, nodes.Spec)
	}
	if clients.Annotations["cloud"] != "internal" || clients.Annotations["theirs"] != "x" ||
		clients.Spec.Type != corev1.ServiceTypeLoadBalancer || clients.UID != before {
		t.Errorf("service of the clients: %v, %+v", clients.Annotations, clients.Spec)
	}
	if families := clients.Spec.IPFamilies; len(families) != 2 ||
		*clients.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyRequireDualStack {
		t.Errorf("families %v", families)
	}
	if account.Annotations["role"] != "orders" {
		t.Errorf("account: %v", account.Annotations)
	}
	clients.Spec.Ports[0].NodePort = 30042 // given by Kubernetes
	if made := next(w); len(made.Writes) > 0 {
		t.Errorf("a port of the hosts is taken away:\n%s", made)
	}

	w.change(func(s *v1alpha1.CassandraClusterSpec) { s.Services, s.ServiceAccount = nil, nil })
	w.settle()
	current()
	if _, kept := nodes.Labels["team"]; kept || nodes.Labels["theirs"] != "x" ||
		nodes.Labels[v1alpha1.LabelCluster] != "orders" {
		t.Errorf("service of the nodes: %v", nodes.Labels)
	}
	if _, kept := clients.Annotations["cloud"]; kept || len(clients.Annotations) != 1 ||
		clients.Spec.Type != corev1.ServiceTypeClusterIP || clients.Spec.Ports[0].NodePort != 0 {
		t.Errorf("service of the clients: %v, %+v", clients.Annotations, clients.Spec)
	}
	if len(account.Annotations) != 0 {
		t.Errorf("account: %v", account.Annotations)
	}

	clients.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Services = &v1alpha1.Services{IPFamilies: []v1alpha1.IPFamily{v1alpha1.IPv6}}
	})
	w.settle()
	current()
	if clients.UID == before || clients.Spec.IPFamilies[0] != corev1.IPv6Protocol {
		t.Errorf("a service keeps its main family for life, and this one was not made anew: %+v", clients.Spec)
	}
}

// A budget of a ring is opened only after a look at the API server itself; to close one, or to put
// right what else it says, none is needed.
func TestABudgetIsOpenedAfterALiveLook(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*world, *policyv1.PodDisruptionBudget)
		live bool
	}{
		"it is opened": {func(_ *world, b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable = ptr(intstr.FromInt32(3))
		}, true},
		"it is closed": {func(_ *world, b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable = ptr(intstr.FromInt32(1))
		}, false},
		"it says nothing": {func(_ *world, b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = nil }, false},
		"it is for others": {func(_ *world, b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchLabels["x"] = "y"
		}, false},
		"there is no member yet": {func(w *world, b *policyv1.PodDisruptionBudget) {
			w.snapshot.Ledger.Members = nil
			b.Spec.MinAvailable = ptr(intstr.FromInt32(9))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			budget := w.snapshot.Shared.Budgets["orders-dc1"]
			c.edit(w, budget)
			for _, write := range next(w).Writes {
				if changed, is := write.Object.(*policyv1.PodDisruptionBudget); is {
					if write.Live != c.live {
						t.Errorf("looked at live %v, want %v: %s", write.Live, c.live, write)
					}
					if changed.Name == budget.Name {
						return
					}
				}
			}
			t.Error("the budget is not put right")
		})
	}
}

// A budget is opened in the pass after the one that closes the step, which does not depend on the
// event of that write
// (create-rack/1/skipped=ConfigMap@operator:patch/status:CassandraCluster/orders:19).
func TestABudgetIsOpenedWhenAStepIsClosed(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 1, 1, 1))
	made := w.pass()
	for len(made.Finished) == 0 {
		made = w.pass()
	}
	policy := func() policyv1.UnhealthyPodEvictionPolicyType {
		return *w.snapshot.Shared.Budgets["orders-dc1"].Spec.UnhealthyPodEvictionPolicy
	}
	if made.Wake > time.Second || policy() != policyv1.IfHealthyBudget {
		t.Errorf("wakes in %s, and the budget says %s:\n%s", made.Wake, policy(), made)
	}
	if made = w.pass(); policy() != policyv1.AlwaysAllow {
		t.Errorf("the budget says %s:\n%s", policy(), made)
	}
}

// What the API server does not let be changed gives way to another object of its name.
func TestWhatCannotBePutRightIsMadeAnew(t *testing.T) {
	agents := v1alpha1.AgentServiceAccountName("orders")
	for name, c := range map[string]struct {
		edit func(*facts.Shared)
		of   string
		kind string
	}{
		"which rights": {func(s *facts.Shared) {
			s.RoleBindings[agents].RoleRef.Name = "x"
		}, agents, "RoleBinding"},
		"a service of names with address": {func(s *facts.Shared) {
			s.Services["orders"].Spec.ClusterIP = "10.0.0.1"
		}, "orders", "Service"},
		"a service without an address": {func(s *facts.Shared) {
			s.Services["orders-dc1"].Spec.ClusterIP = corev1.ClusterIPNone
		}, "orders-dc1", "Service"},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.settle()
			c.edit(&w.snapshot.Shared)
			wantWrites(t, w.pass(), c.of, "Delete "+c.kind)
			wantWrites(t, w.pass(), c.of, "Create "+c.kind)
			if made := next(w); len(made.Writes) > 0 {
				t.Errorf("still not right:\n%s", made)
			}
		})
	}
	w := formed(t)
	w.settle()
	w.snapshot.Shared.RoleBindings[agents].RoleRef.Name = "x"
	w.snapshot.Shared.RoleBindings[agents].DeletionTimestamp = &metav1.Time{Time: w.now}
	wantWrites(t, next(w), agents) // it goes already
	seeds := w.snapshot.Shared.ConfigMaps["orders-seeds"]
	seeds.Immutable, seeds.Data = ptr(true), map[string]string{"seeds": "10.9.9.9"}
	wantWrites(t, next(w), "orders-seeds", "Delete ConfigMap")
}

func TestHowManyPodsAnEvictionMustLeave(t *testing.T) {
	for name, c := range map[string]struct {
		world  func(t *testing.T) *world
		change func(*assess.View)
		want   int
	}{
		"all but one of a ring": {formed, func(*assess.View) {}, 2},
		"all while a step is open": {formed, func(v *assess.View) {
			v.Ledger.Step = &ledger.Step{Kind: ledger.FormRing}
		}, 3},
		"all while the ledger is lost": {formed, func(v *assess.View) {
			v.LedgerLost = true
		}, 3},
		"all but one member, if others are no members": {formed, func(v *assess.View) {
			delete(v.Ledger.Members, first)
		}, 1},
		"all but one of a ring, with a record missing": {formed, func(v *assess.View) {
			v.Nodes[second].Record = nil
		}, 2},
		"all but one of a ring, with record and pod missing": {formed, func(v *assess.View) {
			v.Nodes[second].Record, v.Nodes[second].Pod = nil, nil
		}, 2},
		"all but one of a ring, with nothing left of a node": {formed, func(v *assess.View) {
			delete(v.Nodes, second)
		}, 2},
		"all but one of a ring, with nothing left of a node of another datacenter": {formed, func(v *assess.View) {
			v.Wanted[1].Datacenter = "dc2"
			delete(v.Nodes, second)
		}, 1},
		"all but one of a ring, without the datacenter of others": {formed, func(v *assess.View) {
			v.Nodes[first].Record.Spec.Datacenter = "dc2"
			v.Nodes[second].Record, v.Nodes[second].Pod.Labels[v1alpha1.LabelDatacenter] = nil, "dc2"
		}, 0},
		"all while a step is open, with a record missing": {formed, func(v *assess.View) {
			v.Ledger.Step, v.Nodes[second].Record = &ledger.Step{Kind: ledger.FormRing}, nil
		}, 3},
		"all while a step is open, with a pod missing": {formed, func(v *assess.View) {
			v.Ledger.Step, v.Nodes[second].Pod = &ledger.Step{Kind: ledger.FormRing}, nil
		}, 3},
		"every member while a step is open, with record and pod missing": {formed, func(v *assess.View) {
			v.Ledger.Step, v.Nodes[second].Record, v.Nodes[second].Pod = &ledger.Step{Kind: ledger.FormRing}, nil, nil
		}, 3},
		"all that are wanted, before the ring forms": {preparing, func(v *assess.View) {
			v.Wanted = append(v.Wanted, v.Wanted[0])
			v.Wanted[3].Name = "orders-dc1-r1-1"
		}, 4},
		"none of another datacenter": {preparing, func(v *assess.View) {
			v.Wanted = append(v.Wanted, v.Wanted[0])
			v.Wanted[3].Name, v.Wanted[3].Datacenter = "x", "dc2"
		}, 3},
		"all that are there, if the spec is refused": {preparing, func(v *assess.View) {
			v.SpecRejected = true
			v.Wanted = append(v.Wanted, v.Wanted[0])
			v.Wanted[3].Name = "orders-dc1-r1-1"
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.world(t)
			v := viewOf(w)
			c.change(v)
			if got := procedure.MinAvailable(v, "dc1", engineOver(v).RangesMove()); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// A pod that is not ready, and that nothing waits for, does not keep its host from being drained.
func TestUnreadyPodsMayBeEvictedWhileNoStepIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		world  func(t *testing.T) *world
		change func(*assess.View)
		want   policyv1.UnhealthyPodEvictionPolicyType
	}{
		"nothing is under way": {formed, func(*assess.View) {}, policyv1.AlwaysAllow},
		"pods have the data":   {ephemeral, func(*assess.View) {}, policyv1.IfHealthyBudget},
		"a node joins": {formed, func(v *assess.View) {
			v.Ledger.Step = &ledger.Step{Kind: ledger.JoinNode}
		}, policyv1.IfHealthyBudget},
		"nodes are cleaned up": {formed, func(v *assess.View) {
			v.Ledger.Maintenance = []*ledger.Step{{Kind: ledger.Cleanup}}
		}, policyv1.IfHealthyBudget},
		"the ledger is lost":        {formed, func(v *assess.View) { v.LedgerLost = true }, policyv1.IfHealthyBudget},
		"the ring is still to form": {preparing, func(*assess.View) {}, policyv1.IfHealthyBudget},
	} {
		v := viewOf(c.world(t))
		c.change(v)
		b := procedure.Budget(v, "dc1", engineOver(v).RangesMove())
		if got := *b.Spec.UnhealthyPodEvictionPolicy; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A step that moves ranges or takes nodes down keeps every pod while it is open.
func TestWhichStepsRefuseEvictions(t *testing.T) {
	want := []ledger.Kind{ledger.AddDatacenter, ledger.AdoptRing, ledger.FormRing, ledger.JoinNode, ledger.LeaveNode,
		ledger.RemoveTask, ledger.RenewNode, ledger.ReplaceNode, ledger.ReplaceTask, ledger.RollOut,
		ledger.StopDatacenter, ledger.StopRing, ledger.WithdrawDatacenter}
	v := viewOf(formed(t))
	var got []ledger.Kind
	for _, p := range procedures(guard.All()) {
		v.Ledger.Step = &ledger.Step{Kind: p.Kind}
		if procedure.MinAvailable(v, "dc1", engineOver(v).RangesMove()) == len(v.Ledger.Members) {
			got = append(got, p.Kind)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("evictions are refused during %v, want during %v", got, want)
	}
}

// Evictions are refused before the first ticket is written, and not while nobody can join anyway.
func TestWhenRangesMove(t *testing.T) {
	nodeMore := func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Racks[0].Nodes = ptr(int32(2)) }
	datacenterMore := func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters = append(s.Datacenters, added("dc2", 1)) }
	for name, c := range map[string]struct {
		spec   func(*v1alpha1.CassandraClusterSpec)
		change func(*assess.View)
		want   bool
	}{
		"nobody comes": {func(*v1alpha1.CassandraClusterSpec) {}, func(*assess.View) {},
			false},
		"a node is ready": {nodeMore, func(*assess.View) {}, true},
		"a node is ready, the cluster is paused": {nodeMore, func(v *assess.View) { v.Cluster.Spec.Paused = true },
			false},
		"a node is ready, the spec is refused": {nodeMore, func(v *assess.View) { v.SpecRejected = true }, false},
		"a node is not ready": {nodeMore, func(v *assess.View) {
			v.Nodes[newcomer].Agent = nil
		}, false},
		"a node is ready, and the host of a member is cordoned": {nodeMore, func(v *assess.View) {
			v.Nodes[second].Pod.Spec.NodeName = "m"
			v.Hosts = map[string]*corev1.Node{"m": {Spec: corev1.NodeSpec{Unschedulable: true}}}
		}, false},
		"a datacenter is ready": {datacenterMore, func(*assess.View) {}, true},
		"a datacenter is not ready": {datacenterMore, func(v *assess.View) {
			v.Nodes["orders-dc2-r1-0"].Agent = nil
		}, false},
		"a node joins": {nodeMore, func(v *assess.View) { v.Ledger.Step = &ledger.Step{Kind: ledger.JoinNode} }, true},
		"nodes drop what they do not own any more": {nodeMore, func(v *assess.View) {
			v.Ledger.Step = &ledger.Step{Kind: ledger.Cleanup}
		}, false},
		"the members have to forget a join instead": {nodeMore, func(v *assess.View) {
			v.Ledger.Step = &ledger.Step{Kind: ledger.Assassinate}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			w.change(c.spec)
			everyone := func() bool {
				return !slices.ContainsFunc(wantedOf(w), func(n render.Wanted) bool {
					return w.snapshot.Nodes[n.Name] == nil || w.snapshot.Nodes[n.Name].Agent == nil
				})
			}
			for i := 0; !everyone(); i++ {
				if w.pass(); i > 20 {
					t.Fatal("the pods did not come")
				}
			}
			v := viewOf(w)
			c.change(v)
			if got := engineOver(v).RangesMove(); got != c.want {
				t.Errorf("ranges move: %v", got)
			}
		})
	}
}

// A roll-out that waits for nodes that cannot join yet keeps no host from being drained.
func TestAHostIsDrainedWhileARollOutWaitsForJoins(t *testing.T) {
	w := formed(t)
	w.snapshot.Hosts = map[string]*corev1.Node{"m": {Spec: corev1.NodeSpec{Unschedulable: true}}}
	w.snapshot.Nodes[second].Pod.Spec.NodeName = "m"
	w.snapshot.Ledger.JoinedAt = w.now
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
		s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")}}
	})
	for range 12 {
		w.pass()
	}
	budget := w.snapshot.Shared.Budgets[v1alpha1.DisruptionBudgetName("orders", "dc1")]
	if w.open() != nil || budget.Spec.MinAvailable.IntValue() != 2 {
		t.Errorf("open is %v, and an eviction leaves %v", w.open(), budget.Spec.MinAvailable)
	}
	w.now = w.now.Add(time.Hour) // it waits no longer
	w.pass()
	if w.pass(); w.open() == nil || w.open().Kind != ledger.RollOut {
		t.Errorf("open is %v", w.open())
	}
}

// Each node takes the list of seeds over while it runs, so it is changed as little as can be.
func TestSeedsAreKeptAsLongAsTheyCan(t *testing.T) {
	w := newWorld(t, datacenter("dc1", 2, 2, 2))
	w.settle()
	seedsOf := func() []string { return next(w).Seeds }
	before := seedsOf()
	n := w.snapshot.Nodes[first]
	if !slices.Contains(before, n.Pod.Status.PodIP) {
		t.Fatalf("%s is no seed: %v", first, before)
	}
	pod := n.Pod
	n.Pod, n.Agent = nil, nil
	without := seedsOf()
	if len(without) != 3 || slices.Contains(without, pod.Status.PodIP) {
		t.Fatalf("seeds %v without the first, want three others", without)
	}
	w.settle()
	if got := seedsOf(); !slices.Equal(got, without) {
		t.Errorf("seeds %v when the first is back, want them to stay %v", got, without)
	}
}

func TestTheLastSeedsStayWhileNobodyHasAnAddress(t *testing.T) {
	w := formed(t)
	before := next(w).Seeds
	for _, name := range three {
		w.snapshot.Nodes[name].Pod.Status.PodIP = ""
	}
	p := next(w)
	if !slices.Equal(p.Seeds, before) || len(before) != 3 {
		t.Errorf("seeds %v, want %v", p.Seeds, before)
	}
	wantWrites(t, p, "orders-seeds")
	delete(w.snapshot.Shared.ConfigMaps, "orders-seeds")
	if p := next(w); len(p.Seeds) != 0 {
		t.Errorf("seeds %v out of nothing", p.Seeds)
	}
	w.snapshot.Shared.ConfigMaps["orders-seeds"] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "orders-seeds",
	},
		Data: map[string]string{"seeds": ""}}
	if p := next(w); len(p.Seeds) != 0 {
		t.Errorf("seeds %q out of an empty list", p.Seeds)
	}
}

// A step that says nothing of seeds leaves them to the members.
func TestSeedsWhileANodeJoins(t *testing.T) {
	w := joining(t)
	var members []string
	for _, name := range three {
		members = append(members, w.snapshot.Nodes[name].Pod.Status.PodIP)
	}
	slices.Sort(members)
	if got := next(w).Seeds; !slices.Equal(got, members) {
		t.Errorf("seeds %v, want %v", got, members)
	}
}
