"""
The ranks of one node of a group: `python -m hone_fsdp.launch --ranks=N`, which is torchrun with Hone's own choices.

    --ranks    on this node, and on each other one
    --nodes    of the group; with more than one:
    --node     which one this is; 0 is where the rendezvous is, and the first rank
    --address, --port   of the rendezvous, as this node reaches it
    --group    its name, the same on every node
    --seconds  until all nodes have met

L1  The rendezvous is static: node 0 has rank 0, which alone speaks to the trainer. One that elects its nodes' order would
    put it anywhere.
L2  Nothing is started again here: the trainer makes another group and loads the last commit.
L3  This ends with the process that started it, and the ranks with this.
"""

import argparse
import os
from collections.abc import Sequence

from hone_fsdp.processes import PARENT_VARIABLE, die_with


def torchrun_arguments(asked: argparse.Namespace) -> list[str]:
    if asked.nodes == 1:
        # The host's name need not resolve.
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
    # After the line above: importing takes seconds, in which the parent may end.
    from torch.distributed.run import main as torchrun

    torchrun(torchrun_arguments(asked))


if __name__ == "__main__":
    main()
