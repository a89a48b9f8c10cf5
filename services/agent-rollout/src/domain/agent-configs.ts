/** Reads the YAML files that rows name as `agent_cfg_path`; each version of a file is read once. */

import { stat } from "node:fs/promises";
import { ConfigError, fileBelow, readObjectBelow } from "@hone/config";
import { UnusableJobError } from "./errors.ts";

/** The rows of one dataset name only a handful. */
const MAX_FILES = 256;
const COLUMN = "agent_cfg_path";

export class AgentConfigs {
  readonly #folder: string;
  readonly #read = new Map<string, { readonly version: string; readonly json: Promise<string> }>();

  /** @param folder HONE_FILES. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The content of the file, as JSON. @throws {UnusableJobError} when it cannot be used. */
  async at(path: string): Promise<string> {
    try {
      const { mtimeMs, size } = await stat(await fileBelow(this.#folder, path, COLUMN));
      const version = `${mtimeMs}/${size}`;
      const known = this.#read.get(path);
      if (known?.version === version) return await known.json;
      const json = readObjectBelow(this.#folder, path, COLUMN).then((config) => JSON.stringify(config));
      if (this.#read.size >= MAX_FILES) this.#read.clear();
      this.#read.set(path, { version, json });
      return await json;
    } catch (cause) {
      this.#read.delete(path);
      if (!(cause instanceof ConfigError)) throw cause;
      throw new UnusableJobError(
        `its row's ${COLUMN} "${path}" is not the file of an agent's configuration`,
        {
          cause,
        },
      );
    }
  }
}
