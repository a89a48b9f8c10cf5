/**
 * Parses the text of a YAML or JSON document into plain JSON values, or throws the first problem that it has.
 *
 * T1: every text gives a value or a ConfigError within bounded time: size, depth and aliases have limits.
 * T2: the value holds only what JSON can express: finite numbers, texts, lists, objects without cycles and without `__proto__`.
 * T3: nothing is dropped silently: repeated keys and unknown tags are refused.
 */

import { createRequire } from "node:module";
import { describeError } from "@hone/core";
import type * as Yaml from "yaml";
import { ConfigError } from "../../errors.ts";
import { pathText, problemSentence, show } from "../../problems.ts";
import { findDuplicateKey } from "./json-keys.ts";

/** The YAML parser is loaded for the first text that is not JSON: services seldom read YAML, and its 72 files slow their start. */
const yaml = (): typeof Yaml => createRequire(import.meta.url)("yaml");

/** A run file holds a configuration, perhaps with an inlined tokenizer; a larger text is not a run file. */
export const MAX_RUN_FILE_BYTES = 16 * 1024 * 1024;
/** People write some kilobytes of YAML, programs write JSON; the parser takes seconds for a megabyte of YAML. */
export const MAX_YAML_BYTES = 128 * 1024;
/** Levels of objects and lists; the deepest key of a schema is at the fifth. */
export const MAX_DEPTH = 64;
/** Uses of anchors; with more, a small text could expand to a very large value. */
const MAX_ALIASES = 100;

/**
 * Parses one document.
 * @param source names the text in errors, such as "agent.yaml".
 * @throws {ConfigError} with line and column of a broken text, or with the key of a value that JSON cannot express.
 */
export function parseYaml(text: string, source: string): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_RUN_FILE_BYTES) {
    throw wholeFileError(source, `at most ${MAX_RUN_FILE_BYTES} bytes`, `has ${bytes} bytes`);
  }
  const plain = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const value = tryJson(plain, source) ?? { value: yamlValue(plain, bytes, source) };
  checkPlain(value.value, source);
  return value.value;
}

/**
 * Decodes UTF-8 from outside.
 * @throws {ConfigError} that names the line which is not UTF-8; replacing its characters could change the meaning.
 */
export function textFromBytes(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const intact = new TextDecoder("utf-8").decode(bytes).split("\uFFFD", 1)[0] ?? "";
    const line = intact.split("\n").length;
    throw wholeFileError(source, "text in UTF-8", `has bytes of another encoding on line ${line}`, cause);
  }
}

/** Parses JSON, which is much faster than YAML. @returns undefined if the text is not JSON; it may still be YAML. */
function tryJson(text: string, source: string): { value: unknown } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const duplicate = findDuplicateKey(text);
  if (duplicate === undefined) return { value };
  const { line, col } = positionOf(text, duplicate.at);
  throw brokenError(source, line, col, `the key ${show(duplicate.key)} is repeated in one object`);
}

function yamlValue(text: string, bytes: number, source: string): unknown {
  if (bytes > MAX_YAML_BYTES) {
    throw wholeFileError(source, `JSON, or at most ${MAX_YAML_BYTES} bytes of YAML`, `has ${bytes} bytes`);
  }
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const refuse = (at: number, what: string) => {
    const { line, col } = lines.linePos(at);
    return brokenError(source, line, col, what.split("\n")[0] ?? "");
  };
  try {
    // The parser's own search for repeated keys takes time with the square of their number; checkKeys() replaces it.
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: false,
      logLevel: "error",
    });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw refuse(problem.pos[0], problem.message);
    checkKeys(document.contents, refuse);
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    if (cause instanceof RangeError) {
      throw wholeFileError(source, `nested at most ${MAX_DEPTH} levels deep`, "is nested deeper", cause);
    }
    const found = `has aliases that cannot be resolved (${describeError(cause)})`;
    throw wholeFileError(source, "YAML without excessive aliases", found, cause);
  }
}

/** Checks T3. */
function checkKeys(root: Yaml.ParsedNode | null, refuse: (at: number, what: string) => ConfigError): void {
  if (root === null) return;
  const { isMap, isScalar, visit } = yaml();
  visit(root, {
    Map(_, map) {
      if (!isMap<Yaml.ParsedNode>(map)) return;
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        const at = key.range[0];
        if (!isScalar(key)) throw refuse(at, "a key must be a text");
        if (seen.has(String(key.value)))
          throw refuse(at, `the key ${show(key.value)} is repeated in one object`);
        seen.add(String(key.value));
      }
    },
  });
}

/** Checks T2 with its own stack, as the value may be nested deeper than the call stack allows. */
function checkPlain(root: unknown, source: string): void {
  interface Place {
    readonly value: unknown;
    readonly path: readonly PropertyKey[];
  }
  const waiting: Place[] = [{ value: root, path: [] }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const { value, path } = place;
    const refuse = (allowed: string, shown: string) => {
      const key = pathText(path.slice(0, MAX_DEPTH));
      const message = problemSentence(key, `is ${shown}`, allowed);
      return new ConfigError(source, [{ key, value: shown, allowed, message }]);
    };
    // This also ends at a cycle, which has no end.
    if (path.length > MAX_DEPTH) throw refuse(`nested at most ${MAX_DEPTH} levels deep`, "nested deeper");
    if (typeof value === "number" && !Number.isFinite(value)) throw refuse("a finite number", String(value));
    if (typeof value === "bigint" || typeof value === "symbol")
      throw refuse("a value that JSON can express", String(value));
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      value.forEach((item: unknown, index) => {
        if (needsCheck(item)) waiting.push({ value: item, path: [...path, index] });
      });
      continue;
    }
    if (Object.getPrototypeOf(value) !== Object.prototype)
      throw refuse("a value that JSON can express", "a date or bytes");
    if (Object.hasOwn(value, "__proto__"))
      throw refuse("an object without the key __proto__", "an object with the key __proto__");
    for (const [name, item] of Object.entries(value)) {
      if (needsCheck(item)) waiting.push({ value: item, path: [...path, name] });
    }
  }
}

/** Texts and booleans need no check; most values of a large file are texts. */
function needsCheck(value: unknown): boolean {
  return typeof value === "object" || typeof value === "number" || typeof value === "bigint";
}

function brokenError(source: string, line: number, column: number, what: string): ConfigError {
  return wholeFileError(
    source,
    "valid YAML or JSON",
    `has an error at line ${line}, column ${column}: ${what.slice(0, 200)}`,
  );
}

function wholeFileError(source: string, allowed: string, found: string, cause?: unknown): ConfigError {
  const message = problemSentence("", found, allowed);
  return new ConfigError(source, [{ key: "", value: undefined, allowed, message }], { cause });
}

function positionOf(text: string, at: number): { line: number; col: number } {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, col: at - before.lastIndexOf("\n") };
}
