/** What the tests of PyTorch workers run them with; libs/testing/src/torch-python.ts says where PyTorch is found. */
import { readdir, readFile } from "node:fs/promises";
import { silentLogger } from "@hone/telemetry";
import type { FsdpEngineConfig, TorchHost } from "../fsdp/fsdp-config.ts";
import type { StartGroup, WorkerGroup } from "../fsdp/fsdp-training-engine.ts";
import { TorchGroup } from "../fsdp/torch-group.ts";

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

/** Ranks among the processes below one: they run the workers' module, and are not torchrun, which starts them. */
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
    if (command!.includes("hone_fsdp.worker") && !command!.includes("torch.distributed.run")) ranks.push(pid);
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent === ancestor || (parent !== undefined && parent > 1 && isBelow(parent));
  };
  return ranks.filter(isBelow).sort((a, b) => a - b);
}
