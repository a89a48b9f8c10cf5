/**
 * Attacks by JavaScript that has the runtime's process to itself. Each is the body of an async function that returns true
 * when it reached what it was after: given every permission, each does (the test runs them so too), so none is refused for a
 * mistake of its own.
 *
 * `isRefused(error)` tells a refusal from the failure of what was let through. In the text: `SECRET` names a file with the word canary, `FOLDER` a folder that can be written, `PORT` a port of the test,
 * `VICTIM` a process that only waits.
 */

const node = (name: string, code: string) => `const m = await import("node:${name}"); ${code}`;
const workerSays = (code: string) =>
  `return await new Promise((yes, no) => {
     const worker = new Worker("data:text/javascript," + encodeURIComponent(${JSON.stringify(code)}), { type: "module" });
     worker.onmessage = ({ data }) => yes(data); worker.onerror = (event) => { event.preventDefault(); no(new Error(event.message)) };
   });`;
/** A string literal would belong to what is read before permissions count. */
const imports = (text: string) =>
  `const name = ${text}; return JSON.stringify(await import(name)).includes("canary");`;
const connects = (code: string) =>
  `return await new Promise((yes, no) => { const socket = ${code}; socket.on("error", no); socket.on("connect", () => yes(true)); });`;

export const JAVASCRIPT_ATTACKS: Readonly<Record<string, string>> = {
  // files
  "reads a file": `return Deno.readTextFileSync("SECRET").includes("canary");`,
  "reads a file by promise": `return (await Deno.readTextFile("SECRET")).includes("canary");`,
  "opens a file": `return Deno.openSync("SECRET").isTerminal() === false;`,
  "reads a file through a symbolic link of /proc": `return Deno.readTextFileSync("/proc/self/root/SECRET").includes("canary");`,
  "reads a file by fetch": `return (await (await fetch("file://SECRET")).text()).includes("canary");`,
  "reads a file by node:fs": node("fs", `return m.readFileSync("SECRET", "utf8").includes("canary");`),
  "reads a file by a stream of node:fs": node(
    "fs",
    `return await new Promise((yes, no) => m.createReadStream("SECRET").on("data", () => yes(true)).on("error", no));`,
  ),
  "reads a file by a module of process": `return process.getBuiltinModule("node:fs").readFileSync("SECRET", "utf8").includes("canary");`,
  "reads a file by require": node(
    "module",
    `return m.createRequire("file:///")("SECRET").default === "canary";`,
  ),
  "imports a file": imports(`"file://" + "SECRET"`),
  "imports a file from a data module": imports(
    `"data:text/javascript," + "export { default } from 'file://" + "SECRET'"`,
  ),
  "imports a file from a blob module": imports(
    `URL.createObjectURL(new Blob(["export { default } from 'file://" + "SECRET'"], { type: "text/javascript" }))`,
  ),
  "imports a file in a worker": workerSays(
    `const name = "file://" + "SECRET"; import(name).then(() => postMessage(true), (e) => postMessage(false))`,
  ),
  "reads a file in a worker": workerSays(`postMessage(Deno.readTextFileSync("SECRET").includes("canary"))`),
  "reads a file in a worker of node": node(
    "worker_threads",
    `return await new Promise((yes, no) => { const worker = new m.Worker("require('node:worker_threads').parentPort.postMessage(require('node:fs').readFileSync('SECRET', 'utf8'))", { eval: true }); worker.on("message", () => yes(true)); worker.on("error", no); });`,
  ),
  "reads its environment in /proc": `return Deno.readTextFileSync("/proc/self/environ").length >= 0;`,
  "reads the command lines of others": `return Deno.readTextFileSync("/proc/VICTIM/cmdline").length > 0;`,
  "opens its own memory": `return Deno.openSync("/proc/self/mem", { read: true, write: true }).isTerminal() === false;`,
  "lists its open files": `return [...Deno.readDirSync("/proc/self/fd")].length > 0;`,
  "lists a folder": `return [...Deno.readDirSync("FOLDER")].length > 0;`,
  "asks whether a file is there": `return Deno.statSync("SECRET").isFile;`,
  "watches a folder": `return Deno.watchFs("FOLDER").rid !== null;`,
  "writes a file": `Deno.writeTextFileSync("FOLDER/a", "x"); return true;`,
  "writes a file by node:fs": node("fs", `m.writeFileSync("FOLDER/b", "x"); return true;`),
  "makes a folder": `Deno.mkdirSync("FOLDER/c"); return true;`,
  "makes a symbolic link": `Deno.symlinkSync("/etc/passwd", "FOLDER/d"); return true;`,
  "makes a file for a while": `return Deno.makeTempFileSync({ dir: "FOLDER" }).length > 0;`,
  "removes a file": `Deno.removeSync("FOLDER/victim"); return true;`,
  "renames a file": `Deno.renameSync("FOLDER/victim", "FOLDER/e"); return true;`,
  "changes a file's mode": `Deno.chmodSync("FOLDER/victim", 0o777); return true;`,
  "writes a database": node(
    "sqlite",
    `new m.DatabaseSync("FOLDER/f.db").exec("create table t(a)"); return true;`,
  ),
  "writes a report of the heap": node("v8", `m.writeHeapSnapshot("FOLDER/g"); return true;`),
  "changes its folder": `Deno.chdir("FOLDER"); return true;`,
  // the network
  connects: `await Deno.connect({ hostname: "127.0.0.1", port: PORT }); return true;`,
  "connects by TLS": `try { await Deno.connectTls({ hostname: "127.0.0.1", port: PORT }) } catch (error) { if (isRefused(error)) throw error } return true;`,
  fetches: `try { await fetch("http://127.0.0.1:PORT/") } catch (error) { if (isRefused(error)) throw error } return true;`,
  "opens a web socket": `return await new Promise((yes) => { const socket = new WebSocket("ws://127.0.0.1:PORT/"); socket.onerror = ({ error }) => yes(!isRefused(error)); });`,
  "connects by node:net": node("net", connects(`m.connect(PORT, "127.0.0.1")`)),
  "asks by node:http": node(
    "http",
    `return await new Promise((yes, no) => m.get("http://127.0.0.1:PORT/").on("error", (error) => error.code === "ECONNRESET" ? yes(true) : no(error)));`,
  ),
  "connects by node:http2": node("http2", connects(`m.connect("http://127.0.0.1:PORT/")`)),
  "sends a datagram": node(
    "dgram",
    `return await new Promise((yes, no) => { const socket = m.createSocket("udp4"); socket.on("error", no); socket.send("x", PORT, "127.0.0.1", (error) => error ? no(error) : yes(true)); });`,
  ),
  listens: `return Deno.listen({ hostname: "127.0.0.1", port: 0 }).addr.port > 0;`,
  serves: `return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response()).addr.port > 0;`,
  "listens by node:net": node(
    "net",
    `return await new Promise((yes, no) => { const server = m.createServer().on("error", no); server.listen(0, "127.0.0.1", () => yes(true)); });`,
  ),
  "listens on a Unix socket": `return Deno.listen({ transport: "unix", path: "FOLDER/h.sock" }).addr.path.length > 0;`,
  "asks a name server": `try { await Deno.resolveDns("localhost", "A", { nameServer: { ipAddr: "127.0.0.1", port: PORT } }) } catch (error) { if (isRefused(error)) throw error } return true;`,
  "looks up a name": node(
    "dns",
    `return await new Promise((yes, no) => m.lookup("localhost", (error, address) => error ? no(error) : yes(address.length > 0)));`,
  ),
  "imports from the network": `try { const name = "http://127.0.0.1:PORT/x.js"; await import(name) } catch (error) { if (isRefused(error)) throw error; return true }`,
  // processes
  "runs a command": `return new Deno.Command("/bin/sh", { args: ["-c", "true"] }).outputSync().code === 0;`,
  "runs a command by node:child_process": node("child_process", `return m.execSync("echo a").length > 0;`),
  "starts a copy of itself": `return new Deno.Command(Deno.execPath(), { args: ["--version"] }).outputSync().code === 0;`,
  "signals another process": `Deno.kill(VICTIM, "SIGUSR1"); return true;`,
  "signals another process by process": `process.kill(VICTIM, "SIGUSR1"); return true;`,
  "signals another process by process._kill": `return process._kill(VICTIM, 10) === 0;`,
  "opens the inspector of another process": `process._debugProcess?.(VICTIM) ?? process.kill(VICTIM, "SIGUSR1"); return true;`,
  "opens its own inspector": node("inspector", `m.open(0, "127.0.0.1"); return m.url() !== undefined;`),
  "talks to its own inspector": node(
    "inspector",
    `const session = new m.Session(); session.connect(); return await new Promise((yes, no) => session.post("Runtime.evaluate", { expression: "1" }, (error) => error ? no(error) : yes(true)));`,
  ),
  "changes its user": `process.setuid(process.getuid()); return true;`,
  "changes its priority": node("os", `m.setPriority(0, 19); return true;`),
  // the machine
  "reads the environment": `return Deno.env.get("HONE_TEST_CANARY") === "canary";`,
  "reads the environment by process": `return process.env.HONE_TEST_CANARY === "canary";`,
  "reads all of the environment": `return JSON.stringify(Deno.env.toObject()).includes("canary");`,
  "asks for the host's name": `return Deno.hostname().length > 0;`,
  "asks for addresses": `return Deno.networkInterfaces().length > 0;`,
  "asks for the user": node("os", `return m.userInfo().username.length > 0;`),
  "opens a library": `return Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" } }).symbols.getpid() > 0;`,
  "opens a library by process": `try { process.dlopen({ exports: {} }, "/no/such/library.node") } catch (error) { if (isRefused(error)) throw error } return true;`,
  "makes a pointer": `return Deno.UnsafePointer.create(1n) !== null;`,
  "loads an extension of SQLite": node(
    "sqlite",
    `const db = new m.DatabaseSync(":memory:", { allowExtension: true }); try { db.loadExtension("/no/such/library") } catch (error) { if (isRefused(error)) throw error } return true;`,
  ),
  // permissions and code
  "asks for permissions": `return ["read", "write", "net", "env", "sys", "run", "ffi", "import"].some((name) => Deno.permissions.requestSync({ name }).state === "granted");`,
  "makes code of text": `return new Function("return true")();`,
  "makes code of text in another context": node(
    "vm",
    `return m.runInNewContext("this.constructor.constructor('return true')()");`,
  ),
  // what pages of a browser store
  "stores something for the next by localStorage": `localStorage.setItem("a", "b"); return localStorage.getItem("a") === "b";`,
  "stores something for the next by caches": `await (await caches.open("a")).put("http://a/", new Response("b")); return true;`,
};

/** Refused by other means than a permission, so that every permission does not help them: nothing to compare with. */
export const WITHOUT_CONTROL: Readonly<Record<string, string>> = {
  "imports from a registry": `const name = "npm:left-pad"; await import(name); return true;`,
  "imports from another registry": `const name = "jsr:@std/path"; await import(name); return true;`,
  "calls operations below the interfaces": `const { ops } = Deno[Deno.internal].core; for (const op of Object.values(ops)) { try { if (String(op("SECRET")).includes("canary")) return true } catch {} } return false;`,
  "gives permissions to a worker": `return await new Promise((yes, no) => { const worker = new Worker("data:text/javascript,postMessage(Deno.readTextFileSync('SECRET').length > 0)", { type: "module", deno: { permissions: "inherit" } }); worker.onmessage = ({ data }) => yes(data); worker.onerror = (event) => { event.preventDefault(); no(new Error(event.message)) }; });`,
  "finds a graphics card": `return (await navigator.gpu?.requestAdapter()) != null;`,
  "opens a key-value store": `return (await Deno.openKv("FOLDER/i")) !== undefined;`,
  "opens a datagram socket of Deno": `return Deno.listenDatagram({ port: 0, transport: "udp" }).addr.port > 0;`,
  "opens QUIC": `return new Deno.QuicEndpoint({ hostname: "127.0.0.1" }).addr.port > 0;`,
  "opens WebTransport": `await new WebTransport("https://127.0.0.1:PORT").ready; return true;`,
  "connects to the machine's host": `await Deno.connect({ transport: "vsock", cid: 2, port: 1 }); return true;`,
  "gives a worker permissions of its own": `new Worker("data:text/javascript,1", { type: "module", deno: { permissions: { read: true } } }); return true;`,
  "asks a person": `return prompt("May I?") !== null || confirm("May I?");`,
  "writes a report": `process.report.writeReport("FOLDER/j"); return false;`,
  "becomes another program": `process.execve("/bin/sh", ["sh", "-c", "echo REACHED"], {}); return false;`,
  "binds to inner parts of Node": `return Object.keys(process.binding("fs")).length > 0;`,
  "attaches a file to a database": node(
    "sqlite",
    `const db = new m.DatabaseSync(":memory:"); db.exec("attach 'FOLDER/k.db' as k; create table k.t(a)"); return true;`,
  ),
  "copies a database to a file": node(
    "sqlite",
    `const db = new m.DatabaseSync(":memory:"); db.exec("vacuum into 'FOLDER/l.db'"); return true;`,
  ),
  "changes flags of V8": node(
    "v8",
    `m.setFlagsFromString("--wasm-max-mem-pages=1"); try { new WebAssembly.Memory({ initial: 2 }); return false } catch { return true }`,
  ),
  "allows code of text again": node(
    "v8",
    `m.setFlagsFromString("--no-disallow-code-generation-from-strings"); return new Function("return true")();`,
  ),
  "runs code by a text for a timer": `return await new Promise((yes) => { globalThis.yes = yes; setTimeout("yes(true)", 0); setTimeout(() => yes(false), 200); });`,
  "deletes what denies": `delete Deno.permissions; Object.prototype.state = "granted"; return Deno.readTextFileSync("SECRET").length > 0;`,
  "puts its own words in the way of a check": `Object.prototype.read = true; Array.prototype.includes = () => true; String.prototype.startsWith = () => true; return Deno.readTextFileSync("SECRET").length > 0;`,
};
