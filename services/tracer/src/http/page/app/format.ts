/** Formats numbers and times for people. */

/** A figure, or none. */
export type Maybe = number | null | undefined;

const MISSING = "–";

/** A number with at most four significant digits. */
export function number(value: Maybe, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e7)
    return value.toExponential(1).replace("e+", "e").replace("-", "−").replace("e-", "e−");
  if (size >= 10_000) return Math.round(value).toLocaleString("en-US").replace("-", "−");
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return minus(Number(value.toFixed(Math.min(places, 6))).toString());
}

export function percent(value: Maybe, places = 0): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  return `${minus((value * 100).toFixed(places))} %`;
}

/** A number with its sign, for values such as advantages and differences. */
export function signed(value: Maybe, places = 2): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  const text = Math.abs(value).toFixed(places);
  return Number(text) === 0 ? text : `${value > 0 ? "+" : "−"}${text}`;
}

export function count(value: Maybe): string {
  return value === null || value === undefined ? MISSING : value.toLocaleString("en-US");
}

export function milliseconds(value: Maybe): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return MISSING;
  if (value < 1) return `${value.toFixed(2)} ms`;
  if (value < 1_000) return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  return duration(value);
}

/** `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h` */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function ago(timeMs: number, nowMs = Date.now()): string {
  const ms = nowMs - timeMs;
  if (ms < 5_000) return "just now";
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s ago`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`;
  return new Date(timeMs).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

/** Control characters, and those that turn the direction of the text around them. Line breaks and tabs are not among them. */
const UNSEEN = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]/gu;

/** A text of a model or a tool in which nothing is hidden: characters that would act on the text are shown by their number. */
export function plainText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(UNSEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A token's text with its white space made visible. */
export function visible(text: string): string {
  return text
    .replaceAll(" ", "·")
    .replaceAll("\n", "↵")
    .replaceAll("\t", "⇥")
    .replaceAll("\r", "␍")
    .replace(UNSEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** `frozen_lake` as words. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

function minus(text: string): string {
  return text.replace("-", "−");
}
