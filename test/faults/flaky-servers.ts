/**
 * A tool's server and a judge's server that can be made to fail. They cut the connection in one of ten first and second
 * tries, in every run at the same tries.
 */

import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** One try in this many fails. */
const ONE_IN = 10;
/** The third try always succeeds. */
const MAX_FAILURES = 2;

export class FlakyServers implements AsyncDisposable {
  isFailing = false;
  /** Number of tries that were made to fail. */
  readonly failures = { tool: 0, judge: 0 };
  readonly #server: Server;
  /** Number of tries of each request to the judge. */
  readonly #tries = new Map<string, number>();
  /** Attempts of each rollout, by its key. */
  readonly #attempts = new Map<string, string[]>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<FlakyServers> {
    const server = createServer();
    const servers = new FlakyServers(server);
    server.on("request", async (request, response) => {
      const body = await bodyOf(request);
      const answer = servers.#answer(request.url ?? "", body);
      if (answer === undefined) request.socket.destroy();
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return servers;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Starts to fail. Earlier tries do not count. */
  startFailing(): void {
    this.isFailing = true;
    this.#tries.clear();
    this.#attempts.clear();
  }

  /** @returns the answer; undefined if the server fails. */
  #answer(url: string, body: string): unknown {
    const [, part, key = "", attempt = ""] = url.split("/");
    if (part === "judge") {
      const tries = (this.#tries.get(body) ?? 0) + 1;
      this.#tries.set(body, tries);
      if (!this.#fails("judge", body, tries)) return { score: scoreOf(body) };
      this.failures.judge++;
      return undefined;
    }
    const attempts = this.#attempts.get(key) ?? [];
    this.#attempts.set(key, attempts);
    if (!attempts.includes(attempt)) attempts.push(attempt);
    if (!this.#fails("tool", key, attempts.indexOf(attempt) + 1)) return { text: `seen ${Number(key) % 7}` };
    this.failures.tool++;
    return undefined;
  }

  #fails(part: string, key: string, attempt: number): boolean {
    return this.isFailing && attempt <= MAX_FAILURES && numberOf(`${part} ${attempt} ${key}`) % ONE_IN === 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** A reward that differs within a group, because it is computed from the model's text. */
function scoreOf(body: string): number {
  const { solution } = JSON.parse(body) as { solution: string };
  return (numberOf(solution) % 5) / 4;
}

function numberOf(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE(0);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
  return body;
}
