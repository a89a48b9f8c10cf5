/** Errors of the dataset service. */

import { InvalidInputError } from "@hone/core";

/**
 * A source of tasks cannot be read as the run file describes it: a missing file, a broken line, an empty range.
 * The request fails for good, as only a person can correct it. `path` is the key below the source, such as `path` or `seeds.to`.
 */
export class SourceError extends InvalidInputError {}
