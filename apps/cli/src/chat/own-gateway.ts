/** A gateway of one's own for one checkpoint, on a bus of its own: for a chat where no stack serves the model. */

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { delay } from "@hone/core";
import { launchNats } from "@hone/embedded";
import type { Session } from "../session.ts";
import { startServiceProcess } from "../stack/service-process.ts";
import { replicaOf } from "../stack/services.ts";
import { type GatewayAddress, modelState } from "./gateway-client.ts";

export interface OwnGateway extends AsyncDisposable {
  readonly address: GatewayAddress;
  readonly model: string;
}

const POLL_MS = 200;
/** The one model that it has. */
const MODEL = "model";

/**
 * Starts it and waits until the model is loaded.
 * @param place an absolute folder, or an id of the hub.
 * @throws {UsageError} when the model cannot be loaded.
 */
export async function startOwnGateway(session: Session, place: string): Promise<OwnGateway> {
  const { project, terminal, signal } = session;
  const state = await mkdtemp(join(tmpdir(), "hone-chat-"));
  await using started = new AsyncDisposableStack();
  started.defer(() => rm(state, { recursive: true, force: true }));
  const own = { ...project, state, logs: join(state, "logs"), ready: join(state, "ready") };
  await Promise.all([own.logs, own.ready].map((folder) => mkdir(folder, { recursive: true })));
  terminal.live("starting an engine …");
  const nats = started.use(await launchNats({ folder: join(state, "nats"), signal }));
  const apiKey = randomUUID();
  const settings = {
    nats,
    database: undefined,
    otlpEndpoint: "",
    logLevel: "info",
    own: {
      HONE_INFERENCE_SERVE: `${MODEL}=${place}`,
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
  for (;;) {
    const state = await modelState(address, MODEL);
    if (state.kind === "loaded") break;
    terminal.live(state.message.replace(/^.*current value is /s, "model: "));
    await delay(POLL_MS, { signal });
  }
  terminal.live("");
}
