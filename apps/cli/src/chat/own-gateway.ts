/** Starts a bus and a gateway for one checkpoint, for a chat with a model that no stack serves. */

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
/** Without a terminal, a stage that lasts this long is printed, for example while the hub does not answer. */
const PRINTED_AFTER_MS = 5_000;
/** Longest time without progress of the load. */
const STANDSTILL_MS = 300_000;
/** The name of the gateway's only model. */
const MODEL = "model";

/**
 * Starts the gateway and waits until the model is loaded.
 * @throws {UsageError} when the model cannot be loaded, or its load makes no progress.
 */
export async function startOwnGateway(session: Session, { path, revision }: ModelPlace): Promise<OwnGateway> {
  const { project, terminal, signal } = session;
  if (path.includes(",")) {
    throw new UsageError(
      `the folder ${path} cannot be served, because its path has a comma; rename it or make a link to it`,
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
    tracerUrl: "",
    logLevel: "info",
    own: {
      HONE_INFERENCE_SERVE: `${MODEL}=${isAbsolute(path) ? path : `${path}@${revision}`}`,
      // The key keeps other accounts of this machine out.
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
  let stage = "";
  let since = performance.now();
  let isPrinted = false;
  for (;;) {
    const state = await modelState(address, MODEL);
    if (state.kind === "loaded") break;
    if (state.message !== stage) {
      stage = state.message;
      since = performance.now();
      isPrinted = false;
      terminal.live(stage);
    }
    const unchangedMs = performance.now() - since;
    if (!isPrinted && unchangedMs >= PRINTED_AFTER_MS && !terminal.isInteractive) {
      terminal.line(stage);
      isPrinted = true;
    }
    if (unchangedMs >= STANDSTILL_MS) {
      throw new UsageError(
        `the load of the model has made no progress for ${STANDSTILL_MS / 60_000} minutes: ${stage}`,
      );
    }
    await delay(POLL_MS, { signal });
  }
  terminal.live("");
}
