/**
 * Checks in this process whether the run of a run file can start. Each part is checked by the code of the service that it
 * belongs to, without starting that service.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  openRolloutParts,
  type RowsOfSplit,
  readConfig as readRolloutConfig,
  answerValidate as validateAgents,
} from "@hone/agent-rollout/playing";
import { agentOfPart, modulesOf, type RunConfig, taskPartsOf } from "@hone/config";
import { describeError, parseJson, RetryableError } from "@hone/core";
import {
  openSource,
  openSourceParts,
  readDatasetConfig,
  type SourceParts,
  answerValidate as validateDataset,
} from "@hone/dataset/tasks";
import {
  checkEmbeddedRun,
  readInferenceGatewayConfig,
  answerValidate as validateEngine,
} from "@hone/inference-gateway/engine";
import { openJudgeParts, answerValidate as validateJudges } from "@hone/judge/scoring";
import { type ValidateReply, ValidateRequestSchema } from "@hone/proto-gen/run";
import { createLogger } from "@hone/telemetry";
import {
  checkTrainingEngine,
  openStartModel,
  predictMemory,
  readTrainerConfig,
  type StartModel,
} from "@hone/trainer/start-model";
import { localEnvironment, type Project } from "../project.ts";
import { type LoadedRun, problemLines } from "../run/load-run-file.ts";

/** The result of checking one part of a run file. */
export interface CheckedPart {
  readonly name: string;
  /** What was checked. */
  readonly text: string;
  /** Each names the key, the value and what is allowed. */
  readonly problems: readonly string[];
  /** Why the part could not be checked; undefined if it was. */
  readonly skipped?: string;
}

export interface CheckOptions {
  readonly project: Project;
  readonly signal: AbortSignal;
}

type Environment = ReturnType<typeof localEnvironment>;

/** Rows of each split that are checked for the columns that agent and judges need. */
const CHECKED_ROWS = 20;
const MIB = 2 ** 20;

/** Checks every part, even after problems in another one. */
export async function checkRun(loaded: LoadedRun, options: CheckOptions): Promise<CheckedPart[]> {
  const environment = localEnvironment(options.project);
  const logger = createLogger({ service: "hone", level: "warn", sink: process.stderr });
  using sources = openSourceParts(readDatasetConfig(environment), logger);
  const { config } = loaded;
  const request = create(ValidateRequestSchema, { configJson: loaded.configJson });
  const dataset = linesOf(await validateDataset(request, sources));
  const found = dataset.length === 0 ? await firstRows(config, sources) : [];
  return [
    ...(await checkModel(loaded, environment, options)),
    { name: "dataset", text: datasetText(config, found), problems: dataset },
    await checkAgents(loaded, found, environment),
    await checkJudges(loaded, environment, options),
  ];
}

/** The model itself, the memory of its training, and whether the engine can generate with it. */
export async function checkModel(
  { config, configJson }: LoadedRun,
  environment: Environment,
  { signal }: CheckOptions,
): Promise<CheckedPart[]> {
  const folder = await mkdtemp(join(tmpdir(), "hone-check-"));
  try {
    const trainer = readTrainerConfig(environment);
    // A check downloads nothing.
    const hub = { ...trainer.hub, isOffline: true };
    const model = await openStartModel(config, { folder, hub, signal });
    if (model.kind === "refused") return [refusedModel(config, model)];
    const memory = predictMemory(config, model, trainer);
    const [needed, available] = [memory.totalBytes, trainer.engineMemoryBytes].map((bytes) =>
      Math.round(bytes / MIB),
    );
    const { engine, maxCacheBytes } = readInferenceGatewayConfig(environment);
    const request = create(ValidateRequestSchema, {
      configJson,
      modelConfigJson: JSON.stringify(model.config),
    });
    // What an inference server can do is asked only when the run is submitted.
    const canGenerate = validateEngine(request, (run, shape) =>
      engine.kind === "onnx" ? checkEmbeddedRun(run, shape, maxCacheBytes) : undefined,
    );
    const { model_type: type, num_hidden_layers: layers, hidden_size: size } = model.config;
    const from = "path" in config.model ? config.model.path : "made from scratch";
    return [
      {
        name: "model",
        text: `${from}: ${type}, ${layers} layers of ${size}, with its tokenizer and chat template`,
        problems: [],
      },
      config.trainer.engine.kind === "onnx"
        ? {
            name: "memory",
            text:
              memory.totalBytes === 0
                ? "nothing is trained"
                : `training is predicted to take ${needed} of ${available} MiB on ${availableParallelism()} cores`,
            problems: problemLines(memory.problems),
          }
        : {
            name: "workers",
            text: `training runs on PyTorch workers (${config.trainer.engine.kind}); their memory is not predicted`,
            problems: problemLines(await checkTrainingEngine(config, trainer)),
          },
      {
        name: "engine",
        text: `contexts of ${config.rollout.maxContextTokens} tokens`,
        problems: canGenerate === undefined ? [] : linesOf(canGenerate),
        ...(canGenerate === undefined && {
          skipped: `the ${engine.kind} server is asked what it can do when the run is submitted`,
        }),
      },
    ];
  } catch (error) {
    if (!(error instanceof RetryableError)) throw error;
    return [{ name: "model", text: modelName(config), problems: [], skipped: describeError(error) }];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const HUB_ID = /^[\w-][\w.-]*\/[\w.-]+$/;

function refusedModel(
  config: RunConfig,
  { problems }: Extract<StartModel, { kind: "refused" }>,
): CheckedPart {
  const name = modelName(config);
  const isOfHub = "path" in config.model && !isAbsolute(config.model.path) && HUB_ID.test(config.model.path);
  if (!isOfHub) return { name: "model", text: name, problems: problemLines(problems) };
  const skipped = `${name} is not a folder and not in the hub's cache: the run fetches it when it starts`;
  return { name: "model", text: name, problems: [], skipped };
}

function modelName({ model }: RunConfig): string {
  return "path" in model ? model.path : "a model made from scratch";
}

/** The first rows of a split, and how many tasks it has. */
interface FoundSplit {
  readonly split: "train" | "eval";
  /** Name of the part of a mix; absent = none. */
  readonly part?: string;
  readonly size: number;
  readonly rows: RowsOfSplit["rows"];
}

async function firstRows(config: RunConfig, parts: SourceParts): Promise<FoundSplit[]> {
  const { seed } = config;
  const found: FoundSplit[] = [];
  for (const { split, name, tasks: source } of taskPartsOf(config)) {
    const order = await openSource(source, parts);
    const count = Math.min(CHECKED_ROWS, order.size);
    const tasks = await order.take({ runSeed: seed, cursor: 0, count, isShuffled: false });
    const rows = tasks.flatMap((task) =>
      task.kind === "row"
        ? [{ id: task.id, row: parseJson(task.rowJson) as Readonly<Record<string, unknown>> }]
        : [],
    );
    found.push({ split, ...(name !== "" && { part: name }), size: order.size, rows });
  }
  return found;
}

function datasetText({ dataset }: RunConfig, found: readonly FoundSplit[]): string {
  if (found.length === 0) return Object.keys(dataset).join(" and ");
  return found
    .map(({ split, part, size, rows }) => {
      const checked = rows.length === 0 ? "" : `, rows up to ${rows.at(-1)?.id} checked for agent and judges`;
      return `${split}${part === undefined ? "" : ` ${part}`}: ${size} tasks${checked}`;
    })
    .join("; ");
}

async function checkAgents(
  { config, configJson }: LoadedRun,
  found: readonly FoundSplit[],
  environment: Environment,
): Promise<CheckedPart> {
  await using parts = openRolloutParts(readRolloutConfig(environment));
  const rows = found.flatMap(({ split, part, rows }) =>
    rows.length === 0 ? [] : [{ key: `dataset.${split}`, ...(part !== undefined && { part }), rows }],
  );
  const request = create(ValidateRequestSchema, { configJson });
  const reply = await validateAgents(request, { ...parts, rowsOf: async () => rows });
  const names = new Set(taskPartsOf(config).map(({ name }) => agentOfPart(config, name).name));
  const modules = modulesOf(config);
  const from = modules.length === 0 ? "" : ` with ${modules.join(", ")}`;
  return {
    name: "agent",
    text: `${[...names].join(", ")}${from}, built with ${names.size === 1 ? "its" : "their"} configuration and tools`,
    problems: linesOf(reply),
  };
}

async function checkJudges(
  { config, configJson }: LoadedRun,
  environment: Environment,
  { project }: CheckOptions,
): Promise<CheckedPart> {
  await using parts = openJudgeParts(project.folder, environment);
  const reply = await validateJudges(create(ValidateRequestSchema, { configJson }), parts);
  const names = config.judge.map(({ kind, name }) => name ?? kind);
  return { name: "judges", text: names.join(", "), problems: linesOf(reply) };
}

function linesOf({ problems }: ValidateReply): string[] {
  return problemLines(problems);
}
