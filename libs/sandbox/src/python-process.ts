/**
 * The parent's side of one child process with a started Python.
 *
 * E1: it is ended by SIGKILL to its group when its time is over, its memory is used up, its signal aborts, or `end` is called.
 * E2: what the code does to its process is a result of the run.
 * E3: it may be hostile. It may send only what the protocol expects, in frames that are checked and limited; anything else ends
 *     it as the code's own failure.
 */

import { deadline, describeError } from "@hone/core";
import { ChildChannel } from "./child-channel.ts";
import { FILE_COPIES, spawnDeno } from "./deno-process.ts";
import { PackageError, SandboxMissingError, SandboxUnavailableError } from "./errors.ts";
import { maxResultBytes, parseFinishedRun, textOf } from "./finished-run.ts";
import { type Frame, ProtocolError } from "./frame-reader.ts";
import type { WheelSet } from "./packages/wheel-set.ts";
import { type FinishedRun, MAX_SNAPSHOT_BYTES, type RunOrder, type StartOrder } from "./protocol.ts";
import { readChildFiles } from "./pyodide-files.ts";
import { readUsage } from "./usage.ts";
import { kernelWalls, WALLS_LINE } from "./walls/kernel-walls.ts";

/** Limits of one run, and its inputs. */
export interface RunLimits {
  readonly timeMs: number;
  readonly maxOutputBytes: number;
  /** What `sys.stdin` reads. @default empty */
  readonly stdin?: string;
  /**
   * Answers the code's calls of `host_call(request: str) -> str`; waiting counts against the run's time. Without this function
   * the code has no `host_call`. An error that it throws ends the process, and the run throws it.
   */
  readonly answerCall?: (request: string) => Promise<string>;
}

/** The result of a run. */
export type RunResult =
  | ({ readonly kind: "finished" } & FinishedRun)
  | { readonly kind: "timed_out" }
  | { readonly kind: "out_of_memory" }
  /** The process ended during the run. If `isBySignal`, another process ended it, and it is not the code's fault. */
  | { readonly kind: "crashed"; readonly reason: string; readonly isBySignal: boolean };

const START_DEADLINE_MS = 60_000;
/** Making a snapshot imports all modules of its packages: sympy takes 10 s where two cores are free. */
const SNAPSHOT_DEADLINE_MS = 300_000;
/** Longest call, and longest answer to a call. */
const MAX_CALL_BYTES = 4 * 1024 * 1024;
const MAX_CALLS = 10_000;
/** Memory of Deno and of compiled code, in addition to Python's memory. */
const OVERHEAD_BYTES = 320 * 1024 * 1024;
/** A snapshot without packages. */
const BARE_SNAPSHOT_BYTES = 30 * 1024 * 1024;
/** Deno with Pyodide has six threads on two cores, and its compiler one for each core. */
const MAX_THREADS = 160;
const WATCH_INTERVAL_MS = 100;

export class PythonProcess {
  readonly #channel: ChildChannel;
  /** The most that its memory may take, with JavaScript's and the compiler's. */
  readonly #maxResidentBytes: number;

  private constructor(channel: ChildChannel, maxResidentBytes: number) {
    this.#channel = channel;
    this.#maxResidentBytes = maxResidentBytes;
  }

  /**
   * Makes a snapshot of a started Python, from which others start in a tenth of the time.
   * @param wheels packages that it has imported.
   * @throws {PackageError} when one of them cannot be imported.
   * @throws as {@link start}.
   */
  static async snapshot(maxMemoryBytes: number, wheels: WheelSet): Promise<Uint8Array> {
    const { channel, payload } = await startChild(undefined, maxMemoryBytes, wheels);
    channel.kill();
    return payload;
  }

  /**
   * @param snapshot one that was made with the same packages.
   * @throws {SandboxUnavailableError} when the process cannot be started.
   * @throws {SandboxMissingError} when this machine has no runtime for it.
   */
  static async start(snapshot: Uint8Array, maxMemoryBytes: number, wheels: WheelSet): Promise<PythonProcess> {
    const { channel } = await startChild(snapshot, maxMemoryBytes, wheels);
    const own = FILE_COPIES * packageBytesOf(snapshot, wheels);
    return new PythonProcess(channel, maxMemoryBytes + OVERHEAD_BYTES + own);
  }

  get isAlive(): boolean {
    return this.#channel.isAlive;
  }

  /**
   * Runs code until the code or the process ends.
   * @throws the signal's reason when it aborts, and what `answerCall` throws; the process has ended then.
   */
  async run(code: string, limits: RunLimits, signal: AbortSignal): Promise<RunResult> {
    const channel = this.#channel;
    const { timeMs, maxOutputBytes, stdin = "", answerCall } = limits;
    const { promise, resolve, reject } = Promise.withResolvers<RunResult>();
    const calls = answerCall === undefined ? undefined : new HostCalls(channel, answerCall, reject);
    const onFrame = (frame: Frame) => {
      if (frame.kind === "call" && calls !== undefined) calls.take(frame.payload);
      else if (frame.kind === "done" && !calls?.isPending) {
        channel.listen(undefined);
        resolve({ kind: "finished", ...parseFinishedRun(frame.payload, maxOutputBytes) });
      } else throw new ProtocolError(`a ${frame.kind} out of turn`);
    };
    const onEnd = (reason: string, isBySignal: boolean) => resolve({ kind: "crashed", reason, isBySignal });
    const onAbort = () => reject(signal.reason);
    const timer = setTimeout(() => resolve({ kind: "timed_out" }), timeMs);
    const watch = setInterval(async () => {
      if (await this.#exceedsMemory()) resolve({ kind: "out_of_memory" });
    }, WATCH_INTERVAL_MS);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      signal.throwIfAborted();
      if (!this.isAlive) return { kind: "crashed", reason: "gone before it ran", isBySignal: true };
      const maxBytes = Math.max(maxResultBytes(maxOutputBytes), calls === undefined ? 0 : MAX_CALL_BYTES);
      const nonce = channel.listen({ onFrame, onEnd }, maxBytes);
      const order: RunOrder = { code, maxOutputBytes, stdin, mayCall: calls !== undefined };
      channel.send(Buffer.from(JSON.stringify(order)));
      channel.sendBare(nonce);
      const result = await promise;
      if (result.kind !== "finished") this.end(); // E1
      return result;
    } catch (error) {
      this.end();
      throw error;
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
      channel.listen(undefined);
      signal.removeEventListener("abort", onAbort);
    }
  }

  end(): void {
    this.#channel.kill();
  }

  /** Checks the resident memory, which includes JavaScript's and the compiler's, and the number of threads. */
  async #exceedsMemory(): Promise<boolean> {
    const usage = await readUsage(this.#channel.pid);
    if (usage === undefined) return false;
    return usage.residentBytes > this.#maxResidentBytes || usage.numThreads > MAX_THREADS;
  }
}

/** The host calls of one run: one at a time, limited in number and size. */
class HostCalls {
  readonly #channel: ChildChannel;
  readonly #answer: (request: string) => Promise<string>;
  readonly #fail: (error: unknown) => void;
  #count = 0;
  isPending = false;

  constructor(
    channel: ChildChannel,
    answer: (request: string) => Promise<string>,
    fail: (error: unknown) => void,
  ) {
    this.#channel = channel;
    this.#answer = answer;
    this.#fail = fail;
  }

  /** @throws {ProtocolError} */
  take(payload: Uint8Array): void {
    if (this.isPending) throw new ProtocolError("a call before the answer to the last one");
    if (payload.length > MAX_CALL_BYTES) throw new ProtocolError(`a call of ${payload.length} bytes`);
    if (++this.#count > MAX_CALLS) throw new ProtocolError(`more than ${MAX_CALLS} calls`);
    this.isPending = true;
    this.#answer(textOf(payload))
      .then((text) => {
        const answer = Buffer.from(text);
        if (answer.length > MAX_CALL_BYTES)
          throw new RangeError(
            `the answer to a call of the sandbox has ${answer.length} bytes; at most ${MAX_CALL_BYTES} are allowed`,
          );
        this.isPending = false;
        this.#channel.send(answer);
      })
      .catch(this.#fail);
  }
}

async function startChild(
  snapshot: Uint8Array | undefined,
  maxMemoryBytes: number,
  wheels: WheelSet,
): Promise<{ channel: ChildChannel; payload: Buffer }> {
  let channel: ChildChannel | undefined;
  try {
    const { program, pyodide } = await readChildFiles();
    const files = new Map([
      ...pyodide,
      ...wheels.wheels.map(({ fileName, bytes }) => [fileName, bytes] as const),
      ...(snapshot === undefined ? [] : [["snapshot", snapshot] as const]),
    ]);
    const { names } = await kernelWalls();
    const hasKernelWalls = names.length > 0;
    const packageBytes = packageBytesOf(snapshot, wheels);
    channel = new ChildChannel(
      spawnDeno({ program, maxPythonBytes: maxMemoryBytes, packageBytes, hasKernelWalls }),
    );
    const payload = await startUp(channel, files, {
      files: [...files.keys()],
      maxMemoryBytes,
      packages: wheels.wheels.map(({ fileName: file, isCompiled, modules }) => ({
        file,
        isCompiled,
        modules,
      })),
    });
    channel.dropErrorOutput();
    return { channel, payload };
  } catch (cause) {
    channel?.kill();
    if (cause instanceof SandboxMissingError || cause instanceof PackageError) throw cause;
    const errorOutput = channel?.errorOutput.replace(WALLS_LINE, "").trim() ?? "";
    const why = describeError(cause) + (errorOutput === "" ? "" : `: ${errorOutput}`);
    throw new SandboxUnavailableError("no process of the sandbox could be started", why, { cause });
  }
}

/** What packages add to the files of a process: their wheels, and what their modules add to its snapshot. */
function packageBytesOf(snapshot: Uint8Array | undefined, wheels: WheelSet): number {
  if (wheels.wheels.length === 0) return 0;
  // How large the snapshot gets that is being made is not known.
  const snapshotBytes = snapshot?.length ?? MAX_SNAPSHOT_BYTES;
  return wheels.numBytes + Math.max(0, snapshotBytes - BARE_SNAPSHOT_BYTES);
}

function packageFailure({ packages }: StartOrder, problem: string): PackageError {
  const files = packages.map(({ file }) => file).join(", ");
  return new PackageError(
    `The packages ${files} do not work in the sandbox: ${problem}`,
    "packages that can be imported in the sandbox",
  );
}

/** Sends the child its program's files and waits for its first frame. */
async function startUp(
  channel: ChildChannel,
  files: ReadonlyMap<string, Uint8Array>,
  order: StartOrder,
): Promise<Buffer> {
  channel.keepAlive(true);
  try {
    const isStart = files.has("snapshot");
    return await deadline(
      "a process of the sandbox",
      isStart ? START_DEADLINE_MS : SNAPSHOT_DEADLINE_MS,
      () => {
        const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
        const onFrame = (frame: Frame) => {
          const isFailure = frame.kind === "failed" && !isStart;
          if (frame.kind !== (isStart ? "ready" : "snapshot") && !isFailure) {
            throw new ProtocolError(`a ${frame.kind} as its first`);
          }
          channel.listen(undefined);
          if (isFailure) reject(packageFailure(order, textOf(frame.payload)));
          else resolve(frame.payload);
        };
        const onEnd = (reason: string) => reject(new Error(`it ended with ${reason}`));
        const nonce = channel.listen({ onFrame, onEnd }, MAX_SNAPSHOT_BYTES);
        channel.send(Buffer.from(JSON.stringify(order)));
        for (const file of files.values()) channel.send(file);
        channel.sendBare(nonce);
        return promise;
      },
    );
  } finally {
    channel.listen(undefined);
    channel.keepAlive(false);
  }
}
