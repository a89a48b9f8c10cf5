/** The host of PyTorch workers in tests; libs/testing/src/torch-python.ts finds PyTorch. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { silentLogger } from "@hone/telemetry";
import type { FsdpEngineConfig, TorchHost } from "../fsdp/fsdp-config.ts";
import type { StartGroup, WorkerGroup } from "../fsdp/fsdp-training-engine.ts";
import { TorchGroup } from "../fsdp/torch-group.ts";
import { packageEnvironment } from "../fsdp/torchrun.ts";

/** Settings under which workers compute a tiny model like the embedded engine. */
export const EXACT: Pick<FsdpEngineConfig, "computeType" | "recomputesLayers" | "offloadsToHost"> = {
  computeType: "float32",
  recomputesLayers: false,
  offloadsToHost: false,
};

/**
 * Workers on CPUs, or on GPUs where `HONE_TEST_TORCH_DEVICE` is cuda: the tests use up to four. Deadlines are generous,
 * since the machine may be busy.
 * @param environment that of the test's own process.
 */
export function torchHost(
  python: string,
  { PATH, HOME, LD_LIBRARY_PATH, HONE_TEST_TORCH_DEVICE }: Readonly<Record<string, string | undefined>>,
): TorchHost {
  return {
    python,
    device: HONE_TEST_TORCH_DEVICE === "cuda" ? "cuda" : "cpu",
    // Only compared with the value of other nodes.
    torchVersion: "",
    threadsPerWorker: 1,
    environment: { PATH, HOME, LD_LIBRARY_PATH },
    startDeadlineMs: 900_000,
    callDeadlineMs: 600_000,
    logger: silentLogger(),
  };
}

/** @returns the number of GPUs where workers use them, as each needs its own; on CPUs any number of workers can run. */
export function ranksAtHand(host: TorchHost): number {
  if (host.device === "cpu" || host.python === "") return Number.POSITIVE_INFINITY;
  const ran = spawnSync(host.python, ["-m", "hone_fsdp.facts"], {
    env: packageEnvironment(host.environment),
    encoding: "utf8",
    timeout: host.startDeadlineMs,
  });
  if (ran.status !== 0) throw new Error(`${host.python} cannot import PyTorch: ${ran.stderr}`);
  return (JSON.parse(ran.stdout) as { gpus: number }).gpus;
}

/** For `skip` of a test that needs a number of workers. */
export function withoutRanks(wanted: number, host: TorchHost): string | false {
  const found = ranksAtHand(host);
  return found < wanted && `not tested: ${wanted} workers need as many GPUs, and there are ${found}`;
}

/** Groups that serve one engine after the other, because importing PyTorch takes most of a test's time. */
export class GroupPool {
  readonly #free: TorchGroup[] = [];

  /** Takes the place of `TorchGroup.start`, for groups of one size. */
  readonly start: StartGroup = async (host, worldSize, signal) => {
    const group = this.#free.pop() ?? (await TorchGroup.start(host, worldSize, signal));
    let numOpen = 0;
    const lent: WorkerGroup = {
      call: async (kind) => {
        numOpen++;
        try {
          return await group.call(kind);
        } finally {
          numOpen--;
        }
      },
      close: async () => {
        if (numOpen > 0) return group.close();
        this.#free.push(group);
      },
    };
    return lent;
  };

  async close(): Promise<void> {
    await Promise.all(this.#free.splice(0).map((group) => group.close()));
  }
}

/** Names the network interface over which ranks of several nodes connect when all nodes are this machine. */
export const ON_THIS_MACHINE = { GLOO_SOCKET_IFNAME: "lo" };

/** The program of a node beside the trainer's own, on this machine. */
export class NodeProgram {
  readonly #child: ChildProcess;
  /** What the node and its ranks have printed. */
  output = "";

  /**
   * @param port where the trainer waits for its nodes.
   * @param httpPort where it answers probes; 0 = nowhere.
   * @param node its index among the nodes.
   */
  static start(
    host: Pick<TorchHost, "python" | "environment">,
    port: number,
    httpPort = 0,
    node = 1,
  ): NodeProgram {
    const child = spawn(host.python, ["-m", "hone_fsdp.node"], {
      env: {
        ...packageEnvironment(host.environment),
        ...ON_THIS_MACHINE,
        HONE_FSDP_TRAINER: `127.0.0.1:${port}`,
        HONE_FSDP_NODE: String(node),
        ...(httpPort === 0 ? {} : { HONE_HTTP_PORT: String(httpPort) }),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return new NodeProgram(child);
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Sends a signal and waits for the end. @returns the exit code; null where the signal ended it. */
  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const exited = once(this.#child, "exit");
      this.#child.kill(signal);
      await exited;
    }
    return this.#child.exitCode;
  }
}

/** Whether processes have ended, including those whose exit status nobody has read yet (zombies). */
export async function areGone(pids: readonly number[]): Promise<boolean> {
  const states = await Promise.all(pids.map(stateOf));
  return states.every((state) => state === undefined || state === "Z");
}

/** The letter of a process's state in /proc; undefined where there is no such process. */
async function stateOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return /\) (\S) /.exec(text)?.[1];
}

/** The ranks among the descendants of a process: those that run the workers' module. */
export async function workersBelow(ancestor: number): Promise<number[]> {
  const parents = new Map<number, number>();
  const ranks: number[] = [];
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const [status, command] = await Promise.all(
      ["stat", "cmdline"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
    );
    const [, state, parent] = /\) (\S) (\d+)/.exec(status!) ?? [];
    if (parent === undefined || state === "Z") continue;
    parents.set(pid, Number(parent));
    if (command!.includes("hone_fsdp.worker")) ranks.push(pid);
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent === ancestor || (parent !== undefined && parent > 1 && isBelow(parent));
  };
  return ranks.filter(isBelow).sort((a, b) => a - b);
}
