/** `hone tokens RUN SLOT`: the trained tokens of a rollout, from their advantage to what they added to the gradient. */

import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { rolloutLines, rolloutTokensSchema } from "../ledger/token-lines.ts";
import { askTracer } from "../stack/ask-tracer.ts";
import { requireStack } from "../stack/use-stack.ts";

export const tokensCommand = honeCommand({
  name: "tokens",
  description:
    "Show what training made of a rollout's tokens: advantage, ratio, what cut them, share of the gradient",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    rollout: {
      type: "positional",
      required: true,
      description: "The rollout, as the page and hone step name it, such as train.3.0.1",
      valueHint: "ROLLOUT",
    },
    json: { type: "boolean", description: "Print all figures of every update as JSON" },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    const { pageUrl, token } = requireStack(session);
    const path = `/api/runs/${encodeURIComponent(args.run)}/rollouts/${encodeURIComponent(args.rollout)}/tokens`;
    const answer = await askTracer({ pageUrl, token, signal }, path, rolloutTokensSchema);
    if (answer.kind === "missing") throw new UsageError(answer.message);
    if (args.json === true) terminal.line(JSON.stringify(answer.value));
    else for (const line of rolloutLines(args.run, answer.value)) terminal.line(line);
    return 0;
  },
});
