/** What the rows of a dataset must have before a run may start on them. */

/** The part of a row that says which agent plays it; both win over the run's own agent. */
const AGENT_COLUMNS = ["agent_name", "agent_cfg_path"] as const;

/**
 * Checks one row.
 * @returns what is wrong with it, as "must …", or undefined.
 */
export function problemOfRow(row: Readonly<Record<string, unknown>>): string | undefined {
  if (Object.keys(row).length === 0) return "must have at least one column";
  for (const column of AGENT_COLUMNS) {
    const value = row[column];
    if (value !== undefined && (typeof value !== "string" || value === "")) {
      return `must have a non-empty text as ${column}, or no ${column}`;
    }
  }
  return undefined;
}
