/**
 * A TCP proxy that simulates faults of the network between a client and its server.
 *
 *   pass        forwards everything
 *   black hole  drops what is sent without an error. Existing connections never work again, as behind a router that forgot
 *               them; new ones are opened when the network is restored.
 *   reset       resets all existing and new connections
 *   throttle    forwards what the server sends slowly, so that the server's buffers fill up
 */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

type State =
  | { readonly kind: "pass" }
  | { readonly kind: "black_hole" }
  | { readonly kind: "reset" }
  | { readonly kind: "throttle"; readonly bytesPerSecond: number };

interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  isDead: boolean;
}

const LOOPBACK = "127.0.0.1";
/** Throttled bytes are forwarded in this many portions per second. */
const PORTIONS_PER_SECOND = 20;

export class TcpProxy implements AsyncDisposable {
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<Pair>();
  /** Clients that connected during a black hole. */
  readonly #waiting = new Set<Socket>();
  #state: State = { kind: "pass" };

  private constructor(server: Server, target: { host: string; port: number }) {
    this.#server = server;
    this.#target = target;
    server.on("connection", (near) => this.#accept(near));
  }

  /**
   * @param url address of the server, such as `nats://127.0.0.1:4222`.
   * @param at address for clients. @default a free port
   */
  static async start(url: string, at = { host: LOOPBACK, port: 0 }): Promise<TcpProxy> {
    const { hostname, port } = new URL(url);
    // Client and server close their half-open connections themselves.
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    server.listen(at.port, at.host);
    await once(server, "listening");
    return new TcpProxy(server, { host: hostname, port: Number(port) });
  }

  /** Address that clients connect to instead of the server's. */
  get host(): string {
    return `${LOOPBACK}:${(this.#server.address() as AddressInfo).port}`;
  }

  blackHole(): void {
    this.#state = { kind: "black_hole" };
    for (const pair of this.#pairs) {
      pair.isDead = true;
      pair.near.resume();
      pair.far.resume();
    }
  }

  reset(): void {
    this.#state = { kind: "reset" };
    for (const { near, far } of this.#pairs) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  throttle(bytesPerSecond: number): void {
    this.#state = { kind: "throttle", bytesPerSecond };
  }

  /** Ends the fault. */
  restore(): void {
    this.#state = { kind: "pass" };
    for (const near of this.#waiting) this.#join(near);
    this.#waiting.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const near of this.#waiting) near.destroy();
    for (const { near, far } of this.#pairs) {
      near.destroy();
      far.destroy();
    }
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(near: Socket): void {
    near.on("error", () => near.destroy());
    if (this.#state.kind === "reset") near.resetAndDestroy();
    else if (this.#state.kind === "black_hole") this.#holdBack(near);
    else this.#join(near);
  }

  #holdBack(near: Socket): void {
    this.#waiting.add(near);
    near.once("close", () => this.#waiting.delete(near));
  }

  #join(near: Socket): void {
    const far = connect(this.#target);
    const pair: Pair = { near, far, isDead: false };
    this.#pairs.add(pair);
    far.on("error", () => far.destroy());
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.once("end", () => pair.isDead || other.end());
      one.once("close", () => {
        if (!pair.isDead) other.destroy();
        if (near.destroyed && far.destroyed) this.#pairs.delete(pair);
      });
    }
    near.on("data", (chunk) => this.#pass(pair, near, far, chunk, false));
    far.on("data", (chunk) => this.#pass(pair, far, near, chunk, true));
    near.resume();
  }

  #pass(pair: Pair, from: Socket, to: Socket, chunk: Buffer, isAnswer: boolean): void {
    if (pair.isDead) return;
    if (isAnswer && this.#state.kind === "throttle") {
      const { bytesPerSecond } = this.#state;
      from.pause();
      this.#drip(pair, from, to, chunk, Math.ceil(bytesPerSecond / PORTIONS_PER_SECOND));
      return;
    }
    if (to.write(chunk)) return;
    from.pause();
    to.once("drain", () => from.resume());
  }

  #drip(pair: Pair, from: Socket, to: Socket, rest: Buffer, portion: number): void {
    if (pair.isDead || to.destroyed) return;
    const isSlow = this.#state.kind === "throttle";
    to.write(isSlow ? rest.subarray(0, portion) : rest);
    if (!isSlow || rest.length <= portion) {
      from.resume();
      return;
    }
    setTimeout(
      () => this.#drip(pair, from, to, rest.subarray(portion), portion),
      1_000 / PORTIONS_PER_SECOND,
    );
  }
}
