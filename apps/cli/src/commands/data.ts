/** `hone data prepare gsm8k|math FROM`: turns a public data set into files of rows. */

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { filesToPrepare, PREPARATIONS, prepareDataset } from "@hone/dataset/prepare";
import { DatasetHub, isRepositoryId, readHubSettings } from "@hone/hub";
import { defineCommand } from "citty";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";

type Name = keyof typeof PREPARATIONS;
const NAMES = Object.keys(PREPARATIONS) as Name[];

const prepareCommand = honeCommand({
  name: "prepare",
  parent: "data",
  description: "Turn a public data set, as it is published, into rows that a run can train on",
  args: {
    name: {
      type: "positional",
      required: true,
      description: `Data set: ${NAMES.join(" or ")}`,
      valueHint: "NAME",
    },
    from: {
      type: "positional",
      required: true,
      description: "Folder of the data set, or its id on the Hugging Face hub",
      valueHint: "FROM",
    },
    revision: {
      type: "string",
      description: "Branch, tag or commit of the hub's repository; main by default",
      valueHint: "REV",
    },
    out: {
      type: "string",
      description: "Folder for train.jsonl and test.jsonl; data/NAME in the project folder by default",
      valueHint: "DIR",
    },
    instruction: {
      type: "string",
      description: "Instruction after each question, instead of the data set's usual one",
      valueHint: "TEXT",
    },
    agent: { type: "string", description: "agent_name of each row; none by default", valueHint: "AGENT" },
  },
  run: async ({ terminal, project, signal }, args) => {
    const name = NAMES.find((each) => each === args.name);
    if (name === undefined) {
      throw new UsageError(
        `there is no data set ${args.name} to prepare; the name must be ${NAMES.join(" or ")}`,
      );
    }
    const to =
      args.out === undefined ? resolve(project.folder, "data", name) : resolve(userFolder(), args.out);
    const from = await folderOf(name, args.from, args.revision ?? "main", signal);
    const { instruction, agent: agentName } = args;
    for (const split of await prepareDataset({ name, from, to, instruction, agentName })) {
      const leftOut =
        split.leftOut === 0 ? "" : `; ${split.leftOut} records without a question or an answer were left out`;
      terminal.line(`${shownPath(split.file)}: ${split.rows} rows${leftOut}`);
    }
    terminal.line(`judge for the run file: [ { kind: ${PREPARATIONS[name].judge} } ]`);
    return 0;
  },
});

/** The folder `from` if there is one, otherwise that of the hub's repository of this id. */
async function folderOf(name: Name, from: string, revision: string, signal: AbortSignal): Promise<string> {
  const folder = resolve(userFolder(), from);
  const isFolder = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isFolder || !isRepositoryId(from)) return folder;
  const hub = new DatasetHub(readHubSettings(process.env, homedir()));
  return hub.folderOf(from, revision, (paths) => filesToPrepare(name, paths), { signal });
}

export const dataCommand = defineCommand({
  meta: { name: "data", description: "Prepare data sets for runs" },
  subCommands: { prepare: prepareCommand },
});
