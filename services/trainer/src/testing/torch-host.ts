/**
 * Where the tests of PyTorch workers find PyTorch: `HONE_TEST_TORCH_PYTHON` names an interpreter that has what
 * services/trainer/torch/pyproject.toml lists. Without it they are skipped, and say so.
 */
import { readdir, readFile } from "node:fs/promises";
import { silentLogger } from "@hone/telemetry";
import type { FsdpEngineConfig, TorchHost } from "../fsdp/fsdp-config.ts";
import type { StartGroup, WorkerGroup } from "../fsdp/fsdp-training-engine.ts";
import { TorchGroup } from "../fsdp/torch-group.ts";

/** Names the interpreter. */
export const TORCH_VARIABLE = "HONE_TEST_TORCH_PYTHON";

/** What a tiny model is trained with, as the embedded engine computes it. */
export const EXACT: Pick<FsdpEngineConfig, "computeType" | "recomputesLayers" | "offloadsToHost"> = {
  computeType: "float32",
  recomputesLayers: false,
  offloadsToHost: false,
};

/** @param environment of the test's own process. */
export function torchPython(environment: Readonly<Record<string, string | undefined>>): {
  readonly python: string;
  /** For `skip` of a test. */
  readonly skip: string | false;
} {
  const python = environment[TORCH_VARIABLE] ?? "";
  const why = `${TORCH_VARIABLE} must name a Python with PyTorch (services/trainer/torch/README.md): nothing of FSDP2 is tested here`;
  return { python, skip: python === "" ? why : false };
}

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
