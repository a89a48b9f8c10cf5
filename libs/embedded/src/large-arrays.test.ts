import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withLargeArrays } from "./large-arrays.ts";

describe("withLargeArrays()", () => {
  test("sets the tunables of the engine's work, and changes neither other variables nor its argument", () => {
    const environment = { PATH: "/bin" };
    assert.deepEqual(withLargeArrays(environment, "generation"), {
      PATH: "/bin",
      GLIBC_TUNABLES: "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=262144",
    });
    assert.equal(
      withLargeArrays(environment, "training").GLIBC_TUNABLES,
      "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=2147483648:glibc.malloc.arena_max=1",
    );
    assert.deepEqual(environment, { PATH: "/bin" });
  });

  test("keeps tunables that are set already, and adds the others", () => {
    const chosen = { GLIBC_TUNABLES: "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=2" };
    assert.deepEqual(withLargeArrays(chosen, "generation"), {
      GLIBC_TUNABLES: "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=262144",
    });
  });
});
