{{/*
The bus's configuration: an account with the streams and the trainer, and one for each other service, whose user has only the
rights that the service needs (files/bus-accounts.json, which is generated from libs/messaging/src/rights/bus-accounts.ts).
*/}}

{{- define "hone.nats.config" -}}
{{- $nats := .Values.nats -}}
{{- $headless := printf "%s-headless.%s.svc.%s" (include "hone.name" (dict "root" . "name" "nats")) .Release.Namespace .Values.clusterDomain -}}
server_name: $HONE_POD_NAME
port: 4222
http_port: 8222
max_payload: {{ $nats.maxPayload }}
# A client behind a broken network is noticed after two to three of these.
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
  {{- range $name, $account := include "hone.nats.accounts" . | fromJson }}
  {{ $name }} {
    {{- if $account.holdsStreams }}
    jetstream: enabled
    {{- end }}
    exports: [
      {{- range $account.exports }}
      {{ include "hone.nats.json" . }}
      {{- end }}
    ]
    imports: [
      {{- range $account.imports }}
      {{ include "hone.nats.json" . }}
      {{- end }}
    ]
    users: [
      {{- range $user, $may := $account.users }}
      {
        user: {{ toJson $user }}
        password: ${{ include "hone.nats.variable" $user }}
        permissions {
          publish { allow: [
            {{- range $may.publish }}
            {{ include "hone.nats.json" . }}
            {{- end }}
          ] }
          subscribe { allow: [
            {{- range $may.subscribe }}
            {{ include "hone.nats.json" . }}
            {{- end }}
          ] }
        }
      }
      {{- end }}
    ]
  }
  {{- end }}
  SYS { users: [ { user: "system", password: ${{ include "hone.nats.variable" "system" }} } ] }
}
system_account: SYS
{{- end -}}

{{- define "hone.nats.variable" -}}
HONE_NATS_{{ . | upper | replace "-" "_" }}_PASSWORD
{{- end -}}

{{/*
The accounts as JSON. In the file, only names of accounts begin with HONE. Without sinks their account is left out, as a Secret of an older
release has no password for it; an export to nobody would be one to everybody.
*/}}
{{- define "hone.nats.accounts" -}}
{{- $accounts := .Files.Get "files/bus-accounts.json" | replace "\"HONE" (printf "\"%s" .Values.nats.account) | fromJson -}}
{{- if not .Values.sinks.backends -}}
{{- $own := printf "%s-sinks" .Values.nats.account -}}
{{- $_ := unset $accounts $own -}}
{{- range $account := $accounts -}}
{{- $exports := list -}}
{{- range $account.exports -}}
{{- $importers := without .accounts $own -}}
{{- if $importers }}{{ $exports = append $exports (merge (dict "accounts" $importers) .) }}{{ end -}}
{{- end -}}
{{- $_ := set $account "exports" $exports -}}
{{- end -}}
{{- end -}}
{{ toJson $accounts }}
{{- end -}}

{{/* JSON is valid in nats-server's configuration, but for the way in which Helm writes ">". */}}
{{- define "hone.nats.json" -}}
{{ toJson . | replace "\\u003e" ">" }}
{{- end -}}
