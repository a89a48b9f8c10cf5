/** Reads a tokenizer from a folder in the Hugging Face layout. */

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import path from "node:path";
import { TokenizerLoadError } from "./errors.ts";
import { Tokenizer } from "./tokenizer.ts";

/** Files that make up a tokenizer, in the order in which they enter the digest. */
export const TOKENIZER_FILES = [
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "generation_config.json",
] as const;

/** The largest vocabularies, of 260,000 tokens, have 35 MB; much larger files would only fill memory. */
const MAX_FILE_BYTES = 128 * 1024 * 1024;

/** Error codes for a file that is missing or whose name is not possible. Trying again would not help. */
const ABSENT_CODES: readonly unknown[] = [
  "ENOENT",
  "ENOTDIR",
  "ENAMETOOLONG",
  "ELOOP",
  "ERR_INVALID_ARG_VALUE",
];

/**
 * Loads `tokenizer.json` and, if they exist, `tokenizer_config.json`, `chat_template.jinja` (or the configuration's
 * own `chat_template`) and the stop ids of `generation_config.json`.
 * @throws {TokenizerLoadError} when a file is missing or invalid.
 */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const texts: Record<string, string> = {};
  for (const name of TOKENIZER_FILES) {
    const text = await readIfPresent(path.join(folder, name));
    if (text !== undefined) texts[name] = text;
  }
  return makeTokenizer(texts, folder);
}

/**
 * {@link loadTokenizer} for files whose contents are already in memory.
 * @param texts contents by file name; other files are ignored.
 * @param source names the origin of the files in errors.
 */
export function makeTokenizer(texts: Readonly<Record<string, string>>, source: string): Tokenizer {
  const digest = createHash("sha256");
  for (const name of TOKENIZER_FILES) {
    const text = texts[name];
    if (text !== undefined) digest.update(`${name}\u0000${text.length}\u0000`).update(text);
  }
  const tokenizerText = texts["tokenizer.json"];
  if (tokenizerText === undefined)
    throw new TokenizerLoadError("its folder must hold tokenizer.json", source);
  const config = parseObject(texts["tokenizer_config.json"] ?? "{}", "tokenizer_config.json", source);
  const generation = parseObject(texts["generation_config.json"] ?? "{}", "generation_config.json", source);
  try {
    return new Tokenizer({
      tokenizer: parseObject(tokenizerText, "tokenizer.json", source),
      config,
      chatTemplate: texts["chat_template.jinja"] ?? readChatTemplate(config.chat_template),
      generationStopIds: readIds(generation.eos_token_id),
      digest: digest.digest("hex"),
    });
  } catch (error) {
    if (error instanceof TokenizerLoadError) throw error;
    throw new TokenizerLoadError("its tokenizer.json must be one that Hone can run", source, {
      cause: error,
    });
  }
}

async function readIfPresent(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file);
    const { size } = await handle.stat();
    if (size > MAX_FILE_BYTES) {
      const name = path.basename(file);
      throw new TokenizerLoadError(`${name} must have at most ${MAX_FILE_BYTES} bytes`, path.dirname(file));
    }
    return await handle.readFile("utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && ABSENT_CODES.includes(error.code)) return undefined;
    throw error;
  }
}

function parseObject(text: string, name: string, folder: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new TokenizerLoadError(`${name} must be JSON`, folder, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TokenizerLoadError(`${name} must hold a JSON object`, folder);
  }
  return value as Record<string, unknown>;
}

/** A template's text; if a configuration holds several templates, the one named "default". */
function readChatTemplate(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return undefined;
  const named = value as ReadonlyArray<{ name?: unknown; template?: unknown }>;
  const chosen = named.find((entry) => entry.name === "default") ?? named[0];
  return typeof chosen?.template === "string" ? chosen.template : undefined;
}

function readIds(value: unknown): number[] {
  const values = Array.isArray(value) ? value : [value];
  return values.filter((id): id is number => Number.isInteger(id));
}
