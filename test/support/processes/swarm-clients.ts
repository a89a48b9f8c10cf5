/** Clients that play the episodes of a run over HTTP. Some of them vanish, die in the middle of a call, or answer too late. */

import { randomUUID } from "node:crypto";
import { pause, type Random } from "@hone/core";

/** What the clients of a run met, all of them together. */
export interface Tally {
  /** Ids of the rollouts whose end was answered with 200. */
  readonly stored: string[];
  /** Ids of the rollouts whose end got no answer. */
  readonly unanswered: string[];
  /** Sum of the rewards whose end was answered with 200. */
  reward: number;
  vanished: number;
  died: number;
  /** Ends that were sent after the lease, and how many of them were taken. */
  late: number;
  lateTaken: number;
}

export function newTally(): Tally {
  return { stored: [], unanswered: [], reward: 0, vanished: 0, died: 0, late: 0, lateTaken: 0 };
}

export interface SwarmClientOptions {
  /** Address of agent-rollout now, which changes where it restarts. @throws while it has none. */
  readonly urlOf: () => string;
  readonly key: string;
  readonly runId: string;
  readonly random: Random;
  readonly isReliable: boolean;
  readonly leaseMs: number;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

interface Lent {
  readonly rollout: string;
  readonly episode: { readonly url: string; readonly key: string };
  readonly session: { readonly openaiBaseUrl: string; readonly key: string; readonly model: string };
  readonly task: {
    readonly prompt: readonly object[];
    readonly row: { readonly reward_model: { readonly ground_truth: string } };
  };
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const RETRY_MS = 200;
const WAIT_MS = 2_000;
const TRICKS = ["vanish", "die", "late"] as const;
/** One in so many episodes of an unreliable client is played to its end. */
const PLAYS_ONE_IN = 4;

/** Plays until the signal aborts or the run is over. */
export async function playEpisodes(options: SwarmClientOptions): Promise<void> {
  const { signal, random, isReliable } = options;
  let claim = randomUUID();
  while (!signal.aborted) {
    const begun = await begin(options, claim);
    if (begun?.status === 410 && codeOf(begun) === "run_over") return;
    if (begun?.status !== 200) {
      // After a lost answer the same claim gets the same episode.
      if (begun?.status === 410 || begun?.status === 409) claim = randomUUID();
      if (begun?.status !== 204) await pause(RETRY_MS, signal);
      continue;
    }
    claim = randomUUID();
    const lent = begun.body as Lent;
    const plays = isReliable || random.nextInt(PLAYS_ONE_IN) === 0;
    await (plays ? play(lent, options) : trick(lent, options));
  }
}

async function begin({ urlOf, runId, key, signal }: SwarmClientOptions, claim: string) {
  let url: string;
  try {
    url = urlOf();
  } catch {
    return undefined; // it is being restarted
  }
  return post(`${url}/runs/${runId}/episodes`, key, { claim, waitMs: WAIT_MS }, signal);
}

/** Calls the model once, and reports whether the answer is right. */
async function play(lent: Lent, { tally, signal }: SwarmClientOptions): Promise<void> {
  const reward = await callModel(lent, signal);
  if (reward === undefined) return; // its session is gone
  const ended = await end(lent, reward, signal);
  if (ended === undefined) tally.unanswered.push(lent.rollout);
  if (ended?.status !== 200) return;
  tally.stored.push(lent.rollout);
  tally.reward += reward;
}

async function trick(lent: Lent, { random, leaseMs, tally, signal }: SwarmClientOptions): Promise<void> {
  const kind = TRICKS[random.nextInt(TRICKS.length)]!;
  if (kind === "die") {
    const death = new AbortController();
    const calling = callModel(lent, AbortSignal.any([signal, death.signal]));
    await pause(random.nextInt(4), signal);
    death.abort();
    await calling;
    tally.died++;
    return;
  }
  const reward = await callModel(lent, signal);
  if (kind === "vanish" || reward === undefined) {
    tally.vanished++;
    return;
  }
  await pause(leaseMs + RETRY_MS, signal);
  const ended = await end(lent, reward, signal);
  tally.late++;
  if (ended?.status === 200) tally.lateTaken++;
}

/** @returns the reward; undefined if there was no answer. */
async function callModel({ session, task }: Lent, signal: AbortSignal): Promise<number | undefined> {
  const call = { model: session.model, messages: task.prompt };
  const answer = await post(`${session.openaiBaseUrl}/chat/completions`, session.key, call, signal);
  if (answer?.status !== 200) return undefined;
  const { choices } = answer.body as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content === task.row.reward_model.ground_truth ? 1 : 0;
}

function end({ episode }: Lent, reward: number, signal: AbortSignal): Promise<Answer | undefined> {
  return post(`${episode.url}/end`, episode.key, { reward }, signal);
}

function codeOf({ body }: Answer): string | undefined {
  return (body as { error?: { code?: string } }).error?.code;
}

/** @returns undefined if there was no answer. */
async function post(
  url: string,
  key: string,
  body: object,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal,
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
  } catch {
    return undefined;
  }
}
