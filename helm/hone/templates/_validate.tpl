{{/* What the schema cannot say: values that contradict each other. Each line says what, which value, and what to do. */}}
{{- define "hone.validate" -}}
{{- $values := .Values -}}
{{- $images := dict "the services" $values.image "nats" $values.nats.image "postgres" $values.postgres.image "jaeger" $values.jaeger.image "the trainer" $values.trainer.engine.image "vllm" $values.inferenceGateway.engine.images.vllm "sglang" $values.inferenceGateway.engine.images.sglang -}}
{{- range $what, $image := $images -}}
{{- if eq (toString $image.tag) "latest" -}}
{{- fail (printf "Cannot pin %s as its tag is latest, which moves: set an exact tag or a digest" $what) -}}
{{- end -}}
{{- end -}}
{{- if and $values.storage.files.existingClaim $values.storage.files.configMap -}}
{{- fail "Cannot mount two things as the project folder: set storage.files.existingClaim or storage.files.configMap" -}}
{{- end -}}
{{- if and $values.credentials.create (not (and $values.nats.enabled $values.postgres.enabled)) -}}
{{- fail "Cannot make the credentials of a bus or database that is not the chart's own: set credentials.create to false, and make the Secrets that docs/cluster.md names" -}}
{{- end -}}
{{- if $values.credentials.create -}}
{{- range concat (include "hone.services" . | fromYamlArray) (list "nats" "postgres") -}}
{{- $own := index $values (include "hone.key" .) -}}
{{- if $own.existingSecret -}}
{{- fail (printf "Cannot take %s.existingSecret as the chart makes all credentials or none: set credentials.create to false" (include "hone.key" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if gt (int $values.nats.streamReplicas) (int $values.nats.replicas) -}}
{{- if $values.nats.enabled -}}
{{- fail (printf "Cannot keep %d copies of each stream on %d servers: nats.streamReplicas is at most nats.replicas" (int $values.nats.streamReplicas) (int $values.nats.replicas)) -}}
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
{{- fail (printf "Cannot keep streams of %d MB (nats.episodesMaxSize %s, half as much for large episodes, and 4160 MB of the rest) on %s: set nats.maxFileStore above that, or nats.episodesMaxSize below" (div $streams 1048576) $values.nats.episodesMaxSize $values.nats.maxFileStore) -}}
{{- end -}}
{{- $volume := include "hone.bytes" $values.nats.volume.size -}}
{{- if and $volume (ge $store (int64 $volume)) -}}
{{- fail (printf "Cannot keep %s of streams on a volume of %s: set nats.volume.size above nats.maxFileStore" $values.nats.maxFileStore $values.nats.volume.size) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $values.telemetry.route "straight") (eq (include "hone.jaegerEndpoint" .) "") -}}
{{- fail "Cannot send spans straight to nowhere: enable jaeger or set telemetry.externalEndpoint" -}}
{{- end -}}
{{- if and $values.agentRollout.keda.enabled (not $values.nats.enabled) (eq $values.agentRollout.keda.monitoringEndpoint "") -}}
{{- fail "Cannot scale by the lag of a bus outside without its monitoring address: set agentRollout.keda.monitoringEndpoint" -}}
{{- end -}}
{{- $engine := $values.inferenceGateway.engine -}}
{{- if and (ne $engine.kind "onnx") (lt (int $engine.gpu.count) 1) -}}
{{- fail (printf "Cannot run the engine %s without a GPU: inferenceGateway.engine.gpu.count is at least 1" $engine.kind) -}}
{{- end -}}
{{- if and (ne $engine.kind "onnx") (eq $engine.model "") -}}
{{- fail (printf "Cannot start the engine %s without a model: set inferenceGateway.engine.model to a folder or an id of the hub" $engine.kind) -}}
{{- end -}}
{{- if and (eq $engine.kind "onnx") (gt (int $engine.gpu.count) 0) -}}
{{- fail "Cannot use GPUs with the engine onnx, which runs on CPUs: set inferenceGateway.engine.gpu.count to 0 or engine.kind to vllm or sglang" -}}
{{- end -}}
{{- $trainer := $values.trainer -}}
{{- if and (eq $trainer.engine.kind "fsdp2") (lt (int $trainer.engine.gpu.count) 1) -}}
{{- fail "Cannot run the engine fsdp2 without a GPU: trainer.engine.gpu.count is at least 1" -}}
{{- end -}}
{{- if and (eq $trainer.engine.kind "onnx") (gt (int $trainer.engine.gpu.count) 0) -}}
{{- fail "Cannot use GPUs with the engine onnx, which runs on CPUs: set trainer.engine.gpu.count to 0 or engine.kind to fsdp2" -}}
{{- end -}}
{{- if gt (int $trainer.engine.nodes) 1 -}}
{{- if ne $trainer.engine.kind "fsdp2" -}}
{{- fail (printf "Cannot spread the engine %s over %d nodes: set trainer.engine.nodes to 1 or engine.kind to fsdp2" $trainer.engine.kind (int $trainer.engine.nodes)) -}}
{{- end -}}
{{- if not (or $values.storage.models.existingClaim $values.storage.models.size) -}}
{{- fail (printf "Cannot show %d nodes of a trainer the models of one pod: set storage.models.size or storage.models.existingClaim" (int $trainer.engine.nodes)) -}}
{{- end -}}
{{- range $name, $claim := dict "state" $values.storage.state "models" $values.storage.models -}}
{{- if not (or $claim.existingClaim (has "ReadWriteMany" $claim.accessModes)) -}}
{{- fail (printf "Cannot mount storage.%s on several nodes of a trainer: its accessModes need ReadWriteMany" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $trainer.engine.exclusiveTopology (eq (int $trainer.engine.nodes) 1) -}}
{{- fail "Cannot keep a topology for a trainer of one node: trainer.engine.exclusiveTopology is for trainer.engine.nodes above 1" -}}
{{- end -}}
{{- if and (ne $engine.kind "onnx") $values.inferenceGateway.serve -}}
{{- fail (printf "Cannot serve checkpoints beside the run that a server of %s has: inferenceGateway.serve is for the engine onnx" $engine.kind) -}}
{{- end -}}
{{- if and $engine.tracing (or (eq $engine.kind "onnx") (not $values.jaeger.enabled)) -}}
{{- fail "Cannot trace the engine itself: inferenceGateway.engine.tracing is for vllm and sglang, with jaeger.enabled" -}}
{{- end -}}
{{- end -}}
