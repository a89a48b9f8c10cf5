import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import type { RunResult } from "./python-process.ts";
import { PythonSandbox } from "./python-sandbox.ts";

const LIMITS = { timeMs: 20_000, maxOutputBytes: 2_000 };
const never = new AbortController().signal;

describe("PythonSandbox", { timeout: 300_000 }, () => {
  let sandbox: PythonSandbox;
  before(() => {
    sandbox = new PythonSandbox({ maxProcesses: 2, maxMemoryBytes: 200 * 1024 * 1024 });
  });
  after(() => sandbox.close());

  const run = (code: string, timeMs = LIMITS.timeMs) => sandbox.run(code, { ...LIMITS, timeMs }, never);
  const finished = async (code: string) => {
    const result = await run(code);
    assert.equal(result.kind, "finished", JSON.stringify(result));
    return result as Extract<RunResult, { kind: "finished" }>;
  };
  /** Checks that the pool still runs code, whatever the code before did. */
  const isHealthy = async () => assert.equal((await finished("print(6 * 7)")).output, "42\n");

  test("returns the printed output, both streams in order, and the value of the last expression", async () => {
    const code = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\n[1, 'é😀']";
    const { output, value, error, isOutputCut } = await finished(code);
    assert.deepEqual([output, value, error, isOutputCut], ["a\nb\nc\n", "[1, 'é😀']", undefined, false]);
  });

  test("returns a traceback that has only the frames of the code itself", async () => {
    const { error } = await finished("def f():\n    return 1 / 0\nf()");
    assert.match(
      error ?? "",
      /^Traceback.*line 3, in <module>.*return 1 \/ 0.*ZeroDivisionError: division by zero\n$/s,
    );
    assert.doesNotMatch(error ?? "", /_hone|pyodide/);
    assert.match((await finished("while")).error ?? "", /SyntaxError/);
  });

  describe("access to the machine", () => {
    let server: Server;
    let port: number;
    let numConnections = 0;
    before(async () => {
      server = createServer(() => numConnections++);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const address = server.address();
      port = typeof address === "object" && address !== null ? address.port : 0;
    });
    after(() => server.close());

    for (const [what, code, error] of [
      ["forks", "import os\nwhile True: os.fork()", /OSError/],
      ["starts processes", "import subprocess\nsubprocess.run(['ls'])", /OSError/],
      ["starts threads", "import threading\nthreading.Thread(target=print).start()", /RuntimeError/],
      ["runs commands", "import os\nassert os.system('ls') == 0", /AssertionError/],
      ["reads files of the machine", "open('/etc/passwd')", /FileNotFoundError/],
      ["reaches JavaScript", "import js", /ModuleNotFoundError/],
      ["runs JavaScript", "from pyodide.code import run_js\nrun_js('1')", /PermissionError/],
      ["uses Pyodide's own module", "import pyodide_js", /ModuleNotFoundError/],
      ["recurses for ever", "def f(): return f()\nf()", /RecursionError/],
      ["takes all memory at once", "x = [0] * 10 ** 9", /MemoryError/],
      ["takes all memory bit by bit", "x = []\nwhile True: x.append(bytearray(10 ** 7))", /MemoryError/],
    ] as const) {
      test(`code that ${what} gets an error`, async () => {
        assert.match((await finished(code)).error ?? "", error);
        await isHealthy();
      });
    }

    test("code cannot connect to a port", async () => {
      for (const code of [
        `import socket\nsocket.create_connection(('127.0.0.1', ${port}), 2)`,
        `import urllib.request\nurllib.request.urlopen('http://127.0.0.1:${port}/', timeout=2)`,
        `from pyodide.http import open_url\nopen_url('http://127.0.0.1:${port}/')`,
      ]) {
        assert.notEqual((await finished(code)).error, undefined, code);
      }
      assert.equal(numConnections, 0);
    });

    test("no Python object gives access to the process, its environment or its modules", async () => {
      // JavaScript's `Function` can run any code, so the test tries to reach it from every JavaScript object that Python holds.
      const code = `
import gc
from pyodide.ffi import JsProxy
found = []
for thing in gc.get_objects():
    if isinstance(thing, JsProxy):
        try:
            make = thing.constructor.constructor
            found.append(str(make("return (async () => { try { return String(await import('node:net')) } catch (e) { return 'refused' } })()")()))
            found.append(str(make("return typeof fetch + typeof process.getBuiltinModule + typeof process.send + typeof process.binding + JSON.stringify(process.env)")()))
        except BaseException as error:
            pass
found
`;
      const { value, error } = await finished(code);
      assert.equal(error, undefined);
      assert.doesNotMatch(value, /function|PATH|HOME/);
    });
  });

  test("ends endless code at its deadline, and continues after code that ends its process", async () => {
    assert.deepEqual(await run("while True: pass", 500), { kind: "timed_out" });
    for (const code of ["os._exit(3)", "os.abort()"]) {
      assert.equal((await run(`import os\n${code}`)).kind, "crashed", code);
    }
    await isHealthy();
  });

  test("keeps the beginning of a huge output, and says that it was cut", async () => {
    const { output, isOutputCut } = await finished(
      "print('begin')\nfor _ in range(1000): print('x' * 10_000)",
    );
    assert.equal(output.length, LIMITS.maxOutputBytes);
    assert.ok(isOutputCut && output.startsWith("begin\nxxx"));
  });

  test("code cannot affect other code", async () => {
    await finished(
      "import builtins, math\nbuiltins.print = None\nmath.sqrt = None\nleft = 1\nopen('/tmp/a', 'w').write('b')",
    );
    const { output } = await finished(
      "import math, os\nprint(math.sqrt(4), 'left' in globals(), os.path.exists('/tmp/a'))",
    );
    assert.equal(output, "2.0 False False\n");
  });

  test("ends code when its signal aborts", async () => {
    const over = new AbortController();
    const running = sandbox.run("while True: pass", LIMITS, over.signal);
    setTimeout(() => over.abort(new Error("not wanted")), 1_000);
    await assert.rejects(running, /not wanted/);
    await isHealthy();
  });

  test("a session keeps its names, also when its process was ended to make room for others", async () => {
    const session = sandbox.open();
    await session.run("total = 40", LIMITS, never);
    // Three runs share two places, so the process of the idle session must end.
    await Promise.all([run("1"), run("2"), run("3")]);
    const result = await session.run("total += 2\nprint(total)", LIMITS, never);
    assert.ok(result.kind === "finished" && result.output === "42\n", JSON.stringify(result));
    assert.equal(
      (await session.run("while True: pass", { ...LIMITS, timeMs: 300 }, never)).kind,
      "timed_out",
    );
    const after = await session.run("print(total)", LIMITS, never);
    assert.ok(after.kind === "finished" && after.output === "42\n", JSON.stringify(after));
    session.close();
  });

  test("code whose process was killed from outside runs again in another process, and this is reported", async () => {
    let numRepeats = 0;
    const own = new PythonSandbox({ maxProcesses: 1, onRepeat: () => numRepeats++ });
    try {
      const known = new Set(childrenOf(process.pid));
      const session = own.open();
      await session.run("x = 40", LIMITS, never);
      // The session has state, so its process stays alive between runs.
      const victims = childrenOf(process.pid).filter((pid) => !known.has(pid));
      for (const pid of victims) process.kill(pid, "SIGKILL");
      const result = await session.run("print(x + 2)", LIMITS, never);
      assert.ok(result.kind === "finished" && result.output === "42\n", JSON.stringify(result));
      assert.deepEqual([victims.length, numRepeats], [1, 1]);
      session.close();
    } finally {
      await own.close();
    }
  });

  describe("input and host calls", () => {
    const call = (code: string, answerCall: (request: string) => Promise<string>) =>
      sandbox.run(code, { ...LIMITS, answerCall }, never);

    test("standard input is empty, or the text that the run was given", async () => {
      assert.equal((await finished("import sys\nsys.stdin.read()")).value, "''");
      assert.match((await finished("input()")).error ?? "", /EOFError/);
      const stdin = "3 4\nünï😀\nlast";
      const code = "import sys\nprint(sum(map(int, input().split())))\nprint(sys.stdin.read())";
      const result = await sandbox.run(code, { ...LIMITS, stdin }, never);
      assert.ok(result.kind === "finished" && result.output === "7\nünï😀\nlast\n", JSON.stringify(result));
    });

    test("input that one run of a session did not read is not given to the next", async () => {
      const session = sandbox.open();
      await session.run("import sys\nsys.stdin.readline()", { ...LIMITS, stdin: "a\nb\n" }, never);
      const result = await session.run("sys.stdin.read()", { ...LIMITS, stdin: "c" }, never);
      assert.ok(result.kind === "finished" && result.value === "'c'", JSON.stringify(result));
      session.close();
    });

    test("host_call() waits for its answer, and calls are answered one after the other", async () => {
      const asked: string[] = [];
      const result = await call("host_call('é😀') + host_call('')", async (request) => {
        asked.push(request);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return `<${request}>`;
      });
      assert.ok(result.kind === "finished" && result.value === "'<é😀><>'", JSON.stringify(result));
      assert.deepEqual(asked, ["é😀", ""]);
    });

    test("a failing answer ends the run, which fails with the same error", async () => {
      const failing = call("try:\n  host_call('')\nexcept BaseException:\n  pass", async () => {
        throw new Error("the other side is gone");
      });
      await assert.rejects(failing, /the other side is gone/);
      await isHealthy();
    });

    test("without answerCall there is no host_call, and one kept from an earlier run does not work", async () => {
      assert.match((await finished("host_call('')")).error ?? "", /NameError/);
      const session = sandbox.open();
      const limits = { ...LIMITS, answerCall: async () => "answer" };
      await session.run("kept = host_call\nkept('')", limits, never);
      const later = await session.run("kept('')", LIMITS, never);
      assert.ok(
        later.kind === "finished" && /no host to call/.test(later.error ?? ""),
        JSON.stringify(later),
      );
      session.close();
    });

    test("host calls are limited in size and number, and count towards the run's time", async () => {
      const huge = await call("host_call('x' * (5 << 20))", async () => "");
      assert.ok(huge.kind === "crashed" && !huge.isBySignal, JSON.stringify(huge));
      const many = await call("while True: host_call('')", async () => "");
      assert.ok(many.kind === "crashed" && !many.isBySignal, JSON.stringify(many));
      const limits = { ...LIMITS, timeMs: 500, answerCall: () => new Promise<string>(() => undefined) };
      assert.equal((await sandbox.run("host_call('')", limits, never)).kind, "timed_out");
    });
  });

  test("never uses more places than allowed, and releases them all", async () => {
    const runs = Array.from({ length: 5 }, (_, i) => finished(`print(${i})`));
    assert.ok(sandbox.numPlaces <= 2);
    assert.deepEqual(
      (await Promise.all(runs)).map(({ output }) => output),
      ["0\n", "1\n", "2\n", "3\n", "4\n"],
    );
    assert.ok(sandbox.numPlaces <= 1, `${sandbox.numPlaces}`);
  });
});

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
}
