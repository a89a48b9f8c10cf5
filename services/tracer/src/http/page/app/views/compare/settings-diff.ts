/** The settings in which run files differ. */

import { h } from "../../dom.ts";
import { tableHead } from "../parts.ts";

/** One setting and its value in each run; undefined = the run file has no such key. */
export interface Difference {
  readonly key: string;
  readonly values: readonly (string | undefined)[];
}

/** Deeper values are compared as one. */
const MAX_DEPTH = 8;

/** The keys whose values are not the same in all configurations, by their path. @param configs null = not known. */
export function differencesOf(configs: readonly unknown[]): readonly Difference[] {
  const flat = configs.map((config) => {
    const values = new Map<string, string>();
    flatten(config, "", 0, values);
    return values;
  });
  const keys = [...new Set(flat.flatMap((values) => [...values.keys()]))].sort();
  return keys
    .map((key) => ({ key, values: flat.map((values) => values.get(key)) }))
    .filter(({ values }) => new Set(values).size > 1);
}

function flatten(value: unknown, path: string, depth: number, into: Map<string, string>): void {
  const isBranch = typeof value === "object" && value !== null && depth < MAX_DEPTH;
  const entries = isBranch ? Object.entries(value) : [];
  if (entries.length === 0) {
    if (path !== "") into.set(path, JSON.stringify(value));
    return;
  }
  for (const [name, each] of entries) {
    const key = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    flatten(each, key, depth + 1, into);
  }
}

export function settingsTable(runIds: readonly string[], configs: readonly unknown[]): HTMLElement {
  const differences = differencesOf(configs);
  if (differences.length === 0)
    return h("p", { class: "soft small" }, "The run files have the same settings.");
  return h(
    "div",
    { class: "card table-wrap" },
    h(
      "table",
      { class: "settings" },
      tableHead([["Setting"], ...runIds.map((runId) => [runId] as const)]),
      h(
        "tbody",
        {},
        differences.map(({ key, values }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", class: "mono" }, key),
            values.map((value) =>
              h(
                "td",
                { class: "mono" },
                value === undefined ? h("span", { class: "faint" }, "not set") : value,
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
