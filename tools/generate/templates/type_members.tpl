{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}Metadata, as of every object of Kubernetes.
{{- else -}}{{ markdownRenderFieldDoc .Doc }}{{ if .Markers.required }} Required.{{ end }}{{ end -}}
{{- end -}}
