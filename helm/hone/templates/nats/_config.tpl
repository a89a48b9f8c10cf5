{{/*
The bus's own configuration: one account for Hone with a user for each service, that may do what the service does and
nothing else. Subjects are those of libs/messaging/src/subjects.ts.
*/}}

{{/* (streams) -> subjects by which a durable consumer is made, read and acknowledged. */}}
{{- define "hone.nats.durable" -}}
{{- $s := .stream -}}{{- $c := .consumer -}}
- $JS.API.CONSUMER.CREATE.{{ $s }}.{{ $c }}.>
- $JS.API.CONSUMER.DURABLE.CREATE.{{ $s }}.{{ $c }}
- $JS.API.CONSUMER.INFO.{{ $s }}.{{ $c }}
- $JS.API.CONSUMER.DELETE.{{ $s }}.{{ $c }}
- $JS.API.CONSUMER.MSG.NEXT.{{ $s }}.{{ $c }}
- $JS.ACK.{{ $s }}.{{ $c }}.>
{{- end -}}

{{/* (stream) -> subjects by which a stream is read in order, without a durable consumer. Their names are random. */}}
{{- define "hone.nats.ordered" -}}
- $JS.API.CONSUMER.CREATE.{{ . }}
- $JS.API.CONSUMER.CREATE.{{ . }}.>
- $JS.API.CONSUMER.INFO.{{ . }}.*
- $JS.API.CONSUMER.DELETE.{{ . }}.*
- $JS.API.CONSUMER.MSG.NEXT.{{ . }}.*
- $JS.API.DIRECT.GET.{{ . }}
- $JS.API.DIRECT.GET.{{ . }}.>
- $JS.API.STREAM.MSG.GET.{{ . }}
- $JS.FC.{{ . }}.>
{{- end -}}

{{/* What every service may do: look at streams, answer, read and write large payloads, and put aside what it cannot decode. */}}
{{- define "hone.nats.common" -}}
- $JS.API.INFO
- $JS.API.STREAM.INFO.*
- hone.v1.dead.*
- $KV.DEATHS.>
{{ include "hone.nats.ordered" "KV_DEATHS" }}
- $O.PAYLOADS.>
- $JS.API.STREAM.PURGE.OBJ_PAYLOADS
{{ include "hone.nats.ordered" "OBJ_PAYLOADS" }}
- _INBOX.>
{{- range include "hone.services" . | fromYamlArray }}
- _INBOX_{{ . }}.>
{{- end }}
{{- end -}}

{{/* The trainer makes the streams and buckets; the other services wait for them. */}}
{{- define "hone.nats.maker" -}}
{{- range list "RUNS" "JOBS" "EPISODES" "EVENTS" "DEAD" "KV_RUN_STATE" "KV_REPLICAS" "KV_DEATHS" "OBJ_PAYLOADS" }}
- $JS.API.STREAM.CREATE.{{ . }}
- $JS.API.STREAM.UPDATE.{{ . }}
{{- end }}
{{- end -}}

{{/* User -> { publish, subscribe }. */}}
{{- define "hone.nats.permissions" -}}
dataset:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
  subscribe: [hone.v1.dataset.batch, hone.v1.dataset.validate, hone.v1.service.health, _INBOX_dataset.>]
agent-rollout:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
    {{- include "hone.nats.durable" (dict "stream" "JOBS" "consumer" "agent-rollout") | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_RUN_STATE" | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_REPLICAS" | nindent 4 }}
    - hone.v1.rollout.finished.*
    - hone.v1.policy.generate.*.*
    - hone.v1.policy.abort.*.*
    - hone.v1.dataset.batch
  subscribe: [hone.v1.agent-rollout.validate, hone.v1.service.health, _INBOX_agent-rollout.>]
inference-gateway:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_RUN_STATE" | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_REPLICAS" | nindent 4 }}
    - $KV.REPLICAS.>
  subscribe: [hone.v1.policy.generate.*.*, hone.v1.policy.abort.*.*, hone.v1.inference-gateway.validate, hone.v1.service.health, _INBOX_inference-gateway.>]
judge:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
    {{- include "hone.nats.durable" (dict "stream" "EPISODES" "consumer" "judge") | nindent 4 }}
    - hone.v1.rollout.scored.*
  subscribe: [hone.v1.judge.score, hone.v1.judge.group, hone.v1.judge.validate, hone.v1.service.health, _INBOX_judge.>]
trainer:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
    {{- include "hone.nats.maker" . | nindent 4 }}
    {{- include "hone.nats.durable" (dict "stream" "RUNS" "consumer" "trainer") | nindent 4 }}
    {{- include "hone.nats.ordered" "EPISODES" | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_RUN_STATE" | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_REPLICAS" | nindent 4 }}
    - $KV.RUN_STATE.>
    - $JS.API.CONSUMER.LIST.EPISODES
    - $JS.API.CONSUMER.INFO.*.*
    - $JS.API.STREAM.PURGE.EPISODES
    - $JS.API.STREAM.PURGE.JOBS
    - hone.v1.rollout.job.*
    - hone.v1.event.*.*
    - hone.v1.*.validate
    - hone.v1.dataset.batch
    - hone.v1.judge.group
    - hone.v1.service.health
  subscribe: [hone.v1.run.cancel.*, hone.v1.run.pause.*, hone.v1.run.resume.*, hone.v1.run.status.*, hone.v1.service.health, _INBOX_trainer.>]
tracer:
  publish:
    {{- include "hone.nats.common" . | nindent 4 }}
    {{- include "hone.nats.durable" (dict "stream" "EPISODES" "consumer" "tracer-rollouts") | nindent 4 }}
    {{- include "hone.nats.durable" (dict "stream" "EVENTS" "consumer" "tracer-events") | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_RUN_STATE" | nindent 4 }}
    {{- include "hone.nats.ordered" "DEAD" | nindent 4 }}
    - $JS.API.CONSUMER.INFO.*.*
    - hone.v1.service.health
  subscribe: [hone.v1.service.health, _INBOX_tracer.>]
# People and programs that submit runs: publish requests, control runs, read what is told of them.
client:
  publish:
    - $JS.API.INFO
    - $JS.API.STREAM.NAMES
    - $JS.API.STREAM.LIST
    - $JS.API.STREAM.INFO.*
    - $JS.API.CONSUMER.INFO.*.*
    {{- include "hone.nats.ordered" "EVENTS" | nindent 4 }}
    {{- include "hone.nats.ordered" "KV_RUN_STATE" | nindent 4 }}
    {{- include "hone.nats.ordered" "OBJ_PAYLOADS" | nindent 4 }}
    - $O.PAYLOADS.>
    - hone.v1.run.request
    - hone.v1.run.cancel.*
    - hone.v1.run.pause.*
    - hone.v1.run.resume.*
    - hone.v1.run.status.*
    - hone.v1.*.validate
    - hone.v1.judge.score
    - hone.v1.service.health
  subscribe: [hone.v1.event.>, _INBOX.>]
{{- end -}}

{{- define "hone.nats.config" -}}
{{- $nats := .Values.nats -}}
{{- $headless := printf "%s-headless.%s.svc.%s" (include "hone.name" (dict "root" . "name" "nats")) .Release.Namespace .Values.clusterDomain -}}
server_name: $HONE_POD_NAME
port: 4222
http_port: 8222
max_payload: {{ $nats.maxPayload }}
# A client that a broken network hides is noticed after two to three of these.
ping_interval: "10s"
ping_max: 2
# Clients are sent to other servers before this one ends; with the grace it is below the pod's own grace period.
lame_duck_grace_period: "5s"
lame_duck_duration: "30s"
jetstream {
  # The server adds a folder `jetstream`.
  store_dir: /data
  max_memory_store: 64MB
  max_file_store: {{ $nats.maxFileStore }}
}
{{- if gt (int $nats.replicas) 1 }}
cluster {
  name: {{ include "hone.fullname" . }}
  port: 6222
  routes: [
    {{- range $i := until (int $nats.replicas) }}
    nats://{{ include "hone.name" (dict "root" $ "name" "nats") }}-{{ $i }}.{{ $headless }}:6222
    {{- end }}
  ]
}
{{- end }}
{{- if $nats.tls.secret }}
tls {
  cert_file: /etc/nats/tls/tls.crt
  key_file: /etc/nats/tls/tls.key
}
{{- end }}
accounts {
  {{ $nats.account }} {
    jetstream: enabled
    users: [
      {{- range $user, $may := include "hone.nats.permissions" . | fromYaml }}
      {
        user: {{ toJson $user }}
        password: ${{ include "hone.nats.variable" $user }}
        permissions {
          publish { allow: [
            {{- range uniq $may.publish }}
            {{ toJson . | replace "\\u003e" ">" }}
            {{- end }}
          ] }
          subscribe { allow: [
            {{- range uniq $may.subscribe }}
            {{ toJson . | replace "\\u003e" ">" }}
            {{- end }}
          ] }
        }
      }
      {{- end }}
    ]
  }
  SYS { users: [ { user: "system", password: ${{ include "hone.nats.variable" "system" }} } ] }
}
system_account: SYS
{{- end -}}

{{- define "hone.nats.variable" -}}
HONE_NATS_{{ . | upper | replace "-" "_" }}_PASSWORD
{{- end -}}
