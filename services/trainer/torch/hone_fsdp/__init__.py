"""
Hone's training on PyTorch FSDP2: the workers that services/trainer starts under torchrun and drives over a local socket.

    worker.py      a rank: takes calls, in the same order on every rank, and answers them
    channel.py     the socket of the first rank; frames.py  messages on a stream
    messages.py    the messages of proto/hone/training/v1
    trainer.py     what a call does: load, train, score, save
    model.py       the decoder; attention.py  who sees whom in packed rows; head.py  log-probabilities
    objective.py   what an update minimises, which comes as data
    losses/        the formula of each loss
    sharding.py    fully_shard; optimizer.py  AdamW
    weights.py     tensors between files and shards; moments.py  the optimizer's state as a sharded checkpoint
    group.py       what ranks tell each other beside gradients; errors.py
    launch.py      torchrun as Hone starts it; processes.py  which end with whoever started them; facts.py  what PyTorch is there
    node.py        the program of a node beside the trainer's own; ranks.py  those that it starts; health.py  its probes
"""
