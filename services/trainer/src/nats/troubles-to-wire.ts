/** Turns the failures of rollouts from the domain's type into the message. */

import { create } from "@bufbuild/protobuf";
import { type RolloutTroubles, RolloutTroublesSchema } from "@hone/proto-gen/run";
import type { GatheredTroubles } from "../domain/report/run-status.ts";

export function troublesToWire({ madeFor, rollouts, outcomes, tools }: GatheredTroubles): RolloutTroubles {
  return create(RolloutTroublesSchema, {
    madeFor,
    rollouts,
    outcomes: outcomes.map((outcome) => ({ ...outcome })),
    tools: tools.map((tool) => ({ ...tool })),
  });
}
