/** Trace context in NATS headers (W3C traceparent, tracestate, baggage; lower case, as headers are case-sensitive). */

import { headers, type MsgHdrs } from "@nats-io/nats-core";
import { type Context, context, propagation, ROOT_CONTEXT } from "@opentelemetry/api";

const setter = { set: (carrier: MsgHdrs, key: string, value: string) => carrier.set(key, value) };
const getter = {
  get: (carrier: MsgHdrs, key: string) => carrier.get(key) || undefined,
  keys: (carrier: MsgHdrs) => carrier.keys(),
};

/** The headers with the context added; none are made when there is nothing to say. */
export function injectTrace(
  into: MsgHdrs | undefined,
  from: Context = context.active(),
): MsgHdrs | undefined {
  if (from === ROOT_CONTEXT) return into;
  const carrier = into ?? headers();
  propagation.inject(from, carrier, setter);
  return into === undefined && carrier.keys().length === 0 ? undefined : carrier;
}

/** The context that a message came with, or the root context. */
export function extractTrace(from: MsgHdrs | undefined): Context {
  return from === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, from, getter);
}
