/** Metrics of sessions. */

import type { CallKind } from "@hone/agents";
import { counterOf, Instrument } from "@hone/telemetry";

const calls = counterOf(Instrument.sessionCalls);

/** Counts an answered call, by how its messages relate to the record. */
export function countSessionCall(kind: CallKind): void {
  calls.of({ kind }).add();
}
