package addon

// provisionerName is how the storage class names our provisioner.
const provisionerName = "localkube.internal/disk"

type object struct{ path, manifest string }

// objects are applied at every start, so a new version of localkube corrects an
// older cluster.
var objects = []object{{
	path: "/apis/storage.k8s.io/v1/storageclasses/standard",
	manifest: `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: ` + provisionerName + `
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
`}, {
	path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/localkube:dns",
	manifest: `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "localkube:dns"}
rules:
- apiGroups: [""]
  resources: [services, pods, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
`}, {
	path:     "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/localkube:dns",
	manifest: binding("dns"),
}, {
	path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/localkube:storage",
	manifest: `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "localkube:storage"}
rules:
- apiGroups: [""]
  resources: [persistentvolumes]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, update, patch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, update, patch]
`}, {
	path:     "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/localkube:storage",
	manifest: binding("storage"),
}}

func binding(name string) string {
	return `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "localkube:` + name + `"}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: "localkube:` + name + `"
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: "localkube:` + name + `"
`
}
