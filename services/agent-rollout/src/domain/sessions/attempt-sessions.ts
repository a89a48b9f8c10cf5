/** The sessions that the agent of one attempt opens; they end with the attempt. */

import type { AgentSession, ModelSession, SessionOptions, SessionRole } from "@hone/agents";
import { rolloutIdOf, turnSeed } from "@hone/core";
import type { ChatRenderer } from "@hone/tokenizer";
import type { Endpoints } from "../endpoints.ts";
import type { RolloutJob } from "../rollout-job.ts";
import type { OpenRole, OpenSessionParts } from "./open-session.ts";
import type { HostedSession, SessionHost } from "./session-host.ts";
import { keyDigest } from "./session-id.ts";

/** Used as the number of a turn to derive seeds for sessions. No real turn has this number, so no other sampling shares them. */
const SESSION_SEED_TURN = 2 ** 31 + 1;

export interface AttemptSessionsParts {
  readonly host: SessionHost;
  readonly endpoints: Endpoints;
  readonly job: RolloutJob;
  readonly model: ModelSession;
  readonly renderer: ChatRenderer;
}

export class AttemptSessions {
  readonly #parts: AttemptSessionsParts;
  readonly #opened: HostedSession[] = [];
  #isOver = false;

  constructor(parts: AttemptSessionsParts) {
    this.#parts = parts;
  }

  /** Sum of the rewards that agents gave through them. */
  get totalReward(): number {
    return this.#opened.reduce((sum, { session }) => sum + session.totalReward, 0);
  }

  /** @throws {UnusableJobError} when the key of a role's endpoint is missing. */
  open(options: SessionOptions = {}): AgentSession {
    return this.openWatched(options).told;
  }

  /**
   * {@link open} for who also ends the session, and follows its calls.
   * @param onCall see {@link OpenSessionParts}.
   * @throws {UnusableJobError} when the key of a role's endpoint is missing.
   */
  openWatched(
    { roles = {}, takesRewards = false }: SessionOptions,
    onCall?: OpenSessionParts["onCall"],
  ): { readonly hosted: HostedSession; readonly told: AgentSession } {
    const { host, job, model } = this.#parts;
    const hosted = host.open(rolloutIdOf(job.runId, job.slot), {
      model,
      takesRewards,
      roles: new Map(Object.entries(roles).map(([name, role]) => [name, this.#roleOf(name, role)])),
      seed: turnSeed(job.runSeed, job.slot, SESSION_SEED_TURN),
      sampling: job.sampling,
      onCall,
    });
    this.#opened.push(hosted);
    if (this.#isOver) hosted.close();
    const told = { url: hosted.url, key: hosted.key, model: Object.keys(roles)[0] ?? "policy" };
    return { hosted, told };
  }

  metrics(): Readonly<Record<string, number>>[] {
    return this.#opened.map(({ session }) => session.metrics());
  }

  /** SHA-256 of the keys of those that may give rewards, also after the attempt. */
  rewardKeyDigests(): Uint8Array[] {
    return this.#opened.filter(({ session }) => session.takesRewards).map(({ key }) => keyDigest(key));
  }

  close(): void {
    this.#isOver = true;
    for (const hosted of this.#opened) hosted.close();
  }

  #roleOf(name: string, { learn = true, endpoint }: SessionRole): OpenRole {
    const { endpoints, renderer } = this.#parts;
    if (endpoint === undefined) return { name, learns: learn, policy: undefined };
    const { baseUrl, model, keyVariable, concurrency } = endpoint;
    // The policy is not trained on what another model wrote.
    return {
      name,
      learns: false,
      policy: endpoints.policyOf({ baseUrl, model, keyVariable, concurrency }, renderer),
    };
  }
}
