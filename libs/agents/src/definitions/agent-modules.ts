/**
 * A run's own agents, tools and environments: TypeScript files below HONE_FILES that export them by name.
 *
 *     export const agents = { mine: defineAgent({ … }) };
 *     export const tools = { dice: defineTool({ … }) };
 *     export const environments = { coin: defineEnvironment({ … }) };
 *
 * O1: a file is imported once per version: after a change it is imported again, and older runs keep the earlier version.
 * O2: a package that a file imports is looked up from the file's own folder first and then among Hone's packages, so that a
 *     project folder need not install `@hone/agents`, `@langchain/…` and `zod`.
 */

import { registerHooks } from "node:module";
import type { CodeGate, UserModule } from "@hone/config";
import { describeError, InvalidInputError } from "@hone/core";
import { z } from "zod";
import type { Tool } from "../tools/tool.ts";
import type { AgentDefinition } from "./agent.ts";
import type { EnvironmentDefinition } from "./environment.ts";

/** What the modules of a run export together. */
export interface ModuleExports {
  readonly agents: Readonly<Record<string, AgentDefinition<unknown, unknown>>>;
  readonly tools: Readonly<Record<string, Tool>>;
  readonly environments: Readonly<Record<string, EnvironmentDefinition<unknown>>>;
}

/** The modules of a run in their current version. */
export interface LoadedModules {
  /** Identifies the versions of all files. */
  readonly key: string;
  readonly exports: ModuleExports;
}

const isFunction = (value: unknown): boolean => typeof value === "function";
const configSchema = z.custom(
  (value) => typeof value === "object" && value !== null && "safeParse" in value,
  "a schema of zod",
);
const agentSchema = z.looseObject({
  configSchema,
  needsEnvironment: z.boolean(),
  buildGraph: z.custom(isFunction, "a function"),
  run: z.custom(isFunction, "a function"),
});
const toolSchema = z.looseObject({
  name: z.string().min(1),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
  call: z.custom(isFunction, "a function"),
});
const environmentSchema = z.looseObject({ configSchema, create: z.custom(isFunction, "a function") });
const moduleSchema = z.object({
  agents: z.record(z.string(), agentSchema).default({}),
  tools: z.record(z.string(), toolSchema).default({}),
  environments: z.record(z.string(), environmentSchema).default({}),
});

export class AgentModules {
  readonly #gate: CodeGate;
  readonly #imported = new Map<string, Promise<ModuleExports>>();

  constructor(gate: CodeGate) {
    this.#gate = gate;
    installResolution();
  }

  /**
   * Returns what the files export together; if two export the same name, the later file counts.
   * @throws {InvalidInputError} when a file is not allowed or does not exist, cannot be imported, or exports something else.
   */
  async load(paths: readonly string[]): Promise<LoadedModules> {
    const modules = await Promise.all(paths.map((path) => this.#find(path)));
    const loaded = await Promise.all(modules.map((each, index) => this.#import(each, paths[index] ?? "")));
    return {
      key: modules.map(({ version }) => version).join("\n"),
      exports: {
        agents: Object.assign({}, ...loaded.map(({ agents }) => agents)) as ModuleExports["agents"],
        tools: Object.assign({}, ...loaded.map(({ tools }) => tools)) as ModuleExports["tools"],
        environments: Object.assign(
          {},
          ...loaded.map(({ environments }) => environments),
        ) as ModuleExports["environments"],
      },
    };
  }

  async #find(path: string): Promise<UserModule> {
    try {
      return await this.#gate.module(path, KEY);
    } catch (cause) {
      if (cause instanceof InvalidInputError) throw cause;
      throw refusal(path, "a file below HONE_FILES", `it cannot be opened (${describeError(cause)})`, cause);
    }
  }

  #import(module: UserModule, path: string): Promise<ModuleExports> {
    const { version } = module;
    const known = this.#imported.get(version);
    if (known !== undefined) return known;
    const importing = importModule(module, path);
    this.#imported.set(version, importing);
    importing.catch(() => this.#imported.delete(version));
    return importing;
  }
}

/** Where the run file names the modules. */
const KEY = "agent.modules";

async function importModule(module: UserModule, path: string): Promise<ModuleExports> {
  let exports: unknown;
  try {
    exports = await module.load();
  } catch (cause) {
    throw refusal(
      path,
      "a module that can be imported",
      `the import failed (${describeError(cause)})`,
      cause,
    );
  }
  // A module's namespace is not a plain object, which zod asks for.
  const parsed = moduleSchema.safeParse({ ...(exports as object) });
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw refusal(
      path,
      "a module that exports `agents`, `tools` or `environments`",
      `its export \`${issue?.path.join(".")}\` is wrong (${issue?.message})`,
    );
  }
  return parsed.data as unknown as ModuleExports;
}

/** @param problem a clause that says what is wrong with the module. */
function refusal(path: string, allowed: string, problem: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    `Cannot use the module ${path} of \`${KEY}\`: it must be ${allowed}, but ${problem}`,
    { path: KEY, allowed },
    { cause },
  );
}

let isInstalled = false;

/** O2 */
function installResolution(): void {
  if (isInstalled) return;
  isInstalled = true;
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context);
      } catch (error) {
        const isBare = !/^[./]|^\w+:/.test(specifier);
        const isMissing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
        if (!isBare || !isMissing) throw error;
        try {
          return next(specifier, { ...context, parentURL: import.meta.url });
        } catch {
          throw error;
        }
      }
    },
  });
}
