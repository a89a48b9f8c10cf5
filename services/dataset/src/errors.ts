/** What the dataset service throws. */

import { InvalidInputError } from "@hone/core";

/**
 * A source of tasks cannot be read as the run file describes it: a missing file, a broken line, an empty range.
 * Fatal for the request: only a person can mend it. `path` is the key below the source, such as `path` or `seeds.to`.
 */
export class SourceError extends InvalidInputError {}
