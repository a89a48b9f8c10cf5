/**
 * Turns frames into pixels: the picture of a state in the middle of a canvas that all frames of an episode share, with a caption
 * below it.
 *
 * Documents that users' code wrote are drawn by resvg in WebAssembly, which runs no script and has neither files nor a network.
 * It has no fonts of the system either: texts are set in DejaVu Sans Mono, or in a font that the user names.
 */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { initWasm, Resvg, type ResvgRenderOptions } from "@resvg/resvg-wasm";
import { UsageError } from "../errors.ts";
import { captionOf, type StoredFrame } from "./stored-frames.ts";

export interface PainterOptions {
  /** Factor on the size of pictures and texts. */
  readonly scale: number;
  readonly hasCaption: boolean;
  /** TTF or OTF file. @default DejaVu Sans Mono */
  readonly fontFile?: string | undefined;
}

/** A painted frame. */
export interface Painting {
  readonly width: number;
  readonly height: number;
  /** Four bytes a pixel. */
  readonly rgba: Uint8Array;
  readonly png: Uint8Array;
}

/** What is drawn in the middle of the canvas. */
interface Picture {
  readonly width: number;
  readonly height: number;
  /** SVG, with its origin at the picture's upper left corner. */
  readonly drawing: string;
}

interface TextStyle {
  readonly size: number;
  readonly color: string;
}

const BACKGROUND = "#ffffff";
const TEXT: TextStyle = { size: 16, color: "#1a1e1f" };
const CAPTION: TextStyle = { size: 14, color: "#4b5355" };
const FAMILY = "DejaVu Sans Mono";
/** Width of a character and height of a line, as shares of the font's size. */
const CHARACTER_WIDTH = 0.602;
const LINE_HEIGHT = 1.25;
const MARGIN = 12;
/** Enough for a caption. */
const MIN_WIDTH = 240;
/** Texts are wrapped and cut to a screen of this size. */
const MAX_COLUMNS = 80;
const MAX_LINES = 60;
/** Pictures beyond this would take gigabytes. */
const MAX_PIXELS = 32_000_000;

/** Signature, and the chunk IHDR. */
const PNG_HEADER_BYTES = 33;

let wasm: Promise<void> | undefined;

export class Painter {
  readonly #options: PainterOptions;
  readonly #resvg: ResvgRenderOptions;

  private constructor(options: PainterOptions, font: Uint8Array) {
    this.#options = options;
    const family = options.fontFile === undefined ? { defaultFontFamily: FAMILY } : {};
    const families = { ...family, sansSerifFamily: FAMILY, serifFamily: FAMILY, monospaceFamily: FAMILY };
    this.#resvg = { font: { fontBuffers: [font], ...families } };
  }

  /** @throws {UsageError} when the font cannot be read. */
  static async open(options: PainterOptions): Promise<Painter> {
    wasm ??= readFile(fileURLToPath(import.meta.resolve("@resvg/resvg-wasm/index_bg.wasm"))).then(initWasm);
    await wasm;
    const file =
      options.fontFile ?? fileURLToPath(import.meta.resolve("dejavu-fonts-ttf/ttf/DejaVuSansMono.ttf"));
    try {
      return new Painter(options, await readFile(file));
    } catch (cause) {
      throw new UsageError(`the font ${file} cannot be read; give a TTF or OTF file`, { cause });
    }
  }

  /** Yields the frames in order, all of the same size. @throws {UsageError} when one is too large or is no picture. */
  *paint(frames: readonly StoredFrame[]): Generator<Painting> {
    const pictures = frames.map((frame, index) => this.#pictureOf(frame, index));
    const width = 2 * MARGIN + Math.max(MIN_WIDTH, ...pictures.map((each) => each.width));
    const pictureHeight = Math.max(...pictures.map((each) => each.height));
    const captionHeight = this.#options.hasCaption ? Math.ceil(CAPTION.size * LINE_HEIGHT) + MARGIN : 0;
    const height = 2 * MARGIN + pictureHeight + captionHeight;
    if (width * height > MAX_PIXELS) throw tooLarge(width, height);
    for (const [index, picture] of pictures.entries()) {
      const x = Math.round((width - picture.width) / 2);
      const y = MARGIN + Math.round((pictureHeight - picture.height) / 2);
      const columns = Math.floor((width - 2 * MARGIN) / (CAPTION.size * CHARACTER_WIDTH));
      const caption = this.#options.hasCaption ? shortened(captionOf(frames[index]!), columns) : "";
      const captionY = 2 * MARGIN + pictureHeight;
      yield this.#rasterize(
        [
          `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`,
          `<rect width="100%" height="100%" fill="${BACKGROUND}"/>`,
          `<g transform="translate(${x} ${y})">${picture.drawing}</g>`,
          `<g transform="translate(${MARGIN} ${captionY})">${textLines([caption], CAPTION)}</g>`,
          "</svg>",
        ].join(""),
      );
    }
  }

  #pictureOf({ text, svg, png }: StoredFrame, index: number): Picture {
    if (svg !== undefined) return this.#svgPicture(svg, index);
    const picture = png === undefined ? undefined : this.#pngPicture(Buffer.from(png, "base64"));
    return picture ?? this.#textPicture(text);
  }

  #svgPicture(svg: string, index: number): Picture {
    const { scale } = this.#options;
    let natural: { readonly width: number; readonly height: number };
    try {
      const document = new Resvg(svg, this.#resvg);
      natural = { width: document.width, height: document.height };
      document.free();
    } catch (cause) {
      throw new UsageError(
        `the picture of frame ${index + 1} cannot be read as SVG (${String(cause)}); with -o FILE.txt its texts are written`,
        { cause },
      );
    }
    const width = Math.max(1, Math.round(natural.width * scale));
    const height = Math.max(1, Math.round(natural.height * scale));
    if (width * height > MAX_PIXELS) throw tooLarge(width, height);
    // Drawn for itself at its final size, so that its names and styles cannot mix with those of the canvas.
    const { png } = this.#rasterize(svg, { mode: "width", value: width });
    return { width, height, drawing: image(png, width, height) };
  }

  /** @returns undefined when it cannot be read. */
  #pngPicture(png: Buffer): Picture | undefined {
    if (png.length < PNG_HEADER_BYTES) return undefined;
    // The first chunk of a PNG file, IHDR, begins with width and height.
    const [width = 1, height = 1] = [16, 20].map((at) =>
      Math.max(1, Math.round(png.readUInt32BE(at) * this.#options.scale)),
    );
    if (width * height > MAX_PIXELS) throw tooLarge(width, height);
    const drawing = image(png, width, height);
    // resvg leaves out an image that it cannot read.
    const { rgba } = this.#rasterize(
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${drawing}</svg>`,
    );
    return rgba.some((value) => value > 0) ? { width, height, drawing } : undefined;
  }

  #textPicture(text: string): Picture {
    const { scale } = this.#options;
    const lines = screenLines(text);
    const style = { ...TEXT, size: TEXT.size * scale };
    const columns = Math.max(1, ...lines.map((line) => [...line].length));
    return {
      width: Math.ceil(columns * style.size * CHARACTER_WIDTH),
      height: Math.ceil(lines.length * style.size * LINE_HEIGHT),
      drawing: textLines(lines, style),
    };
  }

  #rasterize(svg: string, fitTo: ResvgRenderOptions["fitTo"] = { mode: "original" }): Painting {
    const document = new Resvg(svg, { ...this.#resvg, fitTo });
    const rendered = document.render();
    const { width, height, pixels } = rendered;
    // Copied, as the memory of WebAssembly is used again.
    const painting = { width, height, rgba: Uint8Array.from(pixels), png: Uint8Array.from(rendered.asPng()) };
    rendered.free();
    document.free();
    return painting;
  }
}

/** A picture that keeps the edges of its pixels where it is enlarged. */
function image(png: Uint8Array, width: number, height: number): string {
  const data = Buffer.from(png).toString("base64");
  return `<image href="data:image/png;base64,${data}" width="${width}" height="${height}" preserveAspectRatio="none" image-rendering="optimizeSpeed"/>`;
}

function textLines(lines: readonly string[], { size, color }: TextStyle): string {
  const texts = lines.map(
    (line, index) =>
      `<text x="0" y="${index * size * LINE_HEIGHT + size}" xml:space="preserve">${escaped(line)}</text>`,
  );
  return `<g font-family="${FAMILY}" font-size="${size}" fill="${color}">${texts.join("")}</g>`;
}

/** The lines of a text on a screen, wrapped and cut. */
function screenLines(text: string): string[] {
  const lines = text
    .replaceAll("\t", "    ")
    .split(/\r?\n/)
    .flatMap((line) => line.match(new RegExp(`.{1,${MAX_COLUMNS}}`, "gu")) ?? [""]);
  return lines.length <= MAX_LINES ? lines : [...lines.slice(0, MAX_LINES - 1), "…"];
}

function shortened(text: string, columns: number): string {
  const characters = [...text];
  return characters.length <= columns ? text : `${characters.slice(0, columns - 1).join("")}…`;
}

/** Characters that XML does not allow are shown as a box. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

function tooLarge(width: number, height: number): UsageError {
  return new UsageError(
    `a frame would have ${width} x ${height} pixels, and may have ${MAX_PIXELS.toLocaleString("en-US")}; give a smaller --scale`,
  );
}
