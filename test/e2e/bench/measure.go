package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/dev/demo/install"
	"helenus.io/helenus/dev/demo/local"
	"helenus.io/helenus/internal/core/layout"
	"helenus.io/helenus/test/e2e/scene"
)

// namespaces of the measurements.
const (
	namespaceFormed = "bench-formed"
	namespaceSerial = "bench-serial"
)

// settling is how long after the last change the end of it may still be written down; it is not
// part of the idle time.
const settling = 30 * time.Second

func readSample() (*v1alpha1.CassandraCluster, error) {
	repository, err := local.FindRepository(".")
	if err != nil {
		return nil, err
	}
	return scene.Sample(filepath.Join(repository, "config", "samples", "demo.yaml"))
}

// shaped is the sample with another number of nodes. Hosts are shared where there are fewer of
// them.
func shaped(sample *v1alpha1.CassandraCluster, size int) *v1alpha1.CassandraCluster {
	c := sample.DeepCopy()
	c.Name = fmt.Sprintf("ring%d", size)
	c.Spec.Node.Placement.HostAntiAffinity = v1alpha1.HostAntiAffinityPreferred
	dc := &c.Spec.Datacenters[0]
	if size == 1 {
		dc.Racks, dc.PlannedReplicationFactor = dc.Racks[:1], 1
		return c
	}
	dc.NodesPerRack = int32(size / len(dc.Racks)) //nolint:gosec // a few nodes
	return c
}

func (b *bench) measure(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	if b.has(partFormation) {
		if err := b.formations(ctx, sample, f); err != nil {
			return err
		}
	}
	for _, size := range b.sizes {
		for _, way := range []struct {
			part string
			mode mode
			into map[int]time.Duration
		}{{partBootstrap, bootstrap, f.bootstrapped}, {partSameFlags, sameFlags, f.sameFlags}} {
			if !b.has(way.part) {
				continue
			}
			took, err := b.serial(ctx, sample, size, way.mode)
			if err != nil {
				return fmt.Errorf("%d nodes one after the other, %s: %w", size, way.part, err)
			}
			way.into[size] = took
			b.say("%d nodes one after the other, %s: %.1fs", size, way.part, took.Seconds())
		}
	}
	if b.has(partMemory) || b.has(partIdle) {
		if err := b.atRest(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partRollOut) {
		if err := b.rollOuts(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partLeave) {
		if err := b.leaves(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partSecurity) {
		if err := b.protects(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partScrape) {
		if err := b.watches(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partBackup) {
		if err := b.backsUp(ctx, sample, f); err != nil {
			return err
		}
	}
	if b.has(partAlone) {
		return b.alone(ctx, sample, f)
	}
	return nil
}

// formations measures one node and the rings, each several times: what counts is the time in the
// middle. A ring is formed before that which does not count: the hosts may still have to get the
// images, which has nothing to do with forming.
func (b *bench) formations(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	if _, err := b.form(ctx, shaped(sample, 3), nil); err != nil {
		return err
	}
	for _, size := range append([]int{1}, b.sizes...) {
		var times []time.Duration
		for range b.repeat {
			took, err := b.form(ctx, shaped(sample, size), nil)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		if size == 1 {
			f.one = middle(times)
		} else {
			f.formed[size] = middle(times)
		}
	}
	return nil
}

// middle is the median; of two in the middle the longer one.
func middle(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

// form forms a ring in a scene of its own, does something with it, and removes it again. It returns
// how long it took from the creation of the cluster until all its nodes served.
func (b *bench) form(ctx context.Context, c *v1alpha1.CassandraCluster, use func(*scene.Ring) error) (time.Duration,
	error) {
	s, err := scene.Open(ctx, b.cluster, namespaceFormed, b.patience*float64(max(1, nodeCount(c)/3)))
	if err != nil {
		return 0, err
	}
	start := time.Now()
	ring, err := s.Form(ctx, c)
	took := time.Since(start)
	if err == nil {
		b.say("%s formed: %.1fs", c.Name, took.Seconds())
		if use != nil {
			err = use(ring)
		}
	}
	for _, what := range s.Invariants.Violations() {
		err = fmt.Errorf("this must never happen: %s", what)
	}
	if err != nil {
		b.say("%s", s.Diagnosis(ctx))
	}
	if closed := s.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	return took, err
}

func nodeCount(c *v1alpha1.CassandraCluster) int {
	dc := c.Spec.Datacenters[0]
	return len(dc.Racks) * int(max(1, dc.NodesPerRack))
}

// atRest measures what a ring costs while nothing happens.
func (b *bench) atRest(ctx context.Context, sample *v1alpha1.CassandraCluster, f *figures) error {
	size := b.sizes[len(b.sizes)-1]
	_, err := b.form(ctx, shaped(sample, size), func(ring *scene.Ring) error {
		if err := pass(ctx, settling); err != nil {
			return err
		}
		if b.has(partIdle) {
			since := time.Now()
			b.say("nothing happens for %s", b.idle)
			if err := pass(ctx, b.idle); err != nil {
				return err
			}
			counts, err := ring.Writes(since)
			if err != nil {
				return err
			}
			f.idle = &idle{window: b.idle, nodes: size, writes: scene.Total(counts), detail: scene.Listed(counts)}
		}
		if b.has(partMemory) {
			var err error
			f.memory, err = b.memory(ctx, size)
			return err
		}
		return nil
	})
	return err
}

// pass lets time pass: what is measured is what happens in it.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// summary is what is read of what kubelet says of its containers (stats/summary).
type summary struct {
	Pods []struct {
		Reference struct {
			Namespace string    `json:"namespace"`
			UID       types.UID `json:"uid"`
		} `json:"podRef"`
		Containers []struct {
			Name   string `json:"name"`
			Memory struct {
				Resident uint64 `json:"rssBytes"`
			} `json:"memory"`
		} `json:"containers"`
	} `json:"pods"`
}

// memory asks every kubelet for the resident memory of the operator and the agents.
func (b *bench) memory(ctx context.Context, size int) ([]memory, error) {
	operator := memory{what: fmt.Sprintf("operator, one cluster of %d nodes (leader and stand-by)", size)}
	agents := memory{what: "agent"}
	hosts := &corev1.NodeList{}
	if err := b.cluster.Client.List(ctx, hosts); err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	for _, host := range hosts.Items {
		text, err := b.cluster.Core.CoreV1().RESTClient().Get().Resource("nodes").Name(host.Name).SubResource("proxy",
			"stats", "summary").DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask the kubelet of %s for its figures: %w", host.Name, err)
		}
		var s summary
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("read the figures of the kubelet of %s: %w", host.Name, err)
		}
		for _, pod := range s.Pods {
			for _, c := range pod.Containers {
				switch {
				case pod.Reference.Namespace == install.Namespace && c.Name == "operator":
					operator.resident = append(operator.resident, c.Memory.Resident)
				case pod.Reference.Namespace == namespaceFormed && c.Name == layout.AgentContainer:
					agents.resident = append(agents.resident, c.Memory.Resident)
				}
			}
		}
	}
	if len(operator.resident) == 0 || len(agents.resident) != size {
		return nil, fmt.Errorf("the kubelets show %d operators and %d agents, want one or more and %d",
			len(operator.resident), len(agents.resident), size)
	}
	return []memory{operator, agents}, nil
}
