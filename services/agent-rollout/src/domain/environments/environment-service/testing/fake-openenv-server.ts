/**
 * A server that speaks OpenEnv's protocol over WebSockets, for tests. Its game: the model must say a word, in as many steps as
 * it likes. A test may replace any answer.
 */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

export interface FakeMessage {
  readonly type: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** What a test makes of a message: an answer, or the end of the connection. */
export type FakeReply = string | "drop" | "silence";

export class FakeOpenenvServer implements AsyncDisposable {
  readonly messages: FakeMessage[] = [];
  authorization: string | undefined;
  /** @returns undefined where the game answers. */
  behave: (message: FakeMessage, count: number) => FakeReply | undefined = () => undefined;
  /** A status with which every handshake is refused. */
  refusal: number | undefined;
  readonly #server: Server = createServer();
  readonly #sockets = new WebSocketServer({ noServer: true });

  private constructor() {
    this.#server.on("upgrade", (request: IncomingMessage, socket, head) => {
      this.authorization = request.headers.authorization;
      if (this.refusal !== undefined || request.url !== "/games/ws") {
        socket.end(`HTTP/1.1 ${this.refusal ?? 404} Refused\r\ncontent-length: 0\r\n\r\n`);
        return;
      }
      this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#serve(opened));
    });
  }

  static async start(): Promise<FakeOpenenvServer> {
    const fake = new FakeOpenenvServer();
    fake.#server.listen(0, "127.0.0.1");
    await once(fake.#server, "listening");
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/games/`;
  }

  /** Connections that are open. */
  get sessions(): number {
    return this.#sockets.clients.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets.clients) socket.terminate();
    await new Promise((closed) => this.#server.close(closed));
  }

  #serve(socket: WebSocket): void {
    socket.on("message", (data) => {
      const message = JSON.parse(data.toString()) as FakeMessage;
      this.messages.push(message);
      const count = this.messages.filter(({ type }) => type === message.type).length;
      const reply = this.behave(message, count) ?? play(message);
      if (reply === "drop") socket.terminate();
      else if (message.type === "close") socket.close();
      else if (reply !== "silence") socket.send(reply);
    });
  }
}

function play({ type, data = {} }: FakeMessage): FakeReply {
  if (type === "close") return "silence";
  const text = data.message === "sun" ? "Yes." : type === "reset" ? "Which word is it?" : "No.";
  const observation = { prompt: text, level: 2, legal: [1, 2] };
  const done = data.message === "sun";
  return JSON.stringify({
    type: "observation",
    data: { observation, reward: type === "reset" ? null : done ? 1 : 0.25, done },
  });
}
