/** `hone diff RUN RUN`: says in which setting, step and rollout two runs part. */

import { honeCommand } from "../define.ts";
import { compareLedgers, differenceLines } from "../ledger/compare-ledgers.ts";
import { readLedger } from "../ledger/read-ledger.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";

export const diffCommand = honeCommand({
  name: "diff",
  description: "Say in which setting, step and rollout two runs part",
  args: {
    run: { type: "positional", required: true, description: "Id of a run", valueHint: "RUN" },
    other: { type: "positional", required: true, description: "Id of another run", valueHint: "OTHER" },
    json: { type: "boolean", description: "Print what was found as JSON" },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    const bus = await connectTo(requireStack(session), "diff", signal);
    try {
      const one = await readLedger(bus, args.run, signal);
      const other = await readLedger(bus, args.other, signal);
      const found = await compareLedgers(one, other);
      if (args.json === true) terminal.line(JSON.stringify({ runs: [args.run, args.other], ...found }));
      else for (const line of differenceLines(one, other, found)) terminal.line(line);
      return 0;
    } finally {
      await bus.close();
    }
  },
});
