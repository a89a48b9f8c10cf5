"""
Hone's training on PyTorch FSDP2: the workers that services/trainer starts under torchrun and drives over a local socket.

    worker.py      a rank: runs the trainer's calls, in the same order on every rank
    trainer.py     what a call does: load, train, score, save
    launch.py      starts torchrun; facts.py  the installed PyTorch
    node.py        the program of the trainer's other nodes
    errors.py      errors after which a group continues

    model/         decoder.py  the layers; attention.py  attention over packed rows; head.py  log-probabilities
    losses/        the formula of each loss
    update/        objective.py  what the call says an update minimises; optimizer.py  AdamW
    parallel/      group.py  what ranks exchange besides gradients; sharding.py  fully_shard; batches.py  tensors of a rank's rows
    state/         weights.py  tensors between files and shards; moments.py  the optimizer's state as a sharded checkpoint
    wire/          messages.py  proto/hone/training/v1; frames.py  messages on a stream; channel.py  the socket of the first
                   rank; spans.py  the phases of a call
    nodes/         ranks.py  the ranks that a node starts; processes.py  ends processes with their parents; health.py  probes
"""
