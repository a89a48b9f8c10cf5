/** Prints the chain of a run and says whether it verifies. */

import { ChainCheck, type ChainRow, type CheckedChain, type StepContent } from "@hone/rl";
import { table } from "../terminal.ts";
import type { Ledger } from "./read-ledger.ts";

/** What a check of a ledger found. */
export interface CheckedLedger extends CheckedChain {
  /** Why the ledger does not verify, as a sentence; undefined = it does. */
  readonly problem: string | undefined;
  readonly rows: readonly LedgerLine[];
}

/** A row as it is shown. */
export interface LedgerLine {
  readonly version: number;
  readonly trained: number;
  readonly leftOut: readonly LeftOutLine[];
  /** The first digits of digests; empty in rows that are older than the chain. */
  readonly before: string;
  readonly after: string;
  readonly optimizer: string;
  readonly row: string;
}

export interface LeftOutLine {
  readonly slot: string;
  readonly outcome: string;
  readonly why: string;
  readonly reason: string;
}

/** Digits of a digest that are shown. */
const SHOWN_DIGITS = 12;

/** Reads and checks all rows. */
export async function checkLedger({ runId, version, rows }: Ledger): Promise<CheckedLedger> {
  const check = new ChainCheck();
  const lines: LedgerLine[] = [];
  let lastVersion = -1;
  for await (const row of rows) {
    check.add(row);
    lines.push(lineOf(row));
    lastVersion = row.version;
  }
  const result = check.result();
  const problem =
    result.first !== undefined
      ? `the row of version ${result.first.version} of ${runId} does not verify: ${result.first.problem}`
      : lastVersion < version
        ? `the ledger of ${runId} ends with version ${lastVersion}, and the run has committed version ${version}`
        : undefined;
  return { ...result, problem, rows: lines };
}

/** The rows as a table, with what each step left out below it. */
export function ledgerLines(rows: readonly LedgerLine[]): string[] {
  const [head, ...lines] = table([
    ["version", "trained", "left out", "weights before", "weights after", "optimizer", "row"],
    ...rows.map(({ version, trained, leftOut, before, after, optimizer, row }) =>
      row === ""
        ? [String(version), "", "", "", "", "", "before the chain"]
        : [
            String(version),
            String(trained),
            String(leftOut.length),
            before || "-",
            after,
            optimizer || "-",
            row,
          ],
    ),
  ]);
  return [
    head!,
    ...lines.flatMap((line, i) => [
      line,
      ...rows[i]!.leftOut.map(
        ({ slot, outcome, why, reason }) =>
          `  left out: ${slot}  ${why === "outcome" ? outcome : why}${reason === "" ? "" : `: ${reason}`}`,
      ),
    ]),
  ];
}

/** What a check found, as sentences. */
export function verdictLines(runId: string, { checked, unchained, problem, head }: CheckedLedger): string[] {
  const old =
    unchained.length === 0
      ? []
      : [
          `rows before version ${unchained.at(-1)! + 1} have no chain: they were committed by a release without one`,
        ];
  if (problem !== undefined) return [...old, problem];
  if (checked === 0) return [...old, `${runId} has no rows to verify`];
  return [...old, `${checked} row${checked === 1 ? "" : "s"} of ${runId} verify; the last is ${head}`];
}

function lineOf(row: ChainRow): LedgerLine {
  const { version } = row;
  if (row.format === 0)
    return { version, trained: 0, leftOut: [], before: "", after: "", optimizer: "", row: "" };
  const content = JSON.parse(row.contentJson) as StepContent;
  const rest = JSON.parse(row.restJson) as RowRest;
  const reasons = new Map(rest.leftOut.map(([slot, , reason]) => [slot, reason]));
  return {
    version,
    trained: content.trained.length,
    leftOut: content.leftOut.map((each) => ({ ...each, reason: reasons.get(each.slot) ?? "" })),
    before: shown(content.before),
    after: shown(content.after),
    optimizer: shown(optimizerOf(rest.files)),
    row: shown(row.row),
  };
}

/** The part of a row that two equal runs may differ in. */
export interface RowRest {
  readonly files: Readonly<Record<string, string>>;
  /** Slot, attempt and reason. */
  readonly leftOut: readonly (readonly [string, number, string])[];
}

/** The digest of the optimizer's files in a state; empty where it was not written with that version. */
export function optimizerOf(files: RowRest["files"]): string {
  return Object.entries(files)
    .filter(([name]) => name.startsWith("optimizer"))
    .map(([, digest]) => digest)
    .join(" ");
}

/** The digests of the weights of a run's further policies, by their names. */
export function policyWeightsOf(files: RowRest["files"]): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(files).flatMap(([name, digest]) => {
      const policy = /^policies\/([^/]+)\/(?:adapter_)?model\.safetensors$/.exec(name)?.[1];
      return policy === undefined ? [] : [[policy, digest] as const];
    }),
  );
}

function shown(digest: string): string {
  return digest.slice(0, SHOWN_DIGITS);
}
