/**
 * A server that speaks AgentJet's protocol for environments, for tests. Its game: the model must say the name of the task.
 * A test may replace any answer, and let the server die.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readText } from "@hone/core";

/** One request, as it came. */
export interface FakeCall {
  readonly verb: string;
  readonly authorization: string | undefined;
  readonly body: {
    readonly env_type: string;
    readonly task_id: string | null;
    readonly instance_id: string;
    readonly messages: { readonly role?: string; readonly content?: string };
    readonly params: Readonly<Record<string, unknown>>;
  };
}

/** What a test makes of a request. */
export type FakeAnswer =
  | { readonly kind: "text"; readonly status?: number; readonly text: string }
  | { readonly kind: "data"; readonly data: unknown }
  /** The connection breaks. */
  | { readonly kind: "drop" }
  | { readonly kind: "silence" };

/** @returns undefined where the game answers. */
export type Behaviour = (call: FakeCall, count: number) => FakeAnswer | undefined;

interface Game {
  readonly wanted: string;
  isFound: boolean;
}

const MAX_BODY_BYTES = 1_000_000;
const NOT_FOUND: FakeAnswer = { kind: "text", status: 400, text: '{"detail":"Instance not found!"}' };

export class FakeAgentjetServer implements AsyncDisposable {
  readonly calls: FakeCall[] = [];
  /** Instances that were created and not released. */
  readonly open = new Map<string, Game>();
  /** @default the game answers everything */
  behave: Behaviour = () => undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<FakeAgentjetServer> {
    const fake = new FakeAgentjetServer();
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Verbs of the calls so far. */
  get verbs(): string[] {
    return this.calls.map(({ verb }) => verb);
  }

  /** Loses every instance, as a server does that is started again. */
  forget(): void {
    this.open.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await readText({ body: request }, MAX_BODY_BYTES)) as FakeCall["body"];
    const verb = (request.url ?? "").split("/").at(-1) ?? "";
    const call = { verb, authorization: request.headers.authorization, body };
    this.calls.push(call);
    const count = this.verbs.filter((each) => each === verb).length;
    const answer = this.behave(call, count) ?? this.#play(call);
    if (answer.kind === "drop") request.socket.destroy();
    if (answer.kind === "data") response.end(JSON.stringify({ success: true, data: answer.data }));
    if (answer.kind === "text") response.writeHead(answer.status ?? 200).end(answer.text);
  }

  #play({ verb, body }: FakeCall): FakeAnswer {
    if (verb === "create") {
      this.open.set(body.instance_id, { wanted: body.task_id ?? "", isFound: false });
      const state = [
        { role: "system", content: "You guess a word." },
        { role: "user", content: "Which word is it?" },
      ];
      return { kind: "data", data: { state, reward: 0, is_terminated: false, info: { language: "en" } } };
    }
    const game = this.open.get(body.instance_id);
    if (game === undefined) return NOT_FOUND;
    if (verb === "release") {
      this.open.delete(body.instance_id);
      return { kind: "data", data: null };
    }
    if (verb === "evaluate") return { kind: "data", data: game.isFound ? 1 : 0.25 };
    game.isFound = body.messages.content === game.wanted;
    return {
      kind: "data",
      data: {
        state: [{ role: "user", content: game.isFound ? "Yes." : "No." }],
        reward: game.isFound ? 0.5 : 0.1,
        is_terminated: game.isFound,
        info: { action_is_valid: body.messages.content !== "", nested: { left: "out" } },
      },
    };
  }
}
