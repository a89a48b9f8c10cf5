/** Checks that a run's policies and roles fit together, and names what runs with several policies do not offer. */

import { earlierPolicies, learningPolicies } from "../policies.ts";
import type { RunConfig } from "../schema.ts";
import type { Contradiction } from "./contradiction.ts";
import { ofSchedule } from "./schedule-contradictions.ts";

type Checked = Pick<
  RunConfig,
  "algorithm" | "judge" | "model" | "policies" | "replay" | "roles" | "rollout" | "trainer"
>;

export function* policyContradictions(run: Checked): Generator<Contradiction> {
  yield* roleContradictions(run);
  const { policies = {}, trainer } = run;
  if (Object.keys(policies).length === 0) return;
  for (const [name, { earlier, ...trained }] of Object.entries(policies)) {
    const path = ["policies", name];
    if (!Object.values(run.roles ?? {}).some((role) => role.policy === name)) {
      yield { path, allowed: "left out where no role is played by it (roles.<role>.policy)" };
    }
    if (earlier === undefined) {
      yield* trainedContradictions(trained, run, path);
      continue;
    }
    const given = Object.entries(trained).find(([, value]) => value !== undefined);
    if (given !== undefined) {
      yield { path: [...path, given[0]], allowed: "left out where earlier is given, as nothing is trained" };
    }
    const { of } = earlier;
    if (of !== undefined && !learningPolicies(run).some((each) => each.name === of)) {
      yield {
        path: [...path, "earlier", "of"],
        allowed: "left out, or the name of a policy that is trained",
      };
    }
  }
  yield* notOffered(run);
  if (trainer.steps === 0) yield { path: ["policies"], allowed: "left out where trainer.steps is 0" };
}

function* roleContradictions({ roles, policies = {}, judge, algorithm }: Checked): Generator<Contradiction> {
  if (roles !== undefined && algorithm.distillation !== undefined) {
    const why = "as teachers score whole rollouts";
    yield { path: ["algorithm", "distillation"], allowed: `left out where there are roles, ${why}` };
  }
  for (const [name, { policy }] of Object.entries(roles ?? {})) {
    if (policy === undefined || policy in policies) continue;
    const known = Object.keys(policies);
    const allowed = `left out, or one of the names in policies (${known.length === 0 ? "there are none" : known.join(", ")})`;
    yield { path: ["roles", name, "policy"], allowed };
  }
  for (const [index, { roles: ofJudge = [] }] of judge.entries()) {
    for (const [place, name] of ofJudge.entries()) {
      if (roles !== undefined && name in roles) continue;
      yield { path: ["judge", index, "roles", place], allowed: "the name of a role (roles.<role>)" };
    }
  }
}

function* trainedContradictions(
  { model, optimizer, minibatches }: NonNullable<RunConfig["policies"]>[string],
  { model: own, rollout, trainer }: Checked,
  path: PropertyKey[],
): Generator<Contradiction> {
  if (model !== undefined && "lora" in own && own.lora !== undefined) {
    const why = "as its adapters are those of version 0 of the run's own policy";
    yield { path: [...path, "model"], allowed: `left out where model.lora is given, ${why}` };
  }
  if (minibatches !== undefined && minibatches > rollout.tasksPerStep) {
    const allowed = `at most rollout.tasksPerStep (${rollout.tasksPerStep})`;
    yield { path: [...path, "minibatches"], allowed };
  }
  if (optimizer !== undefined) {
    yield* ofSchedule(optimizer.schedule, trainer.steps, [...path, "optimizer", "schedule"]);
  }
}

/** What runs with several policies do not do. */
function* notOffered(run: Checked): Generator<Contradiction> {
  const { algorithm, trainer, replay } = run;
  const allowed = "left out where there are policies";
  if (trainer.critic !== undefined) yield { path: ["trainer", "critic"], allowed };
  if (algorithm.reward.kl?.adaptive !== undefined) {
    yield { path: ["algorithm", "reward", "kl", "adaptive"], allowed };
  }
  if (replay !== undefined) yield { path: ["replay"], allowed };
  if (trainer.keepStates > 0)
    yield { path: ["trainer", "keepStates"], allowed: "0 where there are policies" };
  if (trainer.engine.kind !== "onnx") {
    yield { path: ["trainer", "engine", "kind"], allowed: '"onnx" where there are policies' };
  }
  if (trainer.maxStaleness > 0 && earlierPolicies(run).length > 0) {
    const why = "as the versions that rollouts under way play against may be replaced";
    yield { path: ["trainer", "maxStaleness"], allowed: `0 where a policy is earlier versions, ${why}` };
  }
}
