/** `hone step RUN K`: what made the gradient of a step: its updates, and the rollouts and tokens that added most. */

import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { gradientLines, gradientSchema } from "../ledger/gradient-lines.ts";
import { askTracer } from "../stack/ask-tracer.ts";
import { requireStack } from "../stack/use-stack.ts";

export const stepCommand = honeCommand({
  name: "step",
  description: "Show which rollouts and tokens made most of a step's gradient",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    step: { type: "positional", required: true, description: "Number of the step, from 1", valueHint: "K" },
    json: { type: "boolean", description: "Print the figures as JSON" },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    if (!/^\d{1,9}$/.test(args.step)) throw new UsageError(`${args.step} is not the number of a step`);
    const { pageUrl, token } = requireStack(session);
    const path = `/api/runs/${encodeURIComponent(args.run)}/steps/${args.step}/gradient`;
    const answer = await askTracer({ pageUrl, token, signal }, path, gradientSchema);
    if (answer.kind === "missing") throw new UsageError(answer.message);
    if (args.json === true) {
      terminal.line(JSON.stringify(answer.value));
      return 0;
    }
    for (const line of gradientLines(args.run, answer.value)) terminal.line(line);
    return 0;
  },
});
