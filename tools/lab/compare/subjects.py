"""The programs that are compared, and what a user would change in them for each way that needs a change.

A change is text of a script and what stands in its place. It is made in a copy, and the lines are counted there, so that
the plain run is of the script as it is.
"""
import dataclasses
import difflib
import pathlib
import shutil


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    script: str
    model: str  # the script that has the loop over blocks
    layers: int
    options: tuple
    optimizer: str  # what the optimizer is made of, as the script says it

    def command(self, python, folder, steps):
        return [python, pathlib.Path(folder) / self.script, *self.options, "--layers", str(self.layers), "--steps", str(steps)]


GPT2 = ("train_gpt2.py", "train_gpt2.py")
VIT = ("train_vit.py", "train_vit.py")
LORA = ("train_gpt2_lora.py", "train_gpt2.py")
ALL, TRAINED = "model.parameters()", "[p for p in model.parameters() if p.requires_grad]"

# GPT-2 and ViT-S/16 as they are published, at batches of a few seconds for thirty steps.
ON_A_GPU = (
    Program("GPT-2", *GPT2, 12, ("--length", "512", "--batch", "8"), ALL),
    Program("ViT", *VIT, 12, ("--batch", "64"), ALL),
    Program("LoRA", *LORA, 12, ("--length", "512", "--batch", "8"), TRAINED),
)
SMALL = ("--width", "64", "--heads", "4")
TEXT = (*SMALL, "--length", "64", "--vocabulary", "512", "--batch", "16")
SIMULATED = (
    Program("GPT-2", *GPT2, 6, TEXT, ALL),
    Program("ViT", *VIT, 6, (*SMALL, "--size", "64", "--patch", "8", "--classes", "64", "--batch", "16"), ALL),
    Program("LoRA", *LORA, 6, TEXT, TRAINED),
)
SHORT = tuple(dataclasses.replace(program, layers=2) for program in SIMULATED)

IMPORT = "from torch.nn import functional\n"
LOOP = "        for block in self.blocks:\n            x = block(x)\n"
NUMBERED = "        for number, block in enumerate(self.blocks):\n"
STEP = "        with torch.autocast("
STEPS = "    for step in range(options.steps):\n"


def imports(file, line):
    return file, IMPORT, IMPORT + line


def checkpoint(program, layers):
    yield imports(program.model, "from torch.utils.checkpoint import checkpoint\n")
    yield program.model, LOOP, (NUMBERED + f"            x = checkpoint(block, x, use_reentrant=False) if number < {layers} else block(x)\n")


def save_on_cpu(program, layers):
    yield imports(program.model, "from contextlib import nullcontext\nfrom torch.autograd.graph import save_on_cpu\n")
    yield program.model, LOOP, (NUMBERED + f"            with save_on_cpu(pin_memory=True) if number < {layers} else nullcontext():\n"
                                           "                x = block(x)\n")


def offload_activations(module):
    def changes(program, _):
        yield imports(program.script, f"from {module} import OffloadActivations\n")
        yield program.script, STEPS, "    offload = OffloadActivations()\n" + STEPS
        yield program.script, STEP, "        with offload, torch.autocast("
    return changes


ZERO = ('{"train_micro_batch_size_per_gpu": options.batch, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.01}},\n'
        '              "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}}')


def zero_offload(program, _):
    yield imports(program.script, "import deepspeed\n")
    yield (program.script, f"    optimizer = torch.optim.AdamW({program.optimizer}, lr=3e-4)\n",
           f"    config = {ZERO}\n    engine, *_ = deepspeed.initialize(model=model, model_parameters={program.optimizer}, config=config)\n")
    yield program.script, "        optimizer.zero_grad(set_to_none=True)\n", ""
    yield program.script, "        loss.backward()\n        optimizer.step()\n", "        engine.backward(loss)\n        engine.step()\n"
    yield program.script, "            logits = model(inputs)\n", "            logits = engine(inputs)\n"


def lines_changed(before, after):
    """As a user counts them: a line that is another one, or new, or gone, is one."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return sum(max(to - at, to_new - at_new) for kind, at, to, at_new, to_new in matcher.get_opcodes() if kind != "equal")


def copy_changed(scripts, folder, changes):
    """Copies the scripts into `folder`, makes the changes there; how many lines they are."""
    for script in sorted(pathlib.Path(scripts).glob("*.py")):
        shutil.copy(script, folder)
    texts = {}
    for name, old, new in changes:
        path = pathlib.Path(folder) / name
        before, now = texts.get(name) or (path.read_text(), path.read_text())
        if now.count(old) != 1:
            raise ValueError(f"{name} has {now.count(old)} times, not once: {old.strip()}")
        texts[name] = before, now.replace(old, new)
    for name, (_, now) in texts.items():
        (pathlib.Path(folder) / name).write_text(now)
    return sum(lines_changed(before, now) for before, now in texts.values())
