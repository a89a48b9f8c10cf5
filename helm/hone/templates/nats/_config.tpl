{{/*
The bus's own configuration: one account for Hone with a user for each service, that may do what the service does and
nothing else: files/bus-rights.json, which is made from libs/messaging/src/bus-rights.ts.
*/}}

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
      {{- range $user, $may := .Files.Get "files/bus-rights.json" | fromJson }}
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
