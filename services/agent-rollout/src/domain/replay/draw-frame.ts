/** Asks an environment to draw its state, and checks what it gives, as it may be anybody's code. */

import type { Environment, EnvironmentFrame } from "@hone/agents";
import { describeError, unreachable } from "@hone/core";
import { z } from "zod";

export interface Drawn {
  /** Absent = it drew nothing. */
  readonly picture?: EnvironmentFrame | undefined;
  readonly bytes: number;
  /** Why it could not be drawn, as a sentence without a full stop. */
  readonly failure?: string;
}

const PNG_SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

const frameSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("text"), text: z.string() }),
  z.object({ kind: z.literal("svg"), svg: z.string().regex(/<svg[\s>]/) }),
  z.object({
    kind: z.literal("png"),
    bytes: z.instanceof(Uint8Array).refine((bytes) => PNG_SIGNATURE.every((byte, at) => bytes[at] === byte)),
  }),
]);

/** Never rejects. */
export async function drawFrame(environment: Environment): Promise<Drawn> {
  let given: unknown;
  try {
    given = await environment.render?.();
  } catch (error) {
    return { bytes: 0, failure: `render() failed with "${describeError(error)}"` };
  }
  if (given === undefined) return { bytes: 0 };
  const checked = frameSchema.safeParse(given);
  if (!checked.success) {
    return {
      bytes: 0,
      failure:
        "render() gave something else than a frame: { kind: text, text }, { kind: svg, svg } with an <svg> element, or { kind: png, bytes } with a PNG file",
    };
  }
  return { picture: checked.data, bytes: sizeOf(checked.data) };
}

function sizeOf(frame: EnvironmentFrame): number {
  switch (frame.kind) {
    case "text":
      return Buffer.byteLength(frame.text);
    case "svg":
      return Buffer.byteLength(frame.svg);
    case "png":
      return frame.bytes.length;
    default:
      return unreachable(frame);
  }
}
