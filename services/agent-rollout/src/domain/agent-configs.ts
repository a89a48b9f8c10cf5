/** The YAML files that rows name as `agent_cfg_path`, each version of a file read once. */

import { stat } from "node:fs/promises";
import { ConfigError, fileBelow, readObjectBelow } from "@hone/config";
import { UnusableJobError } from "./errors.ts";

/** Rows of one dataset name a handful. */
const MAX_FILES = 256;
const COLUMN = "agent_cfg_path";

export class AgentConfigs {
  readonly #folder: string;
  readonly #read = new Map<string, { readonly version: string; readonly json: Promise<string> }>();

  /** @param folder HONE_FILES. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** What the file holds, as JSON. @throws {UnusableJobError} when it cannot be used. */
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
      throw new UnusableJobError(`the file of its row's ${COLUMN} must be an agent's configuration`, path, {
        cause,
      });
    }
  }
}
