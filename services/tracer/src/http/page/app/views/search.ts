/** The view of the rollouts of all runs: a search over everything that is stored. */

import { h, replace } from "../dom.ts";
import type { ViewContext } from "../view.ts";
import { rolloutsTable } from "./lists/rollouts-table.ts";

export async function searchView({ root, signal, setPlace }: ViewContext): Promise<void> {
  setPlace("Search", [["Search"]]);
  const table = rolloutsTable({ runId: undefined, signal });
  replace(root, h("h1", {}, "Rollouts of all runs"), table.element);
  root.querySelector<HTMLElement>(".search-input")?.focus();
  await table.ready;
}
