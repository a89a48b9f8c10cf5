/** Messages of OTLP traces, generated from proto/ by generate.sh; nothing else. */

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
