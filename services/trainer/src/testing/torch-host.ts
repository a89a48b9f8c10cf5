/** What the tests of PyTorch workers run them with; libs/testing/src/torch-python.ts says where PyTorch is found. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { silentLogger } from "@hone/telemetry";
import type { FsdpEngineConfig, TorchHost } from "../fsdp/fsdp-config.ts";
import type { StartGroup, WorkerGroup } from "../fsdp/fsdp-training-engine.ts";
import { TorchGroup } from "../fsdp/torch-group.ts";
import { packageEnvironment } from "../fsdp/torchrun.ts";

/** What a tiny model is trained with, as the embedded engine computes it. */
export const EXACT: Pick<FsdpEngineConfig, "computeType" | "recomputesLayers" | "offloadsToHost"> = {
  computeType: "float32",
  recomputesLayers: false,
  offloadsToHost: false,
};

/**
 * Workers on CPUs, or on GPUs where `HONE_TEST_TORCH_DEVICE` is cuda: the tests want up to four. Deadlines are those of a
 * machine that does much else.
 * @param environment of the test's own process.
 */
export function torchHost(
  python: string,
  { PATH, HOME, LD_LIBRARY_PATH, HONE_TEST_TORCH_DEVICE }: Readonly<Record<string, string | undefined>>,
): TorchHost {
  return {
    python,
    device: HONE_TEST_TORCH_DEVICE === "cuda" ? "cuda" : "cpu",
    // Compared with that of other nodes only.
    torchVersion: "",
    threadsPerWorker: 1,
    environment: { PATH, HOME, LD_LIBRARY_PATH },
    startDeadlineMs: 900_000,
    callDeadlineMs: 600_000,
    logger: silentLogger(),
  };
}

/** Groups that serve one engine after the other, as importing PyTorch takes most of a test's time. */
export class GroupPool {
  readonly #free: TorchGroup[] = [];

  /** In the place of `TorchGroup.start`, for groups of one size. */
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

/** Names the interface on which ranks of several nodes meet, where all nodes are this machine. */
export const ON_THIS_MACHINE = { GLOO_SOCKET_IFNAME: "lo" };

/** The program of a node beside the trainer's own, on this machine. */
export class NodeProgram {
  readonly #child: ChildProcess;
  /** What it and its ranks printed. */
  output = "";

  /**
   * @param port where the trainer waits for its nodes.
   * @param httpPort where it answers probes; 0 = nowhere.
   * @param node which node it is.
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

/** Whether processes are gone, or would be if anybody had asked how they ended. */
export async function areGone(pids: readonly number[]): Promise<boolean> {
  const states = await Promise.all(pids.map(stateOf));
  return states.every((state) => state === undefined || state === "Z");
}

/** The letter of a process's state; undefined where there is none. */
async function stateOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return /\) (\S) /.exec(text)?.[1];
}

/** Ranks among the processes below one: they run the workers' module. */
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
