{{/* Objects that several components have. Each template takes (root, name). */}}

{{- define "hone.deployment" -}}
{{- $values := index .root.Values (include "hone.key" .name) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "hone.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
spec:
  {{- if not .isScaled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  {{- /* A new pod starts before an old one ends. Consumers share their work, also between two versions. */}}
  strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
  selector:
    matchLabels:
      {{- include "hone.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "hone.podMetadata" . | nindent 6 }}
    spec:
      {{- include "hone.podHead" . | nindent 6 }}
      {{- include "hone.placement" . | nindent 6 }}
      containers:
        {{- include "hone.container" . | nindent 8 }}
      volumes:
        {{- include "hone.volumes" . | nindent 8 }}
        {{- with .volumes }}
        {{- . | nindent 8 }}
        {{- end }}
{{- end -}}

{{- define "hone.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "hone.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end -}}

{{/* (root, name, ports: YAML list, isHeadless) */}}
{{- define "hone.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "hone.name" . }}{{ if .isHeadless }}-headless{{ end }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
spec:
  type: ClusterIP
  {{- if .isHeadless }}
  clusterIP: None
  # Peers must find each other before they are ready.
  publishNotReadyAddresses: true
  {{- end }}
  selector:
    {{- include "hone.selector" . | nindent 4 }}
  ports:
    {{- .ports | default "- { name: http, port: 8080, targetPort: http, protocol: TCP }" | nindent 4 }}
{{- end -}}

{{/* (root, name, maxUnavailable) */}}
{{- define "hone.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "hone.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .maxUnavailable }}
  # A pod that is not ready does not block a drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "hone.selector" . | nindent 6 }}
{{- end -}}

{{/* (root, name, claim, mode) A claim that the chart creates; `helm uninstall` keeps it unless storage.keep is false. */}}
{{- define "hone.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ include "hone.fullname" .root }}-{{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hone.labels" . | nindent 4 }}
  {{- if .root.Values.storage.keep }}
  annotations: { helm.sh/resource-policy: keep }
  {{- end }}
spec:
  accessModes: {{ toJson .claim.accessModes }}
  {{- with .claim.storageClassName }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources: { requests: { storage: {{ .claim.size }} } }
{{- end -}}

{{/* (root) Retention policy for claims of StatefulSets. */}}
{{- define "hone.claimPolicy" -}}
persistentVolumeClaimRetentionPolicy:
  whenScaled: Retain
  whenDeleted: {{ ternary "Retain" "Delete" .root.Values.storage.keep }}
{{- end -}}

{{/* (claim, labels) -> volumeClaimTemplates with one claim, "data". */}}
{{- define "hone.claimTemplate" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .claim.storageClassName }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources: { requests: { storage: {{ .claim.size }} } }
{{- end -}}
