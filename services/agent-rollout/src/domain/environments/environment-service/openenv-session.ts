/**
 * An episode at a server of OpenEnv (https://github.com/meta-pytorch/OpenEnv): a WebSocket at <url>/ws, whose server makes an
 * environment for each connection. Its paths /reset and /step are of no use here: they make a new environment for each request,
 * and keep no state.
 *
 *     { type: "reset", data: { seed, task_id, … } }
 *     { type: "step", data: { [actionField]: action, … } }    ->  { type: "observation", data: { observation, reward, done } }
 *     { type: "close" }                                       or  { type: "error", data: { message, code, errors } }
 *
 * N1: an action that does not fit the server's schema in the field of the action is the model's: the step gives nothing, and the model is
 *     told. Any other error of the schema is one of the configuration.
 * N2: every other error is a failure of the server, and is not scored. One of them is that all its places are taken.
 */

import { EnvironmentRefusedError, InfrastructureError } from "@hone/agents";
import { describeError, TerminalError } from "@hone/core";
import { traceHeaders } from "@hone/telemetry";
import { z } from "zod";
import type { EnvironmentServiceConfig } from "./config.ts";
import { HandshakeRefusedError, JsonSocket } from "./json-socket.ts";
import {
  messagesSchema,
  readAs,
  readInfo,
  readJson,
  rewardSchema,
  shown,
  toMessage,
  UnreadableReplyError,
} from "./read-replies.ts";
import type { ServiceSession, ServiceState } from "./service-session.ts";

type Verb = "reset" | "step";

const DEFAULT_ACTION_FIELD = "message";
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 425, 429]);
/** Of an entry that should not be there, or should: no action of the model can cause them. */
const SHAPE_PROBLEMS: ReadonlySet<string> = new Set(["missing", "extra_forbidden"]);

const resultSchema = z.looseObject({
  observation: z.record(z.string(), z.unknown()),
  reward: rewardSchema.nullish(),
  done: z.boolean(),
});
const errorSchema = z.looseObject({
  message: z.string().nullish(),
  code: z.string().nullish(),
  errors: z.array(z.looseObject({ type: z.string(), loc: z.array(z.unknown()), msg: z.string() })).nullish(),
});
const replySchema = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("observation"), data: resultSchema }),
  z.looseObject({ type: z.literal("error"), data: errorSchema }),
]);
type ServerError = z.output<typeof errorSchema>;

export class OpenenvSession implements ServiceSession {
  readonly #config: EnvironmentServiceConfig;
  readonly #address: string;
  readonly #headers: Readonly<Record<string, string>>;
  #socket: JsonSocket | undefined;
  #isReleased = false;
  /** What the model was shown last, for an action that moved nothing. */
  #last = "";

  constructor(config: EnvironmentServiceConfig, key: string | undefined) {
    this.#config = config;
    const address = new URL(config.url);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    address.pathname = `${address.pathname.replace(/\/+$/, "")}/ws`;
    this.#address = address.href;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  async open(seed: number): Promise<ServiceState> {
    const { taskId, params, timeoutMs, maxReplyBytes: maxMessageBytes } = this.#config;
    if (this.#isReleased) throw new TerminalError("ENVIRONMENT_CLOSED", "the environment is closed");
    this.#socket = new JsonSocket(this.#address, {
      headers: { ...traceHeaders(), ...this.#headers },
      maxMessageBytes,
      timeoutMs,
    });
    const data = { seed, ...(taskId !== undefined && { task_id: taskId }), ...params };
    const reply = await this.#ask(this.#socket, "reset", data);
    if (reply.type === "observation") return this.#stateOf("reset", reply.data, {});
    if (reply.data.code === "VALIDATION_ERROR") throw this.#refusal(reply.data);
    throw this.#failure("reset", "reported an error", textOf(reply.data)); // N2
  }

  async step(action: string): Promise<ServiceState> {
    if (this.#socket === undefined) {
      throw new TerminalError("EPISODE_NOT_RUNNING", "the environment needs a reset before its first step");
    }
    const { actionField = DEFAULT_ACTION_FIELD, actionParams } = this.#config;
    const reply = await this.#ask(this.#socket, "step", { ...actionParams, [actionField]: action });
    if (reply.type === "observation") return this.#stateOf("step", reply.data, { action_is_valid: true });
    if (reply.data.code !== "VALIDATION_ERROR") {
      throw this.#failure("step", "reported an error", textOf(reply.data)); // N2
    }
    const problems = reply.data.errors ?? [];
    const isOfModel =
      problems.length > 0 &&
      problems.every(({ type, loc }) => loc[0] === actionField && !SHAPE_PROBLEMS.has(type));
    if (!isOfModel) throw this.#refusal(reply.data);
    return {
      observation: `The action was refused: ${problems.map(({ msg }) => shown(msg)).join("; ")}.\n\n${this.#last}`,
      reward: 0,
      isTerminated: false,
      isTruncated: false,
      info: { action_is_valid: false },
    }; // N1
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    await this.#socket?.close({ type: "close" });
  }

  async #ask(
    socket: JsonSocket,
    verb: Verb,
    data: Readonly<Record<string, unknown>>,
  ): Promise<z.output<typeof replySchema>> {
    let text: string;
    try {
      text = await socket.ask({ type: verb, data });
    } catch (cause) {
      if (this.#isReleased) throw cause;
      if (cause instanceof HandshakeRefusedError && cause.status < 500 && !PASSING_STATUS.has(cause.status)) {
        throw new EnvironmentRefusedError(
          `${this.#address} answered with status ${cause.status}; correct url or keyVariable, or the server`,
          { cause },
        );
      }
      throw this.#failure(verb, "does not answer", describeError(cause), { cause });
    }
    return this.#read(verb, () => readAs(replySchema, readJson(text)));
  }

  #stateOf(
    verb: Verb,
    { observation, reward, done }: z.output<typeof resultSchema>,
    info: ServiceState["info"],
  ): ServiceState {
    const { observationField: field } = this.#config;
    if (field !== undefined && !Object.hasOwn(observation, field)) {
      const found = shown(Object.keys(observation).join(", "));
      const problem = `the observation has no entry "${field}", but ${found}`;
      if (verb === "reset") throw new EnvironmentRefusedError(`${problem}; correct observationField`);
      throw this.#failure(verb, "gave an answer that cannot be read", problem);
    }
    const value = field === undefined ? observation : observation[field];
    const others = Object.entries(observation).filter(([key]) => key !== field);
    const parsed = messagesSchema.safeParse(value);
    const messages = parsed.success && parsed.data.length > 0 ? parsed.data.map(toMessage) : undefined;
    const text = messages?.map(({ content }) => content).join("\n") ?? textOfValue(value);
    this.#last = text;
    return {
      observation: text,
      ...(messages !== undefined && { messages }),
      reward: reward ?? 0,
      isTerminated: done,
      isTruncated: false,
      info: { ...readInfo(Object.fromEntries(others)), ...info },
    };
  }

  #read<T>(verb: Verb, read: () => T): T {
    try {
      return read();
    } catch (cause) {
      if (!(cause instanceof UnreadableReplyError)) throw cause;
      throw this.#failure(verb, "gave an answer that cannot be read", cause.message, { cause });
    }
  }

  #failure(verb: Verb, problem: string, detail: string, options?: ErrorOptions): InfrastructureError {
    const action = verb === "reset" ? "reset the environment" : "take a step in the environment";
    return new InfrastructureError(action, `${this.#address} ${problem}`, detail, options);
  }

  #refusal(error: ServerError): EnvironmentRefusedError {
    return new EnvironmentRefusedError(
      `${this.#address} refused what it was sent (${textOf(error)}); correct actionField, actionParams or params`,
    );
  }
}

function textOf({ message, code, errors }: ServerError): string {
  const problems = (errors ?? []).map(({ loc, msg }) => `${loc.map(String).join(".")}: ${msg}`);
  return shown([code ?? "no code", message ?? "", ...problems].filter((each) => each !== "").join(", "));
}

function textOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null ? "" : JSON.stringify(value);
}
