/** Finds a free port for PyTorch's rendezvous, which must be given the port to listen on. */
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
