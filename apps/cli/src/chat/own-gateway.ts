/** A gateway of one's own for one checkpoint, on a bus of its own: for a chat where no stack serves the model. */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { delay } from "@hone/core";
import { launchNats } from "@hone/embedded";
import { UsageError } from "../errors.ts";
import type { ModelPlace } from "../run/find-model.ts";
import type { Session } from "../session.ts";
import { startServiceProcess } from "../stack/service-process.ts";
import { replicaOf } from "../stack/services.ts";
import { type GatewayAddress, modelState } from "./gateway-client.ts";

export interface OwnGateway extends AsyncDisposable {
  readonly address: GatewayAddress;
  readonly model: string;
}

const POLL_MS = 200;
/** What stands this long is told where nobody sees the live line, as when the hub is away. */
const TOLD_AFTER_MS = 5_000;
/** Longest time in which nothing new is told of the load. */
const STANDSTILL_MS = 300_000;
/** The one model that it has. */
const MODEL = "model";

/**
 * Starts it and waits until the model is loaded.
 * @throws {UsageError} when the model cannot be loaded, or when its load stands still.
 */
export async function startOwnGateway(session: Session, { path, revision }: ModelPlace): Promise<OwnGateway> {
  const { project, terminal, signal } = session;
  if (path.includes(",")) {
    throw new UsageError(
      `Cannot chat with a folder as its path must be without commas: current value is ${path}`,
    );
  }
  const state = await mkdtemp(join(tmpdir(), "hone-chat-"));
  await using started = new AsyncDisposableStack();
  started.defer(() => rm(state, { recursive: true, force: true }));
  const own = { ...project, state, logs: join(state, "logs"), ready: join(state, "ready") };
  await Promise.all([own.logs, own.ready].map((folder) => mkdir(folder, { recursive: true })));
  terminal.live("starting an engine …");
  const nats = started.use(await launchNats({ folder: join(state, "nats"), signal }));
  const apiKey = randomUUID();
  const settings = {
    nats: { server: nats, isEmbedded: false },
    database: undefined,
    otlpEndpoint: "",
    logLevel: "info",
    own: {
      HONE_INFERENCE_SERVE: `${MODEL}=${isAbsolute(path) ? path : `${path}@${revision}`}`,
      // Others on this machine are not meant to use it.
      HONE_INFERENCE_API_KEY: apiKey,
    },
  };
  const service = started.use(
    await startServiceProcess(own, replicaOf("inference-gateway", 0), settings, 0, signal),
  );
  const address = { baseUrl: `http://127.0.0.1:${service.httpPort}/v1`, apiKey };
  await untilLoaded(session, address);
  const held = started.move();
  return { address, model: MODEL, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

async function untilLoaded({ terminal, signal }: Session, address: GatewayAddress): Promise<void> {
  let found = "";
  let since = performance.now();
  let isTold = false;
  for (;;) {
    const state = await modelState(address, MODEL);
    if (state.kind === "loaded") break;
    const stage = state.message.replace(/^.*?current value is /s, "");
    if (stage !== found) {
      found = stage;
      since = performance.now();
      isTold = false;
      terminal.live(`model: ${stage}`);
    }
    const stoodMs = performance.now() - since;
    if (!isTold && stoodMs >= TOLD_AFTER_MS && !terminal.isInteractive) {
      terminal.line(`model: ${stage}`);
      isTold = true;
    }
    if (stoodMs >= STANDSTILL_MS) {
      throw new UsageError(
        `Cannot chat as the model must be loaded, or its load get on within ${STANDSTILL_MS / 60_000} minutes: current value is ${stage}`,
      );
    }
    await delay(POLL_MS, { signal });
  }
  terminal.live("");
}
