/** The trained groups of a step, as the file in the state folder holds them, for tests that compute again what was trained. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import type { StoredRollout } from "../plain/plain-training.ts";
import type { TestStack } from "../stack.ts";

interface KeptRollout {
  readonly slot: {
    readonly split: string;
    readonly step: number;
    readonly task: number;
    readonly index: number;
  };
  readonly outcome: string;
  readonly scores: readonly Score[];
  readonly samples: (StoredRollout["samples"][number] & { readonly role?: string })[];
}

interface Score {
  readonly weight: number;
  readonly value: number;
  readonly roleValues?: Readonly<Record<string, number>>;
}

/** The name of a rollout, or of a role's part of it. */
export function placeOf(slot: string, role: string | undefined): string {
  return role === undefined ? slot : `${slot}/${role}`;
}

/** The trained groups of a step, or the parts of a role, from the file in the state folder. */
export function storedGroups(
  { stateFolder }: Pick<TestStack, "stateFolder">,
  runId: string,
  step: number,
  role?: string,
): StoredRollout[][] {
  const folder = path.join(stateFolder, "runs", runId, "rollouts");
  const name = readdirSync(folder).find((each) => each.startsWith(`${step}-`))!;
  const { groups } = JSON.parse(
    gunzipSync(readFileSync(path.join(folder, name, "step.json.gz"))).toString("utf8"),
  );
  return groups
    .map(({ rollouts }: { rollouts: KeptRollout[] }) =>
      rollouts.flatMap(({ slot, scores, outcome, samples }) => {
        assert.ok(["completed", "truncated"].includes(outcome), outcome);
        const own = samples.filter((sample) => sample.role === role);
        if (own.length === 0) return [];
        const worth = ({ value, roleValues }: Score) =>
          role === undefined ? value : (roleValues?.[role] ?? value);
        return {
          slot: placeOf(`${slot.split}.${slot.step}.${slot.task}.${slot.index}`, role),
          reward: scores.reduce((sum, score) => sum + score.weight * worth(score), 0),
          samples: own,
        };
      }),
    )
    .filter((rollouts: StoredRollout[]) => rollouts.length > 0);
}
