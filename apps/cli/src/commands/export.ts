/** `hone export RUN DIR`: a run's checkpoint as a Hugging Face folder of one's own. */

import { resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { copyModel } from "../run/copy-model.ts";
import { findRunWeights } from "../run/run-weights.ts";

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
  },
  run: async ({ terminal, project }, args) => {
    const target = resolve(userFolder(), args.folder);
    const weights = await findRunWeights(project.state, args.run, readVersion(args.version));
    const names = await copyModel(weights.folder, target);
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
