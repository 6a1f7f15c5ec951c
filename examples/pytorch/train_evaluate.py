"""Trains a small GPT, and every few steps evaluates it on other data and saves a checkpoint."""
import os
import tempfile

import torch

from gpt import GPT, Tokens, autocast, bits, make_optimizer, parser, print_weights, warm_up

options = parser(__doc__, steps=20)
options.add_argument("--every", type=int, default=5, help="steps between two evaluations")
options.add_argument("--eval-batches", type=int, default=3)
options.add_argument("--output", help="folder for the checkpoints; a temporary one without it")
options = options.parse_args()


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    losses = []
    for _ in range(options.eval_batches):
        inputs, targets = data.batch()
        with autocast(options):
            losses.append(model(inputs, targets))
    model.train()
    return torch.stack(losses).mean()


def train(folder):
    torch.manual_seed(options.seed)
    training, other = Tokens(options, options.seed), Tokens(options, options.seed + 1)
    model = GPT(options.vocabulary, options.length, options.width, options.heads, options.layers).to("cuda")
    optimizer = make_optimizer(model, options)
    for step in range(options.steps):
        warm_up(optimizer, options, step)
        inputs, targets = training.batch()
        with autocast(options):
            loss = model(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step} loss {bits(loss)}", flush=True)
        if (step + 1) % options.every == 0:
            print(f"step {step} evaluation {bits(evaluate(model, other))}", flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(state, os.path.join(folder, f"step-{step}.pt"))
    print_weights(model)


with tempfile.TemporaryDirectory() as temporary:
    train(options.output or temporary)
