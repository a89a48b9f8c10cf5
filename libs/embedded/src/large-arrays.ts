/**
 * Settings of glibc for the large arrays of an engine: weights, keys and values, activations, gradients.
 *
 * The tunables are read when a process starts
 * (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html); other C libraries ignore them.
 *
 * `hugetlb` asks Linux for pages of 2 MiB, which it provides if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
 * `always`. Otherwise arrays consist of thousands of small pages, each of which needs an address lookup (two in a virtual
 * machine) and costs some microseconds at its first access.
 *
 * Arrays larger than `mmap_threshold` are kept out of the heap and returned to the system when they are freed. Without it, glibc
 * raises the threshold to the largest array that was freed.
 *
 * Generation loads one version after the other, whose arrays would leave gaps in the heap. A gateway that loaded six versions of a
 * 135M model grew from 1.4 to 5.2 GiB without a threshold, and to 1.7 GiB with it. In eight bits the smallest matrices
 * of that model have 330 kB: with a threshold of 1 MiB, a gateway kept 200 MB that had been freed.
 *
 * Training frees the gradients of all weights after each pass and needs arrays of the same sizes for the next one. From the heap they
 * come without a page fault, if `trim_threshold` lets the heap keep what was freed, and one heap for all threads (`arena_max`)
 * keeps it once. An update of a 135M model took 9.7 s so, and 14 to 16 s with the settings for generation; its peak was the same,
 * but 1 GiB more was kept between updates.
 */

/** What the engine of a process does. */
export type EngineWork = "generation" | "training";

const HUGE_PAGES = { "glibc.malloc.hugetlb": 1 };
const TUNABLES: Readonly<Record<EngineWork, Readonly<Record<string, number>>>> = {
  generation: { ...HUGE_PAGES, "glibc.malloc.mmap_threshold": 2 ** 18 },
  training: {
    ...HUGE_PAGES,
    // The largest that every version of glibc accepts.
    "glibc.malloc.mmap_threshold": 2 ** 25,
    "glibc.malloc.trim_threshold": 2 ** 31,
    "glibc.malloc.arena_max": 1,
  },
};

/** @returns the environment for a process with large arrays. @param environment its other variables; tunables set there are kept. */
export function withLargeArrays(environment: NodeJS.ProcessEnv, work: EngineWork): NodeJS.ProcessEnv {
  const chosen = (environment.GLIBC_TUNABLES ?? "").split(":").filter((part) => part !== "");
  const added = Object.entries(TUNABLES[work])
    .filter(([name]) => !chosen.some((part) => part.startsWith(`${name}=`)))
    .map(([name, value]) => `${name}=${value}`);
  return { ...environment, GLIBC_TUNABLES: [...chosen, ...added].join(":") };
}
