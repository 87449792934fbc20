"""Determines which devices of this host the ranks may see, and their numbers; all other modules take both from here.

A device has two numbers.  Rank tables, locks, --devices, /dev/davinciN, hccn_tool and npu-smi use its physical id.  A
process, and therefore DEVICE_ID, uses its index: its place among the devices that the process sees.

These limit the devices:
  /dev                        CANN numbers the devices of a container from 0, in the order of their physical ids
  ASCEND_RT_VISIBLE_DEVICES   places in that order, ascending; CANN numbers the named devices from 0 again
  CUDA_VISIBLE_DEVICES        GPUs by number or UUID, in any order, or a MIG device
  SLURM_STEP_GPUS and others  the host's numbers, where the variables count only what Slurm gave the job
ASCEND_VISIBLE_DEVICES and NPU_VISIBLE_DEVICES limit no process: the container runtime reads the first one when it
mounts devices, and CANN reads neither.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal, refused
from hccl_tools.common.words import count, named, one_line, short

NPUS, GPUS = "ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
WITHOUT_EFFECT = ("ASCEND_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES")
NONE = ("", "-1", "NoDevFiles")  # values of CUDA_VISIBLE_DEVICES that hide all GPUs; the last one is Slurm's
_MOST = 1 << 16  # devices of a host


class Visible(Record):
    """The devices that the processes of this environment see."""

    ids: tuple[int, ...] | None = None  # their physical ids, in the order of the index; None: any, by the same number
    limit: str = ""  # the variable that limits them, with its value; empty: none does
    certain: bool = True  # False: the ids are only places, because the physical ones are not known
    of_slurm: bool = False  # the ids are the host's, and programs in the job count its own devices from 0

    def index(self, device: int) -> int | None:
        """The index of the device with this physical id; None: it is not seen."""
        if self.ids is None:
            return device
        return self.ids.index(device) if device in self.ids else None

    def hides(self, device: int) -> bool:
        """Whether a variable hides the device."""
        return bool(self.limit) and self.index(device) is None

    def numbering(self, devices: list[int]) -> str:
        """The numbers by which the ranks know the devices, and the reason."""
        why = self.limit or tr("CANN counts the devices in /dev")
        indices = [device if index is None else index for device, index in zip(devices, map(self.index, devices))]
        numbers = ",".join(map(str, indices))
        return tr("{why}: DEVICE_ID {numbers} for {devices}", why=why, numbers=numbers, devices=listed(devices))

    def refusal(self, devices: list[int]) -> Refusal:
        """The message that `devices` are hidden, and what to do."""
        return refused(
            "{devices} cannot be used: {limit} shows the ranks only {visible}; choose from those, or: unset {name}",
            devices=named("device", devices),
            limit=self.limit,
            visible=listed(self.ids or ()),
            name=self.limit.partition("=")[0],
        )


def of(target: str) -> Visible:
    """The devices of "Ascend" or "GPU"; on CPU devices are only numbers.  Raises Refusal: the variable is wrong."""
    if target == "Ascend":
        return npus()
    return gpus() if target == "GPU" else Visible()


def listed(devices: tuple[int, ...] | list[int]) -> str:
    """Devices in their order: ``devices 4-7``, and ``devices 7,4`` where the order is another."""
    ordered = list(devices) == sorted(devices)
    return named("device", devices) if ordered else f"{tr('devices')} {','.join(map(str, devices))}"


# ---- NPUs ------------------------------------------------------------------------------------------------------------


def npus() -> Visible:
    """The NPUs.  npu-smi is asked only where the variable is set and /dev has none.  Raises Refusal."""
    from hccl_tools.machine import host

    text = os.environ.get(NPUS)
    if text is None:
        return Visible(ids=tuple(host.nodes()) or None)
    here = host.devices()
    places = _places(text, here)
    ids = [here[place] for place in places] if here else places
    return _of_job("NPUS", Visible(ids=tuple(ids), limit=f"{NPUS}={short(text)}"))


def _places(text: str, here: list[int]) -> list[int]:
    """The places that ASCEND_RT_VISIBLE_DEVICES names, among the devices `here` (none: unknown).  Raises Refusal.

    CANN reads the list up to the first mistake, and nothing of one that does not ascend; only its own log states this.
    """
    found: list[int] = []
    for word in text.split(","):
        place = whole_number(word, 0, _MOST)
        if place is None:
            fault = tr('"{word}" is not a number', word=short(word))
            if not word.strip():
                fault = tr("it is empty") if not text.strip() else tr("a number is missing between its commas")
            elif whole_number(word.strip()) is not None:
                fault = tr('"{word}" has a blank', word=short(word))
            elif whole_number(word.replace("-", "", 1).strip()) is not None and not word.startswith("-"):
                fault = tr('"{word}" is a range, which CANN does not know', word=short(word))
            raise _wrong(text, fault, found)
        if found and place <= found[-1]:
            fault = tr("{place} comes after {before}, but the numbers must ascend", place=place, before=found[-1])
            raise _wrong(text, fault, [])
        if here and place >= len(here):
            fault = tr(
                "{place} is too large: CANN numbers the {devices} here from 0 to {last}",
                place=place,
                devices=count(len(here), "device"),
                last=len(here) - 1,
            )
            raise _wrong(text, fault, found, here)
        found.append(place)
    return found


def _wrong(text: str, fault: str, read: list[int], here: list[int] | None = None) -> Refusal:
    """read: the numbers that CANN reads.  here: the devices, where the numbers may be meant as physical ids."""
    meant = [whole_number(word) for word in text.split(",")]
    places = [here.index(device) for device in meant if here and device in here] if here else []
    right = places if len(places) == len(meant) else [0, 1, 2, 3]
    return refused(
        "{variable}: {fault}; {read}; write numbers such as {name}={right}, or: unset {name}",
        variable=f"{NPUS}={short(text)}",
        fault=fault,
        read=tr("CANN reads only {numbers} of it", numbers=",".join(map(str, read)))
        if read
        else tr("CANN reads nothing of it"),
        name=NPUS,
        right=",".join(map(str, right)),
    )


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def gpus() -> Visible:
    """The GPUs.  nvidia-smi is asked only for UUIDs.  Raises Refusal."""
    text = os.environ.get(GPUS)
    if text is None:
        return Visible()
    limit = f"{GPUS}={short(text)}"
    if hides_all_gpus():
        raise refused("{variable} hides all GPUs; name some, or: unset {name}", variable=limit, name=GPUS)
    words = [word.strip() for word in text.split(",")]
    if "-1" in words:  # CUDA ends there
        words = words[: words.index("-1")]
    if words[0].startswith("MIG-"):  # CUDA shows a process one MIG device
        return Visible(ids=(0,), limit=limit, certain=False)
    uuids = _uuids() if any(word.startswith("GPU-") for word in words) else []
    found = [_gpu(word, uuids, limit) for word in words]
    if None in found:
        return Visible(ids=tuple(range(len(found))), limit=limit, certain=False)
    ids = [number for number in found if number is not None]
    for place, number in enumerate(ids):
        if number in ids[:place]:
            raise refused("{variable} names GPU {number} twice; name each once", variable=limit, number=number)
    return _of_job("GPUS", Visible(ids=tuple(ids), limit=limit))


def hides_all_gpus() -> bool:
    """Whether the user has hidden all GPUs, which is how one asks for the processors."""
    text = os.environ.get(GPUS)
    return text is not None and text.partition(",")[0].strip() in NONE


def _gpu(word: str, uuids: list[str], limit: str) -> int | None:
    """The number of the GPU that the word of the variable names; None: unknown.  Raises Refusal."""
    number = whole_number(word, 0, _MOST)
    if number is not None:
        return number
    if not word.startswith("GPU-"):
        text = tr('{variable}: "{word}" is neither a number nor the UUID of a GPU', variable=limit, word=short(word))
        raise refused("{text}; see: nvidia-smi -L", text=text)
    found = [place for place, uuid in enumerate(uuids) if uuid.lower().startswith(word.lower())]
    if len(found) != 1 and uuids:
        what = tr("no GPU here has this UUID") if not found else tr("the UUIDs of several GPUs here begin like this")
        raise refused("{text}; see: nvidia-smi -L", text=f"{limit}: {short(word)}: {what}")
    return found[0] if found else None


def _uuids() -> list[str]:
    """The UUIDs of the GPUs, by their numbers; empty where nvidia-smi does not tell."""
    import re

    return re.findall(r"^GPU [0-9]+: .*\(UUID: (\S+)\)\s*$", _listed_gpus(), re.MULTILINE)


def number_of_gpus() -> int:
    """How many GPUs nvidia-smi lists here, whatever the variable states."""
    return sum(line.startswith("GPU ") for line in _listed_gpus().splitlines())


def _listed_gpus() -> str:
    from hccl_tools.machine import programs

    return programs.ask(["nvidia-smi", "-L"], 30).stdout if programs.on_path("nvidia-smi") else ""


# ---- Slurm, and what limits nothing ----------------------------------------------------------------------------------


def _of_job(kind: str, seen: Visible) -> Visible:
    """The same with the host's numbers, where Slurm has written the variable by the job's own numbers, from 0 on.

    It does so where cgroups hide the other devices.  Two jobs of one host would otherwise have the same numbers.
    """
    ids = seen.ids or ()
    if "SLURM_JOB_ID" not in os.environ or ids != tuple(range(len(ids))):
        return seen
    for name in (f"SLURM_STEP_{kind}", f"SLURM_JOB_{kind}"):
        given = [whole_number(word, 0, _MOST) for word in os.environ.get(name, "").split(",")]
        numbers = tuple(number for number in given if number is not None)
        if len(numbers) == len(given) == len(set(numbers)) == len(ids) and numbers != ids:
            return seen.replace(ids=numbers, of_slurm=True)
    return seen


def without_effect(seen: Visible) -> list[str]:
    """A line for each variable that names fewer NPUs than the ranks see: its user may think that it limits them."""
    lines = []
    for name in WITHOUT_EFFECT:
        text = os.environ.get(name, "").strip()
        words = [whole_number(word.strip()) for word in text.split(",")]
        numbers = {word for word in words if word is not None}
        if not text or None in words or seen.limit or (seen.ids is not None and numbers == set(seen.ids)):
            continue
        lines.append(
            tr(
                "note: {variable} does not limit the ranks, because CANN does not read it; choose devices with "
                "--devices or {other}",
                variable=one_line(f"{name}={short(text)}"),
                other=NPUS,
            )
        )
    return lines
