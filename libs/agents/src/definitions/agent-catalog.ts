/** Checks the configuration of agents and builds their graphs, once per name and configuration. */

import { BoundKeys, type CodeGate } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";
import type { ContainerHost, PackageFolder, PythonSandbox } from "@hone/sandbox";
import type { OutsideAccess } from "../tools/tool-config.ts";
import { type AgentDefinition, agentNames, agentOf } from "./agent.ts";
import type { ModuleExports } from "./agent-modules.ts";
import { checkConfig, type InputProblem, unknownName } from "./check-input.ts";

/** An agent that is ready to run rollouts. */
export interface PreparedAgent {
  readonly name: string;
  readonly config: unknown;
  readonly graph: unknown;
  readonly definition: AgentDefinition<unknown, unknown>;
}

/** Most graphs that are kept; a service sees a handful of configurations at a time. */
const MAX_PREPARED_AGENTS = 256;

/** What the process provides to the agents that it builds. */
export interface AgentCatalogOptions {
  /** HONE_FILES. */
  readonly filesFolder: string;
  /** See {@link BuildContext}. */
  readonly gate: CodeGate;
  /** See {@link BuildContext}. @default none */
  readonly secrets?: BoundKeys;
  /** See {@link BuildContext}. @default nothing */
  readonly outside?: OutsideAccess;
  /** See {@link BuildContext}. @default one of the tool's own */
  readonly sandbox?: PythonSandbox;
  /** See {@link BuildContext}. @default there are none */
  readonly packages?: PackageFolder | undefined;
  /** See {@link BuildContext}. @default there are none */
  readonly containers?: ContainerHost | undefined;
}

/** Which agent, in which configuration. */
export interface AgentChoice {
  readonly name: string;
  /** The configuration as JSON; undefined = the agent's defaults. */
  readonly configJson: string | undefined;
  /** The run's own agents and tools, which take precedence over those that come with Hone; `key` names their version. */
  readonly modules?: { readonly key: string; readonly exports: ModuleExports } | undefined;
}

export class AgentCatalog {
  readonly #options: AgentCatalogOptions;
  readonly #prepared = new Map<string, Promise<PreparedAgent>>();
  readonly #opened = new AsyncDisposableStack();

  constructor(options: AgentCatalogOptions) {
    this.#options = options;
  }

  /**
   * Returns the agent with its graph, which is built at the first call.
   * @throws {InvalidInputError} when the agent is unknown or its configuration breaks its schema.
   * @throws {RetryableError} when something that it needs cannot be reached.
   */
  prepare(choice: AgentChoice): Promise<PreparedAgent> {
    return this.#once(choice, { isCheck: false });
  }

  /**
   * Checks that an agent can be built, without starting or asking anything outside: see {@link BuildContext}.
   * @throws {InvalidInputError} as {@link prepare} does.
   */
  async check(choice: AgentChoice): Promise<Pick<PreparedAgent, "definition">> {
    const { definition } = await this.#once(choice, { isCheck: true });
    return { definition };
  }

  #once(choice: AgentChoice, kind: { readonly isCheck: boolean }): Promise<PreparedAgent> {
    const { name, configJson = "", modules } = choice;
    const key = JSON.stringify([name, configJson, modules?.key ?? "", kind.isCheck]);
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    const preparing = this.#build(choice, kind);
    if (this.#prepared.size >= MAX_PREPARED_AGENTS) {
      for (const oldest of this.#prepared.keys()) {
        this.#prepared.delete(oldest);
        break;
      }
    }
    this.#prepared.set(key, preparing);
    // A failure is not cached: what was missing may be there the next time.
    preparing.catch(() => this.#prepared.delete(key));
    return preparing;
  }

  /** Closes what agents opened, such as servers of tools. */
  async close(): Promise<void> {
    await this.#opened.disposeAsync();
  }

  async #build(
    { name, configJson, modules }: AgentChoice,
    { isCheck }: { readonly isCheck: boolean },
  ): Promise<PreparedAgent> {
    const own = modules?.exports.agents ?? {};
    const definition = Object.hasOwn(own, name) ? own[name] : agentOf(name);
    if (definition === undefined) {
      const [problem] = unknownName(name, [...Object.keys(own), ...agentNames()]);
      throw invalid("name an agent", "agent", problem!);
    }
    const checked = checkConfig(
      definition.configSchema,
      configJson === undefined ? {} : parseConfig(configJson),
    );
    if (checked.kind === "invalid") throw invalid("configure the agent", "agent", checked.problems[0]!);
    const graph = await definition.buildGraph(checked.config, {
      filesFolder: this.#options.filesFolder,
      gate: this.#options.gate,
      isCheck,
      secrets: this.#options.secrets ?? BoundKeys.none,
      tools: modules?.exports.tools ?? {},
      outside: this.#options.outside,
      packages: this.#options.packages,
      containers: this.#options.containers,
      ...(this.#options.sandbox !== undefined && { sandbox: this.#options.sandbox }),
      onClose: (close) => this.#opened.defer(close),
    });
    return { name, config: checked.config, graph, definition };
  }
}

function invalid(action: string, path: string, problem: InputProblem): InvalidInputError {
  const full = [path, ...problem.path.map(String)].join(".");
  return new InvalidInputError(
    `Cannot ${action}: \`${full}\` is ${JSON.stringify(problem.value)}; it must be ${problem.allowed}`,
    { path: full, allowed: problem.allowed },
  );
}

/** @throws {InvalidInputError} when the text is not JSON. */
function parseConfig(text: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw new InvalidInputError(
      `Cannot read a configuration that is not JSON: ${text.slice(0, 200)}`,
      { path: "agent.config", allowed: "JSON" },
      { cause },
    );
  }
}
