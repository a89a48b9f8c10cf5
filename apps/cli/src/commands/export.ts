/** `hone export RUN DIR`: copies a run's checkpoint into a new folder in Hugging Face format. */

import { resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { copyModel, mergeModel } from "../run/export-model.ts";
import { findBase, findRunWeights } from "../run/run-weights.ts";

export const exportCommand = honeCommand({
  name: "export",
  description: "Copy a run's checkpoint into a folder that transformers, vLLM and others can load",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    folder: {
      type: "positional",
      required: true,
      description: "Folder to write, new or empty",
      valueHint: "DIR",
    },
    version: {
      type: "string",
      description: "Version of the policy; that of the newest checkpoint by default",
      valueHint: "K",
    },
    merge: {
      type: "boolean",
      description: "Merge the run's adapters into their base model and write the whole model",
    },
  },
  run: async ({ terminal, project }, args) => {
    const target = resolve(userFolder(), args.folder);
    const weights = await findRunWeights(project.state, args.run, readVersion(args.version));
    const base = await findBase(project.state, args.run);
    if (args.merge && base === undefined) {
      throw new UsageError(
        `${args.run} trains its whole model, so there are no adapters to merge; leave --merge out`,
      );
    }
    const names =
      args.merge && base !== undefined
        ? await mergeModel(weights.folder, base.folder, target)
        : await copyModel(weights.folder, target, base?.name);
    terminal.line(
      `version ${weights.version} of ${args.run} is in ${shownPath(target)} (${names.join(", ")})`,
    );
    return 0;
  },
});

function readVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--version ${text} is not a whole number`);
}
