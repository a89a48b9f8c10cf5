/** A `fetch` with a size limit, for libraries that read answers themselves. */

import { AnswerTooLongError } from "./read-text.ts";

/**
 * @param maxBytes largest answer. Reading beyond it fails with an {@link AnswerTooLongError} and closes the connection.
 * @param inner the `fetch` that makes the requests.
 */
export function boundedFetch(maxBytes: number, inner: typeof fetch = fetch): typeof fetch {
  return async function fetchWithinBounds(input, init) {
    const response = await inner(input, init);
    if (response.body === null) return response;
    let size = 0;
    const counted = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(part, controller) {
          size += part.length;
          if (size > maxBytes) controller.error(new AnswerTooLongError(maxBytes));
          else controller.enqueue(part);
        },
      }),
    );
    const { status, statusText, headers } = response;
    return new Response(counted, { status, statusText, headers });
  };
}
