/** Compares a disturbed run with an undisturbed one, and reports each promise that is broken. */

import { isDeepStrictEqual } from "node:util";
import type { RunOutcome } from "./run-outcome.ts";

/** Most wrong rows that are named. */
const MAX_NAMED = 5;

/** @returns one complaint for each broken promise; none if the run is like the undisturbed one. */
export function complaintsAbout(run: RunOutcome, undisturbed: RunOutcome): string[] {
  const complaints: string[] = [];
  const check = (holds: boolean, complaint: () => string) => {
    if (!holds) complaints.push(complaint());
  };
  check(run.stage === "completed", () => `it did not complete: its stage is ${run.stage}`);
  complaints.push(...trainingComplaints(run, undisturbed));
  const versions = run.chain.map(({ version }) => version);
  check(
    isDeepStrictEqual(
      versions,
      undisturbed.chain.map(({ version }) => version),
    ),
    () => `the chain of versions is ${versions.join(", ")}`,
  );
  for (const { version, state_digest } of undisturbed.chain) {
    const digest = run.chain.find((each) => each.version === version)?.state_digest;
    check(digest === undefined || digest === state_digest, () => `the weights of version ${version} differ`);
  }
  for (const folder of ["state", "checkpoint"] as const) {
    check(
      isDeepStrictEqual(run[folder], undisturbed[folder]),
      () => `files of the last ${folder} differ: ${namesThatDiffer(run[folder], undisturbed[folder])}`,
    );
  }
  check(
    isDeepStrictEqual(run.evaluations, undisturbed.evaluations),
    () =>
      `the evaluations are ${JSON.stringify(run.evaluations)} instead of ${JSON.stringify(undisturbed.evaluations)}`,
  );
  const { published, version } = run;
  const committed = run.chain.at(-1);
  check(
    published.isCompleted && published.version === version && published.digest === committed?.state_digest,
    () => `RUN_STATE shows ${JSON.stringify(published)}, but version ${version} was committed`,
  );
  check(
    isDeepStrictEqual(run.events, undisturbed.events),
    () => `its events are ${run.events.join("; ")} instead of ${undisturbed.events.join("; ")}`,
  );
  return complaints;
}

function trainingComplaints(run: RunOutcome, undisturbed: RunOutcome): string[] {
  const trained = new Map<string, RunOutcome["rollouts"]>();
  for (const rollout of run.rollouts) {
    trained.set(rollout.slot, [...(trained.get(rollout.slot) ?? []), rollout]);
  }
  const wanted = new Map(undisturbed.rollouts.map((rollout) => [rollout.slot, rollout]));
  const missing = [...wanted.keys()].filter((slot) => !trained.has(slot));
  const twice = [...trained].filter(([, rollouts]) => rollouts.length > 1).map(([slot]) => slot);
  const foreign = [...trained.keys()].filter((slot) => !wanted.has(slot));
  const others = [...trained]
    .filter(([slot, [rollout]]) => wanted.has(slot) && !isDeepStrictEqual(rollout, wanted.get(slot)))
    .map(([slot]) => slot);
  return [
    ["were not trained", missing],
    ["were trained twice", twice],
    ["were trained without being requested", foreign],
    ["were trained with other outcomes, rewards, advantages or tokens", others],
  ]
    .filter((each): each is [string, string[]] => (each[1]?.length ?? 0) > 0)
    .map(([what, slots]) => `${slots.length} rollouts ${what}: ${slots.slice(0, MAX_NAMED).join(", ")}`);
}

function namesThatDiffer(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): string {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].filter((name) => a[name] !== b[name]).join(", ");
}
