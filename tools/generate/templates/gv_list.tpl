{{- define "gvList" -}}
# API reference

Everything that a `CassandraCluster` can say, and what Helenus answers in its status. `CassandraNode` is written by Helenus alone: the operator writes what
it wants of a node, the agent in the pod what is. This page is made from the types by `make generate`.

Fields without "required" can be left out. A default that the API server fills in stands in the column *default*; everything below `node` is inherited
(cluster, then datacenter, then rack) and completed after that, so its defaults are named in the description.

{{ range . }}
{{ template "gvDetails" . }}
{{ end }}
{{- end -}}
