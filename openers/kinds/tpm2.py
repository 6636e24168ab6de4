"""`tpm2`: the TPM of this host gives the file's key while its PCRs are as they were; named `sha256:7`, or more PCRs.

By the programs of tpm2-tools. Nothing of theirs lies on a disk: their files are memory of ours that they reach by its
number, and the key goes through pipes. What is sealed begins with the id of its file, for a TPM binds no text to it.
"""

import os
import re
from collections.abc import Sequence
from time import monotonic
from typing import Self

from custody.kit.key_head import KEY_BYTES, binding
from custody.kit.opener_settings import TPM2_TCTI
from openers import bounded
from openers.hosts import with_host, without_host
from openers.outcomes import Away, BadSettings, NotOurs, Refused

# Named, for left to itself the library also asks whoever listens on a port of this host.
_DEVICE = "device:/dev/tpmrm0"
_NAME = re.compile(r"(sha256|sha384|sha512):([0-9]{1,2}(?:,[0-9]{1,2})*)", re.ASCII)
_DIGEST_BYTES = {"sha256": 32, "sha384": 48, "sha512": 64}
_PCRS = 24
# Opened by the policy alone: by no password, not even an empty one, and by no other TPM.
_ATTRIBUTES = "fixedtpm|fixedparent|adminwithpolicy|noda"
# As part 2 of the TPM 2.0 Library Specification has them. A code with bit 7 also says which of its words was wrong.
_CODE = re.compile(rb"\(0x([0-9A-Fa-f]{1,8})\)")
_FORMAT_ONE, _NUMBER, _LEVEL, _WARNING = 0x080, 0x0BF, 0xF00, 0x900
_POLICY = frozenset({0x09D, 0x128})
_PASSWORD = frozenset({0x08E, 0x0A2})
_MEND = "Open the file by another holder, and lock it to this TPM again."


def wrap(name: str, file: str, key: bytes) -> tuple[str, bytes]:
    """Seal the key of a file to what the PCRs say now."""
    bank, pcrs = _pcrs(name)
    chosen = f"{bank}:{pcrs}"
    with _Tools() as tools:
        primary, policy, public, private, said = (tools.memory() for _ in range(5))
        tools.ask("pcrread", chosen, "-o", said)
        _refuse_unmeasured(said.content(), bank, pcrs)
        tools.make_primary(primary)
        tools.ask("createpolicy", "--policy-pcr", "-l", chosen, "-L", policy)
        made = ("-u", public, "-r", private, "-i", "-")
        tools.ask("create", "-C", primary, "-L", policy, "-a", _ATTRIBUTES, *made, given=_beginning(file) + key)
        return with_host(chosen, name), public.content() + private.content()


def unwrap(name: str, blob: bytes, file: str) -> bytes:
    """Have the TPM open it, which it does while the PCRs are as they were."""
    bank, pcrs = _pcrs(name)
    begins = _beginning(file)
    with _Tools() as tools:
        primary, loaded = tools.memory(), tools.memory()
        public, private = (tools.memory(half) for half in _halves(name, blob))
        tools.make_primary(primary)
        if tools.try_to("load", "-C", primary, "-u", public, "-r", private, "-c", loaded).status:
            raise NotOurs(f"The holder tpm2 {name} is of another TPM, or of this one before it was cleared. {_MEND}")
        opened = tools.try_to("unseal", "-c", loaded, "-p", f"pcr:{bank}:{pcrs}", most=len(begins) + KEY_BYTES)
    if opened.status and _code(opened) in _POLICY:
        raise Refused(
            f"PCR {pcrs} is not as it was when the TPM sealed the key: the firmware, Secure Boot or the way to boot "
            f"changed, perhaps by somebody else. {_MEND}"
        )
    if opened.status or not opened.output.startswith(begins):
        raise NotOurs(f"What the holder tpm2 {name} has is not the key of this file. {_MEND}")
    return opened.output.removeprefix(begins)


def _pcrs(name: str) -> tuple[str, str]:
    said = _NAME.fullmatch(without_host(name))
    if said is None or any(int(pcr) >= _PCRS for pcr in said[2].split(",")):
        raise BadSettings(f"The holder tpm2 {name} is not named by PCRs, such as sha256:7.")
    return said[1], said[2]


def _refuse_unmeasured(digests: bytes, bank: str, pcrs: str) -> None:
    """A PCR that nothing is measured into is the same after every boot, of whatever."""
    size = _DIGEST_BYTES[bank]
    listed = sorted({int(pcr) for pcr in pcrs.split(",")})
    if len(digests) != size * len(listed):
        raise BadSettings(f"The TPM has no PCRs {pcrs} of {bank}.")
    for place, pcr in enumerate(listed):
        if len(set(digests[size * place : size * (place + 1)])) == 1:
            raise BadSettings(f"PCR {pcr} holds no measurement, so it would hold nobody off. Name another.")


def _beginning(file: str) -> bytes:
    return binding(file) + b"\n"


def _halves(name: str, blob: bytes) -> tuple[bytes, bytes]:
    """The public and the private part; each begins with its length in two bytes."""
    first = 2 + int.from_bytes(blob[:2])
    if len(blob) < first + 2 or len(blob) != first + 2 + int.from_bytes(blob[first : first + 2]):
        raise NotOurs(f"The holder tpm2 {name} was changed: it is not what a TPM made. {_MEND}")
    return blob[:first], blob[first:]


def _code(ended: bounded.Ended) -> int:
    """The TPM's own number of what was wrong; 0 where it said none."""
    said = _CODE.search(ended.said)
    code = int(said[1], 16) if said else 0
    return code & _NUMBER if code & _FORMAT_ONE else code


class _Memory:
    """A file in memory, that a tool reaches by the number of its descriptor."""

    def __init__(self, content: bytes) -> None:
        self.number = os.memfd_create("tpm2")
        os.write(self.number, content)

    @property
    def path(self) -> str:
        return f"/proc/self/fd/{self.number}"

    def content(self) -> bytes:
        """Content that the TPM's structures bound: a tool writes nothing else."""
        return os.pread(self.number, 65_536, 0)


class _Tools:
    """The programs of tpm2-tools: one TPM, and one time for all of them."""

    def __init__(self) -> None:
        self._until = monotonic() + bounded.LONGEST_SECONDS
        self._tcti = os.environ.get(TPM2_TCTI) or _DEVICE
        ours = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
        self._environment = ours | {"LC_ALL": "C", TPM2_TCTI: self._tcti, "TSS2_LOG": "all+NONE"}
        self._memory: list[_Memory] = []
        # A resource manager forgets what a program loaded when that ends. A TPM that is asked directly keeps it, and
        # is full after three.
        self._keeps = "tpmrm" not in self._tcti and "tabrmd" not in self._tcti

    def __enter__(self) -> Self:
        device = self._tcti.removeprefix("device:")
        if device != self._tcti and os.path.exists(device) and not os.access(device, os.R_OK | os.W_OK):
            raise Refused(f"This user may not open {device}. Let it into the group of that device, which is tss.")
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._memory:
            os.close(one.number)

    def memory(self, content: bytes = b"") -> _Memory:
        """A file in memory for the tools, until the end of the block."""
        self._memory.append(_Memory(content))
        return self._memory[-1]

    def make_primary(self, primary: _Memory) -> None:
        """Make the key that wraps what is sealed: the TPM makes the same one from its seed each time."""
        made = self.try_to("createprimary", "-C", "o", "-g", "sha256", "-G", "ecc", "-c", primary)
        if made.status and _code(made) in _PASSWORD:
            raise Refused("The TPM's owner hierarchy has a password, and Custody knows none.")
        self._insist("createprimary", made)

    def ask(self, tool: str, *words: str | _Memory, given: bytes = b"") -> None:
        """Run one that has to succeed."""
        self._insist(tool, self.try_to(tool, *words, given=given))

    def try_to(self, tool: str, *words: str | _Memory, given: bytes = b"", most: int = 0) -> bounded.Ended:
        """Run one that may fail; Away where it is the TPM's not being there."""
        ended = self._run(tool, words, given, most)
        if self._keeps:
            self._run("flushcontext", ("-t",), b"", 0)
            self._run("flushcontext", ("-l",), b"", 0)
        if ended.status and b"tcti" in ended.said:
            raise Away(f"The TPM {self._tcti} does not answer.")
        if ended.status and _code(ended) & _LEVEL == _WARNING:
            raise Away(f"The TPM cannot do it now: {ended.complaint}")
        return ended

    def _insist(self, tool: str, ended: bounded.Ended) -> None:
        if ended.status:
            raise BadSettings(f"tpm2_{tool} ended with {ended.status}: {ended.complaint}")

    def _run(self, tool: str, words: Sequence[str | _Memory], given: bytes, most: int) -> bounded.Ended:
        try:
            return bounded.run(
                [f"tpm2_{tool}", "-Q", *(word if isinstance(word, str) else word.path for word in words)],
                given,
                most=most,
                until=self._until,
                environment=self._environment,
                files=[one.number for one in self._memory],
            )
        except bounded.NotStarted:
            raise BadSettings(f"tpm2_{tool} is not there. apt-get install tpm2-tools") from None
        except bounded.SaidTooMuch:
            raise NotOurs(f"tpm2_{tool} wrote more than it may. {_MEND}") from None
        except bounded.TookTooLong:
            raise Away(f"The TPM did not answer tpm2_{tool} in {bounded.LONGEST_SECONDS:.0f} s.") from None
