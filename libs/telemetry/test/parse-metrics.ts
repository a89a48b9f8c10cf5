/** Reads Prometheus' text format strictly: a line that breaks its grammar fails. For tests. */

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedMetrics {
  readonly samples: readonly MetricSample[];
  readonly types: ReadonlyMap<string, string>;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;
const COMMENT = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/;

/** @throws {SyntaxError} naming the line. */
export function parseMetrics(text: string): ParsedMetrics {
  const samples: MetricSample[] = [];
  const types = new Map<string, string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = COMMENT.exec(line);
    if (comment !== null) {
      const [, kind, name = "", rest = ""] = comment;
      if (kind === "TYPE" && types.has(name)) throw new SyntaxError(`a second TYPE: ${line}`);
      if (kind === "TYPE") types.set(name, rest);
      continue;
    }
    const sample = SAMPLE.exec(line);
    if (sample === null) throw new SyntaxError(`no sample: ${line}`);
    const [, name = "", labels = "", value = ""] = sample;
    samples.push({ name, labels: parseLabels(labels, line), value: parseNumber(value, line) });
  }
  return { samples, types };
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const match = LABEL.exec(text);
    if (match === null) throw new SyntaxError(`bad labels: ${line}`);
    const [, name = "", value = ""] = match;
    labels[name] = value.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
  }
  return labels;
}

function parseNumber(text: string, line: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  if (text === "-Inf") return Number.NEGATIVE_INFINITY;
  const value = Number(text);
  if (Number.isNaN(value) && text !== "NaN" && text !== "Nan") throw new SyntaxError(`no number: ${line}`);
  return value;
}
