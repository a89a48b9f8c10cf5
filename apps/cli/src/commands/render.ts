/** `hone render RUN ROLLOUT -o OUT`: a stored rollout as an animation, as pictures or as text. */

import { resolve } from "node:path";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { shownPath, userFolder } from "../project.ts";
import { storedFrames } from "../render/stored-frames.ts";
import { formatOf, writeFrames } from "../render/write-frames.ts";
import { requireStack } from "../stack/use-stack.ts";

const SCALE = { least: 0.1, most: 16 };
/** Browsers show frames of less than 20 ms for longer. */
const DELAY_MS = { least: 20, most: 60_000 };

export const renderCommand = honeCommand({
  name: "render",
  description: "Show a stored rollout frame by frame, as a GIF, a folder of PNG files or text",
  args: {
    run: { type: "positional", required: true, description: "Id of the run", valueHint: "RUN" },
    rollout: {
      type: "positional",
      required: true,
      description: "The rollout as the page names it, such as train.12.0.3",
      valueHint: "ROLLOUT",
    },
    out: {
      type: "string",
      alias: "o",
      required: true,
      description: "FILE.gif, FILE.txt, or a new or empty folder for PNG files",
      valueHint: "OUT",
    },
    scale: {
      type: "string",
      default: "1",
      description: "Factor on the size of the pictures",
      valueHint: "X",
    },
    "delay-ms": {
      type: "string",
      default: "500",
      description: "Time that a GIF shows each frame; the last one is shown three times as long",
      valueHint: "MS",
    },
    caption: { type: "boolean", default: true, description: "Write the action that led to a frame below it" },
    font: {
      type: "string",
      description: "TTF or OTF file for texts; DejaVu Sans Mono by default",
      valueHint: "FILE",
    },
  },
  run: async (session, args) => {
    const { terminal, signal } = session;
    const target = resolve(userFolder(), args.out);
    // Checked before anything is asked for.
    formatOf(target);
    const options = {
      scale: readNumber("scale", args.scale, SCALE),
      delayMs: readNumber("delay-ms", args["delay-ms"], DELAY_MS),
      hasCaption: args.caption,
      fontFile: args.font === undefined ? undefined : resolve(userFolder(), args.font),
      signal,
    };
    const { pageUrl, token } = requireStack(session);
    terminal.live("playing the episode again …");
    const { frames, notice } = await storedFrames({ pageUrl, token, signal }, args.run, args.rollout);
    terminal.live("drawing …");
    const written = await writeFrames(frames, target, options);
    terminal.live("");
    if (notice !== "") terminal.line(notice);
    terminal.line(`${args.rollout} of ${args.run} is in ${shownPath(target)}: ${written}`);
    return 0;
  },
});

function readNumber(
  name: string,
  text: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  const value = /^\d{1,6}(\.\d{1,4})?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`--${name} ${text} is not allowed; it must be a number from ${least} to ${most}`);
}
