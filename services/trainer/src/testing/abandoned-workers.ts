/** A program that starts a group of two workers, prints that it did, and then only waits, for the test that kills it. */
import { TorchGroup } from "../fsdp/torch-group.ts";
import { torchHost } from "./torch-host.ts";

/** @param environment of the program's own process. */
export async function startAndSay(
  python: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await TorchGroup.start(torchHost(python, environment), 2, new AbortController().signal);
  console.log("started");
}
