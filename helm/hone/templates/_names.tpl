{{/* Names, labels and images: the same for every component. Components are written as the services are, "agent-rollout". */}}

{{/* Prefix of the names of objects: the release's name if that contains "hone", so that `helm install hone` gives "hone-judge". */}}
{{- define "hone.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Key of a component in values.yaml: "agent-rollout" -> "agentRollout". */}}
{{- define "hone.key" -}}
{{- range $i, $part := splitList "-" . }}{{ if eq $i 0 }}{{ $part }}{{ else }}{{ title $part }}{{ end }}{{ end -}}
{{- end -}}

{{/*
Size -> bytes: "8GB" as nats-server reads it, in powers of 1024, and "20Gi" or "20G" as Kubernetes does. Empty for a quantity of another
form, such as "1.5Gi".
*/}}
{{- define "hone.bytes" -}}
{{- $factors := dict "MB" 1048576 "GB" 1073741824 "TB" 1099511627776 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- if regexMatch "^[0-9]+(MB|GB|TB|Mi|Gi|Ti|M|G|T)$" . -}}
{{- printf "%d" (mul (regexFind "^[0-9]+" . | int64) (get $factors (regexFind "[A-Za-z]+$" .) | int64)) -}}
{{- end -}}
{{- end -}}

{{/* (root, name) -> name of a component's objects. */}}
{{- define "hone.name" -}}
{{- printf "%s-%s" (include "hone.fullname" .root) .name -}}
{{- end -}}

{{/* (root, name) -> labels that select a component's pods; they never change. */}}
{{- define "hone.selector" -}}
app.kubernetes.io/name: hone
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "hone.labels" -}}
{{ include "hone.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (root, name) -> address inside the cluster, in full, so that no search domain is tried first. */}}
{{- define "hone.host" -}}
{{- printf "%s.%s.svc.%s" (include "hone.name" .) .root.Release.Namespace .root.Values.clusterDomain -}}
{{- end -}}

{{/*
(root, image) -> registry/repository:tag@digest. The image's `registry` overrides the global one, and a digest overrides a tag. A tag of a public
registry is pinned by files/image-digests.yaml if it is listed there; a mirror may have another digest for the tag, which values must give.
*/}}
{{- define "hone.image" -}}
{{- $registry := .image.registry | default .root.Values.global.imageRegistry -}}
{{- $tag := .image.tag | default .root.Chart.AppVersion -}}
{{- $digest := .image.digest -}}
{{- if not (or $registry $digest) -}}
{{- $digest = index (.root.Files.Get "files/image-digests.yaml" | fromYaml) (printf "%s:%s" .image.repository $tag) -}}
{{- end -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .image.repository }}:{{ $tag }}{{ with $digest }}@{{ . }}{{ end -}}
{{- end -}}

{{- define "hone.imagePullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* (root, name) -> name of the Secret with a service's addresses and passwords. */}}
{{- define "hone.credentials" -}}
{{- $own := index .root.Values (include "hone.key" .name) -}}
{{- $own.existingSecret | default (printf "%s-credentials" (include "hone.name" .)) -}}
{{- end -}}

{{- define "hone.natsSecret" -}}
{{- .Values.nats.existingSecret | default (printf "%s-users" (include "hone.name" (dict "root" . "name" "nats"))) -}}
{{- end -}}

{{/* { name, key } of the Secret with the token that page, API and span receiver require; empty = none is required. */}}
{{- define "hone.tokenSecret" -}}
{{- if .Values.tracer.tokenSecret -}}
{{ toJson .Values.tracer.tokenSecret }}
{{- else if .Values.credentials.create -}}
{{ dict "name" (printf "%s-token" (include "hone.name" (dict "root" . "name" "tracer"))) "key" "token" | toJson }}
{{- end -}}
{{- end -}}

{{/* Host names by which a service may be called: its names in the cluster, and those that values add. */}}
{{- define "hone.allowedHosts" -}}
{{- $own := include "hone.name" . -}}
{{- $url := ternary .root.Values.tracer.publicUrl "" (eq .name "tracer") | default "" -}}
{{- $public := ternary (list (urlParse $url).hostname) list (ne $url "") -}}
{{- concat (list $own (printf "%s.%s" $own .root.Release.Namespace) ".svc" (printf ".svc.%s" .root.Values.clusterDomain)) $public (.root.Values.allowedHosts | default list) | join "," -}}
{{- end -}}

{{- define "hone.postgresSecret" -}}
{{- .Values.postgres.existingSecret | default (printf "%s-passwords" (include "hone.name" (dict "root" . "name" "postgres"))) -}}
{{- end -}}

{{/* The six services, and the other clients of the bus. */}}
{{- define "hone.services" -}}
["dataset", "agent-rollout", "inference-gateway", "judge", "trainer", "tracer"]
{{- end -}}
{{/* Users of the bus that have a Secret with its address: the services, clients, and the sinks if there are any. */}}
{{- define "hone.busUsers" -}}
{{- $sinks := ternary (list "sinks") list (gt (len (.Values.sinks.backends | default list)) 0) -}}
{{ concat (include "hone.services" . | fromYamlArray) (list "client") $sinks | toJson }}
{{- end -}}
{{- define "hone.databaseServices" -}}
["trainer", "tracer"]
{{- end -}}
{{/* (root, name) -> Secret with the address of the service's own database; empty = it has none. */}}
{{- define "hone.ownDatabase" -}}
{{- if eq .name "tracer" }}{{ (.root.Values.tracer.database | default dict).existingSecret }}{{ end -}}
{{- end -}}
{{/* Services that use the shared database. */}}
{{- define "hone.sharedDatabaseServices" -}}
{{- $shared := list -}}
{{- range include "hone.databaseServices" . | fromYamlArray -}}
{{- if not (include "hone.ownDatabase" (dict "root" $ "name" .)) }}{{ $shared = append $shared . }}{{ end -}}
{{- end -}}
{{ toJson $shared }}
{{- end -}}

{{/* Base addresses of OTLP/HTTP for spans. Empty = no spans are sent. */}}
{{- define "hone.jaegerEndpoint" -}}
{{- if .Values.jaeger.enabled -}}
http://{{ include "hone.host" (dict "root" . "name" "jaeger") }}:4318
{{- else -}}
{{ .Values.telemetry.externalEndpoint }}
{{- end -}}
{{- end -}}
{{- define "hone.tracerUrl" -}}
{{- if eq .Values.telemetry.route "tracer" -}}
http://{{ include "hone.host" (dict "root" . "name" "tracer") }}:8080
{{- end -}}
{{- end -}}
{{- define "hone.otlpEndpoint" -}}
{{- if eq .Values.telemetry.route "straight" -}}
{{ include "hone.jaegerEndpoint" . }}
{{- end -}}
{{- end -}}
