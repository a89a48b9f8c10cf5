/** Asks each process of a stack for its health. */

import { readText } from "@hone/core";
import type { StackRecord } from "../stack-file.ts";
import { ANSWER_TIMEOUT_MS, answersNats, answersPostgres, MAX_ANSWER_BYTES } from "./probes.ts";

export type PartHealth =
  | { readonly kind: "ready" }
  | { readonly kind: "not_ready"; readonly reasons: readonly string[] }
  /** The process does not answer; it may be being restarted. */
  | { readonly kind: "silent"; readonly sinceMs: number | undefined };

/** The health of services by name, and of `nats-server` and `postgres`. */
export type StackHealth = ReadonlyMap<string, PartHealth>;

/** Asks all processes at once, which takes at most two seconds. */
export async function askStack(stack: StackRecord): Promise<StackHealth> {
  const silence = (name: string): PartHealth => ({ kind: "silent", sinceMs: stack.silent[name] });
  const server = async (name: string, answers: Promise<boolean>): Promise<[string, PartHealth]> => [
    name,
    (await answers) ? { kind: "ready" } : silence(name),
  ];
  const parts = await Promise.all([
    ...Object.entries(stack.services).map(
      async ([name, { httpPort }]): Promise<[string, PartHealth]> => [
        name,
        (await readiness(httpPort)) ?? silence(name),
      ],
    ),
    server("nats-server", answersNats(stack.natsUrl)),
    server("postgres", answersPostgres(stack.databaseUrl)),
  ]);
  return new Map(parts);
}

/** @returns undefined if the service does not answer. */
async function readiness(port: number): Promise<PartHealth | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const { ready, reasons } = JSON.parse(await readText(response, MAX_ANSWER_BYTES)) as {
      ready: boolean;
      reasons: readonly string[];
    };
    return ready ? { kind: "ready" } : { kind: "not_ready", reasons };
  } catch {
    return undefined; // down, stopped, or being restarted
  }
}
