/** `hone ledger RUN`: prints the ledger of a run and verifies its chain. */

import { honeCommand } from "../define.ts";
import { checkLedger, ledgerLines, verdictLines } from "../ledger/check-ledger.ts";
import { readLedger } from "../ledger/read-ledger.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";

export const ledgerCommand = honeCommand({
  name: "ledger",
  description: "Print the ledger of a run, and verify that no row of it was changed",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    json: { type: "boolean", description: "Print the rows and what was found as JSON" },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    const bus = await connectTo(requireStack(session), "ledger", signal);
    try {
      const checked = await checkLedger(await readLedger(bus, args.run, signal));
      if (args.json === true) terminal.line(JSON.stringify({ runId: args.run, ...checked }));
      else {
        for (const line of [...ledgerLines(checked.rows), "", ...verdictLines(args.run, checked)])
          terminal.line(line);
      }
      return checked.problem === undefined ? 0 : 1;
    } finally {
      await bus.close();
    }
  },
});
