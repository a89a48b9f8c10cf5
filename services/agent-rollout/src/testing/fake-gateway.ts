/** A replica of the policy for tests, which speaks the protocol of inference-gateway and can misbehave. */

import { create } from "@bufbuild/protobuf";
import { delay } from "@hone/core";
import { BucketName, type Bus, openBucket, type Responder, respond, subjects } from "@hone/messaging";
import {
  FinishReason,
  type GenerateReply,
  GenerateReplySchema,
  type GenerateRequest,
  GenerateRequestSchema,
  type GenerateError_Reason as Reason,
  ReplicaStateSchema,
} from "@hone/proto-gen/policy";

/** What it does with a request. */
export type Behaviour =
  | { readonly kind: "answer"; readonly tokenIds: readonly number[]; readonly version?: number }
  /** The request's deadline passed, after these times in the queue and in work. */
  | { readonly kind: "cut_off"; readonly queueMs: number; readonly decodeMs: number }
  | { readonly kind: "refuse"; readonly reason: Reason }
  | { readonly kind: "silence" }
  /** Sends tokens one by one if the request asks for that, then the answer; or falls silent after `diesAfter` tokens. */
  | { readonly kind: "stream"; readonly tokenIds: readonly number[]; readonly diesAfter?: number }
  | { readonly kind: "heartbeats"; readonly queuePosition: number };

export interface FakeGatewayOptions {
  readonly model: string;
  readonly replica: string;
  readonly versions?: readonly number[];
  /** Decides for each request. */
  readonly behave: (request: GenerateRequest) => Behaviour | Promise<Behaviour>;
}

const HEARTBEAT_MS = 50;

export class FakeGateway {
  /** All requests, in order. */
  readonly requests: GenerateRequest[] = [];
  /** Ids of the requests that callers aborted. */
  readonly aborted: string[] = [];
  readonly #stopped = new AbortController();
  readonly #bus: Bus;
  readonly #options: FakeGatewayOptions;
  readonly #responder: Responder;

  constructor(bus: Bus, options: FakeGatewayOptions) {
    const { model, replica } = options;
    this.#bus = bus;
    this.#options = options;
    this.#responder = respond(
      bus,
      subjects.generate(model, replica),
      GenerateRequestSchema,
      GenerateReplySchema,
      { handle: ({ message, reply }) => this.#serve(message, reply), onError: () => undefined },
    );
    const aborts = bus.connection.subscribe(subjects.abort(model, replica), {
      callback: (_error, message) => void this.aborted.push(message.string()),
    });
    this.#stopped.signal.addEventListener("abort", () => aborts.unsubscribe(), { once: true });
  }

  /** Writes to the bucket which versions it has loaded. */
  async report(versions: readonly number[] = this.#options.versions ?? [0]): Promise<void> {
    const { model, replica } = this.#options;
    const bucket = await openBucket(this.#bus, BucketName.replicas, ReplicaStateSchema);
    await bucket.put(
      `${model}.${replica}`,
      create(ReplicaStateSchema, { model, replica, versions: [...versions], capacity: 64 }),
    );
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#responder.drain();
  }

  async #serve(request: GenerateRequest, reply: (message: GenerateReply) => Promise<void>): Promise<void> {
    this.requests.push(request);
    const behaviour = await this.#options.behave(request);
    switch (behaviour.kind) {
      case "stream":
        for (const [index, tokenId] of behaviour.tokenIds.entries()) {
          if (index === behaviour.diesAfter) return;
          if (!request.isStreaming) continue;
          const value = { tokenIds: [tokenId], logprobs: [-1] };
          await reply(create(GenerateReplySchema, { kind: { case: "tokens", value } }));
        }
        return this.#answer(request, reply, behaviour.tokenIds, request.highestVersion);
      case "answer": {
        const { tokenIds, version = request.highestVersion } = behaviour;
        return this.#answer(request, reply, tokenIds, version);
      }
      case "cut_off": {
        const { queueMs, decodeMs } = behaviour;
        const value = { finishReason: FinishReason.ABORTED, queueMs, decodeMs };
        return reply(create(GenerateReplySchema, { kind: { case: "done", value } }));
      }
      case "refuse":
        return reply(
          create(GenerateReplySchema, {
            kind: { case: "error", value: { reason: behaviour.reason, message: "as the test wants it" } },
          }),
        );
      case "silence":
        return;
      case "heartbeats":
        while (!this.#stopped.signal.aborted && !this.aborted.includes(request.requestId)) {
          await reply(
            create(GenerateReplySchema, {
              kind: { case: "heartbeat", value: { queuePosition: behaviour.queuePosition } },
            }),
          );
          await delay(HEARTBEAT_MS);
        }
    }
  }
  #answer(
    request: GenerateRequest,
    reply: (message: GenerateReply) => Promise<void>,
    tokenIds: readonly number[],
    version: number,
  ): Promise<void> {
    const isStop = request.stopTokenIds.includes(tokenIds.at(-1)!);
    const value = {
      tokenIds: [...tokenIds],
      logprobs: tokenIds.map((_, index) => -(index + 1) / 8),
      finishReason: isStop ? FinishReason.STOP : FinishReason.LENGTH,
      versions: [{ version, tokenCount: tokenIds.length }],
    };
    return reply(create(GenerateReplySchema, { kind: { case: "done", value } }));
  }
}
