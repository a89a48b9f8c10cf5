{{/* The pods of the trainer. */}}

{{- define "hone.trainer.image" -}}
{{- toYaml (ternary .Values.trainer.engine.image .Values.image (eq .Values.trainer.engine.kind "fsdp2")) -}}
{{- end -}}

{{- define "hone.trainer.env" -}}
{{- $own := .Values.trainer -}}
- name: HONE_TRAINER_LEASE_MS
  value: {{ $own.leaseMs | int64 | quote }}
{{- if eq $own.engine.kind "onnx" }}
- name: HONE_TRAINER_THREADS
  value: {{ $own.engine.threads | quote }}
{{- else }}
- name: HONE_TRAINER_PYTHON
  value: /opt/torch/bin/python
- name: HONE_TRAINER_TORCH_DEVICE
  value: cuda
{{- end }}
{{- end -}}

{{- define "hone.trainer.resources" -}}
{{- $own := .Values.trainer -}}
{{- $limits := deepCopy ($own.resources.limits | default dict) -}}
{{- if gt (int $own.engine.gpu.count) 0 -}}
{{- $_ := set $limits $own.engine.gpu.resourceName (int $own.engine.gpu.count) -}}
{{- end -}}
{{- toYaml (merge (dict "limits" $limits) $own.resources) -}}
{{- end -}}

{{- define "hone.trainer.podSpec" -}}
{{- $args := dict "root" . "name" "trainer" -}}
{{- $own := .Values.trainer -}}
{{- $isTorch := eq $own.engine.kind "fsdp2" -}}
{{- $mounts := ternary "- { name: shm, mountPath: /dev/shm }" "" $isTorch -}}
{{- include "hone.podHead" $args }}
{{- include "hone.placement" (merge (dict "gpu" $own.engine.gpu) $args) }}
containers:
  {{- include "hone.container" (merge (dict "image" (include "hone.trainer.image" . | fromYaml) "env" (include "hone.trainer.env" .) "resources" (include "hone.trainer.resources" .) "mounts" $mounts) $args) | nindent 2 }}
volumes:
  {{- include "hone.volumes" $args | nindent 2 }}
  {{- if $isTorch }}
  # Counts as memory of the container; the ranks of one node exchange through it.
  - name: shm
    emptyDir: { medium: Memory, sizeLimit: {{ $own.engine.sharedMemory }} }
  {{- end }}
{{- end -}}
