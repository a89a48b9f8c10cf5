/** Compares the output of a program with the expected one. */

/** Ignores spaces at the ends of lines and line breaks at the end, as code contests do, and nothing else. */
export function isSameOutput(printed: string, expected: string): boolean {
  return normalOf(printed) === normalOf(expected);
}

function normalOf(text: string): string {
  const lines = text.split("\n").map((line) => line.trimEnd());
  return lines.join("\n").trimEnd();
}
