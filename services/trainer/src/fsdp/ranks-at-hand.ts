/** How many workers a test may start, for tests that use several. */
import { spawnSync } from "node:child_process";
import type { TorchHost } from "./fsdp-config.ts";
import { packageEnvironment } from "./torchrun.ts";

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
