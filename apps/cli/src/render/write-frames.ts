/** Writes the frames of an episode as an animation, as a folder of pictures, or as text. */

import { mkdir, readdir, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { unreachable } from "@hone/core";
import { encode } from "modern-gif";
import { UsageError } from "../errors.ts";
import { Painter, type PainterOptions, type Painting } from "./painter.ts";
import { captionOf, type StoredFrame } from "./stored-frames.ts";

export type FrameFormat = "gif" | "folder" | "text";

export interface WriteOptions extends PainterOptions {
  /** Time that an animation shows each frame; the last one is shown three times as long. */
  readonly delayMs: number;
  readonly signal: AbortSignal;
}

const LAST_FRAME_FACTOR = 3;
/** An animation is encoded in memory, four bytes a pixel. */
const MAX_GIF_PIXELS = 300_000_000;

/** @throws {UsageError} for the name of a file of another kind. */
export function formatOf(target: string): FrameFormat {
  switch (extname(target).toLowerCase()) {
    case ".gif":
      return "gif";
    case ".txt":
      return "text";
    case "":
      return "folder";
    default:
      throw new UsageError(
        `-o ${target} is not allowed; give a file that ends with .gif or .txt, or a folder for PNG files, whose name has no ending`,
      );
  }
}

/**
 * @returns what was written, for people.
 * @throws {UsageError} when it cannot be drawn or written.
 */
export async function writeFrames(
  frames: readonly StoredFrame[],
  target: string,
  options: WriteOptions,
): Promise<string> {
  const format = formatOf(target);
  const count = `${frames.length} ${frames.length === 1 ? "frame" : "frames"}`;
  switch (format) {
    case "text":
      await write(target, frames.map(textOf).join("\n"));
      return `${count} as text`;
    case "folder": {
      await makeFolder(target);
      const painter = await Painter.open(options);
      let number = 0;
      for (const { png } of painter.paint(frames)) {
        options.signal.throwIfAborted();
        await write(join(target, `frame-${String(number++).padStart(4, "0")}.png`), png);
      }
      return `${count} as PNG files`;
    }
    case "gif": {
      const painter = await Painter.open(options);
      const paintings: Painting[] = [];
      for (const painting of painter.paint(frames)) {
        options.signal.throwIfAborted();
        const pixels = painting.width * painting.height * frames.length;
        if (pixels > MAX_GIF_PIXELS) {
          throw new UsageError(
            `${count} of ${painting.width} x ${painting.height} pixels are too many for one GIF; give a smaller --scale, or a folder for PNG files`,
          );
        }
        paintings.push(painting);
      }
      await write(target, await encodeGif(paintings, options.delayMs));
      const { width, height } = paintings[0]!;
      return `${count} of ${width} x ${height} pixels`;
    }
    default:
      return unreachable(format);
  }
}

async function encodeGif(paintings: readonly Painting[], delayMs: number): Promise<Uint8Array> {
  const { width, height } = paintings[0]!;
  const last = paintings.length - 1;
  const file = await encode({
    width,
    height,
    frames: paintings.map(({ rgba }, index) => ({
      data: new Uint8ClampedArray(rgba),
      delay: index === last ? LAST_FRAME_FACTOR * delayMs : delayMs,
    })),
  });
  return new Uint8Array(file);
}

function textOf(frame: StoredFrame): string {
  return `== ${captionOf(frame)}\n${frame.text}\n`;
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length === 0) return;
  } catch (cause) {
    throw new UsageError(`the folder ${folder} cannot be written`, { cause });
  }
  throw new UsageError(`the folder ${folder} is not empty; give a new or empty one`);
}

async function write(file: string, content: string | Uint8Array): Promise<void> {
  try {
    await writeFile(file, content);
  } catch (cause) {
    throw new UsageError(`${file} cannot be written`, { cause });
  }
}
