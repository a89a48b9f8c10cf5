/** A sink, to which the tracer writes the events of runs. docs/extending.md says how to add one. */

import type { RunFact } from "./run-event.ts";

export interface EventSink {
  /**
   * Writes all of the facts or none. A fact may come twice; its `sequence` is its position in the stream. The database gets many at
   * once, and a fact may come after later ones; every other sink gets one at a time, in the order of the stream.
   * @throws {TerminalError} where another try cannot help. The facts are then written one by one, and a fact that is refused
   *   several times is left out. After any other error the write is tried until it succeeds.
   */
  write(facts: readonly RunFact[]): Promise<void>;
}
