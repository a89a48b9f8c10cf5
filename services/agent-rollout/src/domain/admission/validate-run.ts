/** Checks whether this service can do its part of a run: names must be known, and configurations must fit their schemas. */

import {
  type ActionFormat,
  agentNames,
  agentOf,
  checkConfig,
  type Environment,
  type EnvironmentContext,
  environmentNames,
  environmentOf,
  type InputProblem,
  type ModuleExports,
  scriptNames,
  scriptOf,
  unknownName,
} from "@hone/agents";
import { InvalidInputError } from "@hone/core";
import { ChatRenderer, ChatTemplateError, makeTokenizer, TokenizerLoadError } from "@hone/tokenizer";

/** An agent as a run file holds it. */
export interface WrittenAgent {
  readonly name: string;
  readonly config?: unknown;
  readonly configPath?: string;
}

/** The parts of a run file that this service checks. */
export interface RunParts {
  readonly agent: WrittenAgent;
  /** Agents that parts of the tasks have, in place of the run's. */
  readonly partAgents?: ReadonlyArray<{ readonly key: string; readonly agent: WrittenAgent }>;
  /** Key of the first split or part of rows; absent = all tasks are environments. */
  readonly rowsKey?: string;
  /** What the run's own modules export. */
  readonly own?: ModuleExports;
  readonly warmStart?: { readonly policy: string };
  /** The tokenizer's files by name; absent = they are not inlined. */
  readonly tokenizerFiles?: Readonly<Record<string, string>>;
  readonly environments: ReadonlyArray<{
    readonly key: string;
    readonly name: string;
    readonly config: unknown;
    /** Key of the agent that plays in it. @default `agent` */
    readonly agentKey?: string;
  }>;
  /** What environments are made with. */
  readonly context?: EnvironmentContext;
}

/** One thing that is wrong with a run file. */
export interface RunProblem {
  /** Path of the key, such as `agent.name`. */
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly message: string;
}

/** @returns all problems, and not only the first. */
export function validateRun(run: RunParts): RunProblem[] {
  return [
    ...agentProblems(run, AGENT_KEY, run.agent),
    ...(run.partAgents ?? []).flatMap(({ key, agent }) => agentProblems(run, key, agent)),
    ...scriptProblems(run),
    ...run.environments.flatMap((environment) => environmentProblems(environment, run)),
    ...tokenizerProblems(run),
  ];
}

/** The key of the run's own agent. */
const AGENT_KEY = "agent";

function agentProblems(run: RunParts, agentKey: string, agent: WrittenAgent): RunProblem[] {
  const { environments: all, partAgents = [], own } = run;
  const environments = all.filter(({ agentKey: key = AGENT_KEY }) => key === agentKey);
  const ownAgents = own?.agents ?? {};
  const isOwn = Object.hasOwn(ownAgents, agent.name);
  const definition = isOwn ? ownAgents[agent.name] : agentOf(agent.name);
  if (definition === undefined) {
    return at(`${agentKey}.name`, unknownName(agent.name, [...Object.keys(ownAgents), ...agentNames()]));
  }
  const problems: RunProblem[] = [];
  if (agent.configPath !== undefined && agent.config === undefined) {
    problems.push(
      ...at(`${agentKey}.configPath`, [
        {
          path: [],
          value: agent.configPath,
          allowed: `inlined as ${agentKey}.config: a published run file is self-contained`,
        },
      ]),
    );
  }
  // Where every part has an agent of its own, the run's plays nothing.
  if (definition.needsEnvironment && environments.length === 0 && partAgents.length === 0) {
    problems.push(
      ...at("dataset.train.source", [
        { path: [], value: undefined, allowed: `"environment" for the agent ${agent.name}` },
      ]),
    );
  }
  if (definition.needsRow === true) {
    problems.push(
      ...environments.flatMap(({ key }) =>
        at(`${key}.source`, [
          { path: [], value: "environment", allowed: `rows of a dataset for the agent ${agent.name}` },
        ]),
      ),
    );
  }
  const checked = checkConfig(definition.configSchema, agent.config ?? {});
  if (checked.kind === "invalid") return [...problems, ...at(`${agentKey}.config`, checked.problems)];
  const unplayable = environments.flatMap((environment) => {
    const made = makeEnvironment(environment, run);
    const describe = (format?: ActionFormat) => made?.describe?.(format) ?? {};
    return made === undefined ? [] : (definition.checkEnvironment?.(checked.config, describe) ?? []);
  });
  return [...problems, ...at(`${agentKey}.config`, unplayable.slice(0, 1))];
}

/** An environment that is not reset; undefined where {@link environmentProblems} reports what is wrong with it. */
function makeEnvironment(
  { name, config }: RunParts["environments"][number],
  { own, context }: RunParts,
): Environment | undefined {
  const definition = environmentOf(name, own?.environments);
  const checked = definition === undefined ? undefined : checkConfig(definition.configSchema, config);
  if (checked?.kind !== "valid") return undefined;
  try {
    return definition?.create(checked.config, context);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return undefined;
  }
}

function scriptProblems(run: RunParts): RunProblem[] {
  const { agent, warmStart, environments, rowsKey } = run;
  if (warmStart === undefined) return [];
  const key = "warmStart.policy";
  if (agentOf(agent.name)?.leavesEnvironment === true) {
    const allowed = `left out for the agent ${agent.name}, whose clients play elsewhere`;
    return at(key, [{ path: [], value: warmStart.policy, allowed }]);
  }
  if (scriptOf(warmStart.policy) === undefined) return at(key, unknownName(warmStart.policy, scriptNames()));
  const isPlayable = environments.every((environment) => {
    const made = makeEnvironment(environment, run);
    return made === undefined || made.legalActions !== undefined;
  });
  if (isPlayable && environments.length > 0 && rowsKey === undefined) return [];
  return at(key, [
    {
      path: [],
      value: warmStart.policy,
      allowed: "left out where the tasks have no environment that names legal actions",
    },
  ]);
}

function environmentProblems(
  { key, name, config }: RunParts["environments"][number],
  { own, context }: RunParts,
): RunProblem[] {
  const definition = environmentOf(name, own?.environments);
  if (definition === undefined)
    return at(`${key}.environment`, unknownName(name, environmentNames(own?.environments)));
  const checked = checkConfig(definition.configSchema, config);
  if (checked.kind === "invalid") return at(`${key}.config`, checked.problems);
  try {
    definition.create(checked.config, context);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const { path, allowed, message } = error;
    return [{ key: `${key}.config.${path}`, value: valueAt(config, path), allowed, message }];
  }
}

function valueAt(config: unknown, path: string): unknown {
  return typeof config === "object" && config !== null ? Reflect.get(config, path) : undefined;
}

/** Checks what conversations need of a tokenizer. The trainer reports a tokenizer that cannot be read at all. */
function tokenizerProblems({ tokenizerFiles }: RunParts): RunProblem[] {
  if (tokenizerFiles === undefined) return [];
  const key = "model.init.tokenizer";
  const value = Object.keys(tokenizerFiles);
  try {
    const { tokenizer } = new ChatRenderer(makeTokenizer(tokenizerFiles, key));
    if (tokenizer.stopTokenIds.length > 0) return [];
    return at(key, [{ path: [], value, allowed: "one whose tokenizer_config.json names an eos_token" }]);
  } catch (error) {
    if (error instanceof TokenizerLoadError) return [];
    if (!(error instanceof ChatTemplateError)) throw error;
    return at(key, [{ path: [], value, allowed: `one with a chat template (${error.message})` }]);
  }
}

function at(key: string, problems: readonly InputProblem[]): RunProblem[] {
  return problems.map(({ path, value, allowed }) => {
    const full = [key, ...path.map(String)].join(".");
    const shown = value === undefined ? "missing" : JSON.stringify(value);
    return {
      key: full,
      value,
      allowed,
      message: `\`${full}\` is ${shown}; it must be ${allowed}`,
    };
  });
}
