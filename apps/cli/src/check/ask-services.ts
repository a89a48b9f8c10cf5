/** What the services of a stack say of a run file. */

import { create } from "@bufbuild/protobuf";
import { BusUnavailableError, request, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type LoadedRun, problemLines } from "../run/load-run-file.ts";
import type { Session } from "../session.ts";
import type { StackRecord } from "../stack/stack-file.ts";
import { connectTo } from "../stack/use-stack.ts";
import type { CheckedPart } from "./check-run.ts";

const ANSWER_TIMEOUT_MS = 5_000;

/** Asks all at once. */
export async function askServices(
  session: Session,
  stack: StackRecord,
  { text }: LoadedRun,
): Promise<CheckedPart[]> {
  const bus = await connectTo(stack, "validate", session.signal);
  try {
    return await Promise.all(
      Object.values(ValidatingService).map(async (service): Promise<CheckedPart> => {
        const part = { name: service, text: "the service that runs here" };
        try {
          const reply = await request(
            bus,
            subjects.validate(service),
            ValidateRequestSchema,
            create(ValidateRequestSchema, { configJson: text }),
            ValidateReplySchema,
            { timeoutMs: ANSWER_TIMEOUT_MS, signal: session.signal },
          );
          return { ...part, problems: problemLines(reply.problems) };
        } catch (error) {
          if (!(error instanceof BusUnavailableError)) throw error;
          return { ...part, problems: [`${service} does not answer, so its part was not checked`] };
        }
      }),
    );
  } finally {
    await bus.close();
  }
}
