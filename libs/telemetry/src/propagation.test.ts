import assert from "node:assert/strict";
import { test } from "node:test";
import { ROOT_CONTEXT } from "./otel-api.ts";
import { contextOfTraceparent, linkTo, traceHeaders, traceVariables } from "./propagation.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE_ID}-${SPAN_ID}-00`;

test("a context goes outside as headers and as variables, also through a process that records nothing", () => {
  const below = contextOfTraceparent(TRACEPARENT);
  assert.deepEqual(traceHeaders(below), { traceparent: TRACEPARENT });
  assert.deepEqual(traceVariables(below), { TRACEPARENT });
  assert.deepEqual([traceHeaders(ROOT_CONTEXT), traceVariables(ROOT_CONTEXT)], [{}, {}]);
});

test("a link leads to the span of a context that has one", () => {
  const { traceId, spanId } = linkTo(contextOfTraceparent(TRACEPARENT))?.context ?? {};
  assert.deepEqual([traceId, spanId], [TRACE_ID, SPAN_ID]);
  assert.equal(linkTo(ROOT_CONTEXT), undefined);
  assert.equal(linkTo(contextOfTraceparent("rubbish")), undefined);
});
