/** What the queries of the chart's dashboard and alerts read, found by the shape of Hone's queries; not a parser of PromQL. */

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** A metric that a query reads, with the labels that it names. */
export interface ReadMetric {
  readonly query: string;
  readonly metric: string;
  /** Of its own matchers, and of the `by` and `on` of the query. */
  readonly labels: readonly string[];
}

const METRIC = /\b((?:hone_|vllm:|process_|nodejs_)[\w:]+)(?:\{([^}]*)\})?/g;
const GROUPING = /\b(?:by|on) \(([^)]*)\)/g;

/** The queries of all panels of the dashboards in a folder, with Grafana's variables as it sets them for all runs. */
export function dashboardQueries(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const { panels } = JSON.parse(readFileSync(path.join(folder, name), "utf8")) as {
      panels: { targets?: { expr: string }[] }[];
    };
    return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll("$run", ".*")));
  });
}

export function metricsIn(query: string): ReadMetric[] {
  const grouped = [...query.matchAll(GROUPING)].flatMap(([, list = ""]) => list.split(", "));
  return [...query.matchAll(METRIC)].map(([, metric = "", matchers = ""]) => {
    const matched = [...matchers.matchAll(/(\w+)(?==~|!~|=|!=)/g)].map(([, label = ""]) => label);
    return { query, metric, labels: [...matched, ...grouped] };
  });
}
