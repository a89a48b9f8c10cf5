/** `hone eval FILE`: evaluates a model on the held-out tasks of a run file. */

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { endpointArgs, endpointOf } from "../run/endpoint-args.ts";
import { evaluationRun } from "../run/evaluation-run.ts";
import { evaluationTable, outcomeText } from "../run/evaluation-table.ts";
import { findModel } from "../run/find-model.ts";
import { loadRunFile } from "../run/load-run-file.ts";
import { followOnStack } from "../run/run-on-stack.ts";
import type { RunView } from "../run/run-view.ts";
import { Terminal } from "../terminal.ts";

export const evalCommand = honeCommand({
  name: "eval",
  description: "Evaluate a model on the held-out tasks of a run file: mean reward and pass@k",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
    model: {
      type: "string",
      description: "A run (RUN or RUN@VERSION), a folder or a hub id; the run file's model by default",
      valueHint: "MODEL",
    },
    ...endpointArgs,
    tasks: {
      type: "string",
      description: "Number of tasks, the first ones of dataset.eval; all by default",
      valueHint: "N",
    },
    samples: { type: "string", description: "Rollouts per task; 1 by default", valueHint: "K" },
    k: {
      type: "string",
      description: "Values of k for pass@k, such as 1,4,8; by default 1, 2, 4 ... up to the samples",
      valueHint: "K,…",
    },
    temperature: {
      type: "string",
      description: "Sampling temperature, instead of the file's; 0 always takes the most likely token",
      valueHint: "T",
    },
    "max-tokens": {
      type: "string",
      description: "Maximum number of tokens per turn, instead of the file's",
      valueHint: "N",
    },
    greedy: { type: "boolean", description: "Also play each task once with the most likely tokens" },
    json: {
      type: "boolean",
      description: "Print the figures as JSON to stdout, and everything else to stderr",
    },
  },
  run: async (session, args) => {
    const { project } = session;
    const file = resolve(userFolder(), args.file);
    await requireFile(file, args.file);
    const loaded = await loadRunFile(file, project.folder);
    if (loaded.config.dataset.eval === undefined) {
      throw new UsageError(
        `${shownPath(file)} has no dataset.eval, which an evaluation takes its tasks from`,
      );
    }
    const folders = { state: project.state, user: userFolder() };
    const endpoint = endpointOf(args);
    const isInside = args.model !== undefined && endpoint === undefined;
    const model = isInside ? await findModel(args.model, folders) : undefined;
    const run = evaluationRun(loaded.config, {
      model: model?.place,
      endpoint,
      tasks: readNumber("tasks", args.tasks),
      samples: readNumber("samples", args.samples),
      passAt: args.k?.split(",").map((text) => readNumber("k", text)),
      temperature: readNumber("temperature", args.temperature),
      maxNewTokens: readNumber("max-tokens", args["max-tokens"]),
      hasGreedy: args.greedy === true,
    });
    const isJson = args.json === true;
    const terminal = isJson ? new Terminal(process.stderr) : session.terminal;
    const modelName =
      endpoint !== undefined
        ? `${endpoint.model} at ${endpoint.baseUrl}`
        : (model?.shown ?? `the model of ${shownPath(file)}`);
    await followOnStack({ ...session, terminal }, run, {
      file,
      isKept: false,
      onEnded: ({ view }) => {
        if (view.evaluations.length === 0) return;
        if (isJson) session.terminal.line(JSON.stringify(asJson(view, file, modelName), undefined, 2));
        else for (const line of linesOf(view, modelName)) terminal.line(line);
      },
    });
    return 0;
  },
});

/** The commonest mistake is to give a run's id instead of a file, so the error says what to do then. */
async function requireFile(file: string, given: string): Promise<void> {
  if (
    await stat(file).then(
      () => true,
      () => false,
    )
  )
    return;
  throw new UsageError(
    `there is no run file ${given}; to evaluate a run, use hone eval FILE --model ${given}, and to see its own evaluations, hone evaluations ${given}`,
  );
}

function linesOf(view: RunView, modelName: string): string[] {
  const ends = view.evaluations.map((record) => ({ mode: record.mode, text: outcomeText(record) }));
  return [
    "",
    modelName,
    ...evaluationTable(view.evaluations),
    ...ends.flatMap(({ mode, text }) => (text === undefined ? [] : [`${mode}: ${text}`])),
  ];
}

function asJson(view: RunView, file: string, model: string): unknown {
  return {
    run: view.runId,
    file,
    model,
    evaluations: view.evaluations.map(({ mode, episodes, metrics }) => ({
      mode,
      rollouts: episodes,
      metrics,
    })),
  };
}

function readNumber(name: string, text: string): number;
function readNumber(name: string, text: string | undefined): number | undefined;
function readNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
  throw new UsageError(`--${name} ${text} is not a number that is 0 or more`);
}
