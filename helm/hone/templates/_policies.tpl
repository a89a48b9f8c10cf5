{{/*
Network policies. shared/network-policy.yaml denies all traffic; the policy of each component then allows what it needs. A rule
names a component of this release, or peers from values.
*/}}

{{/* (root, name) -> one peer: the pods of a component. */}}
{{- define "hone.peer" -}}
- podSelector:
    matchLabels:
      {{- include "hone.selector" . | nindent 6 }}
{{- end -}}

{{/* (root, names) -> peers: the pods of several components. */}}
{{- define "hone.peers" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/name: hone
      app.kubernetes.io/instance: {{ .root.Release.Name }}
    matchExpressions:
      - key: app.kubernetes.io/component
        operator: In
        values: {{ toJson .names }}
{{- end -}}

{{/* (root) Egress to the bus: the chart's own, or the one in values. */}}
{{- define "hone.toNats" -}}
{{- if .root.Values.nats.enabled }}
- to:
    {{- include "hone.peer" (dict "root" .root "name" "nats") | nindent 4 }}
  ports: [{ port: 4222, protocol: TCP }]
{{- else }}
- to: {{ toJson .root.Values.networkPolicy.externalNats.to }}
  ports: {{ toJson .root.Values.networkPolicy.externalNats.ports }}
{{- end }}
{{- end -}}
{{- define "hone.toPostgres" -}}
{{- if .root.Values.postgres.enabled }}
- to:
    {{- include "hone.peer" (dict "root" .root "name" "postgres") | nindent 4 }}
  ports: [{ port: 5432, protocol: TCP }]
{{- else }}
- to: {{ toJson .root.Values.networkPolicy.externalPostgres.to }}
  ports: {{ toJson .root.Values.networkPolicy.externalPostgres.ports }}
{{- end }}
{{- end -}}

{{/* (root) Egress to Jaeger, or to the external receiver. */}}
{{- define "hone.toJaeger" -}}
{{- if .root.Values.jaeger.enabled }}
- to:
    {{- include "hone.peer" (dict "root" .root "name" "jaeger") | nindent 4 }}
  ports: [{ port: 4318, protocol: TCP }, { port: 4317, protocol: TCP }]
{{- else if .root.Values.telemetry.externalEndpoint }}
- to: {{ toJson .root.Values.networkPolicy.externalTelemetry.to }}
  ports: {{ toJson .root.Values.networkPolicy.externalTelemetry.ports }}
{{- end }}
{{- end -}}

{{/* (root, name) Egress of spans. */}}
{{- define "hone.toSpans" -}}
{{- if eq .root.Values.telemetry.route "tracer" }}
- to:
    {{- include "hone.peer" (dict "root" .root "name" "tracer") | nindent 4 }}
  ports: [{ port: 8080, protocol: TCP }]
{{- if eq .name "tracer" }}
{{ include "hone.toJaeger" . }}
{{- end }}
{{- else if eq .root.Values.telemetry.route "straight" }}
{{ include "hone.toJaeger" . }}
{{- end }}
{{- end -}}

{{/* (root) Egress to the model hub, unless the hub is offline. */}}
{{- define "hone.toHub" -}}
{{- if not .root.Values.hub.offline }}
- to: {{ toJson .root.Values.networkPolicy.hub.to }}
  ports: {{ toJson .root.Values.networkPolicy.hub.ports }}
{{- end }}
{{- end -}}

{{/* (root, name, ingress, egress, isServing) -> the policy of one of Hone's services. */}}
{{- define "hone.servicePolicy" -}}
{{- if .root.Values.networkPolicy.enabled -}}
{{- $values := index .root.Values (include "hone.key" .name) -}}
{{- $facts := index (include "hone.facts" .root | fromYaml) .name -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "hone.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "hone.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- with .ingress }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .root.Values.networkPolicy.metricsFrom }}
    - from: {{ toJson . }}
      ports: [{ port: http, protocol: TCP }]
    {{- end }}
    {{- with $values.extraIngress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}

  egress:
    {{- include "hone.toNats" . | nindent 4 }}
    {{- include "hone.toSpans" . | nindent 4 }}
    {{- if has .name (include "hone.sharedDatabaseServices" .root | fromYamlArray) }}
    {{- include "hone.toPostgres" . | nindent 4 }}
    {{- end }}
    {{- if $facts.models }}
    {{- include "hone.toHub" . | nindent 4 }}
    {{- end }}
    {{- with .egress }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $values.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
{{- end -}}
