/** Checks what the database has of an asynchronous run. */

import type { TestStack } from "../stack.ts";

/** What an asynchronous run was asked for. */
export interface AsynchronousShape {
  readonly steps: number;
  readonly tasksPerStep: number;
  readonly maxStaleness: number;
}

/** @returns one line for each promise that the run's rows break; none if it kept them. */
export async function brokenPromises(
  { sql }: Pick<TestStack, "sql">,
  runId: string,
  { steps, tasksPerStep, maxStaleness }: AsynchronousShape,
): Promise<string[]> {
  const broken: string[] = [];
  const taken = await sql<{ trained_by: number; count: number }[]>`
    select trained_by, count(*)::int as count from trainer.groups
    where run_id = ${runId} and trained_by is not null group by trained_by order by trained_by`;
  for (let step = 1; step <= steps; step++) {
    const count = taken.find(({ trained_by }) => trained_by === step)?.count ?? 0;
    if (count !== tasksPerStep) broken.push(`step ${step} took ${count} groups instead of ${tasksPerStep}`);
  }
  const [unsettled] = await sql<{ count: number }[]>`
    select count(*)::int as count from trainer.groups
    where run_id = ${runId} and (trained_by is not null) = is_given_up`;
  if (unsettled?.count !== 0)
    broken.push(`${unsettled?.count} groups were neither trained nor given up, or both`);
  const strangers = await sql<{ slot: string; version: number }[]>`
    select slot, version from trainer.ledger where run_id = ${runId} and slot like 'train.%' and not exists (
      select from trainer.groups where groups.run_id = ledger.run_id and groups.trained_by = ledger.version
      and ledger.slot like 'train.' || groups.step || '.' || groups.task || '.%')`;
  for (const { slot, version } of strangers)
    broken.push(`${slot} was trained by step ${version}, which did not take its group`);
  const old = await sql<{ slot: string; age: number }[]>`
    select slot, version - 1 - lowest_version as age from trainer.ledger
    where run_id = ${runId} and slot like 'train.%' and version - 1 - lowest_version > ${maxStaleness}`;
  for (const { slot, age } of old)
    broken.push(`${slot} was trained with tokens that are ${age} versions old`);
  const versions = await sql<{ version: number }[]>`
    select version from trainer.steps where run_id = ${runId} order by version`;
  if (versions.map(({ version }) => version).join() !== Array.from({ length: steps + 1 }, (_, i) => i).join())
    broken.push(`its versions are ${versions.map(({ version }) => version).join(", ")}`);
  return broken;
}
