/**
 * From the text of a YAML or JSON document to plain JSON values, or to the one thing that is wrong with it.
 *
 * T1: whatever the text, the outcome is a value or a ConfigError, after a bounded time: sizes, depth and aliases have limits.
 * T2: the value holds what JSON can say: finite numbers, texts, lists, objects without cycles and without `__proto__`.
 * T3: nothing is dropped in silence: keys that come twice and unknown tags are refused.
 */

import { createRequire } from "node:module";
import { describeError } from "@hone/core";
import type * as Yaml from "yaml";
import { ConfigError } from "../../errors.ts";
import { pathText, problemMessage, show } from "../../problems.ts";
import { findDuplicateKey } from "./json-keys.ts";

/** Loaded with the first text that is not JSON: services read YAML seldom, and would pay for its 72 files at each start. */
const yaml = (): typeof Yaml => createRequire(import.meta.url)("yaml");

/** A run file holds a configuration, perhaps with a tokenizer inlined; more than this is something else. */
export const MAX_RUN_FILE_BYTES = 16 * 1024 * 1024;
/** YAML is what people write, some kilobytes; a parser takes seconds for a megabyte. What programs write is JSON. */
export const MAX_YAML_BYTES = 128 * 1024;
/** Levels of objects and lists; the deepest key that a schema knows is at the fifth. */
export const MAX_DEPTH = 64;
/** Uses of anchors, after which a small text could stand for a large one. */
const MAX_ALIASES = 100;

/**
 * Parses one document.
 * @param source named in errors, such as "agent.yaml".
 * @throws {ConfigError} with line and column where the text is broken, with the key where a value is no JSON.
 */
export function parseYaml(text: string, source: string): unknown {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_RUN_FILE_BYTES) {
    throw wholeFileError(source, `at most ${MAX_RUN_FILE_BYTES} bytes`, `${bytes} bytes`);
  }
  const plain = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const value = tryJson(plain, source) ?? { value: yamlValue(plain, bytes, source) };
  checkPlain(value.value, source);
  return value.value;
}

/**
 * The text in bytes from outside.
 * @throws {ConfigError} naming the line that is no UTF-8; replacing its characters could change what is meant.
 */
export function textFromBytes(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const intact = new TextDecoder("utf-8").decode(bytes).split("\uFFFD", 1)[0] ?? "";
    throw wholeFileError(source, "text in UTF-8", `other bytes on line ${intact.split("\n").length}`, cause);
  }
}

/** JSON at the speed of JSON; undefined where the text is none, which YAML may still make sense of. */
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
  throw brokenError(source, line, col, `the key ${show(duplicate.key)} comes twice in one object`);
}

function yamlValue(text: string, bytes: number, source: string): unknown {
  if (bytes > MAX_YAML_BYTES) {
    throw wholeFileError(source, `JSON, or at most ${MAX_YAML_BYTES} bytes of YAML`, `${bytes} bytes`);
  }
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  const refuse = (at: number, what: string) => {
    const { line, col } = lines.linePos(at);
    return brokenError(source, line, col, what.split("\n")[0] ?? "");
  };
  try {
    // Its own search for keys that come twice takes time by the square of their number.
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
      throw wholeFileError(source, `nested at most ${MAX_DEPTH} levels deep`, "deeper", cause);
    }
    throw wholeFileError(source, "YAML without excessive aliases", describeError(cause), cause);
  }
}

/** T3 */
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
          throw refuse(at, `the key ${show(key.value)} comes twice in one object`);
        seen.add(String(key.value));
      }
    },
  });
}

/** T2, by a stack of its own: what came may be nested deeper than calls can be. */
function checkPlain(root: unknown, source: string): void {
  interface Place {
    readonly value: unknown;
    readonly path: readonly PropertyKey[];
  }
  const waiting: Place[] = [{ value: root, path: [] }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    const { value, path } = place;
    const refuse = (allowed: string, shown: unknown = value) => {
      const key = pathText(path.slice(0, MAX_DEPTH));
      return new ConfigError(source, [
        { key, value: shown, allowed, message: problemMessage(key, shown, allowed) },
      ]);
    };
    // A cycle is as deep as one looks.
    if (path.length > MAX_DEPTH) throw refuse(`nested at most ${MAX_DEPTH} levels deep`, "deeper");
    if (typeof value === "number" && !Number.isFinite(value)) throw refuse("a finite number", String(value));
    if (typeof value === "bigint" || typeof value === "symbol")
      throw refuse("a value that JSON has", String(value));
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      value.forEach((item: unknown, index) => {
        if (needsLook(item)) waiting.push({ value: item, path: [...path, index] });
      });
      continue;
    }
    if (Object.getPrototypeOf(value) !== Object.prototype)
      throw refuse("a value that JSON has", "bytes or a date");
    if (Object.hasOwn(value, "__proto__"))
      throw refuse("an object without the key __proto__", "one that has it");
    for (const [name, item] of Object.entries(value)) {
      if (needsLook(item)) waiting.push({ value: item, path: [...path, name] });
    }
  }
}

/** Texts, true and false are what they are; most of a large file is texts. */
function needsLook(value: unknown): boolean {
  return typeof value === "object" || typeof value === "number" || typeof value === "bigint";
}

function brokenError(source: string, line: number, column: number, what: string): ConfigError {
  return wholeFileError(
    source,
    "valid YAML or JSON",
    `line ${line}, column ${column}: ${what.slice(0, 200)}`,
  );
}

function wholeFileError(source: string, allowed: string, found: string, cause?: unknown): ConfigError {
  const message = `Cannot accept the file as it must be ${allowed}: current value is ${found}`;
  return new ConfigError(source, [{ key: "", value: undefined, allowed, message }], { cause });
}

function positionOf(text: string, at: number): { line: number; col: number } {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, col: at - before.lastIndexOf("\n") };
}
