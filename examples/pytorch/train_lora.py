"""Fine-tunes GPT-2 with LoRA: Hugging Face's transformers and peft, only the adapters are trained."""
import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

from gpt import Tokens, autocast, bits, parser, print_weights

options = parser(__doc__, lr=1e-3)
options.add_argument("--rank", type=int, default=8)
options = options.parse_args()
torch.manual_seed(options.seed)
data = Tokens(options, options.seed)
config = GPT2Config(vocab_size=options.vocabulary, n_positions=options.length, n_embd=options.width, n_layer=options.layers,
                    n_head=options.heads, bos_token_id=0, eos_token_id=0, use_cache=False)
adapters = LoraConfig(task_type="CAUSAL_LM", r=options.rank, lora_alpha=2 * options.rank, lora_dropout=0.05,
                      target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)
model = get_peft_model(GPT2LMHeadModel(config), adapters).to("cuda")
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=options.lr)
for step in range(options.steps):
    inputs, _ = data.batch()
    with autocast(options):
        loss = model(input_ids=inputs, labels=inputs).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {bits(loss)}", flush=True)
print_weights(model)
