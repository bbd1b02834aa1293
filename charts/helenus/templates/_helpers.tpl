{{- define "helenus.image" -}}
{{- $tag := .image.tag | default .root.Chart.AppVersion -}}
{{- .image.repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ $tag }}{{ end -}}
{{- end -}}

{{- define "helenus.operator" -}}
- kind: ServiceAccount
  name: helenus
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* What the operator does in the namespaces of clusters. */ -}}
{{- define "helenus.rules" -}}
# Its kinds. On clusters it sets a finalizer; a policy keeps it from the spec. It creates and deletes those of restore drills and of
# restores to a point in time alone.
- apiGroups: [helenus.io]
  resources: [cassandraclusters]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [helenus.io]
  resources: [cassandraclusters/status]
  verbs: [get, patch, update]
- apiGroups: [helenus.io]
  resources: [cassandraclusters/finalizers, cassandranodes/finalizers]
  verbs: [update]
- apiGroups: [helenus.io]
  resources: [cassandranodes]
  verbs: [get, list, watch, create, patch, update, delete]
# Tasks are users'. It writes their status, and deletes those whose time is over; it creates those of schedules.
- apiGroups: [helenus.io]
  resources: [cassandratasks]
  verbs: [get, list, watch, create, delete]
- apiGroups: [helenus.io]
  resources: [cassandrataskschedules, cassandrabackupstores, cassandrabackupschedules]
  verbs: [get, list, watch]
- apiGroups: [helenus.io]
  resources: [cassandrabackups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [helenus.io]
  resources: [cassandrarestores]
  verbs: [get, list, watch, delete]
- apiGroups: [helenus.io]
  resources: [cassandratasks/status, cassandrataskschedules/status, cassandrabackupstores/status, cassandrabackups/status, cassandrabackupschedules/status, cassandrarestores/status]
  verbs: [get, patch, update]
# What a cluster consists of.
- apiGroups: [""]
  resources: [pods, persistentvolumeclaims, services, configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch, update, delete]
# CPU and memory of pods that run.
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
# Certificates, passwords, access keys of stores. No list and no watch: it reads those whose names it knows, not everybody's secrets.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch, update, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, update, delete]
# Of the operator of Prometheus, where there is one.
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, watch, create, patch, delete]
# Of cert-manager, where there is one.
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [get, create, patch, delete]
- apiGroups: [cert-manager.io]
  resources: [issuers]
  verbs: [get]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, update, delete]
# What it gives to agents it must have itself. A policy keeps it from the status of nodes.
- apiGroups: [helenus.io]
  resources: [cassandranodes/status]
  verbs: [get, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
