import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { absurdJson, absurdText, damaged, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { MAX_PROBLEMS } from "../../problems.ts";
import { parseRunFile } from "./parse-run-file.ts";
import { MAX_RUN_FILE_BYTES, MAX_YAML_BYTES, parseYaml, textFromBytes } from "./parse-text.ts";
import { problemsOf, RUN } from "./testing.ts";

const refusalOf = (text: string) => problemsOf(() => parseRunFile(text))[0]?.message ?? "accepted";

/** A copy of a JSON value in which the value at a path is replaced. */
function replaced(root: unknown, path: readonly string[], value: unknown): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return value;
  const copy: Record<string, unknown> = { ...(root as Record<string, unknown>) };
  // `copy[head] =` would set the prototype if the key is __proto__.
  const inner = replaced(copy[head], rest, value);
  Object.defineProperty(copy, head, { value: inner, enumerable: true, writable: true, configurable: true });
  return copy;
}

function pathsOf(value: unknown, path: readonly string[] = []): string[][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[...path]];
  return [[...path], ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...path, key]))];
}

describe("bad run files", () => {
  const resolved = parseRunFile(RUN);
  const paths = pathsOf(resolved);

  test("any text is accepted or answered with problems", () => {
    fc.assert(
      fc.property(absurdText, (text) => void problemsOf(() => parseRunFile(text))),
      fuzz(500),
    );
  });

  test("damaged bytes of a run file are accepted or answered with problems", () => {
    fc.assert(
      fc.property(damaged(Buffer.from(RUN)), (bytes) => {
        problemsOf(() => parseRunFile(textFromBytes(bytes, "the run file")));
      }),
      fuzz(400),
    );
  });

  test("any value at any key is accepted or answered with problems, and an accepted file resolves to itself", () => {
    const change = fc.tuple(fc.constantFrom(...paths), absurdJson);
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 2 }), (changes) => {
        let file: unknown = resolved;
        for (const [path, value] of changes) file = replaced(file, path, value);
        const text = JSON.stringify(file);
        if (problemsOf(() => parseRunFile(text)).length > 0) return;
        const accepted = parseRunFile(text);
        assert.deepEqual(parseRunFile(JSON.stringify(accepted)), accepted);
      }),
      fuzz(1_000),
    );
  });

  test("a mistyped key at any place is refused with the name that was probably meant", () => {
    const known = paths.filter(
      (path) => path.length > 0 && path.at(-1)!.length > 4 && !path.includes("config"),
    );
    fc.assert(
      fc.property(fc.constantFrom(...known), fc.nat(), (path, seed) => {
        const key = path.at(-1)!;
        const at = 1 + (seed % (key.length - 2));
        const mistyped = `${key.slice(0, at)}${key.slice(at + 1)}`;
        const parent = path.slice(0, -1);
        const problems = problemsOf(() =>
          parseRunFile(JSON.stringify(replaced(resolved, [...parent, mistyped], 1))),
        );
        const problem = problems.find((candidate) => candidate.key === [...parent, mistyped].join("."));
        assert.ok(problem, `${[...parent, mistyped].join(".")} is refused`);
        assert.match(problem.message, /did you mean/);
      }),
      fuzz(200),
    );
  });

  test("a group of one is taken by an advantage that compares nothing", () => {
    const file = RUN.replace("groupSize: 8", "groupSize: 1").replace(
      "seed: 7",
      "seed: 7\nalgorithm: { advantage: { kind: reinforce_plus_plus } }",
    );
    assert.equal(refusalOf(file), "accepted");
  });

  test("a value that contains itself is refused, as is one that is nested too deep", () => {
    assert.match(
      refusalOf(RUN.replace("{ historyTurns: 0 }", "&a { again: *a }")),
      /nested at most 64 levels/,
    );
    for (const [open, close] of ["[]", "{}"].map((pair) => [...pair])) {
      assert.match(
        refusalOf(open!.repeat(50_000) + close!.repeat(50_000)),
        /nested at most 64|line 1, column/,
      );
    }
    assert.match(
      refusalOf(Array.from({ length: 400 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")),
      /nested at most/,
    );
  });

  test("a repeated key is refused with its line and column, in YAML and in JSON", () => {
    assert.match(refusalOf(`${RUN}seed: 8\n`), /line 11, column 1: the key "seed" is repeated/);
    assert.match(
      refusalOf('{\n "a": {"x": ["x"], "\\u0078": 2}}'),
      /line 2, column 20: the key "x" is repeated/,
    );
    assert.equal(refusalOf(JSON.stringify(resolved)), "accepted");
  });

  test("byte order marks and Windows line ends are accepted; tabs and unknown tags are refused with line and column", () => {
    assert.deepEqual(parseRunFile(`\uFEFF${RUN}`), resolved);
    assert.deepEqual(parseRunFile(RUN.replaceAll("\n", "\r\n")), resolved);
    assert.deepEqual(parseRunFile(`\uFEFF${JSON.stringify(resolved)}`), resolved);
    assert.match(refusalOf("name: a\nagent:\n\tname: b\n"), /line 3, column 1: Tabs are not allowed/);
    assert.match(refusalOf("name: !!js/function 'x'\n"), /line 1, column 7: Unresolved tag/);
    assert.match(
      refusalOf("name: a\n---\nname: b\n"),
      /line 2, column 1: Source contains multiple documents/,
    );
  });

  test("other encodings are refused with the line", () => {
    const latin = Buffer.concat([Buffer.from("name: a\nagent: "), Buffer.from([0xe4]), Buffer.from("\n")]);
    const [problem] = problemsOf(() => textFromBytes(latin, "the run file"));
    assert.match(problem?.message ?? "", /has bytes of another encoding on line 2; it must be text in UTF-8/);
    problemsOf(() => parseRunFile(textFromBytes(Buffer.from(RUN, "utf16le"), "the run file")));
  });

  test("large files are refused within seconds", () => {
    const before = process.cpuUsage();
    assert.match(refusalOf("x".repeat(MAX_RUN_FILE_BYTES + 1)), /at most 16777216 bytes/);
    assert.match(refusalOf(`a: [${"1,".repeat(MAX_YAML_BYTES)}]`), /JSON, or at most 131072 bytes of YAML/);
    const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`key${i}`, i]));
    assert.equal(problemsOf(() => parseRunFile(JSON.stringify(many))).length, MAX_PROBLEMS);
    const [problem] = problemsOf(() => parseRunFile(JSON.stringify({ ...resolved, ["n".repeat(1e6)]: 1 })));
    assert.match(problem?.message ?? "", /is not a known key at the top level/);
    const spentMs = process.cpuUsage(before).user / 1_000;
    assert.ok(spentMs < 5_000, `${spentMs} ms`);
  });

  test("the largest YAML that is accepted is parsed within seconds", () => {
    const before = process.cpuUsage();
    for (const text of [
      `[${"a,".repeat(MAX_YAML_BYTES / 2 - 2)}]`,
      "k: 1\n".repeat(MAX_YAML_BYTES / 5 - 1),
    ]) {
      problemsOf(() => parseYaml(text, "agent.yaml"));
    }
    const spentMs = process.cpuUsage(before).user / 1_000;
    assert.ok(spentMs < 10_000, `${spentMs} ms`);
  });
});
