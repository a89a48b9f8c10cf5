/** Messages of OTLP traces and metrics, generated from proto/ by generate.sh; nothing else. */

export {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema,
  ExportMetricsServiceResponseSchema,
} from "./gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
export {
  ExportTraceServiceRequestSchema,
  ExportTraceServiceResponseSchema,
} from "./gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
export type { AnyValue, KeyValue } from "./gen/opentelemetry/proto/common/v1/common_pb.ts";
export {
  type ResourceSpans,
  type Span,
  type Span_Event,
  type Span_Link,
  SpanSchema,
  Span_SpanKind,
  Status_StatusCode,
  type TracesData,
  TracesDataSchema,
} from "./gen/opentelemetry/proto/trace/v1/trace_pb.ts";
