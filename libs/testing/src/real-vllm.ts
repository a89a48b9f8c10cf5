/**
 * A real vLLM server on the CPU, for tests.
 *
 *   HONE_TEST_VLLM    a Python environment with vLLM (its CPU build)
 *   HONE_TEST_MODEL   a folder with a small model and its tokenizer, such as SmolLM2-135M
 */

import path from "node:path";
import { freePort, spawnChild, untilReady } from "@hone/embedded";

export const VLLM_VARIABLE = "HONE_TEST_VLLM";
export const MODEL_VARIABLE = "HONE_TEST_MODEL";

export interface RealVllm extends AsyncDisposable {
  readonly url: string;
}

/** Minutes on a busy machine: it compiles and measures before it listens. */
const START_DEADLINE_MS = 1_800_000;
/** For the K/V of a small model at a few thousand tokens. */
const CACHE_GIB = "1";

/**
 * @param folder of the model, with its tokenizer.
 * @param logFolder takes what the server prints.
 * @param hasAdapters whether it takes adapters. With them its CPU build ends when it is asked for logprobs of a prompt
 *   (docs/algorithms.md). @default true
 */
export async function startRealVllm(
  environment: string,
  folder: string,
  logFolder: string,
  maxContextTokens: number,
  { hasAdapters = true }: { readonly hasAdapters?: boolean } = {},
): Promise<RealVllm> {
  const port = await freePort();
  const flags = {
    "--host": "127.0.0.1",
    "--port": String(port),
    "--dtype": "float32",
    "--max-model-len": String(maxContextTokens),
    "--logprobs-mode": "processed_logprobs",
    "--generation-config": "vllm",
  };
  const child = await spawnChild({
    name: "vllm",
    command: path.join(environment, "bin", "vllm"),
    args: [
      "serve",
      folder,
      ...Object.entries(flags).flat(),
      "--enforce-eager",
      // The CPU build ends at once where a prompt with a seed is split over two steps (docs/engines.md).
      "--no-enable-chunked-prefill",
      "--enable-prompt-tokens-details",
      ...(hasAdapters ? ["--enable-lora"] : []),
    ],
    env: {
      ...process.env,
      VLLM_SERVER_DEV_MODE: "1",
      VLLM_ALLOW_RUNTIME_LORA_UPDATING: "True",
      VLLM_CPU_KVCACHE_SPACE: CACHE_GIB,
      VLLM_CPU_OMP_THREADS_BIND: "0-1",
      VLLM_NO_USAGE_STATS: "1",
      HF_HUB_OFFLINE: "1",
    },
    logFile: path.join(logFolder, "vllm.log"),
  });
  const url = `http://127.0.0.1:${port}`;
  const isReady = async (signal: AbortSignal) =>
    (await fetch(`${url}/health`, { signal })).ok ? true : undefined;
  await untilReady(child, isReady, { deadlineMs: START_DEADLINE_MS });
  return { url, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}
