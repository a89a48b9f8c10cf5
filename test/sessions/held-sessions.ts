/**
 * Sessions of a real run that stay open until a test releases them. The run's agent sends its session to the test and waits
 * for the response.
 */

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { eventually } from "@hone/testing";

/** Address and key of an agent's session. */
export interface HeldSession {
  readonly url: string;
  readonly key: string;
}

export interface HeldSessions {
  /** The section `agent` of the run file. */
  readonly agent: { readonly name: string; readonly modules: string[]; readonly config: object };
  /** Resolves with the sessions once this many are open. */
  opened(count: number, deadlineMs: number): Promise<HeldSession[]>;
  /** Lets the agents return, which closes their sessions. */
  release(): void;
  close(): Promise<void>;
}

const MODULE = "held.ts";
const AGENT = `
import { defineAgent } from "@hone/agents";
import { z } from ${JSON.stringify("zod")};
export const agents = {
  held: defineAgent({
    configSchema: z.strictObject({ door: z.string() }),
    needsEnvironment: false,
    buildGraph: ({ door }) => door,
    async run(door, rollout) {
      const { url, key } = rollout.openSession();
      const response = await fetch(door, { method: "POST", body: JSON.stringify({ url, key }), signal: rollout.signal });
      await response.text();
      return {};
    },
  }),
};
`;

/** @param files the project folder of the services. */
export async function holdSessions(files: string): Promise<HeldSessions> {
  await writeFile(path.join(files, MODULE), AGENT);
  const sessions: HeldSession[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    sessions.push(JSON.parse(body) as HeldSession);
    await released;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    agent: { name: "held", modules: [MODULE], config: { door: `http://127.0.0.1:${port}/` } },
    async opened(count, deadlineMs) {
      await eventually(`${count} open sessions`, () => sessions.length >= count, { deadlineMs });
      return sessions.slice(0, count);
    },
    release,
    async close() {
      release();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
