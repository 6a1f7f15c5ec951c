"""A random program of PyTorch's memory operations: what a data loader, a trainer that offloads and a side stream do, and no kernel.

  torch_memory.py SEED ITERATIONS [ELEMENTS ...]

Every iteration allocates tensors, fills them (from pageable and pinned memory, blocking or not, or with zeros), copies
slices between them and to a few persistent ones, copies some on a side stream, reads some back, and drops them in any
order. Every few iterations there is an extra phase, as an evaluation would be. Prints a checksum of all bytes that came
back to the host up to each iteration, and one of the persistent tensors in the end: two runs with the same SEED print the
same lines. ELEMENTS are the sizes of the tensors, in floats. No operation needs a kernel, so it runs on the simulated
device, too. Callers: tests/e2e/torch_test.cpp, tools/lab/gpu_suite.
"""
import argparse
import hashlib
import random

import torch

DEVICE = "cuda"
ELEMENTS = [1024, 4096, 65536, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 777777, 300001]


def contents(elements, start):
    """Pageable memory in which all neighbours differ, so that bytes that went astray show."""
    return torch.arange(elements, dtype=torch.float32).add_(start)


def copy_slice(target, source, parts, target_at, source_at):
    """Part of `source` to somewhere in `target`; both places are fractions of what is possible."""
    elements = max(1, min(target.numel(), source.numel()) // parts)
    to = int(target_at * (target.numel() - elements))
    start = int(source_at * (source.numel() - elements))
    target[to:to + elements].copy_(source[start:start + elements])


class Draw:
    """Draws operations: names of methods of Program, each with its arguments, in an order in which they can run.

    Tensors are numbered by age, the oldest living one 0; the persistent ones are -1, -2, ..."""

    def __init__(self, rng, persistent, sizes):
        self.rng, self.persistent, self.sizes = rng, persistent, sizes
        self.alive = 0

    def any_tensor(self):
        return self.rng.randrange(-self.persistent, self.alive)

    def living_tensor(self):
        return self.rng.randrange(self.alive)

    def place(self):
        return self.rng.choice([1, 2, 3]), self.rng.random(), self.rng.random()

    def operation(self):
        kind = self.rng.random()
        if self.alive == 0 or kind < 0.25:
            self.alive += 1
            return "create", self.rng.choice(self.sizes), self.rng.random() < 0.5
        if kind < 0.35:
            return "upload", self.living_tensor(), self.rng.choice(["pageable", "pinned", "non_blocking"]), self.rng.random()
        if kind < 0.65:
            return "copy", self.any_tensor(), self.any_tensor(), *self.place()
        if kind < 0.72:
            return "zero", self.living_tensor()
        if kind < 0.78:
            return "download", self.any_tensor(), self.rng.random() < 0.5
        if kind < 0.9 and self.alive > 1:
            dropped = self.living_tensor()
            self.alive -= 1
            return "drop", dropped
        return "copy_aside", self.any_tensor(), self.living_tensor(), *self.place()


def draw(rng, count, persistent, sizes):
    source = Draw(rng, persistent, sizes)
    return [source.operation() for _ in range(count)]


class Program:
    def __init__(self, seed, sizes):
        rng = random.Random(seed)
        count = rng.randint(2, 6)
        self.persistent = [contents(rng.choice(sizes), i).to(DEVICE) for i in range(count)]
        self.operations = draw(rng, rng.randint(15, 60), count, sizes)
        self.extra = draw(rng, 10, count, sizes)
        self.extra_every = rng.choice([None, 5, 9])
        self.pinned = {elements: torch.empty(elements, pin_memory=True) for elements in sizes}
        self.side = torch.cuda.Stream()
        self.checksum = hashlib.sha256()
        self.living = []

    def tensor(self, number):
        return self.living[number] if number >= 0 else self.persistent[number]

    def iterate(self, iteration):
        self.run(self.operations, iteration)
        if self.extra_every and (iteration + 1) % self.extra_every == 0:
            self.run(self.extra, iteration)

    def run(self, operations, iteration):
        self.iteration = iteration
        for name, *arguments in operations:
            getattr(self, name)(*arguments)
        self.living.clear()

    def create(self, elements, zero):
        tensor = torch.empty(elements, device=DEVICE)
        if zero:
            tensor.zero_()
        else:
            tensor.copy_(contents(elements, self.iteration))
        self.living.append(tensor)

    def upload(self, number, how, start):
        tensor = self.tensor(number)
        values = contents(tensor.numel(), start + self.iteration)
        if how == "pageable":
            tensor.copy_(values)
            return
        torch.cuda.current_stream().synchronize()  # the buffer may still be read by the copy before
        buffer = self.pinned[tensor.numel()]
        buffer.copy_(values)
        tensor.copy_(buffer, non_blocking=how == "non_blocking")

    def copy(self, target, source, *place):
        if target != source:
            copy_slice(self.tensor(target), self.tensor(source), *place)

    def zero(self, number):
        self.tensor(number).zero_()

    def download(self, number, pageable):
        tensor = self.tensor(number)
        if pageable:
            values = tensor.cpu()
        else:
            values = torch.empty(tensor.numel(), pin_memory=True)
            values.copy_(tensor, non_blocking=True)
            torch.cuda.current_stream().synchronize()
        self.checksum.update(values.numpy().tobytes())

    def drop(self, number):
        self.living.pop(number)

    def copy_aside(self, target, source, *place):
        """Through a temporary tensor on the side stream, which waits for the main one, and the main one for it."""
        main = torch.cuda.current_stream()
        self.side.wait_stream(main)
        with torch.cuda.stream(self.side):
            temporary = torch.empty_like(self.tensor(source))
            temporary.copy_(self.tensor(source))
            if target != source:
                copy_slice(self.tensor(target), temporary, *place)
        main.wait_stream(self.side)

    def final(self):
        checksum = hashlib.sha256()
        for tensor in self.persistent:
            checksum.update(tensor.cpu().numpy().tobytes())
        return checksum.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("iterations", type=int)
    parser.add_argument("elements", type=int, nargs="*")
    options = parser.parse_args()
    program = Program(options.seed, options.elements or ELEMENTS)
    for iteration in range(options.iterations):
        program.iterate(iteration)
        print(f"iteration {iteration} checksum {program.checksum.hexdigest()[:16]}", flush=True)
    print("final checksum", program.final())


main()
