"""Trains a small GPT: dropout, warm-up, clipped gradients, batches through pinned memory."""
import torch

from gpt import GPT, Tokens, autocast, bits, make_optimizer, parser, print_weights, warm_up

options = parser(__doc__).parse_args()
torch.manual_seed(options.seed)
data = Tokens(options, options.seed)
model = GPT(options.vocabulary, options.length, options.width, options.heads, options.layers).to("cuda")
optimizer = make_optimizer(model, options)
for step in range(options.steps):
    warm_up(optimizer, options, step)
    inputs, targets = data.batch()
    with autocast(options):
        loss = model(inputs, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {bits(loss)}", flush=True)
print_weights(model)
