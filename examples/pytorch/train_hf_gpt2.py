"""Trains GPT-2 as Hugging Face's transformers has it, from scratch and at a small size."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from gpt import Tokens, autocast, bits, make_optimizer, parser, print_weights, warm_up

options = parser(__doc__).parse_args()
torch.manual_seed(options.seed)
data = Tokens(options, options.seed)
config = GPT2Config(vocab_size=options.vocabulary, n_positions=options.length, n_embd=options.width, n_layer=options.layers,
                    n_head=options.heads, bos_token_id=0, eos_token_id=0, use_cache=False)
model = GPT2LMHeadModel(config).to("cuda")
model.train()
optimizer = make_optimizer(model, options)
for step in range(options.steps):
    warm_up(optimizer, options, step)
    inputs, _ = data.batch()
    with autocast(options):
        loss = model(input_ids=inputs, labels=inputs).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {bits(loss)}", flush=True)
print_weights(model)
