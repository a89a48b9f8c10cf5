/**
 * The panels of the runs whose episodes come by: a run's judges are made once, not for each episode.
 *
 * P1: one panel for a list of judges; concurrent episodes share the one that is being made.
 * P2: at most MAX_PANELS are kept; the least recently used one goes. One that could not be made is not kept.
 */

import type { JudgeParts } from "../domain/judge-parts.ts";
import { assemblePanel, type Panel } from "../domain/panel.ts";
import { decodeJudgesJson } from "./decode-judges.ts";

/** More than the runs whose episodes come at the same time. */
const MAX_PANELS = 64;

export class Panels {
  /** What judges are made with. */
  readonly parts: JudgeParts;
  readonly #panels = new Map<string, Promise<Panel>>();

  constructor(parts: JudgeParts) {
    this.parts = parts;
  }

  /**
   * The panel of a list of judges as JSON.
   * @throws {InvalidInputError} when the text is no list of judges, or whatever keeps a judge from being made.
   */
  async of(judgesJson: string): Promise<Panel> {
    const known = this.#panels.get(judgesJson);
    // Moves it to the young end (P2).
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
