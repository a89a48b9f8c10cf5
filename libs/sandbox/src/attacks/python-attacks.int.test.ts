import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import type { RunResult } from "../python-process.ts";
import { PythonSandbox, type PythonSession } from "../python-sandbox.ts";

const LIMITS = { timeMs: 3_000, maxOutputBytes: 2_000 };
const never = new AbortController().signal;
/** Python that looks for `Function`, which turns text into JavaScript, in every JavaScript object that Python can make or find. */
const FUNCTIONS = `
from pyodide.ffi import to_js, create_proxy, JsProxy
import gc, pyodide.ffi
things = [to_js([]), to_js({}), to_js(b"x"), to_js([1, [2]]), create_proxy(print)]
things += [thing for thing in gc.get_objects() if isinstance(thing, JsProxy)]
try:
    to_js(object()).nothing
except BaseException as error:
    things.append(error)
def reach(thing):
    for name in ("constructor", "__proto__", "js_error"):
        try:
            thing = getattr(thing, name)
            yield thing
            yield from reach(thing) if name != "constructor" else [thing.constructor]
        except BaseException:
            pass
made = []
for thing in things:
    for function in reach(thing):
        try:
            made.append(function("globalThis.made = 1; return 1")())
        except BaseException:
            pass
`;

/** Attacks that must fail with a Python error in the attacker's own code. */
const REFUSED: Readonly<Record<string, readonly [code: string, error: RegExp]>> = {
  "imports js": ["import js", /ModuleNotFoundError/],
  "imports js with importlib": ["import importlib\nimportlib.import_module('js')", /ModuleNotFoundError/],
  "imports pyodide_js": ["import pyodide_js", /ModuleNotFoundError/],
  "calls run_js": ["from pyodide.code import run_js\nrun_js('1')", /PermissionError/],
  "calls run_js of the inner module": ["import _pyodide_core\n_pyodide_core.run_js('1')", /Error/],
  "reads /etc/passwd": ["open('/etc/passwd')", /FileNotFoundError/],
  "reads /proc/self/environ": ["open('/proc/self/environ').read()", /FileNotFoundError|OSError/],
  "reads an open file of the process": ["import os\nos.read(7, 1)", /OSError/],
  "mounts the machine's files": ["from pyodide_js import mountNativeFS", /ModuleNotFoundError/],
  forks: ["import os\nos.fork()", /OSError/],
  "executes a program": ["import os\nos.execv('/bin/sh', ['sh'])", /OSError/],
  "starts a process": ["import subprocess\nsubprocess.run(['ls'])", /OSError/],
  "starts a process with posix_spawn": [
    "import os\nos.posix_spawn('/bin/sh', ['sh'], {})",
    /OSError|AttributeError/,
  ],
  "starts a thread": ["import threading\nthreading.Thread(target=print).start()", /RuntimeError/],
  "starts workers of multiprocessing": [
    "import multiprocessing as m\nm.Process(target=print).start()",
    /Error/,
  ],
  "signals its parent": ["import os\nos.kill(os.getppid(), 10)\nassert os.getppid() > 1", /Error/],
  "changes its user": ["import os\nos.setuid(1)\nassert os.getuid() == 1", /Error/],
  "calls the C library": ["import ctypes\nctypes.CDLL('libc.so.6').getpid()", /Error/],
  "installs packages": ["import micropip", /ModuleNotFoundError/],
  "sends a request with pyodide": [
    "from pyodide.http import open_url\nopen_url('http://127.0.0.1:PORT/')",
    /PermissionError/,
  ],
  "sends a request with urllib": [
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:PORT/', timeout=2)",
    /Error/,
  ],
  connects: [
    "import socket\nsocket.create_connection(('127.0.0.1', PORT), 2).send(b'x')\nraise OSError",
    /Error/,
  ],
  "looks up a name": ["import socket\nassert socket.gethostbyname('example.com').startswith('0.')", /Error/],
  "waits for a promise of JavaScript": [
    "from pyodide.ffi import run_sync\nimport asyncio\nrun_sync(asyncio.sleep(0.1))",
    /Error/,
  ],
  "turns text into JavaScript": [`${FUNCTIONS}\nassert made`, /AssertionError/],
  "sees Deno in a global of JavaScript": [
    `${FUNCTIONS}\nassert any(hasattr(thing, name) for thing in things for name in ("Deno", "process", "fetch", "Worker"))`,
    /AssertionError/,
  ],
  "reads the secret of its frames": [
    "import gc\nassert any('nonce' in repr(dir(thing)) for thing in gc.get_objects() if 'Js' in type(thing).__name__)",
    /AssertionError/,
  ],
  "fills memory at once": ["x = [0] * 10 ** 9", /MemoryError/],
  "fills memory bit by bit": ["x = []\nwhile True: x.append(bytearray(10 ** 7))", /MemoryError/],
  "recurses for ever": ["def f(): return f()\nf()", /RecursionError/],
};

/** Attacks that end the process or exceed its time. They count as the code's own failure: no error of the caller, no second try. */
const ENDED: Readonly<Record<string, readonly [code: string, kinds: readonly string[]]>> = {
  "loops for ever": ["while True: pass", ["timed_out"]],
  "loops for ever and catches everything": [
    "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ["timed_out"],
  ],
  "sleeps for ever": ["import time\ntime.sleep(10 ** 6)", ["timed_out"]],
  "backtracks a regular expression for ever": [
    "import re\nre.match(r'(a+)+$', 'a' * 64 + 'b')",
    ["timed_out"],
  ],
  "multiplies integers for ever": ["x = 3\nwhile True: x *= x", ["timed_out", "finished"]],
  "converts a huge integer to text": [
    "import sys\nsys.set_int_max_str_digits(0)\nstr(7 ** 10 ** 8)",
    ["timed_out", "finished"],
  ],
  "exits with os._exit": ["import os\nos._exit(0)", ["crashed"]],
  aborts: ["import os\nos.abort()", ["crashed"]],
  "fills memory outside of Python's": [
    "from pyodide.ffi import to_js\nkept = []\nwhile True: kept.append(to_js(b'x' * 10 ** 7))",
    ["out_of_memory", "crashed", "finished"],
  ],
  "fills JavaScript's heap": [
    "from pyodide.ffi import to_js\nkept = []\nwhile True: kept.append(to_js([[i, [i]] for i in range(10 ** 4)]))",
    ["out_of_memory", "crashed", "timed_out", "finished"],
  ],
  "fills memory by slices of a buffer": [
    "from pyodide.ffi import to_js\nb = to_js(b'x' * 10 ** 7)\nkept = []\nwhile True: kept.append(b.slice())",
    ["out_of_memory", "crashed", "finished"],
  ],
  "makes buffers of its own": [
    "from pyodide.ffi import to_js\nmake = to_js(b'x').constructor\nkept = []\nwhile True:\n  b = make.new(10 ** 8)\n  b.fill(1)\n  kept.append(b)",
    ["out_of_memory", "crashed", "finished"],
  ],
  "recurses between Python and JavaScript": [
    "from pyodide.ffi import create_proxy, to_js\nxs = to_js([1])\ndef f(*args): return xs.map(f)\nf()",
    ["crashed", "finished"],
  ],
  "converts a very deeply nested list to text": [
    "x = []\nfor _ in range(10 ** 5): x = [x]\nrepr(x)",
    ["crashed", "finished"],
  ],
  "returns a value that is huge": [
    "class A:\n  def __repr__(self): return 'x' * 10 ** 8\nA()",
    ["finished", "crashed", "out_of_memory"],
  ],
  "raises an error that is huge": [
    "raise ValueError('x' * 10 ** 8)",
    ["finished", "crashed", "out_of_memory"],
  ],
};

describe("malicious Python code from a model", { timeout: 400_000 }, () => {
  let sandbox: PythonSandbox;
  let server: Server;
  let session: PythonSession | undefined;
  let port = 0;
  let numConnections = 0;
  let numSignals = 0;
  let numRepeats = 0;
  const onSignal = () => numSignals++;
  before(async () => {
    sandbox = new PythonSandbox({
      maxProcesses: 2,
      maxMemoryBytes: 200 * 1024 * 1024,
      onRepeat: () => numRepeats++,
    });
    server = createServer((socket) => {
      numConnections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
    process.on("SIGUSR1", onSignal);
  });
  after(async () => {
    process.off("SIGUSR1", onSignal);
    server.close();
    session?.close();
    await sandbox.close();
    assert.deepEqual(
      { numConnections, numSignals, numRepeats },
      { numConnections: 0, numSignals: 0, numRepeats: 0 },
    );
  });
  const run = (code: string): Promise<RunResult> =>
    sandbox.run(code.replaceAll("PORT", `${port}`), LIMITS, never);

  // One session tries all of these attacks, one after the other.
  for (const [what, [code, error]] of Object.entries(REFUSED)) {
    test(`${what}: refused`, async () => {
      session ??= sandbox.open();
      const limits = { ...LIMITS, timeMs: 30_000 };
      const result = await session.run(code.replaceAll("PORT", `${port}`), limits, never);
      assert.ok(result.kind === "finished", JSON.stringify(result));
      assert.match(result.error ?? "no error", error);
    });
  }

  for (const [what, [code, kinds]] of Object.entries(ENDED)) {
    test(`${what}: ended or refused`, async () => {
      const result = await run(code);
      assert.ok(kinds.includes(result.kind), JSON.stringify(result).slice(0, 500));
      if (result.kind === "crashed") assert.equal(result.isBySignal, false, result.reason);
      if (result.kind === "finished") {
        for (const text of [result.output, result.value, result.error ?? ""]) {
          assert.ok(text.length <= LIMITS.maxOutputBytes);
        }
      }
    });
  }

  test("floods both outputs: the output is cut", async () => {
    const result = await run(
      "import sys\nfor _ in range(2000): print('x' * 9_999); print('y' * 9_999, file=sys.stderr)",
    );
    assert.ok(result.kind === "finished" && result.isOutputCut && result.output.length <= 2_000);
  });

  test("prints bytes that are not UTF-8, and NUL: they are replaced", async () => {
    const result = await run(
      "import sys\nsys.stdout.buffer.write(bytes(range(256)) + b'\\xff\\x00' + 'end'.encode())",
    );
    assert.ok(result.kind === "finished" && result.output.endsWith("end"), JSON.stringify(result));
  });

  test("writes frames to open files: none arrives as a frame", async () => {
    const result = await run(
      "import os\nfor fd in range(3, 40):\n  try: os.write(fd, b'\\x15\\\\0\\\\0\\\\0' * 9)\n  except OSError: pass\n'mine'",
    );
    assert.ok(result.kind === "finished" && result.value === "'mine'", JSON.stringify(result));
  });

  test("replaces functions that JavaScript and Python use to return results: only its own results change", async () => {
    const session = sandbox.open();
    const poison = [
      "import builtins, sys, io",
      "from pyodide.ffi import to_js, create_proxy",
      "proto = lambda thing: thing.constructor.prototype",
      "evil = create_proxy(lambda *args: 'evil')",
      "for thing, names in ((to_js(b'x'), ('set', 'subarray', 'slice')), (to_js([]), ('push', 'map', 'slice', 'join'))):",
      "  for name in names:",
      "    try: setattr(proto(thing), name, evil)",
      "    except BaseException: pass",
      "builtins.repr = lambda value: 'forged'",
      "sys.stdout.write = lambda text: 0",
      "builtins.print = None",
    ].join("\n");
    // Whatever this code did to itself, it must not affect the code that runs next.
    await session.run(poison, LIMITS, never);
    await session.run("1", LIMITS, never);
    session.close();
    const result = await run("print([1].copy(), repr('a'))\n'fine'");
    assert.ok(
      result.kind === "finished" && result.output === "[1] 'a'\n" && result.value === "'fine'",
      JSON.stringify(result),
    );
  });

  test("leaves timers, files and modules behind: the next process has none of them", async () => {
    await run(
      "import os, sys, math\nsys.modules['json'] = math\nopen(os.path.expanduser('~/json.py'), 'w').write('evil = 1')\nopen('/lib/evil.py', 'w').write('x')",
    );
    const result = await run(
      "import json, os\n(hasattr(json, 'evil'), json.dumps([1]), os.path.exists('/lib/evil.py'))",
    );
    assert.ok(result.kind === "finished" && result.value === "(False, '[1]', False)", JSON.stringify(result));
  });
});
