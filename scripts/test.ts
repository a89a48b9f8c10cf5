/**
 * `npm test`: runs the tests and closes with one line, `tests: N passed, N failed, N skipped`.
 *
 *   node scripts/test.ts [--full] [part of a path…]
 *
 * Three phases, each only as parallel as two cores and the servers it starts allow:
 *   unit          *.test.ts beside their code
 *   integration   *.int.test.ts, with real NATS and PostgreSQL
 *   end to end    test/ (whole stacks) and bench/, and with --full also *.full.test.ts (hours, statistics, kill matrices)
 *
 * The exit code is 0 only when something ran and nothing failed.
 */

import { globSync } from "node:fs";
import { join, relative } from "node:path";
import { run } from "node:test";
import { scriptArguments } from "@hone/core";
import { describeFailure, type Failure, indent } from "./test-report.ts";

interface Phase {
  readonly name: string;
  readonly files: readonly string[];
  readonly concurrency: number;
  /** Bound on one test, so that a hanging one fails by name. */
  readonly timeoutMs: number;
  /** Bound on the phase: nothing that hangs outside of a test may hold up the closing line. */
  readonly deadlineMs: number;
}

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

const ROOT = join(import.meta.dirname, "..");
const PATTERNS = ["libs/**/*.test.ts", "services/**/*.test.ts", "apps/**/*.test.ts", "scripts/**/*.test.ts"];
const WHOLE_STACK_PATTERNS = ["test/**/*.test.ts", "bench/**/*.test.ts", "examples/**/*.test.ts"];
/** Several times what a phase takes on two cores, for slower machines. */
const DEADLINE_MS = 3_600_000;
const FULL_DEADLINE_MS = 12 * 3_600_000;
/** Lines of a failed file's own output that are shown with its failures. */
const MAX_OUTPUT_LINES = 40;

const { values, positionals: filters } = scriptArguments(process, {
  usage: `npm test -- [--full] [PATH…]

  --full    also the tests that take long (*.full.test.ts)
  PATH      only test files whose path contains one of these, such as libs/rl`,
  options: { full: { type: "boolean", default: false } },
  takesMore: true,
});
const isFull = values.full;

// Fuzz tests look at the same inputs in every `npm test`, and elsewhere each time here (libs/testing/src/fuzz/settings.ts).
if (isFull) process.env.HONE_FUZZ_SEED ??= "random";

const totals: Totals = { passed: 0, failed: 0, skipped: 0 };
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());

for (const phase of phases()) {
  if (phase.files.length === 0 || interrupted.signal.aborted) continue;
  console.log(`\n${phase.name}: ${phase.files.length} files`);
  await runPhase(phase);
}
if (interrupted.signal.aborted) console.log("\ninterrupted");
if (totals.passed + totals.failed === 0)
  console.log(`\nno test ran${filters.length > 0 ? `: nothing matches ${filters.join(", ")}` : ""}`);
console.log(`\ntests: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 || totals.passed === 0 || interrupted.signal.aborted ? 1 : 0;

function phases(): Phase[] {
  const beside = find(PATTERNS);
  const whole = find(WHOLE_STACK_PATTERNS);
  const isUnit = (file: string) => !/\.(int|full)\.test\.ts$/.test(file);
  const isSlow = (file: string) => file.endsWith(".full.test.ts");
  const wanted = (file: string) => !isSlow(file) || isFull;
  return [
    {
      name: "unit",
      files: beside.filter(isUnit),
      concurrency: 2,
      timeoutMs: 120_000,
      deadlineMs: DEADLINE_MS,
    },
    {
      name: "integration",
      files: beside.filter((file) => !isUnit(file) && wanted(file)),
      concurrency: 1,
      timeoutMs: 300_000,
      deadlineMs: isFull ? FULL_DEADLINE_MS : DEADLINE_MS,
    },
    {
      name: "end to end",
      files: whole.filter(wanted),
      concurrency: 1,
      timeoutMs: isFull ? 3_600_000 : 900_000,
      deadlineMs: isFull ? FULL_DEADLINE_MS : DEADLINE_MS,
    },
  ];
}

function find(patterns: readonly string[]): string[] {
  return globSync([...patterns], { cwd: ROOT, exclude: ["**/node_modules/**"] })
    .filter((file) => filters.length === 0 || filters.some((part) => file.includes(part)))
    .sort();
}

/** Runs the files of a phase, each in a process of its own, and prints a line per file as it ends. */
async function runPhase(phase: Phase): Promise<void> {
  const failures = new Map<string, Failure[]>();
  const output = new Map<string, string[]>();
  const counts = new Map<string, number>();
  const skips = new Set<string>();
  const reported = new Set<string>();
  const say = (file: string, line: string) => output.set(file, [...(output.get(file) ?? []), line]);
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    const minutes = phase.deadlineMs / 60_000;
    deadline.abort(new Error(`the ${phase.name} tests took longer than ${minutes} minutes and were stopped`));
  }, phase.deadlineMs);
  const stream = run({
    files: phase.files.map((file) => join(ROOT, file)),
    concurrency: phase.concurrency,
    timeout: phase.timeoutMs,
    signal: AbortSignal.any([interrupted.signal, deadline.signal]),
    cwd: ROOT,
    // A test that timed out may leave timers behind, which would keep its file's process alive for good.
    execArgv: ["--import", join(import.meta.dirname, "end-after-tests.ts")],
  });
  for await (const event of stream) {
    if (event.type === "test:stdout" || event.type === "test:stderr") {
      say(event.data.file, event.data.message);
    } else if (event.type === "test:pass" || event.type === "test:fail") {
      const { data } = event;
      const file = entryFileOf(data);
      const isSkipped = data.skip !== undefined && data.skip !== false;
      // A suite adds nothing to what its tests reported, except one that is skipped whole, of whose tests Node reports none,
      // and one of which a hook failed.
      const isSilent = data.details.type === "suite" && !isSkipped && !isFailedHook(data.details);
      if (isSilent || isFileItself(data.name, file, event.type)) continue;
      if (isSkipped) {
        totals.skipped++;
        skips.add(file);
        console.log(
          `  skipped ${relative(ROOT, file)}: ${data.name}${typeof data.skip === "string" ? ` (${data.skip})` : ""}`,
        );
      } else if (event.type === "test:pass") {
        totals.passed++;
        counts.set(file, (counts.get(file) ?? 0) + 1);
      } else {
        totals.failed++;
        const failure = { name: data.name, line: data.line, error: event.data.details.error };
        failures.set(file, [...(failures.get(file) ?? []), failure]);
      }
    } else if (event.type === "test:summary" && event.data.file !== undefined) {
      const { file } = event.data;
      if (!counts.has(file) && !failures.has(file) && !skips.has(file)) continue;
      reported.add(file);
      report(file, event.data.duration_ms, counts, failures, output);
    }
  }
  clearTimeout(timer);
  // What ended before it said anything: a wrong import, an early exit, or no test in it at all.
  for (const file of phase.files.map((path) => join(ROOT, path))) {
    if (reported.has(file) || interrupted.signal.aborted) continue;
    if (!failures.has(file)) {
      if (skips.has(file)) continue;
      totals.failed++;
      const error = new Error("the file ended without running a test");
      failures.set(file, [{ name: "whole file", line: undefined, error }]);
    }
    report(file, undefined, counts, failures, output);
  }
}

/** The file that was run: a suite of several files' tests stands in one of its own, which is what `file` names. */
function entryFileOf(data: { readonly file?: string; readonly entryFile?: string }): string {
  return data.entryFile ?? data.file ?? "";
}

/**
 * With a process per file, Node reports a file that could not be run at all (a wrong import, an exit) as one failed
 * test named by its path: that one counts. A passed one adds nothing to what its tests reported.
 */
function isFileItself(name: string, file: string, type: "test:pass" | "test:fail"): boolean {
  return type === "test:pass" && (name === file || join(ROOT, name) === file);
}

/** Whether a suite failed because of its `before` or `after`, and not only because of its tests. */
function isFailedHook(details: object): boolean {
  const error = "error" in details ? details.error : undefined;
  return error instanceof Error && "failureType" in error && error.failureType === "hookFailed";
}

function report(
  file: string,
  durationMs: number | undefined,
  counts: ReadonlyMap<string, number>,
  failures: ReadonlyMap<string, readonly Failure[]>,
  output: ReadonlyMap<string, readonly string[]>,
): void {
  const failed = failures.get(file) ?? [];
  const seconds = durationMs === undefined ? "" : `, ${(durationMs / 1000).toFixed(1)} s`;
  const path = relative(ROOT, file);
  if (failed.length === 0) {
    console.log(`  ok   ${path} (${counts.get(file) ?? 0} tests${seconds})`);
    return;
  }
  console.log(`  FAIL ${path} (${failed.length} failed, ${counts.get(file) ?? 0} passed${seconds})`);
  for (const failure of failed) console.log(indent(describeFailure(failure, path), "       "));
  const lines = (output.get(file) ?? []).join("").trimEnd().split("\n").filter(Boolean);
  if (lines.length > 0) {
    console.log(
      `       output of the file${lines.length > MAX_OUTPUT_LINES ? `, last ${MAX_OUTPUT_LINES} lines` : ""}:`,
    );
    console.log(indent(lines.slice(-MAX_OUTPUT_LINES).join("\n"), "       | "));
  }
}
