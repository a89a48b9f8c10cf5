/**
 * The tables of options in helm/hone/README.md, from values.yaml and the comment of each of its keys. `npm run generate` writes them.
 *
 * A key that several components have alike, with one default and one meaning, has one row for all of them.
 */

import { isMap, type Node, type Pair, parseDocument, type Scalar, type YAMLMap } from "yaml";

/** Lines of the README between which the tables stand. */
const BEGIN = "<!-- options: npm run generate writes them from values.yaml -->";
const END = "<!-- end of options -->";
/** Components that must agree before a row is for all of them. */
const MIN_ALIKE = 3;

export interface Option {
  /** First part of its path: a component, or a key for everything. */
  readonly group: string;
  /** The path below the group; empty where the group is the option itself. */
  readonly path: string;
  readonly default: string;
  readonly meaning: string;
}

/** Every option of values.yaml, in its order: keys whose values are written in one go. */
export function readOptions(values: string): Option[] {
  const root = parseDocument(values).contents;
  if (!isMap(root)) throw new Error("values.yaml holds no keys");
  return optionsOf(root, []);

  function optionsOf(map: YAMLMap, above: readonly string[]): Option[] {
    return map.items.flatMap((item, index): Option[] => {
      const { key, value } = item as Pair<Scalar<string>, Node | null>;
      const path = [...above, key.value];
      if (isMap(value) && value.flow !== true) return optionsOf(value, path);
      const [from = 0, to = 0] = value?.range ?? [];
      const [group = "", ...rest] = path;
      // The comment of a map's first key is the parser's comment of the map.
      const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined);
      const written = values.slice(from, to).replace(/\s+/g, " ");
      return [{ group, path: rest.join("."), default: written, meaning: textOf(comment) }];
    });
  }
}

/** The paragraph above a key: comments may have several lines, and what stands before a blank line or a ruled banner is about something else. */
function textOf(comment: string | null | undefined): string {
  const lines = (comment ?? "").split("\n").map((line) => line.trim());
  const last = lines.findLastIndex((line) => line === "" || line.startsWith("----"));
  return lines.slice(last + 1).join(" ");
}

/** The tables as Markdown. */
export function optionTables(options: readonly Option[]): string {
  const alike = Map.groupBy(
    options.filter(({ path }) => path !== ""),
    (option) => JSON.stringify([option.path, option.default, option.meaning]),
  );
  const shared = [...alike.values()].filter((each) => each.length >= MIN_ALIKE);
  const isShared = new Set(shared.flat());
  const own = options.filter((option) => !isShared.has(option));
  const groups = Map.groupBy(own, ({ group, path }) => (path === "" ? "" : group));
  const table = (title: string, rows: readonly (readonly string[])[], columns: readonly string[]) =>
    [
      `### ${title}`,
      "",
      row(columns),
      row(columns.map(() => "---")),
      ...rows.map((cells) => row(cells.map((cell) => cell.replaceAll("|", "\\|")))),
      "",
    ].join("\n");
  const columns = ["option", "default", "meaning"];
  return [
    table(
      "The whole release",
      (groups.get("") ?? []).map((option) => [`\`${option.group}\``, code(option.default), option.meaning]),
      columns,
    ),
    table(
      "Several components",
      shared.map((each) => {
        const [first] = each as [Option];
        const names = each.map(({ group }) => `\`${group}\``).join(", ");
        return [`\`<component>.${first.path}\``, names, code(first.default), first.meaning];
      }),
      ["option", "components", "default", "meaning"],
    ),
    ...[...groups]
      .filter(([group]) => group !== "")
      .map(([group, found]) =>
        table(
          `\`${group}\``,
          found.map((option) => [`\`${group}.${option.path}\``, code(option.default), option.meaning]),
          columns,
        ),
      ),
  ].join("\n");
}

/** @returns the README with fresh tables. */
export function withOptions(readme: string, values: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the chart's README lacks the lines ${BEGIN} and ${END}`);
  return `${readme.slice(0, begin)}${BEGIN}\n\n${optionTables(readOptions(values))}\n${readme.slice(end)}`;
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
