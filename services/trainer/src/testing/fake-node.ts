/**
 * A node in the place of torch/hone_fsdp/node.py that speaks its side of proto/hone/training/v1, for tests of what the trainer
 * does when nodes come, go, stay silent or lose their ranks. It records the orders that it gets, and reports what the test says.
 */
import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type NodeOrder, NodeOrderSchema, NodeReportSchema, type StartRanks } from "@hone/proto-gen/training";
import { encodeFrame, FrameReader } from "../fsdp/frames.ts";
import type { NodeFacts } from "../fsdp/torch-node.ts";

type ReportKind = NonNullable<MessageInitShape<typeof NodeReportSchema>["kind"]>;

export class FakeNode {
  /** All orders that it has received. */
  readonly orders: NodeOrder["kind"][] = [];
  readonly #socket: Socket;
  isClosed = false;

  /** Connects to a trainer's nodes and says hello. */
  static async join(port: number, facts: Partial<NodeFacts> = {}): Promise<FakeNode> {
    const socket = createConnection({ host: "127.0.0.1", port });
    await once(socket, "connect");
    const node = new FakeNode(socket);
    node.report({ case: "hello", value: { index: 1, torchVersion: "none", gpus: 0, ...facts } });
    return node;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    const reader = new FrameReader();
    socket.on("data", (chunk) => {
      for (const message of reader.push(chunk)) this.orders.push(fromBinary(NodeOrderSchema, message).kind);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  report(kind: ReportKind): void {
    const message = toBinary(NodeReportSchema, create(NodeReportSchema, { kind }));
    for (const part of encodeFrame(message)) this.#socket.write(part);
  }

  /** Sends bytes that may not be a message. */
  reportBytes(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The first order to start ranks. */
  get started(): StartRanks | undefined {
    return this.#first(({ case: kind, value }) => (kind === "startRanks" ? value : undefined));
  }

  /** The first group that it was ordered to end. */
  get ended(): string | undefined {
    return this.#first(({ case: kind, value }) => (kind === "endRanks" ? value.group : undefined));
  }

  /** Why it was refused. */
  get refused(): string | undefined {
    return this.#first(({ case: kind, value }) => (kind === "refused" ? value.reason : undefined));
  }

  /** Closes the connection, as the end of the program does. */
  leave(): void {
    this.#socket.end();
  }

  #first<T>(find: (order: NodeOrder["kind"]) => T | undefined): T | undefined {
    return this.orders.map(find).find((found) => found !== undefined);
  }
}
