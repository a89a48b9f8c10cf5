/**
 * A child process of the sandbox: one Python, in WebAssembly, for code that nobody trusts.
 *
 * What holds the code in, from the inside out:
 * H1: Python sees no JavaScript: the module `js` is empty, and what Pyodide offers of it is taken away before code runs.
 * H2: this process has no environment, no `fetch`, no sockets and imports no modules any more.
 * H3: Node's permission model lets it read Pyodide's files and nothing else: no other file, no process, no thread.
 * H4: its memory cannot grow beyond a bound; the parent ends it by SIGKILL at its deadline.
 */

import { constants } from "node:fs";
import { registerHooks } from "node:module";
import { loadPyodide } from "pyodide";
import type { FinishedRun, FromChild, ToChild } from "./protocol.ts";

/** The parts of Pyodide that are used; making and loading snapshots is not in its types. */
interface Pyodide {
  readonly globals: { get(name: string): unknown };
  runPython(code: string): unknown;
  makeMemorySnapshot(): Uint8Array;
  setStdout(options: { write: (bytes: Uint8Array) => number }): void;
  setStderr(options: { write: (bytes: Uint8Array) => number }): void;
}

const PAGE_BYTES = 65_536;
/** Runs code and returns its value and its error as texts. */
const HARNESS = `
def _hone_harness():
    import linecache, sys, traceback
    from pyodide.code import eval_code
    namespace = {"__name__": "__main__", "__builtins__": __builtins__}
    def run(code):
        # So that tracebacks show the lines.
        linecache.cache["<code>"] = (len(code), None, code.splitlines(True), "<code>")
        value, error = "", ""
        try:
            result = eval_code(code, namespace, filename="<code>")
            value = "" if result is None else repr(result)
        except SystemExit as exit:
            error = "" if exit.code in (None, 0) else f"SystemExit: {exit.code}"
        except BaseException as raised:
            frames = traceback.extract_tb(raised.__traceback__)
            own = next((i for i, frame in enumerate(frames) if frame.filename == "<code>"), len(frames))
            raised.__traceback__ = None
            lines = traceback.format_exception(raised)
            shown = traceback.format_list(frames[own:][-12:])
            error = "".join((["Traceback (most recent call last):\\n"] if shown else []) + shown + lines[-1:])
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        return [value, error]
    return run
`;
/** H1: modules through which Python reaches JavaScript, and the functions of theirs that are needed no more. */
const CLOSE_PYTHON = `
def _hone_close():
    import sys
    import pyodide.code, pyodide.ffi, pyodide.http
    def refuse(*args, **kwargs):
        raise PermissionError("JavaScript is not available in this sandbox")
    for module in [m for name, m in sys.modules.items() if name.startswith(("pyodide", "_pyodide"))]:
        for name in ("run_js", "pyfetch", "open_url", "load_package", "loadPackage"):
            if hasattr(module, name):
                setattr(module, name, refuse)
    for name in [name for name in sys.modules if name.split(".")[0] in ("js", "pyodide_js")]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Js" not in type(finder).__name__]
_hone_close()
del _hone_close
`;

/** Kept before they are taken away (H2). */
const parent = { send: process.send?.bind(process), exit: process.exit.bind(process) };
let run: ((code: string) => readonly [value: string, error: string]) | undefined;
let output = new Uint8Array();
let outputLength = 0;
let isOutputCut = false;

process.on("message", (message: ToChild) => {
  void handle(message).catch((error: unknown) => {
    console.error(error);
    parent.exit(1);
  });
});
process.on("disconnect", () => parent.exit(0));

async function handle(message: ToChild): Promise<void> {
  if (message.kind === "run") {
    reply({ kind: "done", result: runCode(message.code, message.maxOutputBytes) });
    return;
  }
  boundMemory(message.maxMemoryBytes);
  // Pyodide asks Node's inner parts for these numbers, which the permission model refuses (H3).
  Reflect.set(process, "binding", () => ({ fs: constants }));
  const { snapshot } = message;
  // A copy, as the memory must begin at a whole word.
  const options =
    snapshot === undefined ? { _makeSnapshot: true } : { _loadSnapshot: new Uint8Array(snapshot) };
  const python = (await loadPyodide({ jsglobals: {}, env: ENVIRONMENT, ...options })) as unknown as Pyodide;
  if (snapshot === undefined) {
    reply({ kind: "snapshot", snapshot: python.makeMemorySnapshot() });
    return;
  }
  python.setStdout({ write });
  python.setStderr({ write });
  python.runPython(HARNESS);
  const harness = python.runPython("_hone_harness()") as (code: string) => { toJs(): [string, string] };
  python.runPython("del _hone_harness");
  run = (code) => harness(code).toJs();
  python.runPython(CLOSE_PYTHON);
  closeProcess();
  reply({ kind: "ready" });
}

/** Of Python. */
const ENVIRONMENT = { HOME: "/home/pyodide", PYTHONHASHSEED: "0" };

function runCode(code: string, maxOutputBytes: number): FinishedRun {
  output = new Uint8Array(maxOutputBytes);
  outputLength = 0;
  isOutputCut = false;
  const [value, error] = run?.(code) ?? ["", "the sandbox has not started"];
  return {
    output: new TextDecoder().decode(output.subarray(0, outputLength)),
    isOutputCut,
    value: value.slice(0, maxOutputBytes),
    error: error === "" ? undefined : error.slice(0, maxOutputBytes),
  };
}

function write(bytes: Uint8Array): number {
  const room = output.length - outputLength;
  if (bytes.length > room) isOutputCut = true;
  output.set(bytes.subarray(0, room), outputLength);
  outputLength += Math.min(room, bytes.length);
  return bytes.length;
}

function reply(message: FromChild): void {
  parent.send?.(message);
}

/** H4: Python asks for more memory through this function, and gets a MemoryError where it fails. */
function boundMemory(maxBytes: number): void {
  const { prototype } = (globalThis as unknown as { WebAssembly: { Memory: { prototype: Memory } } })
    .WebAssembly.Memory;
  const grow = prototype.grow;
  prototype.grow = function growWithinBound(this: Memory, pages: number) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > maxBytes) throw new RangeError("out of memory");
    return grow.call(this, pages);
  };
}

/** Of WebAssembly; the compiler's own types of it belong to browsers. */
interface Memory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** H2 */
function closeProcess(): void {
  registerHooks({
    resolve(specifier) {
      throw new Error(`modules cannot be imported in this sandbox: ${specifier}`);
    },
  });
  for (const name of ["fetch", "WebSocket", "EventSource", "XMLHttpRequest", "Worker", "BroadcastChannel"]) {
    Reflect.deleteProperty(globalThis, name);
  }
  const taken = ["getBuiltinModule", "binding", "_linkedBinding", "dlopen", "kill", "send", "chdir", "env"];
  for (const name of taken) Reflect.set(process, name, undefined);
}
