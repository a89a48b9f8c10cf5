/** Tenures of a run in memory, whose process may die between any two effects. For tests of the domain only. */

import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { hasCritic, learningPolicies } from "@hone/config";
import { silentLogger } from "@hone/telemetry";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { chatmlTokenizer, chatmlTokenizerFiles } from "@hone/tokenizer/testing";
import { RequestedControl } from "../domain/run/requested-control.ts";
import { holdTenure, type TenureControl } from "../domain/run/run-tenure.ts";
import { HashCritic, HashEngine } from "./hash-engine.ts";
import type { MemoryWorld } from "./memory-world.ts";

/** The death of a process, which a test throws out of an effect. */
export class Death extends Error {}

/** A state folder with the files that admission writes. */
export async function newRoot(name: string): Promise<TemporaryFolder> {
  const root = await temporaryFolder(name);
  const tokenizer = path.join(root.path, "runs", "test-1", "tokenizer");
  await mkdir(tokenizer, { recursive: true });
  for (const [file, text] of Object.entries(chatmlTokenizerFiles())) {
    await writeFile(path.join(tokenizer, file), text);
  }
  return root;
}

/** A control by which nobody asks for anything. */
export function newControl(): TenureControl {
  const requested = new RequestedControl({ isCancelRequested: false, isPauseRequested: false });
  return { requested, ending: new AbortController(), stopping: new AbortController().signal };
}

/** One process that takes the run over and works on it until the run ends or the process dies. */
export function tenure(
  world: MemoryWorld,
  stateRoot: string,
  control = newControl(),
  engine = new HashEngine(world, chatmlTokenizer().vocabSize),
) {
  return holdTenure(
    world.takeOver(),
    {
      stateRoot,
      ledger: world,
      jobs: world.jobs,
      rollouts: world,
      pipeline: world.pipeline,
      groupJudges: world.groupJudges,
      tasks: world,
      board: world.board,
      events: world.eventSink,
      createEngine: async () => engine,
      createLearners: async ({ config }) =>
        learningPolicies(config).map(({ name }) => ({
          name,
          engine: new HashEngine(world, chatmlTokenizer().vocabSize),
          from: undefined,
        })),
      createCritic: async ({ config }) => (hasCritic(config) ? new HashCritic(world) : undefined),
      logger: silentLogger(),
      warmStateMs: 0,
      fullMs: 0,
    },
    control,
  );
}

/** Everything about a finished run that must not depend on what happened on the way. */
export async function outcomeOf(world: MemoryWorld, stateRoot: string) {
  const important = world.events.filter(({ messageId }) => messageId !== undefined);
  return {
    ending: world.ending,
    digest: world.run.stateDigest,
    version: world.run.version,
    ledger: [...world.ledger].sort(),
    events: important.map(({ messageId }) => messageId).sort(),
    evaluations: world.records.map(({ version, mode, metrics }) => [version, mode, metrics.success]),
    executions: [...world.executions].sort(),
    tasks: [...world.tasks].sort(),
    visits: world.taskVisits,
    phase: world.status?.phase,
    reason: world.status?.endReason,
    troubles: world.status?.troubles,
    served: [world.status?.version, world.status?.digest],
    policies: (world.status?.policies ?? []).map(({ model, version }) => [model, version]),
    policyFiles: Object.entries(world.run.stateFiles).filter(([name]) => name.startsWith("policies/")),
    earlier: (await readdir(`${stateRoot}/runs/test-1/earlier`).catch(() => [])).sort(),
    checkpoints: (await readdir(`${stateRoot}/runs/test-1/checkpoints`).catch(() => [])).sort(),
    keptStates: (await readdir(`${stateRoot}/runs/test-1/kept-states`).catch(() => [])).sort(),
  };
}
