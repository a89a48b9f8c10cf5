/**
 * The one gate before all code that is named from outside: by a run file, an agent's YAML or the row of a data set.
 *
 * Whoever may publish a run could otherwise run code with all rights of a service. So every program that such a text names
 * is started, and every module is imported, by way of this gate:
 *
 * C1: nothing passes that the operator does not allow, by HONE_ALLOW_COMMANDS and HONE_ALLOW_MODULES. Both are `no` unless
 *     said otherwise.
 * C2: what is allowed lies below HONE_FILES, links followed, or, for a program named without a slash, in the PATH.
 * C3: a program gets the variables that are listed here and those that its file names: none of the service's secrets.
 * C4: passing the gate starts nothing. What it gives can be made nowhere else, and it alone can be started or imported;
 *     scripts/checks/gates.ts finds code that goes round it.
 */

import { access, constants, stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@hone/core";
import { z } from "zod";
import { fileBelow } from "../run-file/parse/inline-files.ts";
import { readEnvironment } from "../service-env.ts";
import { UserModule, versionOfFile } from "./user-module.ts";

/** The operator's settings. */
export const CodeVariable = {
  /** `yes` = run files, agents' files and rows may name programs: agents that are commands, servers of tools. */
  commands: "HONE_ALLOW_COMMANDS",
  /** `yes` = they may name TypeScript modules below HONE_FILES: agents, tools, environments, judges. */
  modules: "HONE_ALLOW_MODULES",
} as const;

/** What programs need of the service's environment to find programs, files and servers; no secrets. */
const PASSED_VARIABLES = [
  "PATH",
  "HOME",
  "LANG",
  "LC_ALL",
  "TZ",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "REQUESTS_CA_BUNDLE",
  "NODE_EXTRA_CA_CERTS",
];
/** What Node can import that is code of a user. */
const MODULE_NAME = /\.[mc]?[jt]s$/;

/** A program that passed the gate. */
class AllowedProgram {
  /** Absolute. */
  readonly file: string;
  readonly args: readonly string[];
  /** HONE_FILES: where it is started. */
  readonly folder: string;
  // Private, so that no other object of this shape is taken for one (C4).
  readonly #environment: Readonly<Record<string, string>>;

  constructor(
    file: string,
    args: readonly string[],
    folder: string,
    environment: Readonly<Record<string, string>>,
  ) {
    this.file = file;
    this.args = args;
    this.folder = folder;
    this.#environment = environment;
  }

  /** All that it gets to see (C3). */
  get environment(): Readonly<Record<string, string>> {
    return this.#environment;
  }
}

export type { AllowedProgram };

export interface CodeGateOptions {
  /** HONE_FILES. */
  readonly filesFolder: string;
  /** What every program gets to see; undefined = no program is allowed. */
  readonly commandEnvironment?: Readonly<Record<string, string>> | undefined;
  /** @default false */
  readonly areModulesAllowed?: boolean;
}

export interface NamedProgram {
  /** Without a slash it is looked for in the PATH, else below HONE_FILES. */
  readonly program: string;
  readonly args: readonly string[];
  /** Beside what every program gets. */
  readonly environment: Readonly<Record<string, string>>;
}

export class CodeGate {
  readonly #options: CodeGateOptions;

  constructor(options: CodeGateOptions) {
    this.#options = options;
  }

  /**
   * @param key that names the program, for errors, such as `agent.command`.
   * @throws {InvalidInputError} where the operator does not allow programs, or this one is not there.
   * @throws {ConfigError} when it leads out of HONE_FILES.
   */
  async program({ program, args, environment }: NamedProgram, key: string): Promise<AllowedProgram> {
    const { commandEnvironment, filesFolder } = this.#options;
    if (commandEnvironment === undefined) {
      throw refusal(
        key,
        `left out, as the operator does not allow programs (${CodeVariable.commands}=yes)`,
        `${key} names the program "${program}", and programs of run files are not allowed here; the operator allows them with ${CodeVariable.commands}=yes`,
      );
    }
    const all = { ...commandEnvironment, ...environment };
    const file = program.includes("/")
      ? await fileBelow(filesFolder, program, key)
      : await findProgram(program, all.PATH ?? "");
    if (file !== undefined) return new AllowedProgram(file, args, filesFolder, all);
    throw refusal(
      key,
      "a program in the PATH, or a file below HONE_FILES",
      `${key} names "${program}", which is no program in the PATH; give one that is, or a path with a slash below HONE_FILES`,
    );
  }

  /**
   * @param key that names the module, for errors, such as `agent.modules`.
   * @throws {InvalidInputError} where the operator does not allow modules, or the file is none.
   * @throws {ConfigError} when it is not there, or leads out of HONE_FILES.
   */
  async module(named: string, key: string): Promise<UserModule> {
    const { areModulesAllowed, filesFolder } = this.#options;
    if (areModulesAllowed !== true) {
      throw refusal(
        key,
        `left out, as the operator does not allow modules (${CodeVariable.modules}=yes)`,
        `${key} names the module "${named}", and modules of run files are not allowed here; the operator allows them with ${CodeVariable.modules}=yes`,
      );
    }
    const file = await fileBelow(filesFolder, named, key);
    if (MODULE_NAME.test(file)) return new UserModule(await versionOfFile(file));
    throw refusal(
      key,
      "a TypeScript or JavaScript file",
      `${key} names "${named}", which is no module; give a file that ends in .ts, .mts, .js or .mjs`,
    );
  }
}

/**
 * The gate as the operator of a service sets it.
 * @throws {ConfigError} when a setting is neither `yes` nor `no`.
 */
export function readCodeGate(
  environment: Readonly<Record<string, string | undefined>>,
  filesFolder: string,
): CodeGate {
  const isAllowed = z.enum(["yes", "no"]).default("no");
  const read = readEnvironment(
    z.object({ [CodeVariable.commands]: isAllowed, [CodeVariable.modules]: isAllowed }),
    environment,
  );
  return new CodeGate({
    filesFolder,
    commandEnvironment: read.HONE_ALLOW_COMMANDS === "yes" ? passedVariables(environment) : undefined,
    areModulesAllowed: read.HONE_ALLOW_MODULES === "yes",
  });
}

function passedVariables(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    PASSED_VARIABLES.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

async function findProgram(name: string, searched: string): Promise<string | undefined> {
  for (const folder of searched.split(path.delimiter)) {
    const file = path.join(folder, name);
    try {
      await access(file, constants.X_OK);
      if ((await stat(file)).isFile()) return file;
    } catch {
      // Not there: the next one.
    }
  }
  return undefined;
}

function refusal(key: string, allowed: string, message: string): InvalidInputError {
  return new InvalidInputError(message, { path: key, allowed });
}
