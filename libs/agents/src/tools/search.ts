/**
 * The tool `search`: finds passages of a local corpus by BM25.
 *
 * The corpus is a JSON Lines file below HONE_FILES; each line has the text of a passage. It is read once, at the first
 * search, and stays in memory.
 */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileBelow } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";
import { z } from "zod";
import { type Passage, SearchIndex } from "./search-index.ts";
import { defineTool, type Tool } from "./tool.ts";

export const searchConfigSchema = z.strictObject({
  /** JSON Lines file, below HONE_FILES. */
  corpus: z.string().min(1),
  /** Columns of a line that hold the text and the title of the passage. */
  textColumn: z.string().min(1).default("text"),
  titleColumn: z.string().min(1).default("title"),
  /** Most passages in one answer. */
  maxResults: z.number().int().min(1).max(100).default(3),
});
export type SearchConfig = z.output<typeof searchConfigSchema>;

/** Every process holds the index in memory, and an index of a million passages takes about 3 GB. */
const MAX_PASSAGES = 1_000_000;
/** The corpus is held in memory together with its index. */
const MAX_CORPUS_BYTES = 2 * 1024 * 1024 * 1024;

export function makeSearch(config: SearchConfig, filesFolder: string): Tool {
  let index: Promise<SearchIndex> | undefined;
  const load = () => {
    index ??= readCorpus(config, filesFolder);
    index.catch(() => {
      index = undefined;
    });
    return index;
  };
  return defineTool({
    name: "search",
    description: "Searches a collection of texts and returns the passages that fit best.",
    parameters: {
      type: "object",
      properties: { query: { type: "string", description: "Words to look for" } },
      required: ["query"],
      additionalProperties: false,
    },
    async call({ query }) {
      const found = (await load()).search(String(query), config.maxResults);
      if (found.length === 0) return "No passage found.";
      return found
        .map(({ title, text }, i) => `[${i + 1}] ${title === "" ? "" : `${title}\n`}${text}`)
        .join("\n\n");
    },
  });
}

async function readCorpus(config: SearchConfig, filesFolder: string): Promise<SearchIndex> {
  const file = await fileBelow(filesFolder, config.corpus, "corpus");
  const { size } = await stat(file);
  if (size > MAX_CORPUS_BYTES) throw refusal(config, `at most ${MAX_CORPUS_BYTES} bytes`, `it has ${size}`);
  const passages: Passage[] = [];
  let line = 0;
  for await (const json of createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    line++;
    if (json.trim() === "") continue;
    passages.push(passageOf(json, config, line));
    if (passages.length > MAX_PASSAGES)
      throw refusal(config, `at most ${MAX_PASSAGES} passages`, "it has more");
  }
  return new SearchIndex(passages);
}

function passageOf(json: string, config: SearchConfig, line: number): Passage {
  let row: unknown;
  try {
    row = parseJson(json);
  } catch {
    // The error is thrown below, where the text is missing.
  }
  const column = (name: string): unknown =>
    typeof row === "object" && row !== null && Object.hasOwn(row, name) ? Reflect.get(row, name) : undefined;
  const text = column(config.textColumn);
  const title = column(config.titleColumn);
  if (typeof text !== "string") {
    const rule = `JSON objects with a text as "${config.textColumn}"`;
    throw refusal(config, rule, `line ${line} is ${json.slice(0, 100)}`);
  }
  return { text, title: typeof title === "string" ? title : "" };
}

/** @param found a clause that says what was found instead. */
function refusal({ corpus }: SearchConfig, rule: string, found: string): InvalidInputError {
  return new InvalidInputError(`Cannot search ${corpus}: the file must contain ${rule}, but ${found}`, {
    path: "corpus",
    allowed: rule,
  });
}
