"""The ways to less memory, and the jobs that a table is made of: which run needs which, in which order."""
import collections
import dataclasses

from . import subjects


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    title: str
    safety: str = ""       # of `reprise run`; "" for what is not Reprise
    prepare: str = ""      # the job that has to come before, once a program
    changes: object = None  # of the script, for a number of layers
    layers: bool = False   # whether the number of layers is what its memory is set by
    module: str = ""       # what the python has to have
    managed: bool = False
    variables: tuple = ()


TRL, TORCHTUNE = "trl.models.activation_offloading", "torchtune.training"
WAYS = (
    Way("proven", "Reprise, default", safety="proven"),
    Way("strict", "Reprise, strict", safety="strict"),
    Way("audited", "Reprise, audited", safety="audited", prepare="audit"),
    Way("trusted", "Reprise, trusted, recompute", safety="trusted", prepare="examine"),
    Way("checkpoint", "torch.utils.checkpoint", changes=subjects.checkpoint, layers=True, prepare="all layers"),
    Way("save_on_cpu", "save_on_cpu(pin_memory=True)", changes=subjects.save_on_cpu, layers=True, prepare="all layers"),
    Way("trl", "TRL's OffloadActivations", changes=subjects.offload_activations(TRL), module="trl"),
    Way("torchtune", "torchtune's OffloadActivations", changes=subjects.offload_activations(TORCHTUNE), module="torchtune"),
    Way("zero_offload", "DeepSpeed ZeRO-Offload", changes=subjects.zero_offload, module="deepspeed",
        variables=(("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29517"))),
    Way("managed", "managed memory", managed=True),
    Way("managed_prefetch", "managed memory, prefetch hints", managed=True, variables=(("MANAGED_PREFETCH", "1"),)),
)
SHORT = tuple(way for way in WAYS if way.name != "managed")  # that with hints does all that this one does
MODULES = sorted({way.module for way in WAYS if way.module})

Job = collections.namedtuple("Job", "kind program way share")


def key(job):
    return "/".join(str(part) for part in (job.program.name, job.kind, job.way and job.way.name, job.share) if part)


def jobs(programs, shares, ways, twice):
    """In the order of what decides most, so that a table that was cut short is one of whole shares. A preparation stands
    before the first row that needs it. Twice plain: which bits are the program's own to differ."""
    for program in programs:
        yield Job("plain", program, None, None)
        if twice:
            yield Job("again", program, None, None)
    prepared = set()
    for share in shares:
        for program in programs:
            for way in ways:
                if way.prepare:
                    first = Job(way.prepare, program, way if way.layers else None, None)
                    if key(first) not in prepared:
                        prepared.add(key(first))
                        yield first
                yield Job("row", program, way, share)
