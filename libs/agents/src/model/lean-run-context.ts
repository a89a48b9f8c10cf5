/**
 * Makes LangGraph cheaper in processes that do not trace with LangSmith.
 *
 * LangChain runs every node, edge and model call inside a LangSmith `RunTree` (an id from the system's random source, a
 * timestamp, a dozen fields), even when nothing is traced. This is about half of the cost of a small graph (measured:
 * 3.1 -> 1.7 ms of CPU for four turns of two nodes). Other code reads only one entry of it: the config that nested calls
 * inherit. {@link installLeanRunContext} replaces it by an object that has only this entry.
 *
 * L1: a call with callbacks and a process with LangSmith tracing are left unchanged.
 * L2: nested calls inherit the config exactly as without this change; tests check it against the pinned version.
 */

import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";

/** The key under which LangChain finds the config that a nested call inherits. */
const CHILD_CONFIG = Symbol.for("lc:child_config");
const TRACING_VARIABLES = [
  "LANGSMITH_TRACING_V2",
  "LANGCHAIN_TRACING_V2",
  "LANGSMITH_TRACING",
  "LANGCHAIN_TRACING",
  "LANGCHAIN_VERBOSE",
];

let isInstalled = false;

/** Applies to the whole process; a second call does nothing. @returns whether the change is in effect (L1). */
export function installLeanRunContext(environment: Readonly<Record<string, string | undefined>>): boolean {
  if (isInstalled) return true;
  if (TRACING_VARIABLES.some((name) => environment[name] === "true")) return false;
  const provider = AsyncLocalStorageProviderSingleton;
  const original = provider.runWithConfig.bind(provider);
  provider.runWithConfig = (config, callback, avoidCreatingRootRunTree) => {
    if (avoidCreatingRootRunTree === true || config?.callbacks !== undefined) {
      return original(config, callback, avoidCreatingRootRunTree);
    }
    return provider.getInstance().run({ extra: { [CHILD_CONFIG]: config } }, callback);
  };
  isInstalled = true;
  return true;
}
