/**
 * Prints a run as its events come: on a terminal a live line below the milestones, elsewhere plain lines at a limited rate.
 * Events from before this command, of a run that continues, are counted and not printed.
 */

import { type RolloutTroubles, type RunEvent, RunPhase, type RunState } from "@hone/proto-gen/run";
import { reasonLine } from "@hone/rl";
import type { Terminal } from "../terminal.ts";
import type { FollowOptions } from "./follow-run.ts";
import { endLines, evaluationLine, liveLine, nowText, stepLine } from "./lines/run-lines.ts";
import { TroubleMemory, troubleLines } from "./lines/trouble-lines.ts";
import { afterEvent, afterState, newRunView, type RunView } from "./run-view.ts";

/** The live line is refreshed between events, because its time left changes. */
const REFRESH_MS = 500;
/** Without a terminal, at most one line of progress is printed in this time. Milestones are always printed. */
const PLAIN_LINE_EVERY_MS = 2_000;

export class RunPrinter {
  readonly #terminal: Terminal;
  readonly #startedAtMs = Date.now();
  readonly #timer: NodeJS.Timeout;
  readonly #troubles = new TroubleMemory();
  #view: RunView = newRunView("");
  #lastPlainAt = 0;
  #lastText = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#timer = setInterval(() => terminal.live(liveLine(this.#view)), REFRESH_MS);
  }

  get view(): RunView {
    return this.#view;
  }

  #take(event: RunEvent, runId: string): void {
    if (this.#view.runId === "") this.#view = newRunView(runId);
    this.#view = afterEvent(this.#view, event);
    if (Number(event.timeMs) >= this.#startedAtMs) this.#print(event);
    this.#terminal.live(liveLine(this.#view));
  }

  /** Options that follow the run until the signal aborts and print every event. */
  followOptions(signal: AbortSignal): FollowOptions {
    return {
      signal,
      onEvent: (event, runId) => this.#take(event, runId),
      onState: (state) => this.#takeState(state),
    };
  }

  /** Prints what the run waits for before its first event. */
  #takeState(state: RunState): void {
    const before = this.#view.waitingFor;
    this.#view = afterState(this.#view, state);
    const { waitingFor } = this.#view;
    if (!this.#terminal.isInteractive && waitingFor !== "" && waitingFor !== before) {
      this.#printPlain(nowText(this.#view), false);
    }
    this.#terminal.live(liveLine(this.#view));
  }

  /** Stops the live line. */
  close(): void {
    clearInterval(this.#timer);
    this.#terminal.live("");
  }

  /** The curve and the figures of the whole run. */
  end(checkpoint: string | undefined): void {
    this.#terminal.line();
    for (const line of endLines(this.#view, checkpoint)) this.#terminal.line(line);
  }

  #print(event: RunEvent): void {
    const { kind } = event;
    if (kind.case === "evaluated") {
      this.#terminal.line(evaluationLine(kind.value));
      this.#printTroubles(kind.value.troubles);
      return;
    }
    if (this.#terminal.isInteractive) {
      if (kind.case === "stepCompleted") this.#printTroubles(kind.value.troubles);
      return; // the live line shows the rest
    }
    const step = this.#view.steps.at(-1);
    const isLast = kind.case === "stepCompleted" && step?.step === this.#view.totalSteps;
    const text =
      kind.case === "stepCompleted" && step !== undefined
        ? stepLine(this.#view, step)
        : this.#waitText(event);
    if (text !== undefined) this.#printPlain(text, isLast);
  }

  /** Prints the troubles that were not printed before, one per line. */
  #printTroubles(troubles: RolloutTroubles | undefined): void {
    const news = troubles && this.#troubles.newOf(troubles);
    if (news === undefined) return;
    for (const line of troubleLines(news)) {
      this.#terminal.line(this.#terminal.style("yellow", `${reasonLine(news.madeFor)}: ${line}`));
    }
  }

  /** Prints a line of progress, unless it is the same as the last one or comes too soon after it. */
  #printPlain(text: string, isLast: boolean): void {
    if (text === this.#lastText) return;
    if (!isLast && performance.now() - this.#lastPlainAt < PLAIN_LINE_EVERY_MS && this.#lastPlainAt > 0)
      return;
    this.#lastPlainAt = performance.now();
    this.#lastText = text;
    this.#terminal.line(text);
  }

  /** A line about an event outside of the steps: a wait or the warm start. */
  #waitText(event: RunEvent): string | undefined {
    const isOutside =
      event.kind.case === "warmStartProgress" ||
      (event.kind.case === "phaseChanged" &&
        (this.#view.phase === RunPhase.WAITING || this.#view.phase === RunPhase.PAUSED));
    return isOutside ? nowText(this.#view) : undefined;
  }
}
