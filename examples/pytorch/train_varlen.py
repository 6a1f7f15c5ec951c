"""Fine-tunes a small GPT on texts of any length: batches are padded to a multiple of 8, some micro-batches are dropped, an
evaluation keeps its losses.

PyTorch's embedding launches more kernels beyond 3 072 tokens a batch. The defaults stay below; --length 384 mixes both.
"""
import inspect
import random

import torch

from gpt import GPT, autocast, bits, make_optimizer, parser, print_weights, warm_up

MODULES = "argparse ast collections csv datetime decimal difflib email functools inspect io json logging os pathlib pickle random re shutil socket statistics string subprocess tarfile tempfile textwrap threading unittest zipfile".split()

options = parser(__doc__, steps=40, vocabulary=256, length=192)
options.add_argument("--every", type=int, default=10, help="steps between two evaluations")
options.add_argument("--eval-batches", type=int, default=3)
options.add_argument("--micro-batches", type=int, default=2, help="of a step, at most")
options.add_argument("--drop", type=float, default=0.25, help="the part of the micro-batches behind the first that is dropped")
options.add_argument("--fixed", action="store_true", help="all batches have the full length")
options = options.parse_args()


def texts():
    """The documentation of Python's own functions, as bytes: lengths as people write."""
    found = set()
    for name in MODULES:
        module = __import__(name)
        for _, member in inspect.getmembers(module):
            parts = [part for _, part in inspect.getmembers(member)] if inspect.isclass(member) else []
            found.update(text for text in (getattr(one, "__doc__", None) for one in (member, *parts)) if isinstance(text, str))
    return sorted((text.encode() for text in found if len(text) > 64), key=lambda text: (len(text), text))


class Batches:
    """Texts of about one length together, so that little is padded."""
    def __init__(self, documents, seed):
        self.documents, self.draw = documents, random.Random(seed)

    def next(self):
        first = self.draw.randrange(len(self.documents) - options.batch)
        chosen = self.documents[first:first + options.batch]
        longest = options.length if options.fixed else min(options.length, max(map(len, chosen)) - 1)
        padded = (longest + 7) // 8 * 8
        tokens = torch.zeros(options.batch, padded + 1, dtype=torch.long)
        for row, text in zip(tokens, chosen):
            piece = torch.tensor(list(text[:padded + 1]))
            row[:len(piece)] = piece
        return (tokens[:, :-1].contiguous().pin_memory().to("cuda", non_blocking=True),
                tokens[:, 1:].contiguous().pin_memory().to("cuda", non_blocking=True))


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    losses = []
    for _ in range(options.eval_batches):
        inputs, targets = batches.next()
        with autocast(options):
            losses.append(model(inputs, targets))
    model.train()
    return torch.stack(losses).mean()


torch.manual_seed(options.seed)
documents = texts()
dropped = random.Random(options.seed)
training, held_out = Batches(documents[::2], options.seed), Batches(documents[1::2], options.seed + 1)
model = GPT(options.vocabulary, options.length, options.width, options.heads, options.layers).to("cuda")
optimizer = make_optimizer(model, options)
total = torch.zeros((), device="cuda")  # of a step


def micro_step():
    inputs, targets = training.next()
    with autocast(options):
        loss = model(inputs, targets)
    loss.backward()
    total.add_(loss.detach())
    return inputs.numel()


for step in range(options.steps):
    warm_up(optimizer, options, step)
    total.zero_()
    tokens = sum(micro_step() for i in range(options.micro_batches) if i == 0 or dropped.random() >= options.drop)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} of {tokens} tokens: loss {bits(total)}", flush=True)
    if (step + 1) % options.every == 0:
        print(f"step {step} evaluation {bits(evaluate(model, held_out))}", flush=True)
print_weights(model)
