/**
 * A group of PyTorch workers: torchrun as a child process, and the conversation with the first rank.
 *
 * G1  Every call is answered, refused, or fails with GroupLostError: when the group ends, when the call's deadline is over
 *     (the group is then ended: a rank that hangs will not come back), or by close().
 * G2  A dead rank ends the group: torchrun ends the others and exits. Nothing is started again here; whoever made the
 *     group makes another one and loads the last commit.
 * G3  The group ends with this process, however that ends: the socket closes, and the workers with it.
 * G4  What the workers print is kept in the log, and its last lines in the error.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { describeError } from "@hone/core";
import {
  type Hello,
  type WorkerAnswer,
  WorkerAnswerSchema,
  WorkerCallSchema,
} from "@hone/proto-gen/training";
import { EngineCallError, EngineLostError } from "../engine/errors.ts";
import { GroupLostError } from "./errors.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { TorchHost } from "./fsdp-config.ts";

/** The Python package of the workers. */
const PACKAGE_FOLDER = fileURLToPath(new URL("../../torch", import.meta.url));
/** Lines of the workers that an error quotes. */
const LAST_LINES = 12;
/** Workers that were killed are gone at once; a hung driver may hold one. */
const END_DEADLINE_MS = 10_000;

/** What to ask, as the schema of the call has it. */
export type CallKind = NonNullable<MessageInitShape<typeof WorkerCallSchema>["kind"]>;

/** What a call that was not refused is answered with. */
export type Answer = Exclude<WorkerAnswer["kind"], { case: "hello" | "failure" | undefined }>;

export class TorchGroup {
  readonly #host: TorchHost;
  readonly #folder: string;
  readonly #server: Server;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #hello = Promise.withResolvers<Hello>();
  readonly #lines: string[] = [];
  #socket: Socket | undefined;
  #open: { readonly number: number; readonly answered: PromiseWithResolvers<WorkerAnswer> } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #calls = 0;
  #lost: Error | undefined;

  /**
   * Starts workers and waits for their hello.
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
    const group = new TorchGroup(host, worldSize, folder, server, socketPath);
    const giveUp = () => group.#fail(new EngineLostError("closed"));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    try {
      await group.#within("start", host.startDeadlineMs, group.#hello.promise);
    } catch (error) {
      await group.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    return group;
  }

  private constructor(
    host: TorchHost,
    worldSize: number,
    folder: string,
    server: Server,
    socketPath: string,
  ) {
    this.#host = host;
    this.#folder = folder;
    this.#server = server;
    // Nobody may be waiting yet when the group is lost.
    this.#hello.promise.catch(() => undefined);
    server.once("connection", (socket) => this.#listen(socket));
    this.#child = spawn(host.python, torchrunArguments(worldSize), {
      env: workerEnvironment(host, socketPath),
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      createInterface({ input: stream }).on("line", (line) => this.#keep(line)); // G4
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    this.#child.once("error", (error) => {
      this.#lose(`${host.python} does not start (${describeError(error)})`);
      resolve();
    });
    // Not "exit": the last lines of the workers come before "close".
    this.#child.once("close", (code, signal) => {
      this.#lose(signal === null ? `torchrun ended with code ${code}` : `torchrun was ended by ${signal}`);
      resolve();
    });
  }

  /** The process of torchrun. */
  get pid(): number | undefined {
    return this.#child.pid;
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
    this.#socket?.destroy(); // The first rank ends when its socket does, whatever it computes.
    this.#child.kill("SIGKILL"); // And the ranks when torchrun does.
    await Promise.race([this.#ended, pause(END_DEADLINE_MS)]);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #call(kind: CallKind): Promise<Answer> {
    if (this.#lost !== undefined) throw this.#lost;
    const number = ++this.#calls;
    const answered = Promise.withResolvers<WorkerAnswer>();
    this.#open = { number, answered };
    const call = create(WorkerCallSchema, { number, kind });
    for (const part of encodeFrame(toBinary(WorkerCallSchema, call))) this.#socket!.write(part);
    try {
      const { callDeadlineMs } = this.#host;
      const { kind: answer } = await this.#within(String(kind.case), callDeadlineMs, answered.promise);
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
    const timer = setTimeout(() => {
      this.#lose(`no answer to ${action} within ${ms} ms`);
      this.#child.kill("SIGKILL");
    }, ms);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #listen(socket: Socket): void {
    const reader = new FrameReader();
    this.#socket = socket;
    this.#server.close(); // One connection is all there is.
    socket.on("data", (chunk) => {
      try {
        for (const message of reader.push(chunk)) this.#take(fromBinary(WorkerAnswerSchema, message));
      } catch (error) {
        this.#lose(describeError(error));
        this.#child.kill("SIGKILL");
      }
    });
    // The group's end tells more: it follows.
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

  #lose(reason: string): Error {
    return this.#fail(new GroupLostError("go on training", reason, this.#lines.join(" | ")));
  }

  /** The first reason stands (G1). */
  #fail(reason: Error): Error {
    this.#lost ??= reason;
    this.#hello.reject(this.#lost);
    this.#open?.answered.reject(this.#lost);
    return this.#lost;
  }
}

function torchrunArguments(worldSize: number): string[] {
  return [
    "-m",
    "torch.distributed.run",
    "--standalone",
    // The host's name need not resolve.
    "--local-addr=127.0.0.1",
    `--nproc-per-node=${worldSize}`,
    "--max-restarts=0", // G2
    "-m",
    "hone_fsdp.worker",
  ];
}

/** The host's environment with what workers need. */
function workerEnvironment(host: TorchHost, socketPath: string): Record<string, string | undefined> {
  const { environment, device, threadsPerWorker, callDeadlineMs } = host;
  return {
    OMP_NUM_THREADS: String(threadsPerWorker),
    // Ranks of one host meet on it, whatever its name resolves to.
    ...(os.platform() === "linux" ? { GLOO_SOCKET_IFNAME: "lo" } : {}),
    ...environment,
    PYTHONPATH: PACKAGE_FOLDER,
    PYTHONUNBUFFERED: "1",
    PYTHONDONTWRITEBYTECODE: "1",
    HONE_FSDP_SOCKET: socketPath,
    HONE_FSDP_DEVICE: device,
    // The trainer's own deadline ends the group first, and says which call it was.
    HONE_FSDP_COLLECTIVE_SECONDS: String(Math.ceil(callDeadlineMs / 1_000) + 60),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
