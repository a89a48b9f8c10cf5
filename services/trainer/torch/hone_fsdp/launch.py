"""
Starts the ranks of a group on one node: `python -m hone_fsdp.launch --ranks=N`, which is torchrun with Hone's settings.

    --ranks    number of ranks on each node
    --nodes    number of nodes of the group; with more than one:
    --node     number of this node; node 0 has the rendezvous and the first rank
    --address, --port   address of the rendezvous, as this node reaches it
    --group    name of the group, the same on every node
    --seconds  time limit for the rendezvous of all nodes

L1  The rendezvous is static, so that node 0 has rank 0, which talks to the trainer. A dynamic rendezvous could put rank 0 on
    any node.
L2  Ranks are not restarted here: the trainer makes another group and loads the last commit.
L3  This process ends with the process that started it, and the ranks end with this one.
"""

import argparse
import os
from collections.abc import Sequence

from hone_fsdp.nodes.processes import PARENT_VARIABLE, die_with


def torchrun_arguments(asked: argparse.Namespace) -> list[str]:
    if asked.nodes == 1:
        # The host's own name may not resolve.
        meeting = ["--standalone", "--local-addr=127.0.0.1"]
    else:
        meeting = [
            f"--nnodes={asked.nodes}",
            f"--node-rank={asked.node}",
            "--rdzv-backend=static",  # L1
            f"--master-addr={asked.address}",
            f"--master-port={asked.port}",
            f"--rdzv-id={asked.group}",
            f"--rdzv-conf=timeout={asked.seconds}",
        ]
    return [*meeting, f"--nproc-per-node={asked.ranks}", "--max-restarts=0", "-m", "hone_fsdp.worker"]  # L2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="hone_fsdp.launch")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--group", default="alone")
    parser.add_argument("--seconds", type=int, default=600)
    asked = parser.parse_args(arguments)
    die_with(os.getppid())  # L3
    os.environ[PARENT_VARIABLE] = str(os.getpid())
    # Imported after the line above, because it takes seconds, during which the parent may end.
    from torch.distributed.run import main as torchrun

    torchrun(torchrun_arguments(asked))


if __name__ == "__main__":
    main()
