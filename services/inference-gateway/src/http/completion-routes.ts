/**
 * POST /v1/chat/completions and POST /v1/completions.
 *
 * H1: when a client goes away, its generation ends.
 * H2: a request that is refused at once gets the status of the refusal; a stream that fails later gets an event with `error`.
 * H3: a stream sends something at least every heartbeat interval, and begins before clients give up.
 */

import { BoundedQueue, delay } from "@hone/core";
import { answerWithEvents, type ServerSentEvent } from "@hone/service-kit";
import { contextOfTraceparent, type Logger } from "@hone/telemetry";
import { type Context, Hono } from "hono";
import type { InferenceEngine } from "../domain/inference-engine.ts";
import type { TextDelta } from "../domain/serving/choice-text.ts";
import { type Choice, type CompletionRequest, complete } from "../domain/serving/complete.ts";
import type { OpenCompletions } from "../domain/serving/open-completions.ts";
import type { ServedModel, ServedModels } from "../domain/serving/served-models.ts";
import { failureOf, INTERNAL_FAILURE } from "./api-error.ts";
import { CHAT_COMPLETIONS } from "./chat-completions.ts";
import { type AnswerHead, type CommonRequest, type CompletionApi, wantsUsage } from "./completion-api.ts";
import { TEXT_COMPLETIONS } from "./text-completions.ts";

export interface CompletionRoutesOptions {
  readonly engine: InferenceEngine;
  readonly models: ServedModels;
  readonly open: OpenCompletions;
  readonly replica: string;
  readonly logger: Logger;
}

/** The engine refuses a request within a step. After this time without one the stream's head is sent. */
const MAX_SILENT_START_MS = 1_000;

export function completionRoutes(options: CompletionRoutesOptions): Hono {
  const app = new Hono();
  app.post("/chat/completions", (c) => answer(c, CHAT_COMPLETIONS, options));
  app.post("/completions", (c) => answer(c, TEXT_COMPLETIONS, options));
  return app;
}

async function answer<Request extends CommonRequest>(
  c: Context,
  api: CompletionApi<Request>,
  options: CompletionRoutesOptions,
): Promise<Response> {
  const request = api.parse(await c.req.text());
  const model = await options.models.open(request.model);
  const plan = api.plan(request, model);
  const head: AnswerHead = {
    id: `${api.prefix}-${plan.id}`,
    created: Math.floor(Date.now() / 1_000),
    model: model.id,
    system_fingerprint: `version-${model.version}`,
  };
  c.header("x-request-id", head.id);
  if (request.stream === true) return answerInChunks(c, api, request, { head, model, plan }, options);
  const choices = await generate(c, plan, model, options);
  return c.json(api.whole(request, head, plan.promptIds.length, choices));
}

interface Planned {
  readonly head: AnswerHead;
  readonly model: ServedModel;
  readonly plan: CompletionRequest;
}

interface Listener {
  readonly onDelta: (index: number, delta: TextDelta) => void;
  readonly onEnd: (index: number, choice: Choice) => void;
}

/** H1 */
function generate(
  c: Context,
  plan: CompletionRequest,
  model: ServedModel,
  { engine, open, replica }: CompletionRoutesOptions,
  listener?: Listener,
  gone: AbortSignal = c.req.raw.signal,
): Promise<Choice[]> {
  const trace = contextOfTraceparent(c.req.header("traceparent"));
  return open.run(gone, (signal) => complete(plan, { engine, model, signal, trace, replica, ...listener }));
}

async function answerInChunks<Request extends CommonRequest>(
  c: Context,
  api: CompletionApi<Request>,
  request: Request,
  { head, model, plan }: Planned,
  options: CompletionRoutesOptions,
): Promise<Response> {
  const chunks = api.chunks(request, head);
  // Each token adds at most one chunk, and each choice two more.
  const queue = new BoundedQueue<object>(plan.numChoices * (plan.sampling.maxNewTokens + 3));
  const begun = Promise.withResolvers<void>();
  const gone = new AbortController();
  const isGone = AbortSignal.any([c.req.raw.signal, gone.signal]);
  const hasBegun = new Set<number>();
  const begin = (index: number) => {
    const first = hasBegun.has(index) ? undefined : chunks.begin(index);
    hasBegun.add(index);
    if (first !== undefined) queue.offer(first);
    begun.resolve();
  };
  const listener: Listener = {
    onDelta: (index, delta) => {
      begin(index);
      queue.offer(chunks.delta(index, delta));
    },
    onEnd: (index, choice) => {
      begin(index);
      queue.offer(chunks.end(index, choice));
    },
  };
  const generating = generate(c, plan, model, options, listener, isGone).finally(() => queue.close());
  generating.catch(() => undefined); // reported below, to a client that is still connected
  await Promise.race([begun.promise, generating, delay(MAX_SILENT_START_MS)]); // H2
  const sse = (body: object): ServerSentEvent => ({ data: JSON.stringify(body) });
  const end: ServerSentEvent = { data: "[DONE]" };
  async function* events(): AsyncGenerator<ServerSentEvent> {
    for await (const chunk of queue) yield sse(chunk);
    const choices = await generating;
    if (wantsUsage(request)) yield sse(chunks.usage(plan.promptIds.length, choices));
    yield end;
  }
  return answerWithEvents(c, {
    events: events(),
    onGone: () => gone.abort(),
    onError: (error) => {
      if (isGone.aborted) return [];
      const failure = failureOf(error);
      if (failure === undefined) options.logger.error("a completion failed", { id: head.id, error });
      return [sse((failure ?? INTERNAL_FAILURE).body), end];
    },
  });
}
