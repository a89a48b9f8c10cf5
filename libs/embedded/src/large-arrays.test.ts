import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withLargeArrays } from "./large-arrays.ts";

describe("withLargeArrays()", () => {
  test("sets both tunables, and changes neither other variables nor its argument", () => {
    const environment = { PATH: "/bin" };
    assert.deepEqual(withLargeArrays(environment), {
      PATH: "/bin",
      GLIBC_TUNABLES: "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=262144",
    });
    assert.deepEqual(environment, { PATH: "/bin" });
  });

  test("keeps tunables that are set already, and adds the others", () => {
    const chosen = { GLIBC_TUNABLES: "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=2" };
    assert.deepEqual(withLargeArrays(chosen), {
      GLIBC_TUNABLES: "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=262144",
    });
  });
});
