/**
 * The only way to run code that a user names: in a run file, in an agent's YAML or in a row of a data set.
 *
 * Without it, anyone who may publish a run could run code with all rights of a service. So every such program is started,
 * and every such module is imported, through this gate:
 *
 * C1: programs and modules are refused unless the operator allows them, with HONE_ALLOW_COMMANDS and HONE_ALLOW_MODULES.
 *     The default of both is `no`.
 * C2: an allowed file lies below HONE_FILES, with links followed, or, for a program named without a slash, in the PATH.
 * C3: a program gets the variables that are listed here and those that its run file names, and none of the service's secrets.
 * C4: the gate itself starts nothing. Only this file can create the objects that it returns, and only these objects can be
 *     started or imported; scripts/checks/gates.ts finds code that avoids the gate.
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
  /** `yes`: run files, configurations of agents and rows may name programs, such as agents that are commands and tool servers. */
  commands: "HONE_ALLOW_COMMANDS",
  /** `yes`: they may name TypeScript modules below HONE_FILES, with agents, tools, environments and judges. */
  modules: "HONE_ALLOW_MODULES",
} as const;

/** The variables of the service that programs need to find programs, files and servers; no secrets. */
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
/** File names of a user's code that Node can import. */
const MODULE_NAME = /\.[mc]?[jt]s$/;

/** A program that passed the gate. */
class AllowedProgram {
  /** Absolute path. */
  readonly file: string;
  readonly args: readonly string[];
  /** HONE_FILES; the program is started in this folder. */
  readonly folder: string;
  // A private field, so that the compiler accepts no other object of this shape (C4).
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

  /** All variables that the program gets (C3). */
  get environment(): Readonly<Record<string, string>> {
    return this.#environment;
  }
}

export type { AllowedProgram };

export interface CodeGateOptions {
  /** HONE_FILES. */
  readonly filesFolder: string;
  /** Variables that every program gets; undefined = programs are not allowed. */
  readonly commandEnvironment?: Readonly<Record<string, string>> | undefined;
  /** @default false */
  readonly areModulesAllowed?: boolean;
}

export interface NamedProgram {
  /** A name without a slash is searched in the PATH, a path with one below HONE_FILES. */
  readonly program: string;
  readonly args: readonly string[];
  /** Variables in addition to those that every program gets. */
  readonly environment: Readonly<Record<string, string>>;
}

export class CodeGate {
  readonly #options: CodeGateOptions;

  constructor(options: CodeGateOptions) {
    this.#options = options;
  }

  /**
   * @param key the key of the run file that names the program, for errors, such as `agent.command`.
   * @throws {InvalidInputError} when the operator does not allow programs, or this one does not exist.
   * @throws {ConfigError} when the program lies outside of HONE_FILES.
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
      `${key} names "${program}", which is not a program in the PATH; give one that is, or a path with a slash below HONE_FILES`,
    );
  }

  /**
   * @param key the key of the run file that names the module, for errors, such as `agent.modules`.
   * @throws {InvalidInputError} when the operator does not allow modules, or the file is not one.
   * @throws {ConfigError} when the file does not exist or lies outside of HONE_FILES.
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
      `${key} names "${named}", which is not a module; give a file that ends in .ts, .mts, .js or .mjs`,
    );
  }
}

/**
 * Creates the gate from the settings in the service's environment.
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
      // Not in this folder.
    }
  }
  return undefined;
}

function refusal(key: string, allowed: string, message: string): InvalidInputError {
  return new InvalidInputError(message, { path: key, allowed });
}
