/**
 * An episode at a server that speaks AgentJet's protocol for environments:
 *
 *     POST <url>/create    { env_type, task_id, instance_id, messages: {}, params }
 *     POST <url>/step      { env_type, instance_id, messages: { role: "assistant", content }, params }
 *     POST <url>/evaluate  { env_type, instance_id, messages: {}, params }
 *     POST <url>/release   { env_type, instance_id, messages: {}, params }
 *
 * The answer is `{ success, data }`. The data of create and step are `{ state: [{ role, content }], reward, is_terminated, info }`,
 * those of evaluate a number.
 *
 * P1: no call is repeated, as a step that was taken twice would be another episode. The attempt is repeated, with an instance of
 *     its own.
 * P2: a refusal of create (status 4xx or `success: false`) is one of the task. A refusal of a later call means that the instance is
 *     lost, as when the server was started again.
 * P3: no redirect is followed, as the key may be sent to this host only.
 */

import { randomUUID } from "node:crypto";
import { EnvironmentRefusedError, InfrastructureError, postAndWait } from "@hone/agents";
import { deadline, describeError, TerminalError } from "@hone/core";
import { traceHeaders } from "@hone/telemetry";
import { z } from "zod";
import type { EnvironmentServiceConfig } from "./config.ts";
import {
  readAs,
  readJson,
  readServiceState,
  rewardSchema,
  shown,
  UnreadableReplyError,
} from "./read-replies.ts";
import type { ServiceSession, ServiceState } from "./service-session.ts";

type Verb = "create" | "step" | "evaluate" | "release";

/** What an instance that is still being created is waited for before it is released. */
const CREATE_GRACE_MS = 2_000;
/** With the grace less than what an attempt gives an environment to close. */
const RELEASE_DEADLINE_MS = 2_000;
/** Statuses below 500 that say "later". */
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 425, 429]);

const ACTIONS: Readonly<Record<Verb, string>> = {
  create: "create an instance of the environment",
  step: "take a step in the environment",
  evaluate: "evaluate the episode",
  release: "release the environment",
};

const replySchema = z.looseObject({
  success: z.boolean().nullish(),
  data: z.unknown().optional(),
});

/** The words in which servers put why they refused; FastAPI's is `detail`. */
const reasonSchema = z.looseObject({
  message: z.unknown().optional(),
  error: z.unknown().optional(),
  detail: z.unknown().optional(),
});

export class AgentjetSession implements ServiceSession {
  readonly #config: EnvironmentServiceConfig;
  readonly #headers: Readonly<Record<string, string>>;
  /** No two attempts may meet at one instance, so it is not drawn from the seed. */
  readonly #instanceId = randomUUID();
  /** Ends the call under way. */
  readonly #closing = new AbortController();
  #creating: Promise<unknown> | undefined;

  constructor(config: EnvironmentServiceConfig, key: string | undefined) {
    this.#config = config;
    this.#headers = {
      // A server may drop a connection that is idle while the model thinks, and a step must not be sent twice.
      connection: "close",
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
  }

  async open(seed: number): Promise<ServiceState> {
    const { taskId = String(seed), params } = this.#config;
    const creating = this.#call("create", { task_id: taskId, params: { seed, ...params } });
    this.#creating = creating;
    return this.#read("create", await creating, (data) => readServiceState(data, "create"));
  }

  async step(action: string): Promise<ServiceState> {
    const data = await this.#call("step", { messages: { role: "assistant", content: action } });
    return this.#read("step", data, (each) => readServiceState(each, "step"));
  }

  async evaluate(): Promise<number> {
    return this.#read("evaluate", await this.#call("evaluate", {}), (data) => readAs(rewardSchema, data));
  }

  async release(): Promise<void> {
    const creating = this.#creating;
    if (creating === undefined) return;
    // Released before it is there, an instance would stay at the server.
    await deadline("the instance", CREATE_GRACE_MS, () => creating).catch(() => undefined);
    this.#closing.abort(new TerminalError("ENVIRONMENT_CLOSED", "the environment was closed during a call"));
    await this.#call("release", {}, { timeoutMs: RELEASE_DEADLINE_MS, signal: undefined });
  }

  /** @returns the answer's `data`. */
  async #call(
    verb: Verb,
    fields: Readonly<Record<string, unknown>>,
    limits: { readonly timeoutMs: number; readonly signal: AbortSignal | undefined } = {
      timeoutMs: this.#config.timeoutMs,
      signal: this.#closing.signal,
    },
  ): Promise<unknown> {
    const { envType, params, maxReplyBytes } = this.#config;
    const address = this.#addressOf(verb);
    const body = { env_type: envType, task_id: null, instance_id: this.#instanceId, messages: {}, params };
    let answer: { readonly status: number; readonly text: string };
    try {
      answer = await deadline(
        `the answer of ${address}`,
        limits.timeoutMs,
        (signal) =>
          postAndWait(address, {
            body: JSON.stringify({ ...body, ...fields }),
            headers: { ...traceHeaders(), ...this.#headers },
            maxAnswerBytes: maxReplyBytes,
            signal,
          }),
        { ...(limits.signal !== undefined && { signal: limits.signal }) },
      );
    } catch (cause) {
      limits.signal?.throwIfAborted();
      throw this.#failure(verb, "does not answer", describeError(cause), { cause });
    }
    const { status, text } = answer;
    if (status >= 200 && status < 300) return this.#dataOf(verb, text);
    const isPassing = status >= 500 || PASSING_STATUS.has(status);
    if (verb === "create" && !isPassing) throw this.#refusal(`answered with status ${status}`, text); // P2
    throw this.#failure(verb, `answered with status ${status}`, shown(text));
  }

  #dataOf(verb: Verb, text: string): unknown {
    const { success, data } = this.#read(verb, text, (all) => readAs(replySchema, readJson(all)));
    // An instance that is unknown at its release is released.
    if (success !== false || verb === "release") return data;
    if (verb === "create") throw this.#refusal("answered without success", text); // P2
    throw this.#failure(verb, "answered without success", shown(text));
  }

  #read<Given, T>(verb: Verb, given: Given, read: (given: Given) => T): T {
    try {
      return read(given);
    } catch (cause) {
      if (!(cause instanceof UnreadableReplyError)) throw cause;
      throw this.#failure(verb, "gave an answer that cannot be read", cause.message, { cause });
    }
  }

  #failure(verb: Verb, problem: string, detail: string, options?: ErrorOptions): InfrastructureError {
    return new InfrastructureError(ACTIONS[verb], `${this.#addressOf(verb)} ${problem}`, detail, options);
  }

  #refusal(problem: string, text: string): EnvironmentRefusedError {
    const { envType, taskId } = this.#config;
    const task = taskId === undefined ? "" : ` with the task "${shown(taskId)}"`;
    return new EnvironmentRefusedError(
      `asked for "${shown(envType)}"${task}, ${this.#addressOf("create")} ${problem} (${reasonOf(text)}); correct envType, taskId or params, or the server`,
    );
  }

  #addressOf(verb: Verb): string {
    const address = new URL(this.#config.url);
    address.pathname = `${address.pathname.replace(/\/+$/, "")}/${verb}`;
    return address.href;
  }
}

/** What a server wrote about a refusal. */
function reasonOf(text: string): string {
  try {
    const { message, error, detail } = readAs(reasonSchema, readJson(text));
    const reason = [message, error, detail].find((each) => typeof each === "string");
    return shown(typeof reason === "string" ? reason : text);
  } catch {
    return shown(text);
  }
}
