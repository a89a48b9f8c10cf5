/** `hone notes [RUN]`: the notes and scores that people gave rollouts on the page, as JSON lines. */

import { createWriteStream } from "node:fs";
import { resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { honeCommand } from "../define.ts";
import { shownPath, userFolder } from "../project.ts";
import { linesFromTracer } from "../stack/ask-tracer.ts";
import { requireStack } from "../stack/use-stack.ts";

export const notesCommand = honeCommand({
  name: "notes",
  description: "Export the notes and scores that people gave rollouts on the page, as JSON lines",
  args: {
    run: {
      type: "positional",
      required: false,
      description: "Id of the run; without it the notes of all runs are written",
      valueHint: "RUN",
    },
    out: {
      type: "string",
      alias: "o",
      description: "File to write; without it the lines are printed",
      valueHint: "FILE",
    },
  },
  run: async (session, { run, out }) => {
    const { terminal, signal } = session;
    const { pageUrl, token } = requireStack(session);
    const query = run === undefined ? "" : `?run=${encodeURIComponent(run)}`;
    const lines = linesFromTracer({ pageUrl, token, signal }, `/api/notes.jsonl${query}`);
    if (out === undefined) {
      for await (const line of lines) terminal.line(line);
      return 0;
    }
    const target = resolve(userFolder(), out);
    let count = 0;
    const counted = async function* () {
      for await (const line of lines) {
        count++;
        yield `${line}\n`;
      }
    };
    await pipeline(counted, createWriteStream(target), { signal });
    terminal.line(`${count} ${count === 1 ? "note is" : "notes are"} in ${shownPath(target)}`);
    return 0;
  },
});
