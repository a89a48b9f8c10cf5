{{- define "hone.jaeger.config" -}}
{{- $jaeger := .Values.jaeger -}}
service:
  extensions: [jaeger_storage, jaeger_query, healthcheckv2]
  pipelines:
    traces: { receivers: [otlp], processors: [batch], exporters: [jaeger_storage_exporter] }
extensions:
  healthcheckv2: { use_v2: true, http: { endpoint: "0.0.0.0:13133" } }
  jaeger_query:
    storage: { traces: main }
    base_path: {{ $jaeger.basePath | quote }}
    ui: { config_file: /etc/jaeger/ui.json }
  jaeger_storage:
    backends:
      {{- if eq $jaeger.storage "badger" }}
      main:
        badger:
          directories: { keys: /badger/key, values: /badger/data }
          ephemeral: false
          ttl: { spans: {{ $jaeger.retention }} }
      {{- else }}
      main: { memory: { max_traces: {{ $jaeger.maxTraces | int64 }} } }
      {{- end }}
receivers:
  otlp:
    protocols:
      # The span of a training step has a link of some 64 bytes for each of its thousands of rollouts.
      grpc: { endpoint: "0.0.0.0:4317", max_recv_msg_size_mib: {{ $jaeger.maxExportMib }} }
      http: { endpoint: "0.0.0.0:4318", max_request_body_size: {{ mul $jaeger.maxExportMib 1048576 }} }
processors:
  batch: {}
exporters:
  jaeger_storage_exporter: { trace_storage: main }
{{- end -}}

{{/* Links from a span to Hone's page: its rollout, its run, its whole trace. Jaeger takes `#{…}` from the span and its ancestors. */}}
{{- define "hone.jaeger.ui" -}}
{{- $page := .Values.tracer.publicUrl | trimSuffix "/" -}}
{
  "dependencies": { "menuEnabled": true },
  "linkPatterns": [
    {{- if $page }}
    { "type": "tags", "key": "hone.slot", "url": "{{ $page }}/runs/#{hone.run.id}/rollouts/#{hone.slot}", "text": "Hone: every token of rollout #{hone.slot}" },
    { "type": "tags", "key": "hone.rollout.id", "url": "{{ $page }}/runs/#{hone.run.id}/rollouts/#{hone.slot}", "text": "Hone: every token of this rollout" },
    { "type": "tags", "key": "hone.run.id", "url": "{{ $page }}/runs/#{hone.run.id}", "text": "Hone: run #{hone.run.id}" },
    { "type": "traces", "url": "{{ $page }}/traces/#{traceID}", "text": "Hone: this trace" }
    {{- end }}
  ]
}
{{- end -}}
