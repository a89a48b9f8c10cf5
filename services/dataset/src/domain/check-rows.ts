/** What the rows of a dataset must have before a run may start on them. */

/** The columns that say which agent plays a row; they take precedence over the run's own agent. */
const AGENT_COLUMNS = ["agent_name", "agent_cfg_path"] as const;

/** What a run requires of its rows. */
export interface RowDemands {
  /** Rows of these data sources need a ground truth, as a judge compares with it; undefined = all rows; empty = no row. */
  readonly groundTruthFor: readonly string[] | undefined;
}

/**
 * Checks one row.
 * @returns the rule that the row breaks, beginning with "must", or undefined where it breaks none.
 */
export function problemOfRow(
  row: Readonly<Record<string, unknown>>,
  demands: RowDemands,
): string | undefined {
  if (Object.keys(row).length === 0) return "must have at least one column";
  for (const column of AGENT_COLUMNS) {
    const value = row[column];
    // In rows of Parquet files an absent value is a null.
    if (value !== undefined && value !== null && (typeof value !== "string" || value === "")) {
      return `must have a non-empty text as ${column}, or no ${column}`;
    }
  }
  const { prompt } = row;
  if (prompt !== undefined && prompt !== null && !isPrompt(prompt)) {
    return "must have as prompt a text or a list of messages with a role and a content, or no prompt";
  }
  return groundTruthProblem(row, demands);
}

function isPrompt(prompt: unknown): boolean {
  if (typeof prompt === "string") return prompt !== "";
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every(isMessage);
}

function isMessage(message: unknown): boolean {
  return (
    typeof message === "object" &&
    message !== null &&
    "role" in message &&
    typeof message.role === "string" &&
    (("content" in message && (typeof message.content === "string" || Array.isArray(message.content))) ||
      // A message that calls tools needs no text.
      ("tool_calls" in message && Array.isArray(message.tool_calls) && message.tool_calls.length > 0))
  );
}

function groundTruthProblem(
  row: Readonly<Record<string, unknown>>,
  { groundTruthFor }: RowDemands,
): string | undefined {
  if (groundTruthFor !== undefined && !groundTruthFor.includes(String(row.data_source))) return undefined;
  const model = row.reward_model;
  const truth: unknown =
    typeof model === "object" && model !== null ? Reflect.get(model, "ground_truth") : undefined;
  return typeof truth === "string" || typeof truth === "number"
    ? undefined
    : "must have a text or a number as reward_model.ground_truth, with which a judge compares";
}
