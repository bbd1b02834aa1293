package compare

const point = "2026-01-01T00:00:00Z"

// changesOf are changes of single fields by kind: what Helenus, Kubernetes or a user change, and
// what nobody may.
var changesOf = map[string][]change{
	"CassandraCluster": {
		{"spec.stopped", true}, {"spec.stopped", nil}, {"spec.paused", true},
		{"spec.datacenters[0].nodesPerRack", int64(2)}, {"spec.datacenters[0].nodesPerRack", int64(-1)},
		{"spec.datacenters[0].nodesPerRack", "two"},
		{"spec.datacenters[0].numTokens", int64(3)}, {"spec.datacenters[0].name", "not a name"},
		{"spec.datacenters", nil},
		{"spec.version", "5.0.5"}, {"spec.version", "bogus"}, {"spec.version", nil},
		{"spec.unknown", "x"}, {"spec.node.jvm.heap", "1Gi"}, {"spec.node.storage.claims.data.size", "1Mi"},
		{"spec.disruption.maxUnavailable", "20%"}, {"spec.disruption.maxUnavailable", "many"},
		{"status.nodes", int64(7)},
	},
	"CassandraNode": {
		{"spec.state", "Stopped"}, {"spec.state", "Bogus"}, {"spec.state", nil}, {"spec.clientTraffic", "Open"},
		{"spec.ordinal", int64(1)}, {"spec.configuration.numTokens", int64(4)}, {"spec.configuration.version", "5.0.5"},
		{"spec.pod.image", "cassandra:5.0.5"}, {"spec.pod.image", nil}, {"spec.unknown", int64(1)},
		{"spec.datacenter", "dc9"},
		{"status.ready", true},
	},
	"ConfigMap": {
		{"data.a", "x"}, {"data.a", nil}, {`data."not a key"`, "x"}, {"data.seeds", "10.0.0.1"}, {"immutable", true},
		{"immutable", nil}, {"data.n", int64(1)},
		{"binaryData.b", "AAAA"}, {"binaryData.a", "AAAA"}, {"binaryData.b", nil},
	},
	"Secret": {
		{`data."tls.crt"`, "AAAA"}, {`data."tls.crt"`, nil}, {"data.x", "not base64!"}, {"type", "Opaque"},
		{"type", "other"}, {"type", nil}, {"stringData.y", "text"}, {"immutable", true},
	},
	"ServiceAccount": {
		{"automountServiceAccountToken", true}, {"automountServiceAccountToken", nil},
		{"imagePullSecrets", list(object("name", "x"))}, {"automountServiceAccountToken", "maybe"},
	},
	"Role": {
		{"rules[0].verbs", list("get")}, {"rules[0].verbs", list()}, {"rules[0].resources", nil}, {"rules", nil},
		{"rules[0].nonResourceURLs", list("/x")},
	},
	"RoleBinding": {
		{"subjects[0].name", "other"}, {"subjects[0].name", ""}, {"subjects", nil}, {"subjects[0].kind", "Bogus"},
		{"roleRef.name", "other"}, {"roleRef.kind", "Bogus"},
		{"subjects[0].namespace", nil},
	},
	"PodDisruptionBudget": {
		{"spec.minAvailable", int64(2)}, {"spec.minAvailable", "50%"}, {"spec.minAvailable", int64(-1)},
		{"spec.minAvailable", "x"}, {"spec.maxUnavailable", int64(1)},
		{"spec.minAvailable", nil}, {"spec.selector.matchLabels.color", "red"},
		{"spec.selector.matchLabels.color", "not a label"}, {"spec.selector", nil},
		{"spec.unhealthyPodEvictionPolicy", "AlwaysAllow"}, {"spec.unhealthyPodEvictionPolicy", "Bogus"},
		{"status.disruptionsAllowed", int64(3)},
	},
	"NetworkPolicy": {
		{"spec.ingress", nil}, {"spec.ingress[0].from", nil}, {"spec.ingress[0].ports[0].port", int64(9999)},
		{"spec.podSelector.matchLabels.color", "red"},
	},
	"Service": {
		{"spec.publishNotReadyAddresses", true}, {"spec.publishNotReadyAddresses", nil}, {"spec.selector.color", "red"},
		{"spec.ports[0].port", int64(9999)}, {"spec.ports[0].port", int64(0)}, {"spec.ports[0].protocol", "UDP"},
		{"spec.ports[0].protocol", "Bogus"}, {"spec.ports[0].name", "not a name"},
		{"spec.ports", nil}, {"spec.clusterIP", "None"}, {"spec.clusterIP", "10.96.0.1"}, {"spec.clusterIP", "x"},
		{"spec.clusterIP", nil}, {"spec.clusterIPs", nil},
		{"spec.sessionAffinity", "ClientIP"}, {"spec.sessionAffinity", "Bogus"}, {"spec.type", "Bogus"},
	},
	"PersistentVolumeClaim": {
		{"spec.resources.requests.storage", "100Gi"}, {"spec.resources.requests.storage", "1Mi"},
		{"spec.resources.requests.storage", "0"}, {"spec.resources.requests.storage", nil},
		{"spec.resources.requests.storage", "much"},
		{"spec.storageClassName", "other"}, {"spec.storageClassName", nil}, {"spec.accessModes", list("ReadWriteMany")},
		{"spec.accessModes", list()}, {"spec.accessModes", list("Bogus")},
		{"spec.volumeName", "pv-1"}, {"spec.volumeName", "pv-2"}, {"spec.volumeMode", "Block"},
		{"spec.volumeMode", "Bogus"},
		{"status.phase", "Bound"},
	},
	"Pod": {
		{"spec.containers[0].image", "other"}, {"spec.containers[0].image", ""}, {"spec.containers[0].image", " x"},
		{"spec.initContainers[0].image", "other"},
		{"spec.containers[0].name", "other"}, {"spec.containers[0].name", ""},
		{"spec.containers[0].name", "Not A Name"}, {"spec.containers", nil}, {"spec.containers", list()},
		{"spec.containers[0].resources.requests.cpu", "7"}, {"spec.containers[0].imagePullPolicy", "Bogus"},
		{"spec.containers[0].env", list(object("name", "A", "value", "b"))},
		{"spec.containers[0].volumeMounts[0].name", "missing"}, {"spec.nodeName", "m1"},
		{"spec.restartPolicy", "Never"}, {"spec.restartPolicy", "Bogus"},
		{"spec.activeDeadlineSeconds", int64(100)}, {"spec.activeDeadlineSeconds", int64(-1)},
		{"spec.terminationGracePeriodSeconds", int64(5)}, {"spec.terminationGracePeriodSeconds", int64(-1)},
		{"spec.tolerations[0]", object("key", "k", "operator", "Exists", "effect", "NoExecute", "tolerationSeconds",
			int64(7))}, {"spec.hostname", "other"}, {"spec.hostname", "Not A Name"}, {"spec.subdomain", "other"},
		{"spec.schedulerName", "other"}, {"spec.nodeSelector.zone", "a"}, {"spec.priority", int64(7)},
		{"spec.schedulingGates", list(object("name", "x"))},
		{"status.phase", "Running"},
	},
	"Node": {
		{"spec.unschedulable", true}, {"spec.unschedulable", nil}, {"spec.podCIDR", "10.1.0.0/24"},
		{"spec.providerID", "x"}, {"spec.taints", list(object("key", "k", "effect", "NoSchedule"))},
		{"spec.taints", list(object("key", "k", "effect", "Bogus"))},
		{"status.phase", "Running"},
	},
	"Event": {
		{"note", "another"}, {"reason", "Other"}, {"reason", ""}, {"action", nil}, {"type", "Warning"},
		{"type", "Bogus"}, {"reportingInstance", nil}, {"reportingController", "not a name"},
		{"series", object("count", int64(3), "lastObservedTime", "2026-01-01T00:00:01.000000Z")},
		{"series", object("count", int64(1), "lastObservedTime", "2026-01-01T00:00:01.000000Z")}, {"series", nil},
		{"eventTime", nil}, {"regarding.namespace", nil}, {"regarding.name", "n1"},
	},
	"Lease": {
		{"spec.holderIdentity", "one"}, {"spec.holderIdentity", "two"}, {"spec.holderIdentity", nil},
		{"spec.leaseDurationSeconds", int64(0)}, {"spec.leaseTransitions", int64(1)},
		{"spec.leaseTransitions", int64(-1)},
		{"spec.renewTime", "2026-01-01T00:00:00.000001Z"}, {"spec.leaseDurationSeconds", "long"},
	},
	"Namespace": {
		{"spec.finalizers", list("test.helenus.io/hold")}, {"spec.finalizers", nil}, {"metadata.labels.team", nil},
		{"status.phase", "Terminating"},
	},
	"PersistentVolume": {
		{"spec.capacity.storage", "2Gi"}, {"spec.capacity", nil}, {"spec.persistentVolumeReclaimPolicy", "Retain"},
		{"spec.persistentVolumeReclaimPolicy", "Bogus"}, {"spec.local.path", "/other"}, {"spec.local", nil},
		{"spec.claimRef", object("kind", "PersistentVolumeClaim", "namespace", "a", "name", "n0", "uid", wrongUID)},
		{"spec.claimRef", nil}, {"spec.storageClassName", "other"}, {"spec.accessModes", nil},
		{"spec.nodeAffinity", nil},
		{"status.phase", "Bound"},
	},
}

// statusChangesOf are changes through the subresource status, by kind.
var statusChangesOf = map[string][]change{
	"CassandraCluster": {
		{"status.observedGeneration", int64(3)}, {"status.nodes", int64(3)}, {"status.nodes", "three"},
		{"status.nodes", nil}, {"status.unknown", "x"}, {"status", nil},
		{"status.conditions", list(condition("Ready", "True"))},
		{"status.conditions", list(condition("Ready", "Bogus"))},
		{"status.conditions", list(condition("Ready", "True"), condition("Ready", "False"))},
		{"spec.stopped", true},
	},
	"CassandraNode": {
		{"status.observedGeneration", int64(3)}, {"status.phase", "Running"}, {"status.phase", "Bogus"},
		{"status.ready", true}, {"status.ready", nil}, {"status.ready", "yes"}, {"status.unknown", "x"},
		{"status", nil},
		{"status.tokens", list("1", "2")}, {"status.hostID", "not an id"}, {"status.address", "10.0.0.1"},
		{"status.conditions", list(condition("Ready", "True"))},
		{"status.join", object("id", "x")}, {"status.operations", list(object("id", "x", "phase", "Running"))},
		{"status.operations", list(object("id", "x", "phase", "Bogus"))}, {"spec.state", "Stopped"},
	},
	"Pod": {
		{"status.phase", "Running"}, {"status.phase", "Failed"}, {"status.phase", "Succeeded"},
		{"status.phase", "Pending"}, {"status.phase", "Bogus"}, {"status.podIP", "10.0.0.1"},
		{"status.podIPs", list(object("ip", "10.0.0.1"))}, {"status.podIP", nil},
		{"status.conditions", list(condition("Ready", "True"))}, {"status.message", "text"}, {"spec.nodeName", "m1"},
		{"spec.containers[0].image", "other"},
		{"status.containerStatuses", list(object("name", "cassandra", "image", "x", "imageID", "", "ready", true,
			"restartCount", int64(1), "state", object("running", object("startedAt", point))))},
		{"status.startTime", point},
	},
	"PersistentVolumeClaim": {
		{"status.phase", "Bound"}, {"status.phase", "Lost"}, {"status.phase", "Bogus"},
		{"status.capacity.storage", "1Gi"}, {"status.capacity.storage", "-1"},
		{"status.accessModes", list("ReadWriteOnce")}, {"spec.volumeName", "pv-1"},
		{"status.conditions", list(object("type", "Resizing", "status", "True"))},
	},
	"Service": {
		{"status.loadBalancer.ingress", list(object("ip", "10.0.0.9"))},
		{"status.conditions", list(condition("Ready", "True"))}, {"spec.publishNotReadyAddresses", true},
	},
	"PodDisruptionBudget": {
		{"status.disruptionsAllowed", int64(1)}, {"status.disruptionsAllowed", int64(-1)},
		{"status.observedGeneration", int64(1)}, {"status.currentHealthy", int64(3)},
		{"status.desiredHealthy", int64(2)}, {"status.expectedPods", int64(3)},
		{"status.conditions", list(condition("DisruptionAllowed", "True"))}, {"spec.minAvailable", int64(9)},
	},
	"Node": {
		{"status.conditions", list(object("type", "Ready", "status", "False", "reason", "KubeletNotReady"))},
		{"status.capacity.cpu", "8"}, {"status.addresses", list(object("type", "InternalIP", "address", "10.0.0.1"))},
		{"spec.unschedulable", true},
	},
	"Namespace": {
		{"status.phase", "Terminating"}, {"status.phase", "Active"},
	},
	"PersistentVolume": {
		{"status.phase", "Bound"}, {"status.phase", "Bogus"}, {"status.phase", "Released"},
		{"spec.capacity.storage", "3Gi"},
	},
}

func condition(sort, status string) map[string]any {
	return object("type", sort, "status", status, "reason", "Test", "message", "", "lastTransitionTime", point)
}
