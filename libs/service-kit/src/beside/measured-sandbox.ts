/** A sandbox for code that models write, with its figures on /metrics. */

import { PythonSandbox, type PythonSandboxOptions } from "@hone/sandbox";
import { counterOf, histogramOf, Instrument, observeMetric } from "@hone/telemetry";

/** What a service runs there: a tool's code, an answer's, or the tests of one. */
export type SandboxPart = "tool" | "answer" | "test";

const MS_PER_SECOND = 1_000;

export class MeasuredSandbox extends PythonSandbox {
  readonly #observers: readonly Disposable[];

  constructor(part: SandboxPart, options: Pick<PythonSandboxOptions, "maxProcesses"> = {}) {
    super({
      ...options,
      onRepeat: () => counterOf(Instrument.retries).of({ part: "sandbox" }).add(),
      onWait: (ms) =>
        histogramOf(Instrument.sandboxWaitSeconds)
          .of({ part })
          .observe(ms / MS_PER_SECOND),
    });
    const observe = (value: () => number) => () => [{ labels: { part }, value: value() }];
    this.#observers = [
      observeMetric(
        Instrument.sandboxProcesses,
        observe(() => this.maxProcesses),
      ),
      observeMetric(
        Instrument.sandboxTaken,
        observe(() => this.numPlaces),
      ),
      observeMetric(
        Instrument.sandboxWaiting,
        observe(() => this.numWaiting),
      ),
    ];
  }

  override async close(): Promise<void> {
    for (const observer of this.#observers) observer[Symbol.dispose]();
    await super.close();
  }
}
