/** The resolved run file as a list of settings, as systems for experiments show them. */

import { jsonObjectOf } from "../domain/run-event.ts";

/** A tokenizer that is part of a run file has megabytes. MLflow's older servers take 500 characters. */
const MAX_VALUE = 500;
/** Run files have some two hundred; lists of tasks or messages in one may have any number. */
const MAX_SETTINGS = 1_000;
const MAX_DEPTH = 12;

/** @returns `[trainer.optimizer.learningRate, 0.001]` and so on, in the order of the file; long texts are cut. */
export function flatConfig(configJson: string): [key: string, value: string | number | boolean][] {
  const found: [string, string | number | boolean][] = [];
  const add = (key: string, value: unknown, depth: number): void => {
    if (found.length >= MAX_SETTINGS || value === null || value === undefined) return;
    if (typeof value === "number" || typeof value === "boolean") found.push([key, value]);
    else if (typeof value === "string") found.push([key, cut(value)]);
    else if (depth === MAX_DEPTH) found.push([key, cut(JSON.stringify(value))]);
    else {
      for (const [name, inner] of Object.entries(value))
        add(key === "" ? name : `${key}.${name}`, inner, depth + 1);
    }
  };
  add("", jsonObjectOf(configJson) ?? {}, 0);
  return found;
}

function cut(text: string): string {
  return text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE - 1)}…`;
}
