/**
 * How glibc keeps the large arrays of an engine: weights, keys and values, activations.
 *
 * Both tunables are read at a process's start
 * (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html); other C libraries ignore them.
 *
 * `hugetlb` asks Linux for pages of 2 MiB, which it gives where `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise`
 * or `always`. Arrays are read through thousands of small pages otherwise, each of which is looked up, twice in a virtual
 * machine, and costs some microseconds when it is touched for the first time.
 *
 * `mmap_threshold` keeps large arrays out of the heap: without it glibc raises its own to the largest array that was freed,
 * and later ones come out of the heap, which clears them whole and does not give them back (a gateway that took six
 * versions of a 135M model one after the other went from 1.4 to 5.2 GiB, and stays at 1.7 with it; a trainer of that model
 * kept 3.5 GiB between steps instead of 4.0 to 4.2, before it took its memory first).
 */

const TUNABLES = { "glibc.malloc.hugetlb": 1, "glibc.malloc.mmap_threshold": 1_048_576 };

/** The environment of a process with large arrays. @param environment that it would have; what is chosen there stays. */
export function withLargeArrays(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const chosen = (environment.GLIBC_TUNABLES ?? "").split(":").filter((part) => part !== "");
  const added = Object.entries(TUNABLES)
    .filter(([name]) => !chosen.some((part) => part.startsWith(`${name}=`)))
    .map(([name, value]) => `${name}=${value}`);
  return { ...environment, GLIBC_TUNABLES: [...chosen, ...added].join(":") };
}
