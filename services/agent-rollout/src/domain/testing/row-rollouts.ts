/** For tests of agents: rollouts of rows with a policy that writes given texts. */

import {
  AgentCatalog,
  type AgentCatalogOptions,
  AgentModules,
  type GenerateCall,
  type OutsideAccess,
  type Policy,
  type PolicyGeneration,
} from "@hone/agents";
import { CodeGate } from "@hone/config";
import { FinishReason } from "@hone/rl";
import { contextOfTraceparent } from "@hone/telemetry";
import type { ChatRenderer } from "@hone/tokenizer";
import { Endpoints } from "../endpoints.ts";
import type { RolloutJob, RolloutRecord } from "../rollout-job.ts";
import { type RolloutOptions, runRollout } from "../run-rollout.ts";
import { SessionHost } from "../sessions/session-host.ts";

/** Writes one text for each call, in order and then always the last one, and keeps the calls. */
export class WritingPolicy implements Policy {
  readonly calls: GenerateCall[] = [];
  readonly #renderer: ChatRenderer;
  readonly #texts: readonly string[];

  constructor(renderer: ChatRenderer, ...texts: readonly string[]) {
    this.#renderer = renderer;
    this.#texts = texts;
  }

  /** What the model was shown at each call, as text. */
  get prompts(): string[] {
    return this.calls.map(({ promptIds }) => this.#renderer.tokenizer.decode(promptIds));
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const index = this.calls.push(call) - 1;
    const { tokenizer } = this.#renderer;
    const text = this.#texts[Math.min(index, this.#texts.length - 1)] ?? "";
    const all = [...tokenizer.encode(text), tokenizer.eosTokenId ?? 0];
    const tokenIds = all.slice(0, call.sampling.maxNewTokens);
    for (const id of tokenIds) call.onTokens?.([id]);
    return {
      tokenIds,
      logprobs: tokenIds.map(() => -0.25),
      versions: [{ version: call.lowestVersion, tokenCount: tokenIds.length }],
      finishReason: tokenIds.length === all.length ? FinishReason.stop : FinishReason.length,
      cachedTokens: 0,
      generationMs: 1,
      replica: "test",
    };
  }
}

/** A job for version 1, with defaults for what a test does not specify. */
export function jobOf(
  asked: Pick<RolloutJob, "agentName" | "task" | "agentConfigJson"> & Partial<RolloutJob>,
): RolloutJob {
  return {
    runId: "run-1",
    slot: { split: "train", step: 1, task: 0, index: 0 },
    runSeed: 7,
    agentModules: [],
    endpoint: undefined,
    scriptedPolicy: undefined,
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 400 },
    limits: { maxTurns: 6, maxContextTokens: 8_000, deadlineMs: 30_000, maxAttempts: 2 },
    lowestVersion: 1,
    highestVersion: 1,
    maxStaleness: undefined,
    resumption: 0,
    tokenizerPath: "",
    tokenizerDigest: "",
    ...asked,
  };
}

/** A job for one row. */
export function rowJob(
  agentName: string,
  row: Readonly<Record<string, unknown>>,
  overrides: Partial<RolloutJob> & { readonly config?: Readonly<Record<string, unknown>> } = {},
): RolloutJob {
  const { config = {}, ...changes } = overrides;
  return jobOf({
    agentName,
    task: { id: "rows.jsonl:1", environment: undefined, row },
    agentConfigJson: JSON.stringify(config),
    ...changes,
  });
}

/** What a test may replace. */
export interface RunJobOptions {
  readonly filesFolder?: string;
  readonly signal?: AbortSignal;
  readonly sessions?: SessionHost;
  readonly outside?: OutsideAccess;
  /** What else agents are provided with. */
  readonly provided?: Pick<AgentCatalogOptions, "packages" | "containers">;
  /** @default nothing is allowed */
  readonly gate?: CodeGate;
  readonly endpoints?: Endpoints;
  readonly agentConfigAt?: (path: string) => Promise<string>;
  readonly onVersion?: RolloutOptions["onVersion"];
}

/** Runs a job to its end, and closes what its agent opened. */
export async function runJob(
  job: RolloutJob,
  renderer: ChatRenderer,
  policy: Policy,
  options: RunJobOptions = {},
): Promise<RolloutRecord> {
  const { filesFolder = import.meta.dirname, signal = new AbortController().signal, outside } = options;
  const { sessions = new SessionHost("http://127.0.0.1:1"), endpoints = new Endpoints({}) } = options;
  const { gate = new CodeGate({ filesFolder }) } = options;
  const { agentConfigAt = async () => "{}" } = options;
  const agents = new AgentCatalog({
    filesFolder,
    gate,
    ...options.provided,
    ...(outside !== undefined && { outside }),
  });
  try {
    return await runRollout(
      job,
      {
        policy,
        agents,
        modules: new AgentModules(gate),
        rendererOf: async () => renderer,
        endpoints,
        sessions,
        agentConfigAt,
      },
      {
        signal,
        trace: contextOfTraceparent(undefined),
        ...(options.onVersion !== undefined && { onVersion: options.onVersion }),
      },
    );
  } finally {
    await agents.close();
  }
}
