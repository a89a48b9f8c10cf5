/**
 * Is loaded into every process of a stack under test, and inserts the fault of HONE_TEST_MUTATION into a module while it is
 * loaded. The module's file is not changed.
 */

import { registerHooks } from "node:module";
import { MUTATIONS, type MutationName, mutate } from "./mutations.ts";

const mutation = MUTATIONS[(process.env.HONE_TEST_MUTATION ?? "") as MutationName];
if (mutation === undefined) {
  throw new Error(
    `HONE_TEST_MUTATION is ${process.env.HONE_TEST_MUTATION}, which is no mutation of test/kill/mutations.ts`,
  );
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith(`/${mutation.file}`)) return loaded;
    const source =
      typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source);
    return { ...loaded, source: mutate(mutation, source) };
  },
});
