/** An engine with a test server, and helpers for its tests. */

import type { GenerateRequest } from "../../domain/inference-engine.ts";
import type { EngineServer } from "../engine-server.ts";
import { ServerEngine, type ServerEngineOptions } from "../server-engine.ts";
import type { FakeEngineServer } from "./fake-engine-server.ts";

export interface EngineSubject<Test extends FakeEngineServer> extends AsyncDisposable {
  readonly test: Test;
  readonly engine: ServerEngine;
}

/** The engine is gone before its server is. */
export async function engineOver<Test extends FakeEngineServer>(
  test: Test,
  connect: (url: string) => EngineServer,
  options: Partial<ServerEngineOptions> = {},
): Promise<EngineSubject<Test>> {
  await test.start();
  const engine = new ServerEngine({ server: connect(test.url), lookEveryMs: 20, ...options });
  return {
    test,
    engine,
    async [Symbol.asyncDispose]() {
      await engine.close();
      await test.kill();
    },
  };
}

let asked = 0;

/** Twenty tokens of model `m`. */
export function ask(change: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    id: `ask-${asked++}`,
    model: "m",
    promptIds: [1, 2, 3, 4],
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 20, stopTokenIds: [] },
    seed: 5,
    sessionId: "",
    groupId: "",
    versionRange: { lowest: 0, highest: 1_000 },
    deadlineMs: 20_000,
    ...change,
  };
}
