{{/* The pods of the trainer. */}}

{{/* images/build.sh pushes both images to one registry under one tag, so values that the trainer's image lacks are those of the services'. */}}
{{- define "hone.trainer.image" -}}
{{- if eq .Values.trainer.engine.kind "fsdp2" -}}
{{- $image := deepCopy .Values.trainer.engine.image -}}
{{- $_ := set $image "registry" ($image.registry | default .Values.image.registry) -}}
{{- $_ := set $image "tag" ($image.tag | default .Values.image.tag) -}}
{{- toYaml $image -}}
{{- else -}}
{{- toYaml .Values.image -}}
{{- end -}}
{{- end -}}

{{/* Address of the trainer for its other nodes. */}}
{{- define "hone.trainer.nodesPort" -}}29400{{- end -}}
{{- define "hone.trainer.python" -}}/opt/torch/bin/python{{- end -}}

{{- define "hone.trainer.env" -}}
{{- $own := .Values.trainer -}}
- name: HONE_TRAINER_LEASE_MS
  value: {{ $own.leaseMs | int64 | quote }}
{{ include "hone.allowModulesEnv" . }}
{{- if eq $own.engine.kind "onnx" }}
{{ include "hone.largeArraysEnv" "training" }}
- name: HONE_TRAINER_THREADS
  value: {{ $own.engine.threads | quote }}
{{- else }}
- name: HONE_TRAINER_PYTHON
  value: {{ include "hone.trainer.python" . }}
- name: HONE_TRAINER_TORCH_DEVICE
  value: cuda
{{- if gt (int $own.engine.nodes) 1 }}
# LeaderWorkerSet sets its variables before these.
- name: HONE_TRAINER_NODES
  value: $(LWS_GROUP_SIZE)
- name: HONE_TRAINER_NODES_PORT
  value: {{ include "hone.trainer.nodesPort" . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "hone.trainer.resources" -}}
{{- $own := .Values.trainer -}}
{{- $resources := $own.resources | default dict -}}
{{- $limits := deepCopy ($resources.limits | default dict) -}}
{{- if gt (int $own.engine.gpu.count) 0 -}}
{{- $_ := set $limits $own.engine.gpu.resourceName (int $own.engine.gpu.count) -}}
{{- end -}}
{{- toYaml (merge (dict "limits" $limits) $resources) -}}
{{- end -}}

{{- define "hone.trainer.shmMount" -}}
- { name: shm, mountPath: /dev/shm }
{{- end -}}
{{- define "hone.trainer.shmVolume" -}}
# Counts as memory of the container; the ranks of a node exchange data through it.
- name: shm
  emptyDir: { medium: Memory, sizeLimit: {{ .Values.trainer.engine.sharedMemory }} }
{{- end -}}

{{- define "hone.trainer.podSpec" -}}
{{- $args := dict "root" . "name" "trainer" -}}
{{- $own := .Values.trainer -}}
{{- $isTorch := eq $own.engine.kind "fsdp2" -}}
{{- $mounts := ternary (include "hone.trainer.shmMount" .) "" $isTorch -}}
{{- $ports := "" -}}
{{- if gt (int $own.engine.nodes) 1 -}}
{{- $ports = printf "- { name: nodes, containerPort: %s, protocol: TCP }" (include "hone.trainer.nodesPort" .) -}}
{{- end -}}
{{- include "hone.podHead" $args }}
{{- include "hone.placement" (merge (dict "gpu" $own.engine.gpu) $args) }}
containers:
  {{- include "hone.container" (merge (dict "image" (include "hone.trainer.image" . | fromYaml) "env" (include "hone.trainer.env" .) "resources" (include "hone.trainer.resources" .) "mounts" $mounts "ports" $ports) $args) | nindent 2 }}
volumes:
  {{- include "hone.volumes" $args | nindent 2 }}
  {{- if $isTorch }}
  {{- include "hone.trainer.shmVolume" . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Pods that run workers for a trainer on other nodes. They have the same files, and no access to bus and database. */}}
{{- define "hone.trainer.nodePodSpec" -}}
{{- $args := dict "root" . "name" "trainer" "isBare" true -}}
{{- $own := .Values.trainer -}}
{{- $image := include "hone.trainer.image" . | fromYaml -}}
{{- include "hone.podHead" $args }}
{{- include "hone.placement" (merge (dict "gpu" $own.engine.gpu) $args) }}
containers:
  - name: trainer-node
    image: {{ include "hone.image" (dict "root" . "image" $image) }}
    imagePullPolicy: {{ $image.pullPolicy }}
    command: [{{ include "hone.trainer.python" . }}, -m, hone_fsdp.node]
    env:
      # LeaderWorkerSet sets its variables before these.
      - name: HONE_FSDP_TRAINER
        value: $(LWS_LEADER_ADDRESS):{{ include "hone.trainer.nodesPort" . }}
      - name: HONE_FSDP_NODE
        value: $(LWS_WORKER_INDEX)
      - name: HONE_HTTP_HOST
        value: {{ .Values.httpHost | quote }}
      - name: HONE_HTTP_PORT
        value: "8080"
      - name: HOME
        value: /tmp
      {{- with $own.env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    ports:
      - { name: http, containerPort: 8080, protocol: TCP }
    # /livez succeeds while its main loop is running, /readyz while it is connected to its trainer.
    {{- include "hone.probes" $args | nindent 4 }}
    resources:
      {{- include "hone.trainer.resources" . | nindent 6 }}
    securityContext:
      {{- include "hone.containerSecurity" . | nindent 6 }}
    volumeMounts:
      {{- include "hone.mounts" $args | nindent 6 }}
      {{- include "hone.trainer.shmMount" . | nindent 6 }}
volumes:
  {{- include "hone.volumes" $args | nindent 2 }}
  {{- include "hone.trainer.shmVolume" . | nindent 2 }}
{{- end -}}
