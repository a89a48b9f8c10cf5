/** `hone export RUN DIR`: a run's checkpoint as a Hugging Face folder of one's own. */

import { resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { copyModel, mergeModel } from "../run/export-model.ts";
import { findBase, findRunWeights } from "../run/run-weights.ts";

export const exportCommand = honeCommand({
  name: "export",
  description: "Copy a run's checkpoint into a folder that transformers, vLLM and others load",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    folder: { type: "positional", required: true, description: "New folder", valueHint: "DIR" },
    version: {
      type: "string",
      description: "Version of the policy; the newest checkpoint by default",
      valueHint: "K",
    },
    merge: {
      type: "boolean",
      description: "Of a run that trains adapters: merge them into their base and write the whole model",
    },
  },
  run: async ({ terminal, project }, args) => {
    const target = resolve(userFolder(), args.folder);
    const weights = await findRunWeights(project.state, args.run, readVersion(args.version));
    const base = await findBase(project.state, args.run);
    if (args.merge && base === undefined) {
      throw new UsageError(
        `Cannot merge as the run must train adapters (model.lora): current value is ${args.run}, which trains its model`,
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
  throw new UsageError(`Cannot export a version as it must be a whole number: current value is ${text}`);
}
