/** Asks the services on a bus to validate a run file. */

import { create } from "@bufbuild/protobuf";
import { type Bus, BusUnavailableError, request, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type LoadedRun, problemLines } from "../run/load-run-file.ts";
import type { CheckedPart } from "./check-run.ts";

const ANSWER_TIMEOUT_MS = 5_000;

/** A service's answer about its part; `isSilent` = it did not answer, so its part was not checked. */
export type AskedPart = CheckedPart & { readonly name: ValidatingService; readonly isSilent: boolean };

/** Asks all services at once. */
export function askServices(
  bus: Bus,
  { configJson }: Pick<LoadedRun, "configJson">,
  signal: AbortSignal,
  services: readonly ValidatingService[] = Object.values(ValidatingService),
): Promise<AskedPart[]> {
  return Promise.all(
    services.map(async (service): Promise<AskedPart> => {
      const part = { name: service, text: "checked by the service of this stack" };
      try {
        const reply = await request(
          bus,
          subjects.validate(service),
          ValidateRequestSchema,
          create(ValidateRequestSchema, { configJson }),
          ValidateReplySchema,
          { timeoutMs: ANSWER_TIMEOUT_MS, signal },
        );
        return { ...part, problems: problemLines(reply.problems), isSilent: false };
      } catch (error) {
        if (!(error instanceof BusUnavailableError)) throw error;
        const problems = [`${service} does not answer, so its part was not checked`];
        return { ...part, problems, isSilent: true };
      }
    }),
  );
}
