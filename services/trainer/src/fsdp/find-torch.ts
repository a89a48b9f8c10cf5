/**
 * Finds out whether this trainer has PyTorch, and decides how the workers of a run compute.
 *
 * The interpreter is asked once, with the first run that wants it: importing PyTorch takes seconds.
 */
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import type { RunConfig } from "@hone/config";
import { describeError, TerminalError } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import type { TorchSettings } from "../config.ts";
import { type Problem, problemOf } from "../domain/report/run-event.ts";
import type { FsdpEngineConfig, TorchDevice, TorchHost } from "./fsdp-config.ts";
import type { TorchNodes } from "./torch-nodes.ts";
import { packageEnvironment } from "./torchrun.ts";

/** What the interpreter reported about PyTorch. */
export interface TorchFacts {
  readonly device: TorchDevice;
  /** Number of GPUs of this node; 0 on CPUs. */
  readonly gpus: number;
  readonly version: string;
}

/** The host's PyTorch, or why it has none. */
export type FoundTorch =
  | { readonly kind: "found"; readonly facts: TorchFacts }
  | { readonly kind: "missing"; readonly reason: string };

/** How the workers of a run compute: the devices decide what the run file leaves open. */
export type WorkerPlan = Pick<
  FsdpEngineConfig,
  "worldSize" | "computeType" | "recomputesLayers" | "offloadsToHost"
>;

/** The release that contracts with PyTorch are written for (services/trainer/torch/pyproject.toml). */
const TORCH_RELEASE = "2.13.";
/** The most ranks of one host on CPUs; a larger number is a mistake. */
const MAX_CPU_WORKERS = 64;

export class TorchFinder {
  readonly #settings: TorchSettings | undefined;
  readonly #others: TorchNodes | undefined;
  #asked: Promise<FoundTorch> | undefined;

  /** @param others of a trainer of several nodes that trains, and does not only judge runs. */
  constructor(settings: TorchSettings | undefined, others?: TorchNodes) {
    this.#settings = settings;
    this.#others = others;
  }

  /** Asks the interpreter, once; again after it was missing, as somebody may have installed it. */
  async find(): Promise<FoundTorch> {
    this.#asked ??= this.#ask();
    const found = await this.#asked;
    if (found.kind === "missing") this.#asked = undefined;
    return found;
  }

  /** The problems of a run that trains with FSDP2; none for other engines. */
  async problems({ trainer: { engine } }: RunConfig): Promise<Problem[]> {
    if (engine.kind !== "fsdp2") return [];
    const found = await this.find();
    if (found.kind === "missing") {
      return [problem("kind", engine.kind, `"onnx" where this trainer has no PyTorch: ${found.reason}`)];
    }
    const { device } = found.facts;
    const problems: Problem[] = [];
    const allowed = this.#allowedWorkers(engine.worldSize, found.facts);
    if (allowed !== undefined) problems.push(problem("worldSize", engine.worldSize, allowed));
    if (engine.cpuOffload && device === "cpu") {
      problems.push(problem("cpuOffload", true, "false on a trainer without GPUs: all is on the CPU there"));
    }
    return problems;
  }

  /** The workers of a run that has no problems. @throws {TerminalError} where PyTorch is gone since. */
  async plan(
    engine: Extract<RunConfig["trainer"]["engine"], { kind: "fsdp2" }>,
    logger: Logger,
  ): Promise<{ readonly plan: WorkerPlan; readonly host: TorchHost }> {
    const found = await this.find();
    if (found.kind === "missing" || this.#settings === undefined) {
      const reason = found.kind === "missing" ? found.reason : "no settings";
      throw new TerminalError(
        "NO_TORCH",
        `this trainer cannot train with fsdp2, since PyTorch was not found: ${reason}`,
      );
    }
    const { device, gpus, version } = found.facts;
    const { python, environment, startDeadlineMs, callDeadlineMs, nodes } = this.#settings;
    const worldSize = engine.worldSize ?? nodes * Math.max(1, gpus);
    const plan: WorkerPlan = {
      worldSize,
      computeType: engine.dtype ?? (device === "cuda" ? "bfloat16" : "float32"),
      recomputesLayers: engine.activationCheckpointing,
      offloadsToHost: engine.cpuOffload,
    };
    const threadsPerWorker = Math.max(1, Math.floor((availableParallelism() * nodes) / worldSize));
    const others = this.#others;
    const host: TorchHost = {
      python,
      device,
      torchVersion: version,
      threadsPerWorker,
      environment,
      startDeadlineMs,
      callDeadlineMs,
      logger,
      ...(others === undefined ? {} : { nodes: { others } }),
    };
    return { plan, host };
  }

  /** What is allowed, where a run wants another number of workers than the nodes can have, as many on each. */
  #allowedWorkers(worldSize: number | undefined, { device, gpus }: TorchFacts): string | undefined {
    if (worldSize === undefined) return undefined;
    const nodes = this.#settings?.nodes ?? 1;
    const most = nodes * (device === "cuda" ? gpus : MAX_CPU_WORKERS);
    if (worldSize > most) {
      const of = nodes === 1 ? "" : `the ${nodes} nodes of `;
      const what =
        device === "cuda" ? `the GPUs of ${of}this trainer` : `the workers of ${of}a trainer without GPUs`;
      return `at most ${most}, ${what}`;
    }
    return worldSize % nodes === 0 ? undefined : `a multiple of ${nodes}, the nodes of this trainer`;
  }

  async #ask(): Promise<FoundTorch> {
    if (this.#settings === undefined) {
      return { kind: "missing", reason: "HONE_TRAINER_PYTHON must name an interpreter that has it" };
    }
    const { python, environment, device, startDeadlineMs } = this.#settings;
    try {
      const { stdout } = await promisify(execFile)(python, ["-m", "hone_fsdp.facts"], {
        env: packageEnvironment(environment),
        timeout: startDeadlineMs,
        killSignal: "SIGKILL",
      });
      return judge(parseProbe(stdout), device);
    } catch (error) {
      return { kind: "missing", reason: `${python} does not import it (${lastLine(describeError(error))})` };
    }
  }
}

function judge(
  { version, gpus }: { readonly version: string; readonly gpus: number },
  wanted: TorchSettings["device"],
): FoundTorch {
  if (!version.startsWith(TORCH_RELEASE)) {
    return { kind: "missing", reason: `it must be of release ${TORCH_RELEASE}x, and is ${version}` };
  }
  if (wanted === "cuda" && gpus === 0) {
    return { kind: "missing", reason: "HONE_TRAINER_TORCH_DEVICE is cuda, and it sees no GPU" };
  }
  const device = wanted === "auto" ? (gpus > 0 ? "cuda" : "cpu") : wanted;
  return { kind: "found", facts: { device, gpus: device === "cuda" ? gpus : 0, version } };
}

function parseProbe(text: string): { version: string; gpus: number } {
  const { version, gpus } = JSON.parse(text) as { version?: unknown; gpus?: unknown };
  if (typeof version !== "string" || !Number.isInteger(gpus)) throw new Error(`it answered ${text}`);
  return { version, gpus: gpus as number };
}

function problem(name: string, value: unknown, allowed: string): Problem {
  return problemOf(`trainer.engine.${name}`, value, allowed);
}

/** The last line of a traceback, which names the error. */
function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
