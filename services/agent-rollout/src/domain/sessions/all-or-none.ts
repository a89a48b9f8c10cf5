/** Several pieces of work of which all must succeed. */

/**
 * @param work gets its index, and a signal that aborts when another one has failed.
 * @returns the results in the order of their indices.
 * @throws the first error, after all work has ended.
 */
export async function allOrNone<Result>(
  count: number,
  work: (index: number, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const stop = new AbortController();
  let failure: { readonly error: unknown } | undefined;
  const results = await Promise.allSettled(
    Array.from({ length: count }, async (_, index) => {
      try {
        return await work(index, stop.signal);
      } catch (error) {
        failure ??= { error };
        stop.abort();
        throw error;
      }
    }),
  );
  if (failure !== undefined) throw failure.error;
  return results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
}
