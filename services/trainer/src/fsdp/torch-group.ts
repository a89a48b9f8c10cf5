/**
 * A group of PyTorch workers: torchrun as a child process, and the conversation with the first rank.
 *
 * G1  Every call is answered, refused, or fails with GroupLostError: when the group ends, when the call's deadline is over
 *     (the group is then ended: a rank that hangs will not come back), or by close().
 * G2  A dead rank on any node ends the group: torchrun ends the other ranks of its node and exits, and this class ends the
 *     ranks of the remaining nodes. Nothing is restarted here: the caller starts another group and loads the last commit.
 * G3  The group ends with this process, however that ends: the sockets close, and the workers then exit.
 * G4  What the workers print is kept in the log, and its last lines in the error.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import {
  type Hello,
  type WorkerAnswer,
  WorkerAnswerSchema,
  WorkerCallSchema,
} from "@hone/proto-gen/training";
import { recordedTraceparent } from "@hone/telemetry";
import { EngineCallError, EngineLostError } from "../engine/errors.ts";
import { GroupLostError } from "./errors.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import { freePort } from "./free-port.ts";
import type { OtherNodes, TorchHost } from "./fsdp-config.ts";
import type { RanksEnd, TorchNode } from "./torch-node.ts";
import { launchArguments, type RankPlaces, rankEnvironment, rankSettings } from "./torchrun.ts";
import { traceWorkers } from "./trace-workers.ts";

/** Lines of the workers that an error quotes. */
const LAST_LINES = 12;
/** Killed workers usually end at once, but a hung driver may hold one. */
const END_DEADLINE_MS = 10_000;

/** What to ask, as the schema of the call has it. */
export type CallKind = NonNullable<MessageInitShape<typeof WorkerCallSchema>["kind"]>;

/** What a call that was not refused is answered with. */
export type Answer = Exclude<WorkerAnswer["kind"], { case: "hello" | "failure" | undefined }>;

export class TorchGroup {
  readonly #host: TorchHost;
  readonly #folder: string;
  readonly #server: Server;
  readonly #id = randomUUID();
  readonly #hello = Promise.withResolvers<Hello>();
  /** Aborts with the reason for which the group is lost. */
  readonly #ending = new AbortController();
  readonly #lines: string[] = [];
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #nodes: readonly TorchNode[] = [];
  #socket: Socket | undefined;
  #open: { readonly number: number; readonly answered: PromiseWithResolvers<WorkerAnswer> } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #calls = 0;
  #lost: Error | undefined;

  /**
   * Starts workers and waits for their hello.
   * @param worldSize of them in all, as many on each node.
   * @param signal gives them up.
   * @throws {GroupLostError} where they do not come up.
   */
  static async start(host: TorchHost, worldSize: number, signal: AbortSignal): Promise<TorchGroup> {
    const folder = await mkdtemp(path.join(os.tmpdir(), "hone-fsdp-"));
    const server = createServer();
    const socketPath = path.join(folder, "calls");
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(socketPath, resolve);
    });
    const group = new TorchGroup(host, folder, server);
    const giveUp = () => group.#fail(new EngineLostError("closed"));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    try {
      await group.#connect(worldSize, socketPath);
    } catch (error) {
      await group.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    return group;
  }

  private constructor(host: TorchHost, folder: string, server: Server) {
    this.#host = host;
    this.#folder = folder;
    this.#server = server;
    // The group may be lost before anybody waits for its hello.
    this.#hello.promise.catch(() => undefined);
    server.once("connection", (socket) => this.#listen(socket));
  }

  /** The process of torchrun. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Calls are made one after the other. @throws {EngineCallError} when it is refused. @throws {GroupLostError} G1 */
  call(kind: CallKind): Promise<Answer> {
    const made = this.#last.then(() => this.#call(kind));
    this.#last = made.catch(() => undefined);
    return made;
  }

  /** Ends the workers at once; open calls fail. Idempotent. */
  async close(): Promise<void> {
    this.#fail(new EngineLostError("closed"));
    const ends = this.#nodes.map((node) => node.endRanks(this.#id));
    await Promise.race([Promise.all([this.#ended, ...ends]), pause(END_DEADLINE_MS)]);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #connect(worldSize: number, socketPath: string): Promise<void> {
    const places = await this.#gather(worldSize, this.#host.nodes);
    if (this.#lost !== undefined) throw this.#lost;
    this.#run(places, socketPath);
    const { group, numNodes: nodes, ranksPerNode, port } = places;
    for (const node of this.#nodes) {
      const order = { group, nodes, ranksPerNode, port, ...rankSettings(this.#host) };
      node.startRanks(order, (end) => this.#loseNode(node, end)); // G2
    }
    const hello = await this.#within("start", this.#host.startDeadlineMs, this.#hello.promise);
    if (hello.worldSize !== worldSize) {
      throw this.#lose(`a group of ${hello.worldSize} workers instead of ${worldSize}`);
    }
  }

  /** Waits for the other nodes, where there are some. @throws {GroupLostError} where they do not come or do not fit. */
  async #gather(worldSize: number, nodes: OtherNodes | undefined): Promise<RankPlaces> {
    if (nodes === undefined) return { group: this.#id, numNodes: 1, ranksPerNode: worldSize, port: 0 };
    const { others } = nodes;
    const { torchVersion } = this.#host;
    const numNodes = others.count;
    const ranksPerNode = worldSize / numNodes;
    if (!Number.isInteger(ranksPerNode)) throw this.#lose(`${worldSize} workers on ${numNodes} nodes`);
    const { startDeadlineMs, device } = this.#host;
    const found = await others.gather(startDeadlineMs, this.#ending.signal);
    for (const { facts } of found) {
      if (facts.torchVersion !== torchVersion) {
        throw this.#lose(`PyTorch ${facts.torchVersion} on node ${facts.index} and ${torchVersion} here`);
      }
      if (device === "cuda" && facts.gpus < ranksPerNode) {
        throw this.#lose(`${facts.gpus} GPUs on node ${facts.index} for ${ranksPerNode} workers`);
      }
    }
    this.#nodes = found;
    return { group: this.#id, numNodes, ranksPerNode, port: await freePort() };
  }

  #run(places: RankPlaces, socketPath: string): void {
    const host = this.#host;
    const child = spawn(host.python, launchArguments(places, host), {
      env: rankEnvironment(host, places, socketPath),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => this.#keep(line)); // G4
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    child.once("error", (error) => {
      this.#lose(`${host.python} does not start (${describeError(error)})`);
      resolve();
    });
    // Not "exit": the last lines of the workers come before "close".
    child.once("close", (code, signal) => {
      this.#lose(signal === null ? `torchrun ended with code ${code}` : `torchrun was ended by ${signal}`);
      resolve();
    });
  }

  async #call(kind: CallKind): Promise<Answer> {
    if (this.#lost !== undefined) throw this.#lost;
    const number = ++this.#calls;
    const answered = Promise.withResolvers<WorkerAnswer>();
    this.#open = { number, answered };
    const traceparent = recordedTraceparent() ?? "";
    const call = create(WorkerCallSchema, { number, kind, traceparent });
    for (const part of encodeFrame(toBinary(WorkerCallSchema, call))) this.#socket!.write(part);
    try {
      const { callDeadlineMs } = this.#host;
      const { kind: answer, spans } = await this.#within(String(kind.case), callDeadlineMs, answered.promise);
      traceWorkers(spans, traceparent);
      if (answer.case === "failure") throw new EngineCallError(answer.value.code, answer.value.message);
      if (answer.case === undefined || answer.case === "hello") {
        throw this.#lose(`an answer of kind ${answer.case ?? "nothing known"}`);
      }
      return answer;
    } finally {
      this.#open = undefined;
    }
  }

  /** Waits for a promise of this group; when the time is over, the group is ended (G1). */
  async #within<T>(action: string, ms: number, promise: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#lose(`no answer to ${action} within ${ms} ms`), ms);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #listen(socket: Socket): void {
    const reader = new FrameReader();
    this.#socket = socket;
    this.#server.close(); // The group has exactly one connection.
    socket.on("data", (chunk) => {
      try {
        for (const message of reader.push(chunk)) this.#take(fromBinary(WorkerAnswerSchema, message));
      } catch (error) {
        this.#lose(describeError(error));
      }
    });
    // The end of the group follows and says more.
    socket.on("error", (error) => this.#host.logger.debug("the workers' socket", { error }));
  }

  #take(answer: WorkerAnswer): void {
    if (answer.kind.case === "hello") this.#hello.resolve(answer.kind.value);
    else if (answer.number === this.#open?.number) this.#open.answered.resolve(answer);
  }

  #keep(line: string): void {
    this.#host.logger.info("training worker", { line });
    this.#lines.push(line);
    if (this.#lines.length > LAST_LINES) this.#lines.shift();
  }

  #loseNode({ facts }: TorchNode, { reason, lines }: RanksEnd): void {
    const error = new GroupLostError(
      "continue training",
      `node ${facts.index}: ${reason}`,
      lines.join(" | "),
    );
    this.#fail(error);
  }

  #lose(reason: string): Error {
    return this.#fail(new GroupLostError("continue training", reason, this.#lines.join(" | ")));
  }

  /** Ends the group; only the first reason counts (G1). */
  #fail(reason: Error): Error {
    if (this.#lost !== undefined) return this.#lost;
    this.#lost = reason;
    this.#ending.abort(reason);
    this.#hello.reject(reason);
    this.#open?.answered.reject(reason);
    this.#socket?.destroy(); // The first rank ends when its socket does, whatever it computes.
    this.#child?.kill("SIGKILL"); // The other ranks of this node end when torchrun does.
    for (const node of this.#nodes) void node.endRanks(this.#id);
    return reason;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
