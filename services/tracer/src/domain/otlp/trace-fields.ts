/**
 * Field numbers of opentelemetry/proto/trace/v1/trace.proto, for reading spans without decoding all that is in them.
 * ExportTraceServiceRequest and TracesData have the same shape.
 */

export const TRACES_DATA_RESOURCE_SPANS = 1;
export const RESOURCE_SPANS_RESOURCE = 1;
export const RESOURCE_SPANS_SCOPE_SPANS = 2;
export const SCOPE_SPANS_SPAN = 2;
export const SPAN_TRACE_ID = 1;
export const SPAN_SPAN_ID = 2;
export const SPAN_NAME = 5;
export const SPAN_START = 7;
export const SPAN_END = 8;
