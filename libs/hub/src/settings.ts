/** Address and cache of the hub, from the variables that all Hugging Face programs read. */
import path from "node:path";

export interface HubSettings {
  /** Without a slash at its end. */
  readonly endpoint: string;
  /** Shared with other programs: models--<owner>--<name>/{blobs,refs,snapshots}. */
  readonly cacheDir: string;
  /** Sent to the endpoint; undefined = public models only. */
  readonly token: string | undefined;
  /** Whether only what is in the cache may be used. */
  readonly isOffline: boolean;
}

const PUBLIC_ENDPOINT = "https://huggingface.co";
const YES = ["1", "on", "yes", "true"];

/**
 * Reads HF_ENDPOINT, HF_HUB_CACHE (or HF_HOME, or XDG_CACHE_HOME), HF_TOKEN and HF_HUB_OFFLINE.
 * @param homeFolder home of the user account.
 */
export function readHubSettings(
  environment: Readonly<Record<string, string | undefined>>,
  homeFolder: string,
): HubSettings {
  const read = (name: string) => environment[name] || undefined;
  const caches = read("XDG_CACHE_HOME") ?? path.join(homeFolder, ".cache");
  const home = read("HF_HOME") ?? path.join(caches, "huggingface");
  return {
    endpoint: (read("HF_ENDPOINT") ?? PUBLIC_ENDPOINT).replace(/\/+$/, ""),
    cacheDir: read("HF_HUB_CACHE") ?? read("HUGGINGFACE_HUB_CACHE") ?? path.join(home, "hub"),
    token: read("HF_TOKEN"),
    isOffline: YES.includes((read("HF_HUB_OFFLINE") ?? "").toLowerCase()),
  };
}
