/**
 * Settings of glibc for the large arrays of an engine: weights, keys and values, activations.
 *
 * Both tunables are read when a process starts
 * (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html); other C libraries ignore them.
 *
 * `hugetlb` asks Linux for pages of 2 MiB, which it provides if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
 * `always`. Otherwise arrays consist of thousands of small pages, each of which needs an address lookup (two in a virtual
 * machine) and costs some microseconds at its first access.
 *
 * `mmap_threshold` keeps large arrays out of the heap. Without it glibc raises the threshold to the largest array that was
 * freed, and takes later arrays from the heap, which clears them and does not return them to the system. A gateway that loaded
 * six versions of a 135M model one after the other grew from 1.4 to 5.2 GiB without it, and to 1.7 GiB with it. A trainer of
 * that model kept 3.5 GiB between steps with it, and 4.0 to 4.2 GiB without. In eight bits the smallest matrices of that model
 * have 330 kB: with a threshold of 1 MiB, a gateway kept 200 MB that had been freed.
 */

const TUNABLES = { "glibc.malloc.hugetlb": 1, "glibc.malloc.mmap_threshold": 262_144 };

/** @returns the environment for a process with large arrays. @param environment its other variables; tunables set there are kept. */
export function withLargeArrays(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const chosen = (environment.GLIBC_TUNABLES ?? "").split(":").filter((part) => part !== "");
  const added = Object.entries(TUNABLES)
    .filter(([name]) => !chosen.some((part) => part.startsWith(`${name}=`)))
    .map(([name, value]) => `${name}=${value}`);
  return { ...environment, GLIBC_TUNABLES: [...chosen, ...added].join(":") };
}
