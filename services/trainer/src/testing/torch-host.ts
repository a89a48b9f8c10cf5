/**
 * Where the tests of PyTorch workers find PyTorch: `HONE_TEST_TORCH_PYTHON` names an interpreter that has what
 * services/trainer/torch/pyproject.toml lists. Without it they are skipped, and say so.
 */
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

/** Workers on CPUs. Deadlines are those of a machine that does much else. */
export function torchHost(
  python: string,
  { PATH, HOME }: Readonly<Record<string, string | undefined>>,
): TorchHost {
  return {
    python,
    device: "cpu",
    threadsPerWorker: 1,
    environment: { PATH, HOME },
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
