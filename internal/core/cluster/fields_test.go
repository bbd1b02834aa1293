package cluster

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/plan"
)

func encrypted(e v1alpha1.Encryption) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Security = &v1alpha1.Security{Encryption: &e} }
}

func issuedBy(issuer v1alpha1.CertificateIssuer) func(*v1alpha1.CassandraClusterSpec) {
	return encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
		Clients: &v1alpha1.ClientsAuthority{IssuerRef: &issuer}}})
}

func nodesIssuedBy(issuer v1alpha1.CertificateIssuer) func(*v1alpha1.CassandraClusterSpec) {
	return encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
		Internode: &v1alpha1.InternodeAuthority{IssuerRef: &issuer}}})
}

// What becomes of a change of a field once the ring is formed.
const (
	applies = "applies"
	grows   = "the ring grows, or what is in it is raised"
	leaves  = "nodes leave the ring"
	written = "objects beside the nodes follow"
	// By a roll-out.
	restarts = "one JVM after the other restarts"
	newPods  = "one pod after the other is a new one"
	labels   = "the pods that run get it"
	schema   = "refused by the schema"
	stops    = "all nodes stop together"
)

// fields are all that a user can write, with a change of each. What a change comes to is one of the
// words above, or else the words by which it is refused.
var fields = map[string]struct {
	change func(*v1alpha1.CassandraClusterSpec)
	want   string
}{
	"version": {func(s *v1alpha1.CassandraClusterSpec) { s.Version = "5.0.9" }, newPods},
	"image": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Image = "mine:5.0.6"
	}, newPods},
	"imagePullSecrets": {func(s *v1alpha1.CassandraClusterSpec) {
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}}
	}, newPods},
	"security.authentication.mode": {
		securedBy(v1alpha1.Authentication{Mode: v1alpha1.AuthenticationPassword}), written,
	},
	"security.authentication.superuser.secretName": {
		securedBy(v1alpha1.Authentication{Superuser: &v1alpha1.Superuser{SecretName: "mine"}}),
		"the ring is made without passwords",
	},
	"security.authentication.roles": {
		securedBy(v1alpha1.Authentication{Mode: v1alpha1.AuthenticationPassword,
			Roles: []v1alpha1.ApplicationRole{{Name: "app", SecretName: "app"}}}), written,
	},
	"security.encryption.internode.mode": {
		encrypted(v1alpha1.Encryption{Internode: &v1alpha1.InternodeEncryption{Mode: v1alpha1.EncryptionOptional}}),
		restarts,
	},
	"security.encryption.clients.mode": {
		encrypted(v1alpha1.Encryption{Clients: &v1alpha1.ClientEncryption{Mode: v1alpha1.EncryptionRequired}}),
		restarts,
	},
	"security.encryption.clients.clientCertificates": {
		encrypted(v1alpha1.Encryption{Clients: &v1alpha1.ClientEncryption{Mode: v1alpha1.EncryptionRequired,
			ClientCertificates: v1alpha1.ClientCertificatesRequired}}), restarts,
	},
	"security.encryption.certificates.lifetime": {
		encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Lifetime: &metav1.Duration{Duration: time.Hour}}}), applies,
	},
	"security.encryption.certificates.internode.rotatedAt": {
		encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Internode: &v1alpha1.InternodeAuthority{RotatedAt: noon}}}), applies,
	},
	"security.encryption.certificates.clients.rotatedAt": {
		encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Clients: &v1alpha1.ClientsAuthority{RotatedAt: noon}}}), applies,
	},
	"security.encryption.certificates.clients.hold": {
		encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Clients: &v1alpha1.ClientsAuthority{Hold: &metav1.Duration{Duration: time.Hour}}}}), applies,
	},
	"security.encryption.certificates.clients.secretName": {
		encrypted(v1alpha1.Encryption{Certificates: &v1alpha1.Certificates{
			Clients: &v1alpha1.ClientsAuthority{SecretName: "ours"}}}), applies,
	},
	"security.encryption.certificates.clients.issuerRef.name": {issuedBy(v1alpha1.CertificateIssuer{Name: "ours"}), written},
	"security.encryption.certificates.clients.issuerRef.kind": {
		issuedBy(v1alpha1.CertificateIssuer{Name: "ours", Kind: "ClusterIssuer"}), written},
	"security.encryption.certificates.clients.issuerRef.group": {
		issuedBy(v1alpha1.CertificateIssuer{Name: "ours", Group: "example.com"}), written},
	"security.encryption.certificates.internode.issuerRef.name": {
		nodesIssuedBy(v1alpha1.CertificateIssuer{Name: "ours"}), written},
	"security.encryption.certificates.internode.issuerRef.kind": {
		nodesIssuedBy(v1alpha1.CertificateIssuer{Name: "ours", Kind: "Issuer"}), written},
	"security.encryption.certificates.internode.issuerRef.group": {
		nodesIssuedBy(v1alpha1.CertificateIssuer{Name: "ours", Group: "example.com"}), written},
	"security.networkPolicy.mode": {managed(v1alpha1.NetworkPolicy{}), written},
	"security.networkPolicy.clients": {managed(v1alpha1.NetworkPolicy{Clients: []v1alpha1.NetworkPeer{}}),
		written},
	"security.networkPolicy.metrics":  {managed(v1alpha1.NetworkPolicy{Metrics: everywhere}), written},
	"security.networkPolicy.external": {managed(v1alpha1.NetworkPolicy{External: everywhere}), written},
	"clusterName":                     {func(s *v1alpha1.CassandraClusterSpec) { s.ClusterName = "other" }, schema},
	"paused":                          {func(s *v1alpha1.CassandraClusterSpec) { s.Paused = true }, applies},

	"stopped": {func(s *v1alpha1.CassandraClusterSpec) { s.Stopped = true }, stops},

	"imagePullPolicy": {func(s *v1alpha1.CassandraClusterSpec) { s.ImagePullPolicy = v1alpha1.PullAlways },
		newPods},
	"services.ipFamilies": {serving(v1alpha1.Services{IPFamilies: []v1alpha1.IPFamily{v1alpha1.IPv4}}),
		written},
	"services.nodes.labels": {
		serving(v1alpha1.Services{Nodes: &v1alpha1.Metadata{Labels: map[string]string{"a": "b"}}}), written,
	},
	"services.nodes.annotations": {
		serving(v1alpha1.Services{Nodes: &v1alpha1.Metadata{Annotations: map[string]string{"a": "b"}}}), written,
	},
	"services.clients.type": {
		serving(v1alpha1.Services{Clients: &v1alpha1.ClientService{Type: v1alpha1.ServiceLoadBalancer}}), written,
	},
	"services.clients.labels": {
		serving(
			v1alpha1.Services{
				Clients: &v1alpha1.ClientService{Metadata: v1alpha1.Metadata{Labels: map[string]string{"a": "b"}}},
			},
		), written,
	},
	"services.clients.annotations": {
		serving(
			v1alpha1.Services{
				Clients: &v1alpha1.ClientService{Metadata: v1alpha1.Metadata{Annotations: map[string]string{"a": "b"}}},
			},
		), written,
	},
	"serviceAccount.labels": {func(s *v1alpha1.CassandraClusterSpec) {
		s.ServiceAccount = &v1alpha1.Metadata{Labels: map[string]string{"a": "b"}}
	}, written},
	"serviceAccount.annotations": {func(s *v1alpha1.CassandraClusterSpec) {
		s.ServiceAccount = &v1alpha1.Metadata{Annotations: map[string]string{"a": "b"}}
	}, written},
	"node.terminationGracePeriodSeconds": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.TerminationGracePeriodSeconds = ptr(int64(600))
	}, newPods},

	"node.resources.requests": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Resources = resources(corev1.ResourceCPU, "3")
	}, newPods},
	"node.resources.limits": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Resources = &v1alpha1.Resources{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("6Gi")},
		}
	}, newPods},
	"node.agentResources.requests": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.AgentResources = resources(corev1.ResourceCPU, "1")
	}, newPods},
	"node.agentResources.limits": {func(s *v1alpha1.CassandraClusterSpec) {
		limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("80Mi")}
		s.Node.AgentResources = &v1alpha1.Resources{Limits: limits}
	}, newPods},
	"node.cassandraYaml": {setting("concurrent_reads", "16"), restarts},
	"node.jvm.heap": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.JVM = &v1alpha1.JVM{Heap: quantity("1Gi")}
	}, restarts},
	"node.jvm.options": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.JVM = &v1alpha1.JVM{Options: []string{"-XX:+UseZGC"}}
	}, restarts},
	"node.jvm.gcLog": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.JVM = &v1alpha1.JVM{GCLog: v1alpha1.GCLogNone}
	}, restarts},
	"node.jvm.classPath": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.JVM = &v1alpha1.JVM{ClassPath: []string{"/x.jar"}}
	}, restarts},
	"node.configFiles.configMapName": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.ConfigFiles = &v1alpha1.ConfigFiles{ConfigMapName: "files"}
	}, newPods},
	"node.environment": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Environment = []v1alpha1.EnvironmentVariable{{Name: "A", Value: "b"}}
	}, restarts},
	"node.placement.zone": {placed(v1alpha1.Placement{Zone: "a"}), newPods},
	"node.placement.nodeSelector": {placed(v1alpha1.Placement{NodeSelector: map[string]string{"disk": "fast"}}),
		newPods},
	"node.placement.nodeAffinity": {placed(v1alpha1.Placement{NodeAffinity: &corev1.NodeAffinity{}}),
		newPods},
	"node.placement.tolerations": {placed(v1alpha1.Placement{Tolerations: []corev1.Toleration{{Key: "a"}}}),
		newPods},
	"node.placement.topologySpreadConstraints": {placed(v1alpha1.Placement{
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1}},
	}),
		newPods},
	"node.placement.hostAntiAffinity": {placed(v1alpha1.Placement{HostAntiAffinity: v1alpha1.HostAntiAffinityNone}),
		newPods},
	"node.placement.priorityClassName": {placed(v1alpha1.Placement{PriorityClassName: "high"}),
		newPods},
	"node.probes.agentStartup.periodSeconds": {probed(v1alpha1.Probes{AgentStartup: &v1alpha1.Probe{PeriodSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.agentStartup.timeoutSeconds": {probed(v1alpha1.Probes{AgentStartup: &v1alpha1.Probe{TimeoutSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.agentStartup.failureThreshold": {probed(v1alpha1.Probes{AgentStartup: &v1alpha1.Probe{FailureThreshold: ptr(int32(20))}}),
		newPods},
	"node.probes.agentLiveness.periodSeconds": {probed(v1alpha1.Probes{AgentLiveness: &v1alpha1.Probe{PeriodSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.agentLiveness.timeoutSeconds": {probed(v1alpha1.Probes{AgentLiveness: &v1alpha1.Probe{TimeoutSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.agentLiveness.failureThreshold": {probed(v1alpha1.Probes{AgentLiveness: &v1alpha1.Probe{FailureThreshold: ptr(int32(20))}}),
		newPods},
	"node.probes.readiness.periodSeconds": {probed(v1alpha1.Probes{Readiness: &v1alpha1.Probe{PeriodSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.readiness.timeoutSeconds": {probed(v1alpha1.Probes{Readiness: &v1alpha1.Probe{TimeoutSeconds: ptr(int32(20))}}),
		newPods},
	"node.probes.readiness.failureThreshold": {probed(v1alpha1.Probes{Readiness: &v1alpha1.Probe{FailureThreshold: ptr(int32(20))}}),
		newPods},
	"node.metadata.labels": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Metadata = &v1alpha1.Metadata{Labels: map[string]string{"a": "b"}}
	}, labels},
	"node.metadata.annotations": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Metadata = &v1alpha1.Metadata{Annotations: map[string]string{"a": "b"}}
	}, labels},
	"node.storage.ephemeral.sizeLimit": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Storage = &v1alpha1.Storage{Ephemeral: &v1alpha1.EphemeralStorage{SizeLimit: quantity("10Gi")}}
	}, "node.storage.ephemeral.sizeLimit: unset → "},
	"node.storage.claims.data.size": {stored(func(s *v1alpha1.StorageClaims) {
		s.Data.Size = quantity("20Gi")
	}), `node.storage.claims.data.size: "10Gi" → "20Gi"`},
	"node.storage.claims.data.storageClassName": {stored(func(s *v1alpha1.StorageClaims) {
		s.Data.StorageClassName = ptr("fast")
	}), `node.storage.claims.data.storageClassName: unset → "fast"`},
	"node.storage.claims.commitlog.size": {stored(func(s *v1alpha1.StorageClaims) {
		s.Commitlog = &v1alpha1.VolumeClaim{Size: quantity("2Gi")}
	}), `node.storage.claims.commitlog.size: unset → "2Gi"`},
	"node.storage.claims.commitlog.storageClassName": {stored(func(s *v1alpha1.StorageClaims) {
		s.Commitlog = &v1alpha1.VolumeClaim{Size: quantity("2Gi"), StorageClassName: ptr("fast")}
	}),
		`node.storage.claims.commitlog.storageClassName: unset → "fast"`},
	"node.storage.claims.data.accessModes": {stored(func(s *v1alpha1.StorageClaims) {
		s.Data.AccessModes = []v1alpha1.AccessMode{v1alpha1.AccessReadWriteOncePod}
	}), `node.storage.claims.data.accessModes: unset → ["ReadWriteOncePod"]`},
	"node.storage.claims.data.selector": {stored(func(s *v1alpha1.StorageClaims) {
		s.Data.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"}}
	}), `node.storage.claims.data.selector.matchLabels.disk: unset → "fast"`},
	"node.storage.claims.data.dataSource.apiGroup": {filled(dataOf), `dataSource.apiGroup: unset → "snapshot.storage.k8s.io"`},
	"node.storage.claims.data.dataSource.kind":     {filled(dataOf), `dataSource.kind: unset → "VolumeSnapshot"`},
	"node.storage.claims.data.dataSource.name":     {filled(dataOf), `dataSource.name: unset → "golden"`},
	"node.storage.claims.commitlog.accessModes": {stored(func(s *v1alpha1.StorageClaims) {
		s.Commitlog = &v1alpha1.VolumeClaim{Size: quantity("2Gi"),
			AccessModes: []v1alpha1.AccessMode{v1alpha1.AccessReadWriteOncePod}}
	}), `node.storage.claims.commitlog.accessModes: unset → ["ReadWriteOncePod"]`},
	"node.storage.claims.commitlog.selector": {stored(func(s *v1alpha1.StorageClaims) {
		s.Commitlog = &v1alpha1.VolumeClaim{Size: quantity("2Gi"),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"}}}
	}), `node.storage.claims.commitlog.selector.matchLabels.disk: unset → "fast"`},
	"node.storage.claims.commitlog.dataSource.apiGroup": {filled(commitlogOf), `dataSource.apiGroup: unset → "snapshot.storage.k8s.io"`},
	"node.storage.claims.commitlog.dataSource.kind":     {filled(commitlogOf), `dataSource.kind: unset → "VolumeSnapshot"`},
	"node.storage.claims.commitlog.dataSource.name":     {filled(commitlogOf), `dataSource.name: unset → "golden"`},
	"node.storage.claims.additional": {stored(func(s *v1alpha1.StorageClaims) {
		s.Additional = []v1alpha1.AdditionalVolume{{Name: "scratch", MountPath: "/scratch",
			VolumeClaim: v1alpha1.VolumeClaim{Size: quantity("1Gi")}}}
	}), "node.storage.claims.additional: unset → "},
	"node.overlay": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Overlay = &runtime.RawExtension{Raw: []byte(`{"spec":{"dnsPolicy":"Default"}}`)}
	}, newPods},

	"datacenters": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters = append(s.Datacenters, added("dc2", 1))
	}, grows},
	"datacenters[].name": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Name = "dc3"
	}, "the spec lacks every datacenter of the ring (dc1)"},
	"datacenters[].datacenterName": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].DatacenterName = "X"
	}, schema},
	"datacenters[].nodesPerRack": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].NodesPerRack, s.Datacenters[0].Racks[0].Nodes = 2, nil
	}, grows},
	"datacenters[].numTokens": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].NumTokens = 8
	}, "datacenters[].numTokens: 4 → 8"},
	"datacenters[].plannedReplicationFactor": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].PlannedReplicationFactor = 5
	}, applies},
	"datacenters[].extend.keyspaces": {extended(v1alpha1.Extend{
		Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "shop"}},
	}), applies},
	"datacenters[].extend.keyspaces[].name": {extended(v1alpha1.Extend{
		Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "cart"}},
	}), applies},
	"datacenters[].extend.keyspaces[].replicationFactor": {extended(v1alpha1.Extend{
		Keyspaces: []v1alpha1.ExtendedKeyspace{{Name: "shop", ReplicationFactor: 2}},
	}), applies},
	"datacenters[].extend.all":                  {extended(v1alpha1.Extend{All: true}), applies},
	"datacenters[].extend.from":                 {extended(v1alpha1.Extend{From: "dc0"}), applies},
	"datacenters[].extend.localConsistencyOnly": {extended(v1alpha1.Extend{LocalConsistencyOnly: true}), applies},
	"datacenters[].withdraw.keyspaces": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Withdraw = &v1alpha1.Withdraw{Keyspaces: []string{"shop"}}
	}, applies},
	"datacenters[].withdraw.all": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Withdraw = &v1alpha1.Withdraw{All: true}
	}, applies},
	"datacenters[].stopped": {func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Stopped = true }, schema},
	"datacenters[].racks": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks = s.Datacenters[0].Racks[:2]
	}, leaves},
	"datacenters[].racks[].name": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Name = "r9"
	}, grows},
	"datacenters[].allowFewerRacks": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].AllowFewerRacks = true
	}, applies},
	"datacenters[].racks[].rackName": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].RackName = "X"
	}, schema},
	"datacenters[].racks[].nodes": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Nodes = ptr(int32(2))
	}, grows},
	"datacenters[].racks[].node": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].Node = &v1alpha1.NodeSettings{JVM: &v1alpha1.JVM{Heap: quantity("1Gi")}}
	}, restarts},
	"datacenters[].node": {func(s *v1alpha1.CassandraClusterSpec) {
		claims := &v1alpha1.StorageClaims{Commitlog: &v1alpha1.VolumeClaim{Size: quantity("2Gi")}}
		s.Datacenters[0].Node = &v1alpha1.NodeTemplate{
			NodeSettings: v1alpha1.NodeSettings{Storage: &v1alpha1.Storage{Claims: claims}},
		}
	}, "node.storage.claims.commitlog.size: unset → "},

	"exceptions": {func(s *v1alpha1.CassandraClusterSpec) {
		until := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
		s.Exceptions = []v1alpha1.Exception{{Name: "look", Type: v1alpha1.ExceptionDebug, Node: "orders-dc1-r1-0",
			Reason: "x", Until: until}}
	}, written},
	"metrics.tables.mode":         {measured(v1alpha1.TableMetrics{Mode: v1alpha1.TableMetricsAll}), written},
	"metrics.tables.limit":        {measured(v1alpha1.TableMetrics{Limit: 7}), written},
	"metrics.tables.include":      {measured(v1alpha1.TableMetrics{Include: []v1alpha1.TablePattern{"shop.*"}}), written},
	"metrics.tables.exclude":      {measured(v1alpha1.TableMetrics{Exclude: []v1alpha1.TablePattern{"shop.*"}}), written},
	"metrics.podMonitor.mode":     {monitored(v1alpha1.PodMonitor{Mode: v1alpha1.PodMonitorNone}), applies},
	"metrics.podMonitor.interval": {monitored(v1alpha1.PodMonitor{Interval: &metav1.Duration{Duration: time.Minute}}), applies},
	"metrics.podMonitor.labels":   {monitored(v1alpha1.PodMonitor{Labels: map[string]string{"a": "b"}}), applies},
	"metrics.extra": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Metrics = &v1alpha1.Metrics{Extra: []v1alpha1.MetricPattern{"org.apache.cassandra.metrics.Index.*"}}
	}, written},
	"disruption.consistency": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.Consistency = v1alpha1.ConsistencyQuorum
	}, written},
	"restartedAt": {func(s *v1alpha1.CassandraClusterSpec) { s.RestartedAt = noon }, restarts},
	"datacenters[].restartedAt": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].RestartedAt = noon
	}, restarts},
	"datacenters[].racks[].restartedAt": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Datacenters[0].Racks[0].RestartedAt = noon
	}, restarts},
	"disruption.maxUnavailable": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.MaxUnavailable = ptr(intstr.FromInt32(2))
	}, applies},
	"disruption.soak": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.Soak = &metav1.Duration{Duration: time.Minute}
	}, applies},
	"disruption.holdAfter": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.HoldAfter = v1alpha1.HoldAfterRack
	}, applies},
	"disruption.resume": {func(s *v1alpha1.CassandraClusterSpec) { s.Disruption.Resume = "a-1/1" }, applies},
	"disruption.unprotected": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Disruption.Unprotected = v1alpha1.UnprotectedBlock
	}, written},
	"automation.cleanup": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Automation.Cleanup = v1alpha1.AutomationRecommend
	}, applies},
	"automation.upgradeSSTables": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Automation.UpgradeSSTables = v1alpha1.AutomationRecommend
	}, applies},
	"repair.mode":            {func(s *v1alpha1.CassandraClusterSpec) { s.Repair.Mode = v1alpha1.RepairOff }, applies},
	"repair.window.start":    {inWindow, applies},
	"repair.window.duration": {inWindow, applies},
	"repair.window.timeZone": {inWindow, applies},
	"repair.target":          {func(s *v1alpha1.CassandraClusterSpec) { s.Repair.Target = "50%" }, applies},
	"repair.intensity":       {func(s *v1alpha1.CassandraClusterSpec) { s.Repair.Intensity = "20%" }, applies},
	"repair.excludeTables":   {func(s *v1alpha1.CassandraClusterSpec) { s.Repair.ExcludeTables = []string{"a.b"} }, applies},
	"replacement.mode": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Replacement.Mode = v1alpha1.AutomationRecommend
	}, applies},
	"replacement.after": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Replacement.After = &metav1.Duration{Duration: time.Hour}
	}, applies},
	"replacement.repair": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Replacement.Repair = v1alpha1.ReplacementRepairAfter
	}, applies},
	"volumes.onClusterDeletion": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Volumes.OnClusterDeletion = v1alpha1.ClaimDelete
	}, applies},
	"volumes.onScaleIn": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Volumes.OnScaleIn = v1alpha1.ClaimDelete
	}, applies},
	"bootstrap.adopt.clusterUID": {func(s *v1alpha1.CassandraClusterSpec) {
		s.Bootstrap = adopting("earlier")
	}, `bootstrap.adopt.clusterUID: "" → "earlier"`},
	"bootstrap.restore.store.name": {restores, schema}, "bootstrap.restore.source.uid": {restores, schema},
	"bootstrap.restore.backup": {restores, schema}, "bootstrap.restore.pointInTime": {restores, schema},
	"bootstrap.restore.latestBefore": {restores, schema}, "bootstrap.restore.roles": {restores, schema},
	"bootstrap.restore.sourceGone": {restores, schema}, "bootstrap.restore.keyspaces": {restores, schema},
	"bootstrap.restore.checks": {restores, schema},
}

// restores says too late what a ring is to be made from.
func restores(s *v1alpha1.CassandraClusterSpec) {
	s.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Backup: "b1"}}
}

var noon = &metav1.Time{Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}

func quantity(text string) *resource.Quantity { return ptr(resource.MustParse(text)) }

func resources(name corev1.ResourceName, value string) *v1alpha1.Resources {
	return &v1alpha1.Resources{Requests: corev1.ResourceList{name: resource.MustParse(value)}}
}

func placed(p v1alpha1.Placement) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Node.Placement = &p }
}

func probed(p v1alpha1.Probes) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Node.Probes = &p }
}

func stored(change func(*v1alpha1.StorageClaims)) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { change(s.Node.Storage.Claims) }
}

// filled has a volume be filled from a snapshot.
func filled(claim func(*v1alpha1.StorageClaims) *v1alpha1.VolumeClaim) func(*v1alpha1.CassandraClusterSpec) {
	return stored(func(s *v1alpha1.StorageClaims) {
		claim(s).DataSource = &v1alpha1.DataSource{
			APIGroup: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot", Name: "golden",
		}
	})
}

func dataOf(s *v1alpha1.StorageClaims) *v1alpha1.VolumeClaim { return s.Data }

func commitlogOf(s *v1alpha1.StorageClaims) *v1alpha1.VolumeClaim {
	s.Commitlog = &v1alpha1.VolumeClaim{Size: quantity("2Gi")}
	return s.Commitlog
}

func serving(services v1alpha1.Services) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Services = &services }
}

func securedBy(a v1alpha1.Authentication) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Security = &v1alpha1.Security{Authentication: &a} }
}

// everywhere are the pods of all namespaces.
var everywhere = []v1alpha1.NetworkPeer{{NamespaceSelector: &metav1.LabelSelector{}}}

func managed(p v1alpha1.NetworkPolicy) func(*v1alpha1.CassandraClusterSpec) {
	p.Mode = v1alpha1.NetworkPolicyManaged
	return func(s *v1alpha1.CassandraClusterSpec) { s.Security.NetworkPolicy = &p }
}

func extended(e v1alpha1.Extend) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Datacenters[0].Extend = &e }
}

// What is left when the last setting is taken out of an object says nothing.
func TestAnEmptyObjectIsNoChange(t *testing.T) {
	w := formed(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.Metadata, s.Node.JVM = &v1alpha1.Metadata{}, &v1alpha1.JVM{}
		s.Node.Probes = &v1alpha1.Probes{Readiness: &v1alpha1.Probe{}}
	})
	if made := w.settle(); made.Stalled != nil || len(made.Writes) > 0 {
		t.Errorf("want nothing:\n%s", made)
	}
}

// No change of a ring that exists is taken without a word: it applies, or is refused with field,
// old and new value and nothing is changed.
func TestEveryFieldOfTheSpecAfterFormation(t *testing.T) {
	for name, field := range fields {
		t.Run(name, func(t *testing.T) {
			w := formed(t)
			pods := w.pods()
			w.change(field.change)
			wantAhead(t, w, field.want)
			made := w.pass()
			rolls := field.want == restarts || field.want == newPods || field.want == labels
			if (len(made.Writes) == 0) == (field.want == grows || field.want == leaves || field.want == written ||
				field.want == stops || rolls) {
				t.Errorf("writes: %v\n%s", len(made.Writes) > 0, made)
			}
			switch field.want {
			case restarts, newPods, labels:
				w.rolledOut()
				for _, n := range w.snapshot.Records() {
					changed, restarted := n.Pod.UID != pods[n.Name], n.Record.Status.Restart != nil
					if all := name != "datacenters[].racks[].node" && name != "datacenters[].racks[].restartedAt"; !all &&
						n.Record.Spec.Rack != "r1" {
						if changed || restarted {
							t.Errorf("node %s of another rack is changed", n.Name)
						}
						continue
					}
					if changed != (field.want == newPods) || restarted != (field.want == restarts) {
						t.Errorf("node %s: a new pod is %v, a restart is %v", n.Name, changed, restarted)
					}
					if field.want == labels && n.Pod.Labels["a"] != "b" && n.Pod.Annotations["a"] != "b" {
						t.Errorf("node %s has labels %v, annotations %v", n.Name, n.Pod.Labels, n.Pod.Annotations)
					}
				}
			case schema: // held to in test/api
			case grows, leaves, written, stops:
				if made.Stalled != nil {
					t.Errorf("refused:\n%s", made)
				}
			case applies:
				if made.Stalled != nil || len(made.Blocked) > 0 {
					t.Errorf("refused:\n%s", made)
				}
			default:
				if made.Stalled == nil || !strings.Contains(made.Stalled.Message, field.want) {
					t.Errorf("want it refused with %q:\n%s", field.want, made)
				}
				if reason := made.Stalled.Reason; reason != v1alpha1.ReasonUnsupportedChange {
					t.Errorf("reason %s", reason)
				}
			}
		})
	}
}

// wantAhead fails if a plan foresees something else of a change than comes of it.
func wantAhead(t *testing.T, w *world, want string) {
	t.Helper()
	ahead := Ahead(w.snapshot, Next(w.snapshot, w.now), w.now)
	takes := map[string]plan.Takes{restarts: plan.Restart, newPods: plan.NewPod, labels: plan.Live}[want]
	if takes == "" && strings.Contains(want, " → ") && !strings.HasPrefix(want, "bootstrap") {
		takes = plan.Refused
	}
	switch {
	case takes == "":
		if ahead != nil && len(ahead.Changes) > 0 && want != schema {
			t.Errorf("a plan foresees %+v", ahead)
		}
		return
	case ahead == nil || len(ahead.Changes) == 0:
		t.Fatal("a plan foresees no change")
	}
	for _, c := range ahead.Changes {
		if c.Takes != takes && (takes != plan.Refused || c.Field != "image") {
			t.Errorf("a plan foresees %+v, want %s", c, takes)
		}
	}
	waves := 0
	switch {
	case takes == plan.Live:
		waves = 1
	case takes != plan.Refused:
		waves = len(ahead.Changes[0].Nodes)
	}
	if len(ahead.Waves) != waves {
		t.Errorf("%d waves are foreseen, want %d: %v %s", len(ahead.Waves), waves, ahead.Waves, ahead.Held)
	}
}

// Of cassandra.yaml a plan says which settings need a restart, and which do not.
func TestAPlanSaysWhatSettingsTake(t *testing.T) {
	w := formed(t)
	w.change(func(s *v1alpha1.CassandraClusterSpec) {
		s.Node.CassandraYaml = v1alpha1.Settings{"concurrent_reads": {Raw: []byte("16")},
			"compaction_throughput": {Raw: []byte(`"48MiB/s"`)}}
	})
	ahead := Ahead(w.snapshot, Next(w.snapshot, w.now), w.now)
	got := map[string]plan.Takes{}
	for _, c := range ahead.Changes {
		got[c.Field] = c.Takes
	}
	want := map[string]plan.Takes{"node.cassandraYaml.concurrent_reads": plan.Restart,
		"node.cassandraYaml.compaction_throughput": plan.Hot}
	if !maps.Equal(got, want) || len(ahead.Racks) != 3 {
		t.Errorf("got %v, racks %+v", got, ahead.Racks)
	}
}

// The guide's table of what changes how is that of this test.
func TestTheGuideSaysWhatChangesHow(t *testing.T) {
	const path, begins, ends = "../../../docs/guide/changes.md", "-update -->\n", "<!-- end -->"
	guide, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(guide), begins)
	_, after, alsoFound := strings.Cut(rest, ends)
	if !found || !alsoFound {
		t.Fatalf("%s has no place for the table", path)
	}
	table := "| field | what a change takes |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		how := map[string]string{restarts: "Restart", newPods: "NewPod", labels: "Live", grows: "Grows",
			written: "Beside", applies: "Policy"}[fields[name].want]
		switch name {
		case "node.cassandraYaml":
			how = "Hot or Restart"
		case "datacenters[].node", "datacenters[].racks[].node":
			how = "as `node`"
		case "datacenters", "datacenters[].racks", "datacenters[].racks[].nodes", "datacenters[].nodesPerRack":
			how = "more: Grows; fewer: Leaves"
		case "datacenters[].racks[].name":
			how = "Grows, then Leaves: it is another rack"
		case "datacenters[].plannedReplicationFactor":
			how = "higher: Grows; lower: the system keyspaces get fewer replicas"
		case "node.storage.claims.data.size", "node.storage.claims.commitlog.size":
			how = "larger, where the class lets volumes grow: Live; else Refused"
		case "node.storage.ephemeral.sizeLimit":
			how = "of a ring on ephemeral storage: Replacement; else Refused"
		case "security.encryption.internode.mode", "security.encryption.clients.mode":
			how = "from or to Disabled: NewPod; else Restart; by stages"
		case "stopped":
			how = "all nodes stop together, or start"
		case "datacenters[].stopped":
			how = "all nodes of the datacenter stop together, or start"
		case "security.authentication.mode":
			how = "to Password: [roles, then Restart](security.md#turning-passwords-on-in-a-ring-that-serves); " +
				"to None: Restart, by an exception"
		case "exceptions":
			how = "what their type says"
		}
		if how == "" {
			how = "Refused"
		}
		table += fmt.Sprintf("| `%s` | %s |\n", name, how)
	}
	table += "\nSettings of `cassandra.yaml` that are Hot, where the release has them: `" +
		strings.Join(config.HotSettings(), "`, `") + "`.\n"
	want := before + begins + table + ends + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(guide) {
		t.Errorf("%s does not say what changes how: go test ./internal/core/cluster -run Guide -update", path)
	}
}

// The table above has every field that there is.
func TestTheTableOfFieldsIsComplete(t *testing.T) {
	var have []string
	walk(reflect.TypeFor[v1alpha1.CassandraClusterSpec](), "", &have)
	for _, name := range have {
		if _, known := fields[name]; !known {
			t.Errorf("what becomes of a change of %s is not said", name)
		}
	}
	for name := range fields {
		if !slices.Contains(have, name) {
			t.Errorf("there is no field %s", name)
		}
	}
}

// walk lists the fields of our own types: of lists the list itself and what is in them, of the node
// of a datacenter and of a rack only that they are there, since they have the fields of the
// cluster's.
func walk(in reflect.Type, path string, out *[]string) {
	for f := range in.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if name == "" { // inline
			walk(inner, path, out)
			continue
		}
		at := path + name
		own := func(t reflect.Type) bool {
			return t.Kind() == reflect.Struct && strings.Contains(t.PkgPath(), "helenus") &&
				t != reflect.TypeFor[v1alpha1.Value]()
		}
		switch {
		case strings.HasPrefix(at, "datacenters[]") && name == "node":
			*out = append(*out, at)
		case own(inner):
			walk(inner, at+".", out)
		case strings.HasPrefix(at, "datacenters") && inner.Kind() == reflect.Slice && own(inner.Elem()):
			*out = append(*out, at)
			walk(inner.Elem(), at+"[].", out)
		default:
			*out = append(*out, at)
		}
	}
}

// A volume that is only asked for follows the spec until the first ticket; one that is there is
// left to the user.
func TestVolumesFollowTheSpecUntilTheyAreBound(t *testing.T) {
	for name, c := range map[string]struct {
		phase   corev1.PersistentVolumeClaimPhase
		change  func(*v1alpha1.StorageClaims)
		refused string
	}{
		"size, unbound": {corev1.ClaimPending, func(s *v1alpha1.StorageClaims) { s.Data.Size = quantity("20Gi") }, ""},
		"class, unbound": {corev1.ClaimPending, func(s *v1alpha1.StorageClaims) {
			s.Data.StorageClassName = ptr("fast")
		}, ""},
		"size, bound": {corev1.ClaimBound, func(s *v1alpha1.StorageClaims) {
			s.Data.Size = quantity("20Gi")
		}, "volume data: 10Gi → 20Gi: claim data-orders-dc1-r1-0"},
		"class, bound": {corev1.ClaimBound, func(s *v1alpha1.StorageClaims) {
			s.Data.StorageClassName = ptr("fast")
		}, "volume data: 10Gi → 10Gi of class fast"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, datacenter("dc1", 1, 1, 1))
			for _, name := range three {
				w.absent[name] = true
			}
			w.settle()
			for _, n := range w.snapshot.Records() {
				n.Claims["data"].Claim.Status.Phase = c.phase
			}
			before := w.snapshot.Nodes["orders-dc1-r1-0"].Claims["data"].Claim.UID
			w.change(func(s *v1alpha1.CassandraClusterSpec) { c.change(s.Node.Storage.Claims) })
			made := w.settle()
			claim := w.snapshot.Nodes["orders-dc1-r1-0"].Claims["data"].Claim
			if c.refused != "" {
				wantStalled(t, made, v1alpha1.ReasonUnsupportedChange, c.refused)
				if claim.UID != before {
					t.Error("a bound claim was recreated")
				}
				clear(w.absent)
				w.agents()
				if w.settle(); w.snapshot.Ledger.Step != nil || len(w.snapshot.Ledger.Formed) > 0 {
					t.Error("the ring was formed on volumes that are not those of the spec")
				}
				return
			}
			if made.Stalled != nil || claim.UID == before {
				t.Errorf("the claim was not made anew:\n%s", made)
			}
			clear(w.absent)
			w.agents()
			w.settle()
			w.wantOpen()
			if pins := w.snapshot.Nodes["orders-dc1-r1-0"].Record.Spec.Claims; len(pins) != 1 ||
				pins[0].UID != claim.UID {
				t.Errorf("the record pins %v", pins)
			}
		})
	}
}

func measured(tables v1alpha1.TableMetrics) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Metrics = &v1alpha1.Metrics{Tables: &tables} }
}

func monitored(m v1alpha1.PodMonitor) func(*v1alpha1.CassandraClusterSpec) {
	return func(s *v1alpha1.CassandraClusterSpec) { s.Metrics = &v1alpha1.Metrics{PodMonitor: &m} }
}

func inWindow(s *v1alpha1.CassandraClusterSpec) {
	s.Repair.Window = &v1alpha1.RepairWindow{Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}
}
