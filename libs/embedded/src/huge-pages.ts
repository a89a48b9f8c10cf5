/**
 * Memory of large models in pages of 2 MiB.
 *
 * glibc asks Linux for them where this tunable says so at a process's start (https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html),
 * and Linux gives them where `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`. Weights, keys and
 * values are read through thousands of small pages otherwise, each of which is looked up, twice in a virtual machine, and
 * costs some microseconds when it is touched for the first time.
 */

const TUNABLE = "glibc.malloc.hugetlb";

/** The environment of a process with large arrays. @param environment that it would have; a choice made there stays. */
export function withHugePages(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { GLIBC_TUNABLES: chosen = "" } = environment;
  if (chosen.includes(TUNABLE)) return environment;
  return { ...environment, GLIBC_TUNABLES: [chosen, `${TUNABLE}=1`].filter((part) => part !== "").join(":") };
}
