/**
 * The other nodes of a trainer whose workers spread over several. On each of them a program (torch/hone_fsdp/node.py)
 * connects here, again and again, and starts ranks when it is ordered to.
 *
 * N1  A node says hello once no rank that it had is left. A later connection of a node takes the place of its earlier one,
 *     whose groups are lost.
 * N2  A process that ends closes its connection; a machine that is gone says nothing. Either side takes the other one for
 *     gone after SILENT_BEATS beats without a word: the trainer loses the groups with ranks there, the node ends them.
 * N3  A node that cannot take part gets the reason, and its connection is closed. It connects again later.
 * N4  Groups are independent of each other: each has ranks, a rendezvous and an end of its own.
 */
import { createServer, type Server, type Socket } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { DeadlineError, deadline, describeError, raceAbortable } from "@hone/core";
import { NodeOrderSchema, type NodeReport, NodeReportSchema } from "@hone/proto-gen/training";
import { SettingError } from "@hone/service-kit";
import { Instrument, type Logger, observeMetric } from "@hone/telemetry";
import { GroupLostError } from "./errors.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import { type NodeFacts, type OrderKind, TorchNode } from "./torch-node.ts";

const BEAT_MS = 5_000;
/** A minute: the event loop of a trainer that lays out a large model may stand still for seconds. */
const SILENT_BEATS = 12;

export interface TorchNodesOptions {
  /** Nodes in all, the trainer's own among them. */
  readonly count: number;
  readonly host: string;
  /** 0 = any. */
  readonly port: number;
  readonly logger: Logger;
  /** Between two beats. @default 5_000 */
  readonly beatMs?: number;
}

interface Connected {
  readonly node: TorchNode;
  readonly socket: Socket;
}

export class TorchNodes {
  readonly count: number;
  readonly #server: Server;
  readonly #logger: Logger;
  readonly #beatMs: number;
  readonly #nodes = new Map<number, Connected>();
  readonly #sockets = new Set<Socket>();
  readonly #observer: Disposable;
  #joined = Promise.withResolvers<void>();

  /** Listens for nodes. @throws {SettingError} where the port is not free. */
  static async listen(options: TorchNodesOptions): Promise<TorchNodes> {
    const { host, port } = options;
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) => {
        reject(
          new SettingError("HONE_TRAINER_NODES_PORT", "must be a free port", `${host}:${port}`, { cause }),
        );
      });
      server.listen({ host, port }, resolve);
    });
    return new TorchNodes(options, server);
  }

  private constructor({ count, logger, beatMs = BEAT_MS }: TorchNodesOptions, server: Server) {
    this.count = count;
    this.#server = server;
    this.#logger = logger;
    this.#beatMs = beatMs;
    server.on("connection", (socket) => this.#listen(socket));
    server.on("error", (error) => logger.warn("cannot take a node's connection", { error }));
    this.#observer = observeMetric(Instrument.trainerNodes, () => [
      { labels: {}, value: 1 + this.#nodes.size },
    ]);
  }

  /** Where nodes connect. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** The indexes of nodes that are not connected. */
  get missing(): number[] {
    const others = Array.from({ length: this.count - 1 }, (_, i) => i + 1);
    return others.filter((index) => !this.#nodes.has(index));
  }

  /**
   * Waits until every node is connected.
   * @returns them by their index.
   * @throws {GroupLostError} with those that are missing, when the time is over; the signal's reason.
   */
  async gather(deadlineMs: number, signal: AbortSignal): Promise<readonly TorchNode[]> {
    try {
      await deadline("the nodes", deadlineMs, (until) => this.#complete(until), { signal });
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      const names = `node${this.missing.length === 1 ? "" : "s"} ${this.missing.join(", ")}`;
      const reason = `${names} of ${this.count} (0 is the trainer's own) did not connect within ${deadlineMs} ms`;
      throw new GroupLostError("start training", reason, "", { cause: error });
    }
    return [...this.#nodes.values()].map(({ node }) => node).sort((a, b) => a.facts.index - b.facts.index);
  }

  /** Closes the connection to every node, which ends its ranks. Idempotent. */
  async close(): Promise<void> {
    this.#observer[Symbol.dispose]();
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #complete(signal: AbortSignal): Promise<void> {
    while (this.missing.length > 0) await raceAbortable(this.#joined.promise, signal);
  }

  #listen(socket: Socket): void {
    const reader = new FrameReader();
    let node: TorchNode | undefined;
    let reason = "it closed the connection";
    let silentBeats = 0;
    const end = (why: string) => {
      reason = why;
      socket.destroy();
    };
    const beating = setInterval(() => {
      // Counted, not timed: after this process stood still, what the node said meanwhile is read before the next beat.
      if (++silentBeats > SILENT_BEATS)
        end(`silent for ${SILENT_BEATS * this.#beatMs} ms`); // N2
      else sendOrder(socket, { case: "beat", value: {} });
    }, this.#beatMs);
    this.#sockets.add(socket);
    socket.on("data", (chunk) => {
      silentBeats = 0;
      try {
        for (const message of reader.push(chunk)) {
          const { kind } = fromBinary(NodeReportSchema, message);
          if (kind.case === "hello") node = this.#accept(kind.value, socket);
          else if (node !== undefined) this.#take(node, kind);
        }
      } catch (error) {
        end(describeError(error));
      }
    });
    socket.on("error", (error) => {
      reason = describeError(error);
    });
    socket.on("close", () => {
      clearInterval(beating);
      this.#sockets.delete(socket);
      if (node !== undefined) this.#lose(node, reason);
    });
  }

  /** @returns the node where it may take part. */
  #accept({ index, torchVersion, gpus }: NodeFacts, socket: Socket): TorchNode | undefined {
    if (index < 1 || index >= this.count) {
      const reason = `this trainer has the nodes 1 to ${this.count - 1} beside its own, so node ${index} cannot take part`;
      this.#logger.warn("refused a node", { reason });
      sendOrder(socket, { case: "refused", value: { reason } }); // N3
      socket.end();
      return undefined;
    }
    const earlier = this.#nodes.get(index);
    if (earlier !== undefined) {
      this.#lose(earlier.node, "it connected anew"); // N1
      earlier.socket.destroy();
    }
    const node = new TorchNode({ index, torchVersion, gpus }, (kind) => sendOrder(socket, kind));
    this.#nodes.set(index, { node, socket });
    this.#logger.info("a node has connected", { node: index, torchVersion, gpus, missing: this.missing });
    sendOrder(socket, { case: "beat", value: {} });
    this.#joined.resolve();
    this.#joined = Promise.withResolvers();
    return node;
  }

  #take(node: TorchNode, kind: NodeReport["kind"]): void {
    if (kind.case !== "ranksEnded") return;
    const { group, reason, lines } = kind.value;
    this.#logger.info("a node's training workers ended", { node: node.facts.index, reason, lines });
    node.ranksEnded(group, { reason, lines });
  }

  #lose(node: TorchNode, reason: string): void {
    const { index } = node.facts;
    if (this.#nodes.get(index)?.node === node) {
      this.#nodes.delete(index);
      this.#logger.warn("a node is gone", { node: index, reason });
    }
    node.lose(reason);
  }
}

function sendOrder(socket: Socket, kind: OrderKind): void {
  if (!socket.writable) return;
  const message = toBinary(NodeOrderSchema, create(NodeOrderSchema, { kind }));
  for (const part of encodeFrame(message)) socket.write(part);
}
