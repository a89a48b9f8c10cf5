/**
 * Trace context in NATS headers (W3C traceparent, tracestate; lower case, as headers are case-sensitive).
 *
 * The context also passes through processes that create no spans, so nothing here needs a started SDK.
 */

import {
  type Context,
  context,
  extractContext,
  type HeaderCarrier,
  injectContext,
  ROOT_CONTEXT,
} from "@hone/telemetry";
import { headers, type MsgHdrs } from "@nats-io/nats-core";

/** @returns the headers with the context added; no headers are created for an empty context. */
export function injectTrace(
  into: MsgHdrs | undefined,
  from: Context = context.active(),
): MsgHdrs | undefined {
  if (from === ROOT_CONTEXT) return into;
  const carrier = into ?? headers();
  injectContext(carrierOf(carrier), from);
  return into === undefined && carrier.keys().length === 0 ? undefined : carrier;
}

/** @returns the context in the headers of a message, or the root context. */
export function extractTrace(from: MsgHdrs | undefined): Context {
  return from === undefined ? ROOT_CONTEXT : extractContext(carrierOf(from), ROOT_CONTEXT);
}

/** NATS gives "" for an absent header. */
function carrierOf(message: MsgHdrs): HeaderCarrier {
  return {
    get: (key) => message.get(key) || undefined,
    set: (key, value) => message.set(key, value),
    keys: () => message.keys(),
  };
}
