/** Measures for how long an engine has had something to generate. What remains of its time it idled. */

import type { InferenceEngine } from "./inference-engine.ts";

/** Milliseconds since the engine was started. */
export interface BusyTime {
  readonly upMs: number;
  /** The part of `upMs` in which at least one generation was open. */
  readonly busyMs: number;
}

/**
 * Wraps an engine so that its generations are timed. A generation that waits for a place in the engine's batch counts too, but
 * not one that waits for a policy version, as the engine does not have it yet.
 * @param now milliseconds of a clock that never goes back.
 * @returns the engine to use in its place, and the times until now.
 */
export function timeEngine(
  engine: InferenceEngine,
  now: () => number = () => performance.now(),
): { readonly engine: InferenceEngine; readonly busyTime: () => BusyTime } {
  const startedAt = now();
  let open = 0;
  let busySince = startedAt;
  let busyMs = 0;
  return {
    engine: {
      async generate(request, options) {
        if (open++ === 0) busySince = now();
        try {
          return await engine.generate(request, options);
        } finally {
          if (--open === 0) busyMs += now() - busySince;
        }
      },
      loadPolicy: (source, options) => engine.loadPolicy(source, options),
      unload: (model) => engine.unload(model),
      abort: (id) => engine.abort(id),
      capacity: () => engine.capacity(),
      close: () => engine.close(),
    },
    busyTime: () => ({ upMs: now() - startedAt, busyMs: busyMs + (open > 0 ? now() - busySince : 0) }),
  };
}
