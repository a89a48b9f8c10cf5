/**
 * Finds out whether the services on a bus would accept a run, without publishing it: every service must be ready, and those
 * that validate runs must find no problem. `helm test` does this with a release.
 */

import { delay } from "@hone/core";
import { askHealth, type Bus, type ServiceName, ValidatingService } from "@hone/messaging";
import type { LoadedRun } from "../run/load-run-file.ts";
import { askServices } from "./ask-services.ts";

/** Time between two checks of services that are not ready. */
const LOOK_MS = 2_000;

/** One service's answer. */
export interface ServiceAnswer {
  readonly service: ServiceName;
  /** Why the service is not ready; empty if it is. */
  readonly waitsFor: readonly string[];
  /** What the service finds wrong with the run. */
  readonly problems: readonly string[];
}

export interface DryRunOptions {
  /** Services that must answer. */
  readonly services: readonly ServiceName[];
  /** How long services may take to become ready. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Asks until every service is ready, one of them refuses the run, or the time is over. @returns the last answers. */
export async function dryRun(
  bus: Bus,
  run: Pick<LoadedRun, "configJson">,
  { services, waitMs, signal }: DryRunOptions,
): Promise<ServiceAnswer[]> {
  const end = performance.now() + waitMs;
  for (;;) {
    const answers = await ask(bus, run, services, signal);
    const isSettled = answers.every(({ waitsFor }) => waitsFor.length === 0);
    const isRefused = answers.some(({ problems }) => problems.length > 0);
    if (isSettled || isRefused || performance.now() + LOOK_MS > end) return answers;
    await delay(LOOK_MS, { signal });
  }
}

async function ask(
  bus: Bus,
  run: Pick<LoadedRun, "configJson">,
  services: readonly ServiceName[],
  signal: AbortSignal,
): Promise<ServiceAnswer[]> {
  const validating = Object.values(ValidatingService).filter((name) => services.includes(name));
  const [{ replies }, asked] = await Promise.all([
    askHealth(bus, { expected: services }),
    askServices(bus, run, signal, validating),
  ]);
  return services.map((service) => {
    const instances = replies.filter((reply) => reply.service === service);
    const part = asked.find(({ name }) => name === service);
    const isSilent = instances.length === 0 || part?.isSilent === true;
    const reasons = instances
      .filter(({ isReady }) => !isReady)
      .map(({ instanceId, reasons }) => `${instanceId}: ${reasons.join(", ")}`);
    return {
      service,
      waitsFor: isSilent ? ["does not answer", ...reasons] : reasons,
      problems: part === undefined || part.isSilent ? [] : part.problems,
    };
  });
}
