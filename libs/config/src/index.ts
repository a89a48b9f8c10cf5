/**
 * Configuration: reads the run file and the environment of a service into typed values, with every default filled in.
 *
 * ```ts
 * const run = parseRunFile(await readFile("run.yaml", "utf8"));
 * ```
 */

export { BoundedPattern } from "./bounded/bounded-pattern.ts";
export { BoundedSchema } from "./bounded/bounded-schema.ts";
export { TooSlowError } from "./bounded/bounded-work.ts";
export { type ConversationRow, type RowMessage, readConversationRow } from "./conversation-row.ts";
export { episodesShape, readEpisodesMaxBytes } from "./episodes-size.ts";
export { ConfigError, type ConfigProblem } from "./errors.ts";
export { BoundKeys } from "./gates/bound-keys.ts";
export {
  type AllowedProgram,
  CodeGate,
  type CodeGateOptions,
  CodeVariable,
  readCodeGate,
} from "./gates/code-gate.ts";
export { MODEL_FOLDERS_VARIABLE, ModelFolders, readModelFolders } from "./gates/model-folders.ts";
export type { UserModule } from "./gates/user-module.ts";
export { pathText, problemMessage, show } from "./problems.ts";
export { fileBelow, inlineFiles, readObjectBelow, TOKENIZER_FILES } from "./run-file/parse/inline-files.ts";
export { type ParsedJudges, parseJudges } from "./run-file/parse/parse-judges.ts";
export { parseRunFile, resolveRunConfig } from "./run-file/parse/parse-run-file.ts";
export { parseTaskSource } from "./run-file/parse/parse-task-source.ts";
export { MAX_RUN_FILE_BYTES, MAX_YAML_BYTES, parseYaml, textFromBytes } from "./run-file/parse/parse-text.ts";
export { type RunChange, runChanges, tokenizerDigest } from "./run-file/run-changes.ts";
export {
  type CommandAgentConfig,
  commandAgentSchema,
  type EndpointAgentConfig,
  endpointAgentSchema,
  OutsideAgent,
  type SwarmAgentConfig,
  swarmAgentSchema,
} from "./run-file/schema/agent.ts";
export {
  type EnvironmentServiceSource,
  serviceEnvironmentOf,
} from "./run-file/schema/environment-service-source.ts";
export {
  type EpisodeJudgeConfig,
  GROUND_TRUTH_JUDGES,
  type GroupJudgeConfig,
  type JudgeConfig,
  type JudgeKind,
  type LaterJudgeConfig,
} from "./run-file/schema/judges.ts";
export {
  type Endpoint,
  httpUrlSchema,
  keyVariableSchema,
  type TeacherEndpoint,
} from "./run-file/schema/model-endpoint.ts";
export {
  type EarlierConfig,
  earlierPolicies,
  learningPolicies,
  type PolicyConfig,
  policyModelName,
  policyOfRole,
} from "./run-file/schema/policies.ts";
export { runFileSchema } from "./run-file/schema/run-file-schema.ts";
export {
  CRITIC,
  hasCritic,
  hasReference,
  isAsynchronous,
  isFirstVersion,
  isTraining,
  type OtherModel,
  otherModels,
  passAtOf,
  startVersion,
  teacherName,
  trainingQuantization,
} from "./run-file/schema/run-kind.ts";
export {
  type LoraConfig,
  MIN_DEADLINE_MS,
  type ModelInit,
  type PretrainedModel,
  type RunConfig,
} from "./run-file/schema/schema.ts";
export type {
  FileSource,
  MixPart,
  PartSource,
  RowFilter,
  RowSource,
  TaskSource,
} from "./run-file/schema/sources.ts";
export {
  agentOfPart,
  curriculaOf,
  environmentOfTasks,
  judgesOfPart,
  maxConcurrencyOfPart,
  maxTurnsOfPart,
  modulesOf,
  type PartCurriculum,
  type TaskPart,
  taskPartsOf,
} from "./run-file/schema/task-parts.ts";
export { environmentInteger, readEnvironment } from "./service-env.ts";
