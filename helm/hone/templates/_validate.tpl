{{/* Refuses values that contradict each other, which the schema cannot check. Each message says what is wrong and what to do. */}}
{{- define "hone.validate" -}}
{{- $values := .Values -}}
{{- $images := dict "the services" $values.image "nats" $values.nats.image "postgres" $values.postgres.image "jaeger" $values.jaeger.image "the trainer" $values.trainer.engine.image "the sinks" $values.sinks.image "vllm" $values.inferenceGateway.engine.images.vllm "sglang" $values.inferenceGateway.engine.images.sglang -}}
{{- range $what, $image := $images -}}
{{- if eq (toString $image.tag) "latest" -}}
{{- fail (printf "the image of %s has the tag latest, which changes over time: set an exact tag or a digest" $what) -}}
{{- end -}}
{{- end -}}
{{- if and $values.storage.files.existingClaim $values.storage.files.configMap -}}
{{- fail "storage.files.existingClaim and storage.files.configMap are both set, and there is only one project folder: set only one of them" -}}
{{- end -}}
{{- if and $values.credentials.create (not (and $values.nats.enabled $values.postgres.enabled)) -}}
{{- fail "the chart cannot create credentials for a bus or database outside of it: set credentials.create to false, and create the Secrets that docs/cluster.md names" -}}
{{- end -}}
{{- if $values.credentials.create -}}
{{- range concat (include "hone.services" . | fromYamlArray) (list "nats" "postgres" "sinks") -}}
{{- $own := index $values (include "hone.key" .) -}}
{{- if $own.existingSecret -}}
{{- fail (printf "%s.existingSecret is set, but the chart creates either all credentials or none: set credentials.create to false" (include "hone.key" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if gt (int $values.nats.streamReplicas) (int $values.nats.replicas) -}}
{{- if $values.nats.enabled -}}
{{- fail (printf "%d replicas of each stream do not fit on %d servers: set nats.streamReplicas to at most nats.replicas" (int $values.nats.streamReplicas) (int $values.nats.replicas)) -}}
{{- end -}}
{{- end -}}
{{- if $values.nats.enabled -}}
{{- /* JOBS and EVENTS 1 GiB each, RUNS and DEAD 0.25 (libs/messaging/src/streams/streams.ts); large payloads 1600 MiB, and two buckets
of a quarter of EPISODES each, 512 MiB at least (libs/messaging/src/payloads/payload-stores.ts). */ -}}
{{- $episodes := include "hone.bytes" $values.nats.episodesMaxSize | int64 -}}
{{- $large := max 536870912 (div $episodes 4) -}}
{{- $streams := add 4362076160 $episodes $large $large -}}
{{- $store := include "hone.bytes" $values.nats.maxFileStore | int64 -}}
{{- if ge $streams $store -}}
{{- fail (printf "streams of %d MB (nats.episodesMaxSize %s, half as much for large episodes, and 4160 MB for the rest) do not fit into nats.maxFileStore %s: increase nats.maxFileStore, or decrease nats.episodesMaxSize" (div $streams 1048576) $values.nats.episodesMaxSize $values.nats.maxFileStore) -}}
{{- end -}}
{{- $volume := include "hone.bytes" ($values.nats.volume.size | default "") -}}
{{- if and $volume (ge $store (int64 $volume)) -}}
{{- fail (printf "%s of streams do not fit on a volume of %s: set nats.volume.size above nats.maxFileStore" $values.nats.maxFileStore $values.nats.volume.size) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $values.telemetry.route "straight") (eq (include "hone.jaegerEndpoint" .) "") -}}
{{- fail "telemetry.route is straight, but there is no receiver of spans: enable jaeger or set telemetry.externalEndpoint" -}}
{{- end -}}
{{- if and $values.agentRollout.keda.enabled (not $values.nats.enabled) (eq $values.agentRollout.keda.monitoringEndpoint "") -}}
{{- fail "KEDA needs the monitoring address of a bus outside of the chart: set agentRollout.keda.monitoringEndpoint" -}}
{{- end -}}
{{- if and $values.agentRollout.sessionUrl (or $values.agentRollout.keda.enabled (gt (int $values.agentRollout.replicas) 1)) -}}
{{- fail "agentRollout.sessionUrl is the address of one pod, where its sessions are: set agentRollout.replicas to 1 and agentRollout.keda.enabled to false, or leave the address out" -}}
{{- end -}}
{{- $engine := $values.inferenceGateway.engine -}}
{{- if and (ne $engine.kind "onnx") (lt (int $engine.gpu.count) 1) -}}
{{- fail (printf "the engine %s needs a GPU: set inferenceGateway.engine.gpu.count to at least 1" $engine.kind) -}}
{{- end -}}
{{- if and (ne $engine.kind "onnx") (eq $engine.model "") -}}
{{- fail (printf "the engine %s needs a model: set inferenceGateway.engine.model to a folder or an id of the hub" $engine.kind) -}}
{{- end -}}
{{- if and (eq $engine.kind "onnx") (gt (int $engine.gpu.count) 0) -}}
{{- fail "the engine onnx runs on CPUs and cannot use GPUs: set inferenceGateway.engine.gpu.count to 0 or engine.kind to vllm or sglang" -}}
{{- end -}}
{{- $trainer := $values.trainer -}}
{{- if and (eq $trainer.engine.kind "fsdp2") (lt (int $trainer.engine.gpu.count) 1) -}}
{{- fail "the engine fsdp2 needs a GPU: set trainer.engine.gpu.count to at least 1" -}}
{{- end -}}
{{- if and (eq $trainer.engine.kind "onnx") (gt (int $trainer.engine.gpu.count) 0) -}}
{{- fail "the engine onnx runs on CPUs and cannot use GPUs: set trainer.engine.gpu.count to 0 or engine.kind to fsdp2" -}}
{{- end -}}
{{- if gt (int $trainer.engine.nodes) 1 -}}
{{- if ne $trainer.engine.kind "fsdp2" -}}
{{- fail (printf "the engine %s cannot run on %d nodes: set trainer.engine.nodes to 1 or engine.kind to fsdp2" $trainer.engine.kind (int $trainer.engine.nodes)) -}}
{{- end -}}
{{- if not (or $values.storage.models.existingClaim $values.storage.models.size) -}}
{{- fail (printf "the %d nodes of a trainer need a shared volume of models: set storage.models.size or storage.models.existingClaim" (int $trainer.engine.nodes)) -}}
{{- end -}}
{{- range $name, $claim := dict "state" $values.storage.state "models" $values.storage.models -}}
{{- if not (or $claim.existingClaim (has "ReadWriteMany" $claim.accessModes)) -}}
{{- fail (printf "storage.%s cannot be mounted on several nodes of a trainer: its accessModes must include ReadWriteMany" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $trainer.engine.exclusiveTopology (eq (int $trainer.engine.nodes) 1) -}}
{{- fail "trainer.engine.exclusiveTopology has no meaning for a trainer of one node: remove it, or set trainer.engine.nodes above 1" -}}
{{- end -}}
{{- if and (ne $engine.kind "onnx") $values.inferenceGateway.serve -}}
{{- fail (printf "a server of %s has only the run's model and cannot serve further checkpoints: inferenceGateway.serve is for the engine onnx" $engine.kind) -}}
{{- end -}}
{{- if and $engine.tracing (or (eq $engine.kind "onnx") (not $values.jaeger.enabled)) -}}
{{- fail "the engine cannot send its own spans: inferenceGateway.engine.tracing is for vllm and sglang, with jaeger.enabled" -}}
{{- end -}}
{{- end -}}
