/**
 * Loaded into every process of a stack under test: changes one module as it is loaded, as HONE_TEST_MUTATION says.
 * The files themselves stay as they are.
 */

import { registerHooks } from "node:module";
import { MUTATIONS, type MutationName, mutate } from "./mutations.ts";

const mutation = MUTATIONS[(process.env.HONE_TEST_MUTATION ?? "") as MutationName];
if (mutation === undefined) {
  throw new Error(
    `Cannot mutate as HONE_TEST_MUTATION must name a mutation: current value is ${process.env.HONE_TEST_MUTATION}`,
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
