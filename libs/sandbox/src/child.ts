/**
 * The program inside a process of the sandbox: one Python, in WebAssembly, for untrusted code.
 *
 * Deno runs it without any permission, so that not even arbitrary JavaScript in this process reaches a file, the
 * network, another process or the environment: those checks are outside JavaScript (see deno-process.ts). In addition, this
 * file makes it harder for code to reach JavaScript at all, and protects the protocol:
 * H1: Python has no access to JavaScript: the module `js` is empty, and Pyodide's other ways to it are removed before code
 *     runs.
 * H2: all parts of Pyodide arrive on standard input, so no file has to be readable.
 * H3: frames carry a secret nonce of their run, held in a closure. The functions that read and write frames are saved before
 *     code runs and call nothing that code could replace.
 * H4: Python's memory cannot grow beyond a limit.
 * H5: packages beside the standard library lie in the file system in Python's memory, and their code runs only after H1 is in
 *     force. It is the code of whoever chose the packages, so it is not trusted with more than a model's.
 *
 * It imports only types, because Deno gets it as one text.
 */

import type { PyodideInterface } from "pyodide";
import type { FinishedRun, RunOrder, StartOrder } from "./protocol.ts";

/** The parts of Pyodide that are used; its types lack the functions for snapshots. */
type Pyodide = Pick<PyodideInterface, "FS" | "runPython" | "setStdin" | "setStdout" | "setStderr"> & {
  makeMemorySnapshot(): Uint8Array;
};
interface Runtime {
  readonly stdin: { readSync(into: Uint8Array): number | null };
  readonly stdout: { writeSync(bytes: Uint8Array): number };
  exit(code: number): never;
}
type Harness = (
  code: string,
  hostCall: ((request: string) => string) | undefined,
) => { toJs(): [string, string] };

const PAGE_BYTES = 65_536;
const NONCE_BYTES = 16;
/** Kinds of frames, as in protocol.ts. */
const SNAPSHOT = 1;
const READY = 2;
const DONE = 3;
const CALL = 4;
const FAILED = 5;

/**
 * Python code that a snapshot contains, so that a start need not import or compile it: `_hone_harness` makes the function
 * that runs code and returns its value and its error as text; `_hone_close` removes the modules through which Python reaches
 * JavaScript, and those of their functions that are no longer needed (H1).
 */
const HARNESS = `
import io, linecache, sys, traceback
import pyodide.code, pyodide.ffi, pyodide.http
del io, linecache, sys, traceback, pyodide
def _hone_harness():
    import io, linecache, sys, traceback
    from pyodide.code import eval_code
    namespace = {"__name__": "__main__", "__builtins__": __builtins__}
    def run(code, ask):
        # Unread input of an earlier run must not become input of this run.
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8", errors="replace")
        namespace.pop("host_call", None)
        if ask is not None:
            def host_call(request):
                if not isinstance(request, str):
                    raise TypeError("host_call takes one str")
                return ask(request)
            namespace["host_call"] = host_call
        # This makes tracebacks show the lines.
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
def _hone_close():
    import sys
    def refuse(*args, **kwargs):
        raise PermissionError("JavaScript is not available in this sandbox")
    for module in [m for name, m in sys.modules.items() if name.startswith(("pyodide", "_pyodide"))]:
        for name in ("run_js", "pyfetch", "open_url", "load_package", "loadPackage"):
            if hasattr(module, name):
                setattr(module, name, refuse)
    for name in [name for name in sys.modules if name.split(".")[0] in ("js", "pyodide_js")]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Js" not in type(finder).__name__]
`;
/** Where wheels lie. Those of Python alone are imported from where they lie, the others from a folder. */
const PACKAGES = "/packages";
/** Code that a snapshot of packages contains (H5): `_hone_unpack` unpacks the compiled ones, which no snapshot can hold. */
const PACKAGE_HARNESS = `
def _hone_unpack(files):
    import importlib, sys, zipfile
    for file in files:
        with zipfile.ZipFile(file) as wheel:
            wheel.extractall(file + ".d")
    importlib.invalidate_caches()
def _hone_import(paths, compiled, modules):
    import importlib, sys
    sys.path.extend(paths)
    module = ""
    try:
        _hone_unpack(compiled)
        for module in modules:
            importlib.import_module(module)
    except BaseException as error:
        return f"importing {module}: {type(error).__name__}: {error}"[:1000]
    return ""
def _hone_wake(compiled):
    import sys
    _hone_unpack(compiled)
    # All processes of a snapshot would draw the same numbers.
    if "random" in sys.modules:
        sys.modules["random"].seed()
`;
/** Environment variables of Python. */
const ENVIRONMENT = { HOME: "/home/pyodide", PYTHONHASHSEED: "0" };
/** Globals that are removed, those of a browser's page too: Pyodide assumes a shell, and its WebAssembly part a page. */
const TAKEN_GLOBALS = [
  "Deno",
  "process",
  "navigator",
  "fetch",
  "WebSocket",
  "EventSource",
  "Worker",
  "BroadcastChannel",
  "caches",
  "localStorage",
  "sessionStorage",
  "alert",
  "confirm",
  "prompt",
];

// ---- frames (H3) -------------------------------------------------------------------------------------------------

const runtime = (globalThis as unknown as { Deno: Runtime }).Deno;
const Bytes = Uint8Array;
const Memory = ArrayBuffer;
const readSync = runtime.stdin.readSync.bind(runtime.stdin);
const writeSync = runtime.stdout.writeSync.bind(runtime.stdout);
const exit: (code: number) => never = runtime.exit.bind(runtime);
const decoder = new TextDecoder();
const decode = decoder.decode.bind(decoder);
const encoder = new TextEncoder();
const encode = encoder.encode.bind(encoder) as (text: string) => Uint8Array;
const { parse, stringify } = JSON;
const { min } = Math;

let nonce = new Bytes(NONCE_BYTES);

function readBytes(length: number): Uint8Array<ArrayBuffer> {
  const memory = new Memory(length);
  let at = 0;
  while (at < length) {
    const count = readSync(new Bytes(memory, at));
    if (count === null) exit(0); // The parent process has ended.
    at += count;
  }
  return new Bytes(memory);
}

function readFrame(): Uint8Array<ArrayBuffer> {
  return readBytes(readNumber(readBytes(4)));
}

function readNumber(bytes: Uint8Array): number {
  let value = 0;
  for (let i = 3; i >= 0; i--) value = value * 256 + (bytes[i] ?? 0);
  return value;
}

function sendFrame(kind: number, payload: Uint8Array): void {
  const header = new Bytes(4 + NONCE_BYTES + 1);
  let length = payload.length + NONCE_BYTES + 1;
  for (let i = 0; i < 4; i++) {
    header[i] = length % 256;
    length = (length - (length % 256)) / 256;
  }
  for (let i = 0; i < NONCE_BYTES; i++) header[4 + i] = nonce[i] ?? 0;
  header[4 + NONCE_BYTES] = kind;
  writeAll(header);
  writeAll(payload);
}

function writeAll(bytes: Uint8Array): void {
  let at = 0;
  while (at < bytes.length) {
    at += writeSync(new Bytes(bytes.buffer, bytes.byteOffset + at, bytes.length - at));
  }
}

// ---- start (H2) --------------------------------------------------------------------------------------------------

const order = parse(decode(readFrame())) as StartOrder;
const files: Record<string, Uint8Array<ArrayBuffer> | undefined> = {};
for (const name of order.files) files[name] = readFrame();
nonce = readBytes(NONCE_BYTES);
boundMemory(order.maxMemoryBytes);
// For a stack trace Deno reads the process's memory map and aborts if it cannot. The kernel's restrictions forbid reading it.
Error.stackTraceLimit = 0;
for (const name of TAKEN_GLOBALS) Reflect.deleteProperty(globalThis, name);
const python = await startPython();
placePackages();
if (files.snapshot === undefined) {
  python.runPython(HARNESS);
  if (order.packages.length > 0) importPackages();
  sendFrame(SNAPSHOT, python.makeMemorySnapshot());
  exit(0);
}

let output = new Bytes(0);
let outputLength = 0;
let isOutputCut = false;
let input: Uint8Array = new Bytes(0);
let inputRead = 0;
let mayCall = false;
python.setStdin({ read: readInput });
python.setStdout({ write: writeOutput });
python.setStderr({ write: writeOutput });
const harness = python.runPython("_hone_harness()") as Harness;
python.runPython("_hone_close()\ndel _hone_harness, _hone_close");
if (order.packages.length > 0) python.runPython(`_hone_wake(${stringify(compiledFiles())})`);
for (const name in files) files[name] = undefined;
sendFrame(READY, new Bytes(0));
// The loop never returns to the event loop, so timers and promises of earlier code cannot run between two runs.
while (true) serve();

async function startPython(): Promise<Pyodide> {
  const lacking = (name: string) => {
    throw new Error(`there is no file ${name} in the sandbox`);
  };
  const shell = { read: lacking, load: lacking, readbuffer: (path: string) => fileAt(path) ?? lacking(path) };
  Object.assign(globalThis, shell);
  const { loadPyodide } = (await load("pyodide.mjs")) as typeof import("pyodide");
  Object.assign(globalThis, { window: globalThis });
  const { default: createPyodideModule } = (await load("pyodide.asm.mjs")) as { default: unknown };
  const { snapshot } = files;
  const options = {
    jsglobals: {},
    env: ENVIRONMENT,
    indexURL: "/pyodide/",
    lockFileContents: parse(decode(files["pyodide-lock.json"])),
    createPyodideModule,
    ...(snapshot === undefined ? { _makeSnapshot: true } : { _loadSnapshot: snapshot }),
  };
  if (snapshot !== undefined) growFirstMemory(snapshot.length);
  const loaded = await loadPyodide(options as Parameters<typeof loadPyodide>[0]);
  for (const name of [...Object.keys(shell), "window"]) Reflect.deleteProperty(globalThis, name);
  return loaded as unknown as Pyodide;
}

function placePackages(): void {
  const { FS } = python;
  if (order.packages.length > 0) FS.mkdir(PACKAGES);
  for (const { file } of order.packages) FS.writeFile(`${PACKAGES}/${file}`, files[file] ?? new Bytes(0));
}

/** Files of wheels that must be unpacked. */
function compiledFiles(): string[] {
  return order.packages.filter(({ isCompiled }) => isCompiled).map(({ file }) => `${PACKAGES}/${file}`);
}

/** Makes packages part of the snapshot, with their modules where all of them are Python alone. */
function importPackages(): void {
  const compiled = compiledFiles();
  const paths = order.packages.map(({ file, isCompiled }) => `${PACKAGES}/${file}${isCompiled ? ".d" : ""}`);
  const modules = compiled.length > 0 ? [] : order.packages.flatMap((each) => each.modules);
  python.runPython(PACKAGE_HARNESS);
  python.runPython("_hone_close()");
  const problem: unknown = python.runPython(
    `_hone_import(${stringify(paths)}, ${stringify(compiled)}, ${stringify(modules)})`,
  );
  if (problem === "") return;
  sendFrame(FAILED, encode(String(problem)));
  exit(0);
}

function fileAt(path: string): Uint8Array | undefined {
  return files[path.slice(path.lastIndexOf("/") + 1)];
}

/** Imports a module from this process's memory. */
async function load(name: string): Promise<unknown> {
  const url = URL.createObjectURL(new Blob([files[name] ?? ""], { type: "text/javascript" }));
  try {
    return await import(url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** H4: Python requests memory through this function and raises MemoryError when it fails. */
function boundMemory(maxBytes: number): void {
  const { prototype } = (globalThis as unknown as { WebAssembly: { Memory: { prototype: WasmMemory } } })
    .WebAssembly.Memory;
  const grow = prototype.grow;
  prototype.grow = function growWithinBound(this: WasmMemory, pages: number) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > maxBytes) throw new RangeError("out of memory");
    return grow.call(this, pages);
  };
}

/** A snapshot that holds packages is larger than the memory of a new Python, into which Pyodide copies it. */
function growFirstMemory(numBytes: number): void {
  const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: WasmApi };
  const { instantiate } = wasm;
  wasm.instantiate = async (source, imports) => {
    const made = await instantiate.call(wasm, source, imports);
    wasm.instantiate = instantiate;
    const { memory } = (made.instance ?? made).exports ?? {};
    const lacking = numBytes - (memory?.buffer.byteLength ?? numBytes);
    if (lacking > 0) memory?.grow(Math.ceil(lacking / PAGE_BYTES));
    return made;
  };
}

/** TypeScript declares WebAssembly only for browsers. */
interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}
type WasmMade = { readonly exports?: { readonly memory?: WasmMemory } };
interface WasmApi {
  instantiate(source: unknown, imports: unknown): Promise<WasmMade & { readonly instance?: WasmMade }>;
}

// ---- runs --------------------------------------------------------------------------------------------------------

/** Handles one run, from its order to its result. */
function serve(): void {
  const runOrder = parse(decode(readFrame())) as RunOrder;
  nonce = readBytes(NONCE_BYTES);
  output = new Bytes(runOrder.maxOutputBytes);
  outputLength = 0;
  isOutputCut = false;
  input = encode(runOrder.stdin);
  inputRead = 0;
  mayCall = runOrder.mayCall;
  const { code, maxOutputBytes: max } = runOrder;
  let texts: [string, string];
  try {
    texts = harness(code, mayCall ? callHost : undefined).toJs();
  } catch {
    // Python itself is broken.
    exit(1);
  }
  mayCall = false;
  const finished: FinishedRun = {
    output: decode(new Bytes(output.buffer, 0, outputLength)),
    isOutputCut,
    value: cut(texts[0], max),
    error: texts[1] === "" ? undefined : cut(texts[1], max),
  };
  sendFrame(DONE, encode(stringify(finished)));
}

function cut(text: string, length: number): string {
  return text.length > length ? text.slice(0, length) : text;
}

/** Sends a call to the parent process and waits for the answer. */
function callHost(request: string): string {
  if (!mayCall) throw new Error("this run has no host to call");
  sendFrame(CALL, encode(request));
  return decode(readFrame());
}

function readInput(into: Uint8Array): number {
  let count = 0;
  while (count < into.length && inputRead < input.length) into[count++] = input[inputRead++] ?? 0;
  return count;
}

function writeOutput(bytes: Uint8Array): number {
  const room = output.length - outputLength;
  const count = min(bytes.length, room);
  if (count < bytes.length) isOutputCut = true;
  for (let i = 0; i < count; i++) output[outputLength + i] = bytes[i] ?? 0;
  outputLength += count;
  return bytes.length;
}
