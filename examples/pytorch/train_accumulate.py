"""Trains a small GPT with gradients that are summed over several batches before each step of the optimizer."""
import torch

from gpt import GPT, Tokens, autocast, bits, make_optimizer, parser, print_weights, warm_up

options = parser(__doc__, batch=12)
options.add_argument("--accumulate", type=int, default=4, help="batches for each step")
options = options.parse_args()
torch.manual_seed(options.seed)
data = Tokens(options, options.seed)
model = GPT(options.vocabulary, options.length, options.width, options.heads, options.layers).to("cuda")
optimizer = make_optimizer(model, options)
for step in range(options.steps):
    warm_up(optimizer, options, step)
    total = torch.zeros((), device="cuda")
    for _ in range(options.accumulate):
        inputs, targets = data.batch()
        with autocast(options):
            loss = model(inputs, targets) / options.accumulate
        loss.backward()
        total += loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {bits(total)}", flush=True)
print_weights(model)
