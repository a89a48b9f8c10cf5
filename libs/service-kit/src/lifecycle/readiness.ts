/** Whether a service can do its work now. */

/** `reason` says what is missing, for people: "waiting for the tokenizer"; empty when ready. */
export interface Readiness {
  readonly ready: boolean;
  readonly reason: string;
}

export const READY: Readiness = { ready: true, reason: "" };

export function notReady(reason: string): Readiness {
  return { ready: false, reason };
}

/** A named thing that readiness depends on. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Readiness | Promise<Readiness>;
}

/** Everything that keeps a service from being ready. */
export interface ReadinessReport {
  readonly ready: boolean;
  /** `<name>: <reason>` of each check that says no. */
  readonly reasons: readonly string[];
}

/** Asks all checks at once; one that throws says no. */
export async function reportReadiness(checks: Iterable<ReadinessCheck>): Promise<ReadinessReport> {
  const answers = await Promise.all(
    Array.from(checks, async ({ name, check }) => {
      try {
        const { ready, reason } = await check();
        return ready ? undefined : `${name}: ${reason}`;
      } catch (error) {
        return `${name}: ${error instanceof Error ? error.message : String(error)}`;
      }
    }),
  );
  const reasons = answers.filter((answer) => answer !== undefined);
  return { ready: reasons.length === 0, reasons };
}
