{{- define "gvDetails" -}}
{{- $gv := . -}}
Group and version: `{{ $gv.GroupVersionString }}`. Kinds:
{{- range $gv.SortedKinds }} {{ $gv.TypeForKind . | markdownRenderTypeLink }}{{ end }}.

{{ range $gv.SortedKinds }}{{ template "type" ($gv.TypeForKind .) }}{{ end }}
{{ range $gv.SortedTypes }}{{ if not .GVK }}{{ template "type" . }}{{ end }}{{ end }}
{{- end -}}
