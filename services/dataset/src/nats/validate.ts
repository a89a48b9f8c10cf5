/** Answers `hone.v1.dataset.validate`: whether a run's dataset section can be served. */

import { create } from "@bufbuild/protobuf";
import { type FileSource, GROUND_TRUTH_JUDGES, parseJudges, readConversationRow } from "@hone/config";
import { describeError, parseJson } from "@hone/core";
import {
  ProblemSchema,
  type ValidateReply,
  ValidateReplySchema,
  type ValidateRequest,
} from "@hone/proto-gen/run";
import { problemOfRow, type RowDemands } from "../domain/check-rows.ts";
import { overlapOf, type SourceProblem, type SourceSpec } from "../domain/source-spec.ts";
import { SourceError } from "../errors.ts";
import type { JsonlFile } from "../files/jsonl-file.ts";
import { openFiles, openSource, type SourceParts } from "../files/sources/open-source.ts";
import { decodeSource } from "./decode-source.ts";

/** Parsed in about a second; rows beyond this are checked when the run reads them. */
const MAX_CHECKED_BYTES = 64 * 1024 * 1024;

/** Rejects only when the disk fails. */
export async function answerValidate(request: ValidateRequest, parts: SourceParts): Promise<ValidateReply> {
  const problems = await problemsOfDataset(request.configJson, parts);
  return create(ValidateReplySchema, {
    service: "dataset",
    problems: problems.map(({ key, value, allowed, message }) =>
      create(ProblemSchema, { key, valueJson: JSON.stringify(value ?? null), allowed, message }),
    ),
  });
}

async function problemsOfDataset(configJson: string, parts: SourceParts): Promise<SourceProblem[]> {
  const config = parse(configJson);
  // A run that begins gets what its environment service lists now.
  parts.taskLists?.clear();
  const dataset = sectionOf(config, "dataset");
  const demands = demandsOf(valueAt(config, "judge"));
  const problemOf: RowRule = (row) => problemOfRow(row, demands);
  const train = await checkSplit("dataset.train", dataset.train, parts, problemOf);
  const { supervised } = sectionOf(config, "algorithm");
  const conversations = [
    ...(await checkConversations("warmStart.dataset", sectionOf(config, "warmStart").dataset, parts)),
    ...(await checkConversations("algorithm.supervised.dataset", valueAt(supervised, "dataset"), parts)),
  ];
  // A run without evaluation names no evaluation tasks.
  if (dataset.eval === undefined || dataset.eval === null) return [...train.problems, ...conversations];
  const evaluation = await checkSplit("dataset.eval", dataset.eval, parts, problemOf);
  const problems = [...train.problems, ...evaluation.problems, ...conversations];
  const overlap =
    train.spec === undefined || evaluation.spec === undefined
      ? undefined
      : overlapOf(train.spec, evaluation.spec);
  return overlap === undefined ? problems : [...problems, overlap];
}

/** What the run's judges need in rows. Wrong judges are left for the judge service to refuse. */
function demandsOf(judges: unknown): RowDemands {
  const parsed = parseJudges(judges);
  if (parsed.kind === "problems") return { groundTruthFor: [] };
  const comparing = parsed.judges.filter(({ kind }) => GROUND_TRUTH_JUDGES.has(kind));
  return comparing.some(({ dataSources }) => dataSources === undefined)
    ? { groundTruthFor: undefined }
    : { groundTruthFor: comparing.flatMap(({ dataSources = [] }) => dataSources) };
}

/** What is imitated are conversations. */
async function checkConversations(key: string, value: unknown, parts: SourceParts): Promise<SourceProblem[]> {
  if (value === undefined || value === null) return [];
  const checked = await checkSplit(key, value, parts, (row) => {
    const read = readConversationRow(row);
    return read.kind === "wrong" ? read.problem : undefined;
  });
  return checked.problems;
}

/** @returns the rule that a row breaks, beginning with "must", or undefined. */
type RowRule = (row: Readonly<Record<string, unknown>>) => string | undefined;

async function checkSplit(
  key: string,
  value: unknown,
  parts: SourceParts,
  problemOf: RowRule,
): Promise<{ spec: SourceSpec | undefined; problems: SourceProblem[] }> {
  try {
    const spec = decodeSource(value);
    await openSource(spec, parts);
    for (const [below, file] of await filesOf(spec, parts)) await checkRows(file, below, problemOf);
    return { spec, problems: [] };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    const path = error.path === "" ? key : `${key}.${error.path}`;
    const problem = {
      key: path,
      value: valueAt(value, error.path),
      allowed: error.allowed,
      message: describeError(error),
    };
    return { spec: undefined, problems: [problem] };
  }
}

/** The files of a source, each with its key below the source. The rows of a server are checked when they are read. */
async function filesOf(
  spec: SourceSpec,
  parts: SourceParts,
): Promise<(readonly [key: string, file: JsonlFile])[]> {
  const sources =
    spec.source === "mix"
      ? spec.parts.map(({ tasks }, index) => [`parts[${index}].tasks.path`, tasks] as const)
      : [["path", spec] as const];
  const opened = sources.map(async ([key, source]) => {
    if (["http", "environment", "environment_service"].includes(source.source)) return [];
    const files = await openFiles(source as FileSource, parts);
    return files.map((file) => [key, file] as const);
  });
  return (await Promise.all(opened)).flat();
}

/** @throws {SourceError} at the first row that does not parse or breaks the rule. */
async function checkRows(file: JsonlFile, key: string, problemOf: RowRule): Promise<void> {
  let checkedBytes = 0;
  for await (const row of file.rows()) {
    const problem = problemOf(row.value);
    if (problem !== undefined) {
      throw new SourceError(
        `${file.name}:${row.line} cannot be used: each row ${problem}, and this one is ${row.json.slice(0, 200)}`,
        { path: key, allowed: "a file whose rows are complete" },
      );
    }
    checkedBytes += row.json.length;
    if (checkedBytes > MAX_CHECKED_BYTES) return;
  }
}

function parse(json: string): unknown {
  try {
    return parseJson(json);
  } catch {
    // Treated like a run file without a dataset, which is reported as a problem below.
    return undefined;
  }
}

function sectionOf(value: unknown, key: string): Readonly<Record<string, unknown>> {
  const section = valueAt(value, key);
  return typeof section === "object" && section !== null ? { ...section } : {};
}

function valueAt(value: unknown, path: string): unknown {
  let current = value;
  for (const key of path === "" ? [] : path.split(/\.|\[|\]\.?/).filter((part) => part !== "")) {
    if (typeof current !== "object" || current === null) return undefined;
    current = Object.hasOwn(current, key) ? Reflect.get(current, key) : undefined;
  }
  return current;
}
