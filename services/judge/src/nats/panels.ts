/**
 * The panels of runs. A run's judges are made once and not for each episode.
 *
 * P1: there is one panel for each list of judges; concurrent episodes share the one that is being made.
 * P2: at most MAX_PANELS are kept, and the least recently used one is dropped. One that could not be made is not kept.
 */

import type { JudgeParts } from "../domain/judge-parts.ts";
import { assemblePanel, type Panel } from "../domain/panel.ts";
import { decodeJudgesJson } from "./decode-judges.ts";

/** More than the number of runs that are active at the same time. */
const MAX_PANELS = 64;

export class Panels {
  /** What judges are made from. */
  readonly parts: JudgeParts;
  readonly #panels = new Map<string, Promise<Panel>>();

  constructor(parts: JudgeParts) {
    this.parts = parts;
  }

  /**
   * Gives the panel of a list of judges as JSON.
   * @throws {InvalidInputError} when the text is not a list of judges, or the error with which a judge cannot be made.
   */
  async of(judgesJson: string): Promise<Panel> {
    const known = this.#panels.get(judgesJson);
    // Marks it as the most recently used (P2).
    this.#panels.delete(judgesJson);
    const panel = known ?? assemblePanel(decodeJudgesJson(judgesJson), this.parts);
    this.#panels.set(judgesJson, panel);
    for (const oldest of this.#panels.keys()) {
      if (this.#panels.size <= MAX_PANELS) break;
      this.#panels.delete(oldest);
    }
    try {
      return await panel;
    } catch (error) {
      if (this.#panels.get(judgesJson) === panel) this.#panels.delete(judgesJson);
      throw error;
    }
  }
}
