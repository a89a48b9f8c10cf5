/**
 * Sessions of a real run that stay open until a test lets them go: the run's agent tells the test of its session and
 * waits for an answer.
 */

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { eventually } from "@hone/testing";

/** What an agent is given to reach the model. */
export interface HeldSession {
  readonly url: string;
  readonly key: string;
}

export interface HeldSessions {
  /** Of the run's file: a module for the agent, and its configuration. */
  readonly agent: { readonly name: string; readonly modules: string[]; readonly config: object };
  /** The sessions, once so many are open. */
  opened(count: number, deadlineMs: number): Promise<HeldSession[]>;
  /** Their agents return. */
  letGo(): void;
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
  const { promise: released, resolve: letGo } = Promise.withResolvers<void>();
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
    letGo,
    async close() {
      letGo();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
