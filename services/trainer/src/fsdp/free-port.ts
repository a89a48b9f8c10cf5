/** Ports for those who are told where to listen: the rendezvous of a group is Python's. */
import { createServer } from "node:net";

/** A port on which nobody listens now, on any address of this machine. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  return port;
}
