/** Where the tracer writes what happens in runs. Adding one: docs/extending.md. */

import type { RunFact } from "./run-event.ts";

export interface EventSink {
  /**
   * Writes all of the facts or none. A fact may come twice, and after later ones: its `sequence` is its place in the stream.
   * @throws {TerminalError} where another try cannot help: the facts are tried one by one, and one that is refused again and
   *   again is left out. Every other error is taken for a sink that is away, and tried until it is back.
   */
  write(facts: readonly RunFact[]): Promise<void>;
}
