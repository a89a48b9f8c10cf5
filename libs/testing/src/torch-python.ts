/**
 * A Python with PyTorch, for tests of the workers that train with it: what services/trainer/torch/pyproject.toml lists.
 *
 *   HONE_TEST_TORCH_PYTHON    its interpreter
 */

const TORCH_VARIABLE = "HONE_TEST_TORCH_PYTHON";

/** @param environment of the test's own process. */
export function torchPython(environment: Readonly<Record<string, string | undefined>>): {
  readonly python: string;
  /** For `skip` of a test. */
  readonly skip: string | false;
} {
  const python = environment[TORCH_VARIABLE] ?? "";
  const why = `${TORCH_VARIABLE} must name a Python with PyTorch (services/trainer/torch/README.md): nothing of FSDP2 is tested here`;
  return { python, skip: python === "" ? why : false };
}
