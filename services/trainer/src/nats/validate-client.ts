/** Asks the services that a run needs whether they can do their part. */

import { create } from "@bufbuild/protobuf";
import { type Bus, request, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import type { RunToValidate, Validators } from "../domain/admission/admission.ts";
import type { Problem } from "../domain/report/run-event.ts";

const VALIDATE_TIMEOUT_MS = 5_000;

export class ValidateClient implements Validators {
  readonly services: readonly ValidatingService[] = Object.values(ValidatingService);
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async validate(service: ValidatingService, run: RunToValidate, signal: AbortSignal): Promise<Problem[]> {
    const reply = await request(
      this.#bus,
      subjects.validate(service),
      ValidateRequestSchema,
      create(ValidateRequestSchema, { ...run }),
      ValidateReplySchema,
      { timeoutMs: VALIDATE_TIMEOUT_MS, signal },
    );
    return reply.problems.map(({ key, valueJson, allowed, message }) => ({
      key,
      valueJson,
      allowed,
      message,
    }));
  }
}
