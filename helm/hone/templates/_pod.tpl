{{/* Parts that the pods of Hone's own services share. */}}

{{/* Properties of a service that values cannot change: how it uses the shared folder, and whether it loads models. */}}
{{- define "hone.facts" -}}
dataset: { state: rw, models: true, streams: await }
agent-rollout: { state: ro, models: false, streams: await }
inference-gateway: { state: ro, models: true, streams: await }
judge: { state: none, models: false, streams: await }
trainer: { state: rw, models: true, streams: make }
tracer: { state: ro, models: false, streams: await }
{{- end -}}

{{/* The account that runs Hone's services and engine servers, and owns the files on their volumes. */}}
{{- define "hone.user" -}}1000{{- end -}}

{{/* For pod security "restricted". */}}
{{- define "hone.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
# Changing the owner of a large volume at every start takes minutes.
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end -}}
{{- define "hone.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* (root, name) -> environment of a service. */}}
{{- define "hone.env" -}}
{{- $root := .root -}}
{{- $values := index $root.Values (include "hone.key" .name) -}}
{{- $facts := index (include "hone.facts" $root | fromYaml) .name -}}
{{- $nats := $root.Values.nats -}}
# A replica's name is that of its pod; a trainer that restarts with the same name continues its runs.
- name: HONE_INSTANCE_ID
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: HONE_NATS_URL_FILE
  value: /etc/hone/credentials/nats-url
- name: HONE_NATS_INBOX_PREFIX
  value: {{ printf "_INBOX_%s" .name }}
- name: HONE_STREAMS
  value: {{ $facts.streams }}
- name: HONE_STREAM_REPLICAS
  value: {{ $nats.streamReplicas | quote }}
{{- if eq $facts.streams "make" }}
- name: HONE_EPISODES_MAX_BYTES
  value: {{ include "hone.bytes" $nats.episodesMaxSize | quote }}
{{- end }}
{{- if include "hone.ownDatabase" . }}
- name: HONE_TRACER_DATABASE_URL_FILE
  value: /etc/hone/database/database-url
{{- else if has .name (include "hone.databaseServices" $root | fromYamlArray) }}
- name: HONE_DATABASE_URL_FILE
  value: /etc/hone/credentials/database-url
{{- end }}
- name: HONE_STATE_DIR
  value: /var/lib/hone
- name: HONE_FILES
  value: /files
- name: HONE_HTTP_HOST
  value: {{ $root.Values.httpHost | quote }}
- name: HONE_HTTP_PORT
  value: "8080"
- name: HONE_HTTP_ALLOWED_HOSTS
  value: {{ include "hone.allowedHosts" (dict "root" $root "name" .name) | quote }}
- name: HONE_LOG_LEVEL
  value: {{ $root.Values.logLevel }}
{{- with include "hone.tracerUrl" $root }}
- name: HONE_TRACER_URL
  value: {{ . }}
{{- end }}
{{- with include "hone.otlpEndpoint" $root }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . }}
{{- end }}
{{- if or (eq .name "tracer") (eq $root.Values.telemetry.route "tracer") }}
{{- with include "hone.tokenSecret" $root | fromJson }}
- name: HONE_TRACER_TOKEN
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}
{{- end }}
- name: HONE_TRACE_SAMPLE_RATIO
  value: {{ $root.Values.telemetry.sampleRatio | quote }}
# The root file system is read-only, so temporary files go here.
- name: HOME
  value: /tmp
- name: NODE_COMPILE_CACHE
  value: /tmp/node-compile-cache
{{- if $facts.models }}
# In addition to the hub's cache: run files may name models by folders in here.
- name: HONE_MODEL_FOLDERS
  value: /models
{{ include "hone.hubEnv" $root }}
{{- end }}
{{- if $root.Values.extraCa.configMap }}
- name: NODE_EXTRA_CA_CERTS
  value: /etc/hone/ca/{{ $root.Values.extraCa.key }}
{{- end }}
{{- $prefixes := index (include "hone.keyPrefixes" $root | fromYaml) .name | default list -}}
{{- range $key := $root.Values.keys }}
{{- range $prefix := $prefixes }}
{{- if hasPrefix $prefix $key.variable }}
- name: {{ $key.variable }}
  valueFrom: { secretKeyRef: { name: {{ $key.secret.name }}, key: {{ $key.secret.key }} } }
- name: {{ $key.variable }}_HOSTS
  value: {{ join "," $key.hosts | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- with $values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Prefixes of the variables of keys that run files may use, by the service that sends them. */}}
{{- define "hone.keyPrefixes" -}}
dataset: [HONE_DATASET_KEY]
agent-rollout: [HONE_ENDPOINT_KEY, HONE_TOOL_]
judge: [HONE_JUDGE_KEY]
trainer: [HONE_TEACHER_KEY]
{{- end -}}

{{/* Whether code that run files name may run, for the services that would run it. */}}
{{- define "hone.allowEnv" -}}
- name: HONE_ALLOW_COMMANDS
  value: {{ ternary "yes" "no" .Values.allow.commands | quote }}
{{ include "hone.allowModulesEnv" . }}
{{- end -}}

{{/* The same for modules alone. */}}
{{- define "hone.allowModulesEnv" -}}
- name: HONE_ALLOW_MODULES
  value: {{ ternary "yes" "no" .Values.allow.modules | quote }}
{{- end -}}

{{/* Source and cache of the hub's models, the same for services and engines. */}}
{{- define "hone.hubEnv" -}}
- name: HF_HOME
  value: /models
- name: HF_HUB_OFFLINE
  value: {{ ternary "1" "0" .Values.hub.offline | quote }}
{{- with .Values.hub.endpoint }}
- name: HF_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.hub.tokenSecret }}
- name: HF_TOKEN
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}
{{- end -}}

{{/*
For embedded engines: large arrays use pages of 2 MiB if the node's kernel has them; generation returns freed memory, and training
keeps it for its next pass.
*/}}
{{- define "hone.largeArraysEnv" -}}
- name: GLIBC_TUNABLES
{{- if eq . "training" }}
  value: glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=2147483648:glibc.malloc.arena_max=1
{{- else }}
  value: glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=262144
{{- end }}
{{- end -}}

{{/* (root, name, isBare) -> mounts of a service's container, and the volumes behind them. Bare: without the credentials of bus and database. */}}
{{- define "hone.mounts" -}}
{{- $facts := index (include "hone.facts" .root | fromYaml) .name -}}
{{- if not .isBare -}}
- { name: credentials, mountPath: /etc/hone/credentials, readOnly: true }
{{ end -}}
{{- if include "hone.ownDatabase" . -}}
- { name: database, mountPath: /etc/hone/database, readOnly: true }
{{ end -}}
- { name: tmp, mountPath: /tmp }
- { name: files, mountPath: /files, readOnly: true }
- { name: state, mountPath: /var/lib/hone{{ if eq $facts.state "ro" }}, readOnly: true{{ end }} }
{{- if $facts.models }}
- { name: models, mountPath: /models }
{{- end }}
{{- if .root.Values.extraCa.configMap }}
- { name: extra-ca, mountPath: /etc/hone/ca, readOnly: true }
{{- end }}
{{- end -}}
{{- define "hone.volumes" -}}
{{- $facts := index (include "hone.facts" .root | fromYaml) .name -}}
{{- $storage := .root.Values.storage -}}
{{- if not .isBare -}}
- name: credentials
  # 288 is 0440: readable only for the account and group of the pod.
  secret: { secretName: {{ include "hone.credentials" . }}, defaultMode: 288 }
{{ end -}}
{{- with include "hone.ownDatabase" . -}}
- name: database
  secret: { secretName: {{ . }}, defaultMode: 288 }
{{ end -}}
- name: tmp
  # A pod that writes more is evicted. PyTorch's compiled kernels are stored here too.
  emptyDir: { sizeLimit: {{ ternary "10Gi" "1Gi" (and (eq .name "trainer") (eq .root.Values.trainer.engine.kind "fsdp2")) }} }
- name: files
{{- if $storage.files.existingClaim }}
  persistentVolumeClaim: { claimName: {{ $storage.files.existingClaim }}, readOnly: true }
{{- else if $storage.files.configMap }}
  configMap: { name: {{ $storage.files.configMap }} }
{{- else }}
  emptyDir: {}
{{- end }}
- name: state
{{- if eq $facts.state "none" }}
  emptyDir: {}
{{- else }}
  persistentVolumeClaim:
    claimName: {{ $storage.state.existingClaim | default (printf "%s-state" (include "hone.fullname" .root)) }}
{{- end }}
{{- if $facts.models }}
- name: models
{{- if or $storage.models.existingClaim $storage.models.size }}
  persistentVolumeClaim:
    claimName: {{ $storage.models.existingClaim | default (printf "%s-models" (include "hone.fullname" .root)) }}
{{- else }}
  emptyDir: {}
{{- end }}
{{- end }}
{{- with .root.Values.extraCa.configMap }}
- name: extra-ca
  configMap: { name: {{ . }} }
{{- end }}
{{- end -}}

{{/* Probes of a service, which answers HTTP at once, before bus and database are available (/readyz says what is missing). */}}
{{- define "hone.probes" -}}
# 90 * 2 s = 3 min for a process to load its code on a busy node.
startupProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 90
# 2 * 5 s = 10 s until a service that lost its bus or database gets no HTTP requests.
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
# 6 * 10 s = 1 min: an event loop that is blocked for this long will not recover.
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* (root, name, image, ports) -> the container of a service. */}}
{{- define "hone.container" -}}
{{- $values := index .root.Values (include "hone.key" .name) -}}
{{- $image := .image | default .root.Values.image -}}
- name: {{ .name }}
  image: {{ include "hone.image" (dict "root" .root "image" $image) }}
  imagePullPolicy: {{ $image.pullPolicy }}
  command: [node, /app/services/{{ .name }}/src/main.ts]
  env:
    {{- include "hone.env" . | nindent 4 }}
    {{- with .env }}
    {{- . | nindent 4 }}
    {{- end }}
  ports:
    - { name: http, containerPort: 8080, protocol: TCP }
    {{- with .ports }}
    {{- . | nindent 4 }}
    {{- end }}
  {{- include "hone.probes" . | nindent 2 }}
  {{- if has .name (list "agent-rollout" "inference-gateway" "tracer") }}
  # Routers have 3 s to learn that this pod ends; the drain then takes at most 8 s.
  lifecycle: { preStop: { sleep: { seconds: 3 } } }
  {{- end }}
  resources:
    {{- .resources | default (toYaml $values.resources) | nindent 4 }}
  securityContext:
    {{- include "hone.containerSecurity" . | nindent 4 }}
  volumeMounts:
    {{- include "hone.mounts" . | nindent 4 }}
    {{- with .mounts }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/*
(root, name) -> where a component's pods may run. `gpu` (a block of values) pins them to nodes with GPUs. `isScaled`: KEDA sets their number.
A user may set any of the lists and maps to null.
*/}}
{{- define "hone.placement" -}}
{{- $values := index .root.Values (include "hone.key" .name) -}}
{{- $gpu := .gpu | default dict -}}
{{- $isGpu := gt (int ($gpu.count | default 0)) 0 -}}
{{- $selector := merge (dict) ($values.nodeSelector | default dict) -}}
{{- if $isGpu }}{{ $selector = merge $selector ($gpu.nodeSelector | default dict) }}{{ end -}}
{{- with $selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $affinity := deepCopy ($values.affinity | default dict) -}}
{{- if and $isGpu $gpu.products -}}
{{- $affinity = include "hone.affinityOfProducts" (dict "affinity" $affinity "products" $gpu.products) | fromYaml -}}
{{- end -}}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := $values.tolerations | default list -}}
{{- if $isGpu }}{{ $tolerations = concat $tolerations ($gpu.tolerations | default list) }}{{ end -}}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $isGpu $gpu.runtimeClassName }}
runtimeClassName: {{ $gpu.runtimeClassName }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- $most := $values.replicas | default 1 -}}
{{- if .isScaled }}{{ $most = $values.keda.maxReplicas }}{{ end -}}
{{- if gt (int $most) 1 }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "hone.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{/*
(affinity, products) -> the affinity with the accepted GPU products. Terms of a node's affinity are alternatives, so the products are added
to each of them; without any there is one term with only the products.
*/}}
{{- define "hone.affinityOfProducts" -}}
{{- $ofProducts := dict "key" "nvidia.com/gpu.product" "operator" "In" "values" .products -}}
{{- $node := .affinity.nodeAffinity | default dict -}}
{{- $required := $node.requiredDuringSchedulingIgnoredDuringExecution | default dict -}}
{{- $terms := list -}}
{{- range $required.nodeSelectorTerms | default (list (dict)) -}}
{{- $terms = append $terms (set . "matchExpressions" (append (.matchExpressions | default list) $ofProducts)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- toYaml (set .affinity "nodeAffinity" $node) -}}
{{- end -}}

{{/* (root, name) -> metadata of a component's pods. A change of their configuration replaces the pods. */}}
{{- define "hone.podMetadata" -}}
{{- $values := index .root.Values (include "hone.key" .name) -}}
labels:
  {{- include "hone.labels" . | nindent 2 }}
{{- with merge (dict) ($values.podAnnotations | default dict) (.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (root, name) -> spec of a service's pods up to its containers. They do not need the token of the service account. */}}
{{- define "hone.podHead" -}}
serviceAccountName: {{ include "hone.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "hone.imagePullSecrets" .root }}
# 3 s preStop, 8 s drain and close, and the rest for a busy node; a rollout that is cut off goes back to the queue.
terminationGracePeriodSeconds: {{ (index .root.Values (include "hone.key" .name)).terminationGracePeriodSeconds }}
securityContext:
  {{- include "hone.podSecurity" (dict "user" (include "hone.user" .root)) | nindent 2 }}
  {{- with .groups }}
  supplementalGroups: {{ . | toJson }}
  {{- end }}
{{- end -}}
