/** Whether a program printed what it must. */

/** Spaces at the ends of lines and line breaks at the end do not count, as in code contests; all else does. */
export function isSameOutput(printed: string, expected: string): boolean {
  return normalOf(printed) === normalOf(expected);
}

function normalOf(text: string): string {
  const lines = text.split("\n").map((line) => line.trimEnd());
  return lines.join("\n").trimEnd();
}
