{{/* The engine server in the gateway's pod: vLLM or SGLang. It listens only on the pod's loopback address. */}}

{{- define "hone.engine.port" -}}8000{{- end -}}
{{/* Folder in which the gateway makes links to a version's files for the server; both have it under this path. */}}
{{- define "hone.engine.links" -}}/var/lib/hone-links{{- end -}}

{{/* Environment of the gateway that describes its engine. */}}
{{- define "hone.inferenceGateway.env" -}}
{{- $own := .Values.inferenceGateway -}}
- name: HONE_INFERENCE_ENGINE
  value: {{ $own.engine.kind }}
{{- if eq $own.engine.kind "onnx" }}
{{ include "hone.largeArraysEnv" "generation" }}
{{- else }}
- name: HONE_INFERENCE_ENGINE_URL
  value: http://127.0.0.1:{{ include "hone.engine.port" . }}
- name: HONE_INFERENCE_ENGINE_LOAD_MS
  value: {{ mul $own.engine.loadSeconds 1000 | quote }}
# This pod may only read the volume of states.
- name: HONE_INFERENCE_ENGINE_LINKS_DIR
  value: {{ include "hone.engine.links" . }}
{{- end }}
- name: HONE_INFERENCE_MAX_SEQUENCES
  value: {{ $own.maxSequences | quote }}
- name: HONE_INFERENCE_MAX_WAITING
  value: {{ $own.maxWaiting | quote }}
- name: HONE_INFERENCE_CACHE_MIB
  value: {{ $own.cacheMib | quote }}
{{- with $own.serve }}
- name: HONE_INFERENCE_SERVE
  value: {{ join "," . | quote }}
{{- end }}
{{- with $own.apiKeySecret }}
- name: HONE_INFERENCE_API_KEY_FILE
  value: /etc/hone/api-key/{{ .key }}
{{- else }}
{{- with include "hone.tokenSecret" . | fromJson }}
- name: HONE_INFERENCE_API_KEY
  valueFrom: { secretKeyRef: { name: {{ .name }}, key: {{ .key }} } }
{{- end }}
{{- end }}
{{- end -}}

{{- define "hone.engine.args" -}}
{{- $engine := .Values.inferenceGateway.engine -}}
{{- if eq $engine.kind "vllm" -}}
- {{ $engine.model | quote }}
- --served-model-name=policy
- --host=127.0.0.1
- --port={{ include "hone.engine.port" . }}
- --tensor-parallel-size={{ $engine.gpu.count }}
- --dtype={{ $engine.dtype }}
- --gpu-memory-utilization={{ $engine.memoryShare }}
# Sampling and stop tokens are what Hone asks for, not what the model's own file suggests.
- --generation-config=vllm
# Logprobs are those of the distribution that was drawn from (docs/engines.md).
- --logprobs-mode=processed_logprobs
- --enable-prompt-tokens-details
- --max-num-seqs={{ .Values.inferenceGateway.maxSequences }}
{{- if $engine.maxLoraRank }}
- --enable-lora
- --max-lora-rank={{ $engine.maxLoraRank }}
{{- end }}
{{- with $engine.maxContextTokens }}
- --max-model-len={{ . | int64 }}
{{- end }}
{{- else -}}
- --model-path={{ $engine.model }}
- --served-model-name=policy
- --host=127.0.0.1
- --port={{ include "hone.engine.port" . }}
- --tp-size={{ $engine.gpu.count }}
- --dtype={{ $engine.dtype }}
# For the metrics that the gateway passes on; vLLM always has them.
- --enable-metrics
- --mem-fraction-static={{ $engine.memoryShare }}
- --max-running-requests={{ .Values.inferenceGateway.maxSequences }}
{{- if $engine.maxLoraRank }}
- --enable-lora
- --max-lora-rank={{ $engine.maxLoraRank }}
{{- end }}
{{- with $engine.maxContextTokens }}
- --context-length={{ . | int64 }}
{{- end }}
{{- end }}
{{- if $engine.tracing }}
{{- $jaeger := printf "%s:4317" (include "hone.host" (dict "root" . "name" "jaeger")) }}
{{- if eq $engine.kind "vllm" }}
- --otlp-traces-endpoint=grpc://{{ $jaeger }}
{{- else }}
- --enable-trace
- --otlp-traces-endpoint={{ $jaeger }}
{{- end }}
{{- end }}
{{- with $engine.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hone.engine.container" -}}
{{- $engine := .Values.inferenceGateway.engine -}}
{{- $image := index $engine.images $engine.kind -}}
- name: engine
  image: {{ include "hone.image" (dict "root" . "image" $image) }}
  imagePullPolicy: {{ $image.pullPolicy }}
  {{- if eq $engine.kind "vllm" }}
  command: [vllm, serve]
  {{- else }}
  command: [python3, -m, sglang.launch_server]
  {{- end }}
  args:
    {{- include "hone.engine.args" . | nindent 4 }}
  env:
    {{- include "hone.hubEnv" . | nindent 4 }}
    # Caches and compiled kernels are kept for the life of the pod; the account has no entry in the image's /etc/passwd, where
    # PyTorch would look for the name.
    - name: HOME
      value: /tmp
    - name: USER
      value: hone
    - name: LOGNAME
      value: hone
    {{- if eq $engine.kind "vllm" }}
    # Pause, resume and new weights are answered only with this; the port is open to this pod alone.
    - name: VLLM_SERVER_DEV_MODE
      value: "1"
    {{- if $engine.maxLoraRank }}
    - name: VLLM_ALLOW_RUNTIME_LORA_UPDATING
      value: "True"
    {{- end }}
    {{- else }}
    # Without this, /health would generate a token.
    - name: SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION
      value: "false"
    {{- end }}
    {{- if $engine.tracing }}
    - name: OTEL_SERVICE_NAME
      value: {{ $engine.kind }}
    - name: OTEL_EXPORTER_OTLP_TRACES_INSECURE
      value: "true"
    {{- end }}
    {{- with $engine.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - { name: engine, containerPort: {{ include "hone.engine.port" . }}, protocol: TCP }
  # The engine listens on the pod's loopback address, where the kubelet cannot ask it: each probe runs inside.
  # {{ mul $engine.startupMinutes 6 }} * 10 s = {{ $engine.startupMinutes }} min for the download and load of the weights.
  startupProbe:
    exec: { command: {{ include "hone.engine.probe" . }} }
    periodSeconds: 10
    timeoutSeconds: 20
    failureThreshold: {{ mul $engine.startupMinutes 6 }}
  # 3 * 10 s = 30 s: a step of the engine may take some.
  readinessProbe:
    exec: { command: {{ include "hone.engine.probe" . }} }
    periodSeconds: 10
    timeoutSeconds: 20
    failureThreshold: 3
  # 20 * 30 s = 10 min: an update of the weights in place, or a long prefill, is no reason to lose the model.
  livenessProbe:
    exec: { command: {{ include "hone.engine.probe" . }} }
    periodSeconds: 30
    timeoutSeconds: 20
    failureThreshold: 20
  resources:
    limits:
      {{ $engine.gpu.resourceName }}: {{ $engine.gpu.count }}
      {{- with ($engine.resources | default dict).limits }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with ($engine.resources | default dict).requests }}
    requests:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  securityContext:
    {{- toYaml $engine.securityContext | nindent 4 }}
  volumeMounts:
    - { name: shm, mountPath: /dev/shm }
    - { name: engine-tmp, mountPath: /tmp }
    - { name: {{ include "hone.engine.modelsVolume" . }}, mountPath: /models }
    # New weights are read from the trainer's volume.
    - { name: state, mountPath: /var/lib/hone, readOnly: true }
    - { name: links, mountPath: {{ include "hone.engine.links" . }}, readOnly: true }
{{- end -}}

{{/* An account cannot replace another one's downloads, so only the pod's own account shares the services' models. */}}
{{- define "hone.engine.modelsVolume" -}}
{{- $user := (.Values.inferenceGateway.engine.securityContext | default dict).runAsUser -}}
{{- ternary "models" "engine-models" (or (kindIs "invalid" $user) (eq (toString $user) (include "hone.user" .))) -}}
{{- end -}}

{{- define "hone.engine.probe" -}}
[python3, -c, "import urllib.request as r; r.urlopen('http://127.0.0.1:{{ include "hone.engine.port" . }}/health', timeout=18)"]
{{- end -}}
