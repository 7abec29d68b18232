"""Where torch computes, and whether it has bfloat16 there."""

import torch

from modwatch.common.errors import ModelError


def device_of(name: str) -> torch.device:
    """Return the device that `name` means: auto, cpu, cuda or cuda:n.

    `auto` is the first CUDA device, or the CPU where there is none.

    Raises:
        ModelError: there is no such device.

    >>> device_of("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    if name == "cpu":
        return torch.device("cpu")
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number.isdecimal() or name == "cuda"):
        raise ModelError(f"the device must be auto, cpu, cuda or cuda:n, got {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(number or 0) >= count:
        raise ModelError(
            f"the device {name} does not exist: torch sees {count} CUDA devices; "
            "set MODWATCH_DEVICE to auto or cpu"
        )
    return torch.device("cuda", int(number or 0))


def devices_of(name: str) -> list[torch.device]:
    """Return the devices that training may use: every CUDA device for `auto` and `cuda`.

    Raises:
        ModelError: there is no such device.

    >>> [device.type for device in devices_of("cpu")]
    ['cpu']
    """
    first = device_of(name)
    if first.type == "cuda" and ":" not in name:
        return [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    return [first]


def has_bf16(device: torch.device) -> bool:
    """Return whether the device multiplies matrices in bfloat16 faster than in fp32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    supported = torch.cpu._is_avx512_bf16_supported, torch.cpu._is_amx_tile_supported
    return any(check() for check in supported)
