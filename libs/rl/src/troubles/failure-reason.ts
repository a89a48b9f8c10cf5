/**
 * Reasons of failures, as programs and services give them: shortened to a line for people, and compared.
 *
 * The texts come from outside, from a model's own code among others: they may be long, have many lines and hold control
 * characters that would move a terminal's cursor.
 */

import { stripVTControlCharacters } from "node:util";

/** What is read of a text: what it begins with, and how it ends, as programs tell last what stopped them. */
const READ_BEGIN = 1_000;
const READ_END = 3_000;
/** Characters of a line for people. */
const MAX_LINE = 400;
/** Characters kept from the beginning of a line that is too long. */
const KEPT_BEGIN = 120;

/** Lines that name an error: `ModuleNotFoundError: …`, `java.lang.IllegalStateException: …`, `panic: …`. */
const NAMES_ERROR =
  /^(?:Uncaught |Exception in thread "[^"]*" )?(?:[\w$.]*(?:Error|Exception)\b|panic:|fatal:)/;
/** Lines that say where and not what: frames of a stack, carets below a source line, a runtime's version, advice. */
const SAYS_WHERE = /^(?:at .|File "|Node\.js v\d|note: |goroutine \d|exit status \d|[~^]+$|[{}\]),;]*$)/;

/** The part of a text that is looked at here. */
export function clipReason(text: string): string {
  if (text.length <= READ_BEGIN + READ_END) return text;
  return `${text.slice(0, READ_BEGIN)}\n…\n${text.slice(-READ_END)}`;
}

/** A reason as one line without control characters; of several lines the first, and the one that tells most. */
export function reasonLine(reason: string, maxCharacters = MAX_LINE): string {
  const line = wholeLine(reason);
  if (line.length <= maxCharacters) return line;
  return `${line.slice(0, KEPT_BEGIN)} … ${line.slice(-(maxCharacters - KEPT_BEGIN - 3))}`;
}

/**
 * What two reasons share that differ only in what changes from rollout to rollout: numbers, times, ports, ids, digests and
 * temporary paths. Words and what stands in quotes count, so two missing modules are two reasons.
 */
export function reasonKey(reason: string): string {
  return wholeLine(reason)
    .replaceAll(TEMPORARY_PATH, "$1*")
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, "*")
    .replaceAll(/\b0x[0-9a-f]+\b/gi, "*")
    .replaceAll(/\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{12,}\b/gi, "*")
    .replaceAll(/\d+/g, "#")
    .trim();
}

/** A folder for temporary files, and the entry directly below it, whose name is different each time. */
const TEMPORARY_PATH =
  /((?:\/private)?\/(?:tmp|var\/tmp|var\/folders\/\w+\/\w+\/T|dev\/shm)\/|\\Temp\\)[^\s/\\'":)]+/gi;

function wholeLine(reason: string): string {
  const lines = linesOf(reason);
  const [first = ""] = lines;
  const informative = mostInformativeLine(lines);
  return informative === first ? first : `${first} ${informative}`;
}

function linesOf(text: string): string[] {
  return stripVTControlCharacters(clipReason(text))
    .split(/[\r\n\u2028\u2029]+/)
    .map((line) => line.replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim())
    .filter((line) => line !== "");
}

function mostInformativeLine(lines: readonly string[]): string {
  return (
    lines.findLast((line) => NAMES_ERROR.test(line)) ??
    lines.findLast((line) => !SAYS_WHERE.test(line)) ??
    lines.at(-1) ??
    ""
  );
}
