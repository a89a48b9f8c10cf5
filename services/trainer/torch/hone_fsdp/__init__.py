"""
Hone's training on PyTorch FSDP2: the workers that services/trainer starts under torchrun and drives over a local socket.

    worker.py      a rank: runs the trainer's calls, in the same order on every rank
    channel.py     the socket of the first rank; frames.py  messages on a stream
    messages.py    the messages of proto/hone/training/v1
    trainer.py     what a call does: load, train, score, save
    model.py       the decoder; attention.py  attention over packed rows; head.py  log-probabilities
    objective.py   the objective of an update, which the call describes
    losses/        the formula of each loss
    sharding.py    fully_shard; optimizer.py  AdamW
    weights.py     tensors between files and shards; moments.py  the optimizer's state as a sharded checkpoint
    group.py       what ranks exchange besides gradients; errors.py
    launch.py      starts torchrun; processes.py  ends processes with their parents; facts.py  the installed PyTorch
    node.py        the program of the trainer's other nodes; ranks.py  the ranks that it starts; health.py  its probes
"""
