/**
 * Runs one of the repository's TypeScript programs: `node scripts/bootstrap.mjs FILE.ts [arguments…]`.
 *
 * Plain JavaScript for Node >= 20, because it runs before anything is installed. It makes sure that what
 * package-lock.json names is installed, then hands over to the Node 24 that npm installed with the rest.
 *
 * B1: an install counts when its stamp names this lock file and this platform, and every package it should have is
 *     there. An interrupted install leaves no stamp, so it is done again.
 * B2: two starts at once install once: the second waits for the first.
 * B3: npm speaks only when it fails. Its wait is bounded.
 * B4: signals go on to the program, its exit code comes back, and the program is asked to end when npm was killed.
 */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_TO_START = 20;
const OLDEST_TO_RUN = 24;
/** A cold install takes about a minute on a slow line; past this it hangs. */
const INSTALL_TIMEOUT_MS = 15 * 60_000;
/** How long a lock may stay empty: its maker writes into it right after making it. */
const MAKING_MS = 5_000;
const PARENT_LOOK_MS = 500;
const TELL_EVERY_MS = process.stderr.isTTY ? 1_000 : 30_000;
const MAX_SHOWN_LINES = 60;

/** Something that the user can put right; shown without a stack trace. */
class BootstrapError extends Error {}

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const modules = join(root, "node_modules");
const stampFile = join(modules, ".hone-install.json");
/** Node keeps compiled code and stripped TypeScript here, which halves the time that programs take to load. */
const compileCache = join(modules, ".cache", "node");
const stateFolder = join(root, ".hone");
const installLock = join(stateFolder, "install.lock");

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof BootstrapError ? error.message : error.stack}\n`);
  process.exitCode = 1;
}

async function main([program, ...args]) {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < OLDEST_TO_START) {
    throw new BootstrapError(
      `Hone needs Node ${OLDEST_TO_START} or newer to start, and this is ${process.version}. Get a newer one from https://nodejs.org`,
    );
  }
  if (program === undefined)
    throw new BootstrapError("usage: node scripts/bootstrap.mjs FILE.ts [arguments…]");
  if (process.platform === "win32") {
    throw new BootstrapError("Hone runs on Linux and macOS, not on Windows: use WSL");
  }
  if (!isInstalled()) await install();
  return run(runtime(major), [join(root, program), ...args]);
}

// ---- is it there? (B1) -----------------------------------------------------------------------------------------

function isInstalled() {
  const lock = readJson(join(root, "package-lock.json"));
  if (lock === undefined)
    throw new BootstrapError(`${root} has no package-lock.json, which says what to install`);
  const stamp = readJson(stampFile);
  const isStamped = stamp !== undefined && stamp.key === installKey();
  // Without a stamp, a developer's own `npm install` counts if npm's record of it agrees with the lock file.
  if (!isStamped && !agrees(lock, readJson(join(modules, ".package-lock.json")))) return false;
  if (!hasAll(lock)) return false;
  if (!isStamped) writeStamp();
  return true;
}

function installKey() {
  const hash = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  return `${hash} ${process.platform}-${process.arch}`;
}

function agrees(lock, installed) {
  if (installed === undefined) return false;
  return packagesOf(lock).every(([path, entry]) => {
    const found = installed.packages?.[path];
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.link === entry.link;
  });
}

function hasAll(lock) {
  return packagesOf(lock).every(
    ([path, entry]) => entry.optional === true || existsSync(join(root, path, "package.json")),
  );
}

function packagesOf(lock) {
  return Object.entries(lock.packages).filter(([path]) => path.startsWith("node_modules/"));
}

function writeStamp() {
  try {
    writeFileSync(stampFile, `${JSON.stringify({ key: installKey() })}\n`);
  } catch (error) {
    // A clone that another account installed and that this one may only read: the check is then made each time.
    if (error.code !== "EACCES" && error.code !== "EROFS") throw error;
  }
}

// ---- install (B2, B3) ------------------------------------------------------------------------------------------

async function install() {
  makeStateFolder();
  const release = await takeLock();
  try {
    if (isInstalled()) return; // somebody else did it while this start waited
    rmSync(stampFile, { force: true });
    const startedAt = Date.now();
    const tell = tellProgress(startedAt);
    const { code, output } = await runNpm([
      "ci",
      "--include=dev",
      "--include=optional",
      "--no-audit",
      "--no-fund",
    ]).finally(tell.end);
    if (code !== 0) {
      const shown = output.trimEnd().split("\n").slice(-MAX_SHOWN_LINES).join("\n");
      throw new BootstrapError(
        `${shown}\n\nThe packages could not be installed: npm ci ${code === undefined || code === null ? "took too long" : `ended with exit code ${code}`}. Its output is above.`,
      );
    }
    writeStamp();
    process.stderr.write(`installed in ${Math.round((Date.now() - startedAt) / 1000)} s\n`);
  } finally {
    release();
  }
}

function makeStateFolder() {
  try {
    mkdirSync(stateFolder, { recursive: true });
    accessSync(root, constants.W_OK);
  } catch (error) {
    throw new BootstrapError(
      `Nothing can be installed into ${root}, as this account may not write there (${error.code})`,
    );
  }
}

function runNpm(args) {
  // Under `npm start` this is the very npm that runs us; else the one on PATH.
  const npm = process.env.npm_execpath ?? "";
  const command = /npm-cli\.c?js$/.test(npm) ? [process.execPath, npm] : ["npm"];
  const env = { ...process.env, ONNXRUNTIME_NODE_INSTALL: "skip" };
  // An account without a home. Under `npm start` npm has put its default into the environment.
  const cache = env.npm_config_cache ?? join(homedir(), ".npm");
  if (!canMake(cache)) env.npm_config_cache = join(stateFolder, "npm-cache");
  return new Promise((resolveRun, reject) => {
    const child = spawn(command[0], [...command.slice(1), ...args], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const endAll = (signal) => {
      try {
        process.kill(-child.pid, signal);
      } catch (error) {
        if (error.code !== "ESRCH") throw error;
      }
    };
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    const timer = setTimeout(() => endAll("SIGKILL"), INSTALL_TIMEOUT_MS);
    const onSignal = (signal) => {
      endAll("SIGKILL");
      process.stderr.write(`\ninstall interrupted by ${signal}; the next start does it again\n`);
      rmSync(installLock, { force: true });
      process.exit(130);
    };
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, onSignal);
    const settle = () => {
      clearTimeout(timer);
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(signal, onSignal);
    };
    child.once("error", (error) => {
      settle();
      reject(new BootstrapError(`npm could not be started (${error.code}): it must be on PATH`));
    });
    child.once("close", (code) => {
      settle();
      resolveRun({ code, output });
    });
  });
}

/** Whether a folder can be written, or made where it is missing. */
function canMake(folder) {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    return error.code === "ENOENT" && dirname(folder) !== folder && canMake(dirname(folder));
  }
}

function tellProgress(startedAt) {
  const isTTY = process.stderr.isTTY;
  const text = () => `installing packages … ${Math.round((Date.now() - startedAt) / 1000)} s`;
  if (!isTTY) process.stderr.write("installing packages (first start, or packages changed) …\n");
  const timer = setInterval(() => process.stderr.write(isTTY ? `\r${text()}` : `${text()}\n`), TELL_EVERY_MS);
  return {
    end() {
      clearInterval(timer);
      if (isTTY) process.stderr.write("\r\u001b[K");
    },
  };
}

async function takeLock() {
  const until = Date.now() + INSTALL_TIMEOUT_MS;
  let hasTold = false;
  while (true) {
    try {
      const file = openSync(installLock, "wx");
      writeSync(file, JSON.stringify({ pid: process.pid, startedAt: startOf(process.pid) }));
      closeSync(file);
      return () => rmSync(installLock, { force: true });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = readJson(installLock);
    if (holder === undefined ? isOld(installLock) : !isAlive(holder)) {
      // Renaming picks one winner among several starts that see the same stale lock.
      const aside = `${installLock}.${process.pid}`;
      try {
        renameSync(installLock, aside);
        rmSync(aside, { force: true });
      } catch (error) {
        if (error.code !== "ENOENT") throw error;
      }
      continue;
    }
    if (!hasTold)
      process.stderr.write(
        `another start is installing (pid ${holder?.pid ?? "unknown"}): waiting for it …\n`,
      );
    hasTold = true;
    if (Date.now() > until) {
      throw new BootstrapError(
        `Another start has held ${installLock} for too long: remove that file if no install is running`,
      );
    }
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

/** Whether a lock without content is one whose maker ended before writing it. */
function isOld(file) {
  const made = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  return made !== undefined && Date.now() - made > MAKING_MS;
}

function isAlive({ pid, startedAt }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code === "ESRCH") return false;
  }
  return startOf(pid) === startedAt;
}

/** Clock tick at which a process started, where the system tells it: a pid alone may be used again. */
function startOf(pid) {
  return statOf(pid)?.startedAt ?? "";
}

/** What Linux says about a process; undefined on other systems, and when there is no such process. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const end = stat.lastIndexOf(")");
    const fields = stat.slice(end + 2).split(" ");
    return { name: stat.slice(stat.indexOf("(") + 1, end), parent: fields[1], startedAt: fields[19] };
  } catch {
    return undefined;
  }
}

// ---- hand over (B4) --------------------------------------------------------------------------------------------

function runtime(ownMajor) {
  const packaged = join(modules, `node-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(packaged)) return packaged;
  if (ownMajor >= OLDEST_TO_RUN) return process.execPath;
  throw new BootstrapError(
    `Hone runs on Node ${OLDEST_TO_RUN} or newer, this is ${process.version}, and npm has none for ${process.platform}-${process.arch}. Get one from https://nodejs.org`,
  );
}

function run(node, args) {
  return new Promise((resolveRun, reject) => {
    const child = spawn(node, args, {
      stdio: "inherit",
      env: { NODE_COMPILE_CACHE: compileCache, ...process.env, HONE_BOOTSTRAP_PID: String(process.pid) },
    });
    const forward = (signal) => child.kill(signal);
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
    for (const signal of signals) process.on(signal, forward);
    // npm killed by SIGKILL passes nothing on. Run by hand, another parent is no sign of anything.
    const isNpmAlive = process.env.npm_lifecycle_event === undefined ? () => true : watchNpm();
    const timer = setInterval(() => {
      if (!isNpmAlive()) child.kill("SIGTERM");
    }, PARENT_LOOK_MS);
    child.once("error", (error) => reject(new BootstrapError(`Cannot run ${node}: ${error.message}`)));
    child.once("exit", (code, signal) => {
      clearInterval(timer);
      for (const each of signals) process.off(each, forward);
      if (signal !== null)
        process.kill(process.pid, signal); // shells tell an end by signal from an exit code
      else resolveRun(code);
    });
  });
}

/** npm runs scripts through a shell, which some shells replace by the script: npm is the parent or its parent. */
function watchNpm() {
  const parent = process.ppid;
  const isShell = /^(ba|da|z)?sh$/.test(statOf(parent)?.name ?? "");
  const grandparent = statOf(parent)?.parent;
  return () => process.ppid === parent && (!isShell || statOf(parent)?.parent === grandparent);
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    // A file that is missing, or that its writer has not finished.
    if (error.code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
